/* As pthread.c, for libdl.so.2. */
void dlerror(void) {}
void dlopen(void) {}
void dlsym(void) {}

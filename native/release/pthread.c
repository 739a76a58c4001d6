/* Stands for libpthread.so.0 of glibc 2.28 while release wheels are linked (ANYDML_MANYLINUX), and
   is in none of them: names alone, so that those of newer versions are not asked for. */
void pthread_attr_getstacksize(void) {}
void pthread_attr_setstacksize(void) {}
void pthread_create(void) {}
void pthread_getcpuclockid(void) {}
void pthread_once(void) {}
void pthread_sigmask(void) {}

/* A stand-in for libnvrtc: "machine code" is a text that the stub driver takes. Every compilation adds
 * a line to the file that STUB_COMPILED names; STUB_NVRTC_FAIL=1 makes it fail with a log. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *kCode = "stub cubin";

const char *nvrtcGetErrorString(int result) { return result == 6 ? "compilation" : "stub error"; }
int nvrtcVersion(int *major, int *minor) {
  *major = 13, *minor = 0;
  return 0;
}
int nvrtcCreateProgram(void **program, const char *source, const char *name, int headers,
                       const char *const *texts, const char *const *names) {
  (void)source, (void)headers, (void)texts, (void)names;
  *program = strdup(name);
  return 0;
}
int nvrtcDestroyProgram(void **program) {
  free(*program);
  *program = NULL;
  return 0;
}
int nvrtcCompileProgram(void *program, int count, const char *const *options) {
  const char *path = getenv("STUB_COMPILED");
  FILE *file = path != NULL ? fopen(path, "a") : NULL;
  if (file != NULL) {
    fprintf(file, "%s", (char *)program);
    for (int i = 0; i < count; ++i) fprintf(file, " %s", options[i]);
    fprintf(file, "\n");
    fclose(file);
  }
  return getenv("STUB_NVRTC_FAIL") != NULL ? 6 : 0;
}
int nvrtcGetProgramLogSize(void *program, size_t *size) {
  (void)program;
  *size = sizeof "line 1: stub log";
  return 0;
}
int nvrtcGetProgramLog(void *program, char *log) {
  (void)program;
  strcpy(log, "line 1: stub log");
  return 0;
}
int nvrtcGetCUBINSize(void *program, size_t *size) {
  (void)program;
  *size = strlen(kCode) + 1;
  return 0;
}
int nvrtcGetCUBIN(void *program, char *code) {
  (void)program;
  strcpy(code, kCode);
  return 0;
}

/* What newer C libraries have and glibc 2.28 has not, for release wheels (ANYDML_MANYLINUX): the
   compiler's C++ library, which is linked into them, was built with a newer one. */
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* "Never": reference counts are then always changed atomically. */
char __libc_single_threaded = 0;

/* Of std::random_device. */
uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) {
  }
  return value;
}

/* A macro's work before it was a function. The structure is the kernel's on x86-64. */
int fstat(int file, struct stat* status) { return (int)syscall(SYS_fstat, file, status); }

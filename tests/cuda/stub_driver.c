/* A stand-in for libcuda.so.1: memory is the host's, kernels do nothing. It keeps a log of what the
 * host side asks for, and fails where it is told to:
 *   STUB_DEVICES     how many GPUs there are (2)
 *   STUB_FAIL        "cuMemAllocFromPoolAsync=2": a function and what it returns
 *   STUB_SLEEP       milliseconds that waiting for a stream takes
 *   STUB_MEMORY      bytes that can be allocated at a time
 *   STUB_BAD         "5=9": what looks at indices finds 9 at position 5
 *   STUB_CAPTURING   a graph is being captured
 *   STUB_COUNT       how many elements NONZERO_COORDINATES finds; with STUB_UNTOLD the host is not
 *                    told, and has to ask
 * It says nothing about kernels: those run on a GPU (pytest -m gpu). */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long Pointer;

static int contexts[16];
static __thread int current[64], depth = 0; /* as a driver has them: a stack for each thread */
static _Atomic long long lent = 0;
static char log_text[1 << 16];

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void note(const char* text) {
  pthread_mutex_lock(&log_lock);
  if (strlen(log_text) + strlen(text) + 2 < sizeof log_text) {
    strcat(log_text, text);
    strcat(log_text, "\n");
  }
  pthread_mutex_unlock(&log_lock);
}

static int fails(const char* name) {
  const char* told = getenv("STUB_FAIL");
  const size_t length = strlen(name);
  if (told == NULL || strncmp(told, name, length) != 0 || told[length] != '=') return 0;
  return atoi(told + length + 1);
}
#define ENTER(name)                 \
  do {                              \
    const int failed = fails(name); \
    if (failed != 0) return failed; \
  } while (0)

const char* stub_log(void) { return log_text; }
long long stub_lent(void) { return lent; }
int stub_depth(void) { return depth; }

static int count(void) {
  const char* told = getenv("STUB_DEVICES");
  return told == NULL ? 2 : atoi(told);
}

int cuInit(unsigned flags) {
  ENTER("cuInit");
  (void)flags;
  return count() > 0 ? 0 : 100; /* CUDA_ERROR_NO_DEVICE */
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cuDeviceGetCount(int* found) {
  *found = count();
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  ENTER("cuDeviceGet");
  if (ordinal < 0 || ordinal >= count()) return 101; /* CUDA_ERROR_INVALID_DEVICE */
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int length, int device) {
  snprintf(name, (size_t)length, "Stub GPU %d", device);
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = (size_t)8 << 30;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  switch (attribute) {
    case 16:
      *value = 4;
      break; /* multiprocessors */
    case 75:
      *value = 9;
      break; /* major */
    case 97:
      *value = 227 * 1024;
      break; /* shared memory */
    case 115:
      *value = !fails("pools");
      break;
    default:
      *value = 0;
  }
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER("cuDevicePrimaryCtxRetain");
  *context = &contexts[device];
  return 0;
}
int cuCtxGetCurrent(void** context) {
  *context = depth > 0 ? &contexts[current[depth - 1]] : NULL;
  return 0;
}
int cuCtxPushCurrent_v2(void* context) {
  char line[64];
  current[depth++] = (int)((int*)context - contexts);
  snprintf(line, sizeof line, "push %d", current[depth - 1]);
  note(line);
  return 0;
}
int cuCtxPopCurrent_v2(void** context) {
  *context = &contexts[current[--depth]];
  note("pop");
  return 0;
}
int cuCtxSynchronize(void) {
  ENTER("cuCtxSynchronize");
  note("synchronize");
  return 0;
}
int cuModuleLoadData(void** module, const void* image) {
  ENTER("cuModuleLoadData");
  if (strncmp(image, "stub cubin", 10) != 0) return 200; /* CUDA_ERROR_INVALID_IMAGE */
  *module = (void*)image;
  return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  ENTER("cuModuleGetFunction");
  (void)module;
  *function = strdup(name);
  return 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  (void)function, (void)attribute, (void)value;
  return 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads,
                                                size_t shared) {
  (void)function, (void)threads, (void)shared;
  *blocks = 2;
  return 0;
}

/* As native/runtime/cuda/bad_index.cuh has them. */
struct entry {
  unsigned long long number, call;
  long long position, value;
};
struct page {
  unsigned long long taken;
  struct entry entries[256];
};
struct report {
  void* slot;
  struct page* page;
  unsigned long long *published, call;
};

/* As native/nonzero/cuda/nonzero.cuh has it. */
struct starts {
  long long *starts, *count, *told;
  unsigned long long* sum;
};

static struct report latest; /* of what is replayed */

/* What the last kernel of a call does whose indices are bad. */
static void publish(struct report report) {
  const char* told = getenv("STUB_BAD");
  if (told == NULL || strchr(told, '=') == NULL || report.slot == NULL) return;
  if (*report.published - report.page->taken >= 256) return;
  const unsigned long long number = (*report.published)++;
  struct entry* entry = &report.page->entries[number % 256];
  entry->call = report.call;
  entry->position = atoll(told);
  entry->value = atoll(strchr(told, '=') + 1);
  __atomic_store_n(&entry->number, number + 1, __ATOMIC_RELEASE);
  latest = report;
}
void stub_replay(void) { publish(latest); }

int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* stream, void** arguments, void** extra) {
  char line[256];
  ENTER("cuLaunchKernel");
  (void)gz, (void)by, (void)bz, (void)extra, (void)shared;
  snprintf(line, sizeof line, "launch %s %ux%u %u stream %p", (char*)function, gx, gy, bx, stream);
  note(line);
  if (gx == 0 || gy == 0 || bx == 0 || bx > 1024) return 1; /* CUDA_ERROR_INVALID_VALUE */
  const char* told = getenv("STUB_COUNT");
  const int at_end = strcmp(function, "nonzero_starts") == 0;
  const int place = at_end                                      ? 3
                    : strcmp(function, "nonzero_lines") == 0    ? 7
                    : strcmp(function, "nonzero_elements") == 0 ? 6
                                                                : 0;
  if (told != NULL && place != 0) {
    const struct starts to = *(struct starts*)arguments[place];
    const int last = at_end || gx == 1;
    if (last) *to.count = atoll(told);
    if ((last || to.sum != NULL) && to.told != NULL && getenv("STUB_UNTOLD") == NULL)
      *to.told = atoll(told);
  }
  if (strcmp(function, "bad_index_publish") == 0 ||
      (gx == 1 && strncmp(function, "gather_", 7) == 0 &&
       strcmp(function, "gather_check") != 0)) /* a call of one block */
    publish(*(struct report*)arguments[0]);
  if (strcmp(function, "scatter_lines") == 0 && *(long long*)arguments[10] != 0)
    publish(*(struct report*)arguments[9]);
  return 0;
}
int cuLaunchCooperativeKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                              unsigned by, unsigned bz, unsigned shared, void* stream,
                              void** arguments) {
  note("cooperative");
  return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, NULL);
}
struct settings { /* CUlaunchConfig */
  unsigned grid[3], block[3], shared;
  void* stream;
  const int* attributes;
  unsigned attribute_count;
};
int cuLaunchKernelEx(const struct settings* s, void* function, void** arguments, void** extra) {
  if (s->attribute_count != 1) return 1;
  if (s->attributes[0] == 4 && s->attributes[2] > 1 && s->grid[0] % s->attributes[2] == 0)
    note("cluster");
  else if (s->attributes[0] == 6 && s->attributes[2] == 1)
    note("behind");
  else
    return 1;
  return cuLaunchKernel(function, s->grid[0], s->grid[1], s->grid[2], s->block[0], s->block[1],
                        s->block[2], s->shared, s->stream, arguments, extra);
}
int cuMemAlloc_v2(Pointer* address, size_t bytes) {
  ENTER("cuMemAlloc");
  *address = (Pointer)(size_t)malloc(bytes);
  return *address == 0 ? 2 : 0;
}
int cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  ENTER("cuMemHostAlloc");
  (void)flags;
  *memory = malloc(bytes);
  return *memory == NULL ? 2 : 0;
}
int cuMemFreeHost(void* memory) {
  free(memory);
  return 0;
}
int cuMemHostGetDevicePointer_v2(Pointer* address, void* memory, unsigned flags) {
  ENTER("cuMemHostGetDevicePointer");
  (void)flags;
  *address = (Pointer)(size_t)memory;
  return 0;
}
int cuMemPoolCreate(void** pool, const void* properties) {
  ENTER("cuMemPoolCreate");
  (void)properties;
  *pool = contexts;
  return 0;
}
int cuMemPoolSetAttribute(void* pool, int attribute, void* value) {
  (void)pool, (void)attribute, (void)value;
  return 0;
}
int cuMemAllocFromPoolAsync(Pointer* address, size_t bytes, void* pool, void* stream) {
  const char* most = getenv("STUB_MEMORY");
  ENTER("cuMemAllocFromPoolAsync");
  (void)pool, (void)stream;
  if (most != NULL && bytes > strtoull(most, NULL, 10)) return 2;
  char* block = malloc(bytes + 16);
  if (block == NULL) return 2;
  memset(block, 0xA5, bytes + 16);
  memcpy(block, &bytes, sizeof bytes);
  lent += (long long)bytes;
  *address = (Pointer)(size_t)(block + 16);
  return 0;
}
int cuMemFreeAsync(Pointer address, void* stream) {
  char* block = (char*)(size_t)address - 16;
  size_t bytes;
  (void)stream;
  memcpy(&bytes, block, sizeof bytes);
  lent -= (long long)bytes;
  free(block);
  return 0;
}
int cuMemcpyAsync(Pointer to, Pointer from, size_t bytes, void* stream) {
  (void)stream;
  memcpy((void*)(size_t)to, (void*)(size_t)from, bytes);
  return 0;
}
int cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, size_t bytes, void* stream) {
  return cuMemcpyAsync(to, from, bytes, stream);
}
int cuMemcpyDtoHAsync_v2(void* to, Pointer from, size_t bytes, void* stream) {
  ENTER("cuMemcpyDtoHAsync");
  return cuMemcpyAsync((Pointer)(size_t)to, from, bytes, stream);
}
int cuMemcpyHtoDAsync_v2(Pointer to, const void* from, size_t bytes, void* stream) {
  ENTER("cuMemcpyHtoDAsync");
  return cuMemcpyAsync(to, (Pointer)(size_t)from, bytes, stream);
}
int cuMemsetD8Async(Pointer to, unsigned char value, size_t bytes, void* stream) {
  (void)stream;
  memset((void*)(size_t)to, value, bytes);
  return 0;
}
int cuStreamSynchronize(void* stream) {
  const char* told = getenv("STUB_SLEEP");
  ENTER("cuStreamSynchronize");
  (void)stream;
  note("wait");
  if (told != NULL) usleep((unsigned)atoi(told) * 1000);
  return 0;
}
int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  ENTER("cuStreamWaitEvent");
  (void)stream, (void)event, (void)flags;
  note("wait for an event");
  return 0;
}
int cuEventCreate(void** event, unsigned flags) {
  ENTER("cuEventCreate");
  (void)flags;
  *event = contexts;
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  ENTER("cuEventRecord");
  (void)event, (void)stream;
  return 0;
}
int cuEventQuery(void* event) {
  ENTER("cuEventQuery");
  (void)event;
  return 0;
}
int cuEventSynchronize(void* event) {
  ENTER("cuEventSynchronize");
  (void)event;
  return 0;
}
int cuEventDestroy_v2(void* event) {
  (void)event;
  return 0;
}
int cuStreamIsCapturing(void* stream, int* status) {
  (void)stream;
  *status = fails("capturing") || getenv("STUB_CAPTURING") != NULL;
  return 0;
}
int cuGetErrorString(int result, const char** text) {
  *text = result == 2 ? "out of memory" : result == 100 ? "no device" : "stub error";
  return 0;
}

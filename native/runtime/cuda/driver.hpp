// libcuda, loaded at its first use: building and installing do not need CUDA. The names and types
// are the driver API's own.
#pragma once

#include <cstddef>
#include <string>

namespace anydml::cuda {

using CUresult = int;
using CUdevice = int;
using CUcontext = void*;
using CUmodule = void*;
using CUfunction = void*;
using CUstream = void*;
using CUevent = void*;
using CUmemoryPool = void*;
using CUdeviceptr = unsigned long long;

// CUmemPoolProps.
struct MemoryPoolProperties {
  int allocation = 1;  // CU_MEM_ALLOCATION_TYPE_PINNED
  int handles = 0;     // none
  int location = 1;    // CU_MEM_LOCATION_TYPE_DEVICE
  int device = 0;
  void* security = nullptr;
  std::size_t max_size = 0;
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};

// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  int id;
  int padding = 0;
  unsigned value[16] = {};
};
constexpr int kDependentLaunch = 6;   // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
constexpr int kClusterDimension = 4;  // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
struct LaunchSettings {
  unsigned grid[3], block[3], shared;
  CUstream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

constexpr CUresult kSuccess = 0;
constexpr CUresult kOutOfMemory = 2;
constexpr CUresult kNotReady = 600;
constexpr int kMultiprocessors = 16;     // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
constexpr int kMaxShared = 97;           // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
constexpr int kMemoryPools = 115;        // CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
constexpr int kDynamicShared = 8;        // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr int kReleaseThreshold = 4;     // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
constexpr unsigned kWithoutTiming = 2;   // CU_EVENT_DISABLE_TIMING
constexpr unsigned kHostPortable = 1;    // CU_MEMHOSTALLOC_PORTABLE
constexpr unsigned kHostMapped = 2;      // CU_MEMHOSTALLOC_DEVICEMAP

#define ANYDML_CUDA_FUNCTIONS(F)                                                                 \
  F(cuInit, "cuInit", unsigned)                                                                  \
  F(cuDriverGetVersion, "cuDriverGetVersion", int*)                                              \
  F(cuDeviceGetCount, "cuDeviceGetCount", int*)                                                  \
  F(cuDeviceGet, "cuDeviceGet", CUdevice*, int)                                                  \
  F(cuDeviceGetName, "cuDeviceGetName", char*, int, CUdevice)                                    \
  F(cuDeviceTotalMem, "cuDeviceTotalMem_v2", std::size_t*, CUdevice)                             \
  F(cuDeviceGetAttribute, "cuDeviceGetAttribute", int*, int, CUdevice)                           \
  F(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", CUcontext*, CUdevice)                  \
  F(cuCtxGetCurrent, "cuCtxGetCurrent", CUcontext*)                                              \
  F(cuCtxPushCurrent, "cuCtxPushCurrent_v2", CUcontext)                                          \
  F(cuCtxPopCurrent, "cuCtxPopCurrent_v2", CUcontext*)                                           \
  F(cuCtxSynchronize, "cuCtxSynchronize")                                                        \
  F(cuModuleLoadData, "cuModuleLoadData", CUmodule*, const void*)                                \
  F(cuModuleGetFunction, "cuModuleGetFunction", CUfunction*, CUmodule, const char*)              \
  F(cuFuncSetAttribute, "cuFuncSetAttribute", CUfunction, int, int)                              \
  F(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor",  \
    int*, CUfunction, int, std::size_t)                                                          \
  F(cuLaunchKernel, "cuLaunchKernel", CUfunction, unsigned, unsigned, unsigned, unsigned,        \
    unsigned, unsigned, unsigned, CUstream, void**, void**)                                      \
  F(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel", CUfunction, unsigned, unsigned,      \
    unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**)                          \
  F(cuLaunchKernelEx, "cuLaunchKernelEx", const LaunchSettings*, CUfunction, void**, void**)     \
  F(cuMemPoolCreate, "cuMemPoolCreate", CUmemoryPool*, const MemoryPoolProperties*)              \
  F(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", CUmemoryPool, int, void*)                    \
  F(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", CUdeviceptr*, std::size_t, CUmemoryPool, \
    CUstream)                                                                                    \
  F(cuMemFreeAsync, "cuMemFreeAsync", CUdeviceptr, CUstream)                                     \
  F(cuMemAlloc, "cuMemAlloc_v2", CUdeviceptr*, std::size_t)                                      \
  F(cuMemHostAlloc, "cuMemHostAlloc", void**, std::size_t, unsigned)                             \
  F(cuMemFreeHost, "cuMemFreeHost", void*)                                                       \
  F(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2", CUdeviceptr*, void*, unsigned)    \
  F(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", CUdeviceptr, CUdeviceptr, std::size_t, CUstream)  \
  F(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", void*, CUdeviceptr, std::size_t, CUstream)        \
  F(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", CUdeviceptr, const void*, std::size_t, CUstream)  \
  F(cuMemsetD8Async, "cuMemsetD8Async", CUdeviceptr, unsigned char, std::size_t, CUstream)       \
  F(cuStreamSynchronize, "cuStreamSynchronize", CUstream)                                        \
  F(cuStreamWaitEvent, "cuStreamWaitEvent", CUstream, CUevent, unsigned)                         \
  F(cuEventCreate, "cuEventCreate", CUevent*, unsigned)                                          \
  F(cuEventRecord, "cuEventRecord", CUevent, CUstream)                                           \
  F(cuEventQuery, "cuEventQuery", CUevent)                                                       \
  F(cuEventSynchronize, "cuEventSynchronize", CUevent)                                           \
  F(cuEventDestroy, "cuEventDestroy_v2", CUevent)                                                \
  F(cuStreamIsCapturing, "cuStreamIsCapturing", CUstream, int*)                                  \
  F(cuGetErrorString, "cuGetErrorString", CUresult, const char**)

struct Driver {
#define ANYDML_CUDA_MEMBER(member, symbol, ...) CUresult (*member)(__VA_ARGS__) = nullptr;
  ANYDML_CUDA_FUNCTIONS(ANYDML_CUDA_MEMBER)
#undef ANYDML_CUDA_MEMBER

  int version = 0;  // as 13000
  int devices = 0;

  // Throws DeviceFailed for anything but success, and AllocationFailed if memory ran out.
  void check(CUresult result, const char* what) const;
  std::string words(CUresult result) const;
};

// The driver, loaded and initialised once. Throws DeviceFailed with what is missing. Also throws in
// a process that was forked after the driver was used, because it does not work there.
const Driver& driver();

// The library to load, before the first use: for tests. "libcuda.so.1" otherwise.
void set_driver_library(const std::string& path);

}  // namespace anydml::cuda

#include "runtime/cuda/queue.hpp"

#include <chrono>
#include <utility>

#include "runtime/cpu/memory.hpp"
#include "runtime/cuda/device.hpp"

namespace anydml::cuda {
namespace {

// How long the host polls for a counter before it waits in the driver, which notices it 8 us later
// (benchmarks/gpu-h200.md).
constexpr std::chrono::microseconds kLookedFor{3000};

constexpr Int kNumber = 16;  // bytes of the longest

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

}  // namespace

Queue::Queue(Device& device, void* stream) : device_(device), stream_(stream) { enter(); }

void Queue::enter() {
  const Driver& cuda = driver();
  CUcontext current = nullptr;
  cuda.check(cuda.cuCtxGetCurrent(&current), "cuCtxGetCurrent");
  if (current != device_.context) {
    cuda.check(cuda.cuCtxPushCurrent(device_.context), "cuCtxPushCurrent");
    pushed_ = true;
  }
}

void Queue::leave() {
  CUcontext own = nullptr;
  if (pushed_) driver().cuCtxPopCurrent(&own);
  pushed_ = false;
}

Queue::~Queue() {
  try {
    const Driver& cuda = driver();
    if (!scratch_.empty()) {
      if (!pushed_) enter();
      for (void* block : scratch_) cuda.cuMemFreeAsync(address(block), stream_);
    }
    leave();
  } catch (const DeviceFailed&) {  // a child of fork, whose driver is gone with all memory
  }
}

void Queue::name_call(const CallName& name) { name_ = std::make_unique<CallName>(name); }

bool Queue::captured() const {
  int capturing = 0;
  return driver().cuStreamIsCapturing(stream_, &capturing) == kSuccess && capturing != 0;
}

BadIndexReport Queue::report(const Tensor& indices, const Layout& data, int axis, int count) {
  const bool in_graph = captured();
  BadIndices& bad_indices = device_.bad_indices;
  if (!bad_indices.ready()) {
    if (in_graph)
      throw DeviceFailed(
          "a CUDA graph is being captured, and no call with indices has run on this GPU yet; call "
          "the function once before the capture");
    function("bad_index", "bad_index_publish",
             {});  // nothing may fail between this check and the end of the call
    bad_indices.prepare();
  }
  BadIndexSlot* slot = nullptr;
  if (in_graph) {
    slot = scratch_of<BadIndexSlot>(1);
    zero(slot, sizeof *slot);
  }
  return bad_indices.begin(name_ != nullptr ? *name_ : CallName{}, indices, data, axis, count,
                           slot);
}

void Queue::publish_report(const BadIndexReport& report, void* result, Int bytes) {
  launch_dependent(function("bad_index", "bad_index_publish", {}), {}, {kPublishThreads}, 0, report,
                   static_cast<char*>(result), Offset{bytes});
}

void Queue::wait(bool device) {
  const Driver& cuda = driver();
  if (device) {
    const unsigned long long latest = device_.bad_indices.latest();
    cuda.check(cuda.cuCtxSynchronize(), "cuCtxSynchronize");
    device_.bad_indices.all_waited(latest);
  } else {
    cuda.check(cuda.cuStreamSynchronize(stream_), "cuStreamSynchronize");
  }
}

int Queue::multiprocessors() const { return device_.facts.multiprocessors; }

unsigned Queue::max_shared() const { return device_.max_shared; }

void* Queue::scratch(Int bytes) {
  const Driver& cuda = driver();
  scratch_.reserve(scratch_.size() + 1);  // so that no allocation below can be leaked
  CUdeviceptr block = 0;
  const auto size = static_cast<std::size_t>(bytes > 0 ? bytes : 1);
  const CUresult result = cuda.cuMemAllocFromPoolAsync(&block, size, device_.pool, stream_);
  if (result == kOutOfMemory) throw AllocationFailed(size, "scratch on the GPU");
  cuda.check(result, "cuMemAllocFromPoolAsync");
  scratch_.push_back(reinterpret_cast<void*>(block));
  return scratch_.back();
}

Function& Queue::function(const char* source, const char* entry,
                          std::initializer_list<Define> defines) {
  return device_.function(source, entry, defines.begin(), defines.size());
}

int Queue::resident(Function& function, unsigned threads, unsigned shared) {
  const Driver& cuda = driver();
  allow_shared(function, shared);
  int blocks = 0;
  cuda.check(cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function.handle,
                                                              static_cast<int>(threads), shared),
             "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  return blocks;
}

void Queue::allow_shared(Function& function, unsigned shared) {
  // Without asking, 48 KiB less what the kernel declares.
  if (shared <= 32u * 1024 || shared <= function.dynamic_shared) return;
  const Driver& cuda = driver();
  cuda.check(cuda.cuFuncSetAttribute(function.handle, kDynamicShared, static_cast<int>(shared)),
             "cuFuncSetAttribute");
  function.dynamic_shared = shared;
}

bool Queue::has_clusters() const { return device_.facts.major >= 9; }

void Queue::launch_with(Function& function, Dim grid, Dim block, unsigned shared, void** arguments,
                        Way way, unsigned cluster) {
  const Driver& cuda = driver();
  allow_shared(function, shared);
  const bool dependent = way == Way::dependent && device_.facts.major >= 9 && !captured();
  if (dependent || cluster > 1) {
    LaunchAttribute attribute{dependent ? kDependentLaunch : kClusterDimension};
    attribute.value[0] = dependent ? 1 : cluster;
    attribute.value[1] = attribute.value[2] = dependent ? 0 : 1;
    const LaunchSettings settings{
        {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, stream_, &attribute, 1};
    cuda.check(cuda.cuLaunchKernelEx(&settings, function.handle, arguments, nullptr),
               "cuLaunchKernelEx");
    return;
  }
  if (way == Way::cooperative) {
    cuda.check(cuda.cuLaunchCooperativeKernel(function.handle, grid.x, grid.y, grid.z, block.x,
                                              block.y, block.z, shared, stream_, arguments),
               "cuLaunchCooperativeKernel");
    return;
  }
  cuda.check(cuda.cuLaunchKernel(function.handle, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                 shared, stream_, arguments, nullptr),
             "cuLaunchKernel");
}

void Queue::zero(void* target, Int bytes) {
  if (bytes <= 0) return;
  const Driver& cuda = driver();
  cuda.check(cuda.cuMemsetD8Async(address(target), 0, static_cast<std::size_t>(bytes), stream_),
             "cuMemsetD8Async");
}

void Queue::copy(void* target, const void* source, Int bytes) {
  if (bytes <= 0) return;
  const Driver& cuda = driver();
  cuda.check(cuda.cuMemcpyDtoDAsync(address(target), address(source),
                                    static_cast<std::size_t>(bytes), stream_),
             "cuMemcpyDtoDAsync");
}

void Queue::write(void* target, const void* host, Int bytes) {
  if (bytes <= 0) return;
  const Driver& cuda = driver();
  if (bytes <= kNumber) {  // runs of equal bytes, which a CUDA graph can have
    const auto* const from = static_cast<const unsigned char*>(host);
    for (Int at = 0, end = 1; at < bytes; at = end) {
      while (end < bytes && from[end] == from[at]) ++end;
      cuda.check(cuda.cuMemsetD8Async(address(target) + static_cast<std::size_t>(at), from[at],
                                      static_cast<std::size_t>(end - at), stream_),
                 "cuMemsetD8Async");
    }
    return;
  }
  cuda.check(
      cuda.cuMemcpyHtoDAsync(address(target), host, static_cast<std::size_t>(bytes), stream_),
      "cuMemcpyHtoDAsync");
  cuda.check(cuda.cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

void Queue::read(void* host, const void* source, Int bytes) {
  if (bytes <= 0) return;
  const Driver& cuda = driver();
  if (captured())
    throw DeviceFailed(
        "a CUDA graph is being captured, and what has to be known on the host (how many results "
        "there are) cannot be part of it");
  cuda.check(
      cuda.cuMemcpyDtoHAsync(host, address(source), static_cast<std::size_t>(bytes), stream_),
      "cuMemcpyDtoHAsync");
  cuda.check(cuda.cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

HostCounters::Slot Queue::counter_for_host() {
  if (counter_.device == nullptr && !captured()) counter_ = device_.host_counters.take();
  return counter_;
}

Int Queue::counter_value(const Int* source) {
  Int number = HostCounters::kNone;
  if (counter_.device != nullptr) {
    const auto look = [&] {
      number = __atomic_load_n(counter_.host, __ATOMIC_ACQUIRE);
      return number != HostCounters::kNone;
    };
    const auto until = std::chrono::steady_clock::now() + kLookedFor;
    while (!look() && std::chrono::steady_clock::now() < until) pause();
    // For longer work the host waits in the driver, which also reports failures.
    if (number == HostCounters::kNone) {
      wait(false);
      look();
    }
    device_.host_counters.give(std::exchange(counter_, {}));
  }
  if (number == HostCounters::kNone) read(&number, source, sizeof number);
  return number;
}

}  // namespace anydml::cuda

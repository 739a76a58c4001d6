#include "runtime/cuda/host_counters.hpp"

#include "runtime/cuda/driver.hpp"

namespace anydml::cuda {

HostCounters::Slot HostCounters::take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (host_ == nullptr) {
    const Driver& cuda = driver();
    void* page = nullptr;
    CUdeviceptr device_address = 0;
    if (cuda.cuMemHostAlloc(&page, kSlots * kSlotStride * sizeof(Int),
                            kHostPortable | kHostMapped) != kSuccess)
      return {};
    if (cuda.cuMemHostGetDevicePointer(&device_address, page, 0) != kSuccess) {
      cuda.cuMemFreeHost(page);
      return {};
    }
    constexpr std::size_t kSums = kSlots * kSlotStride * sizeof *sums_;
    CUdeviceptr sums = 0;
    if (cuda.cuMemAlloc(&sums, kSums) != kSuccess ||
        cuda.cuMemsetD8Async(sums, 0, kSums, nullptr) != kSuccess ||
        cuda.cuStreamSynchronize(nullptr) != kSuccess) {
      cuda.cuMemFreeHost(page);
      return {};
    }
    sums_ = reinterpret_cast<unsigned long long*>(sums);
    for (std::size_t i = 0; i < kSlots; ++i) free_.push_back(i);
    host_ = static_cast<Int*>(page);
    device_ = reinterpret_cast<Int*>(device_address);
  }
  if (free_.empty()) return {};
  const std::size_t at = free_.back() * kSlotStride;
  free_.pop_back();
  __atomic_store_n(host_ + at, kNone, __ATOMIC_RELAXED);
  return {host_ + at, device_ + at, sums_ + at};
}

void HostCounters::give(const Slot& slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(static_cast<std::size_t>(slot.host - host_) / kSlotStride);
}

}  // namespace anydml::cuda

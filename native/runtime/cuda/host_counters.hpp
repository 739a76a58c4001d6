// Counters in mapped host memory that the host polls instead of synchronizing.
#pragma once

#include <mutex>
#include <vector>

#include "runtime/plans.hpp"

namespace anydml::cuda {

class HostCounters {
 public:
  static constexpr Int kNone = -1;  // the value of a slot before a number arrives; numbers are >= 0

  struct Slot {
    Int* host = nullptr;
    Int* device = nullptr;              // null: no free slot
    unsigned long long* sum = nullptr;  // a word in device memory; 0, and left so by the kernels
  };
  // A slot that holds kNone; null if all are taken or the allocation fails. The device's context is
  // current.
  Slot take();
  // Enqueued after the kernel that writes it.
  void give(const Slot& slot);

 private:
  static constexpr std::size_t kSlots = 64, kSlotStride = 16;  // of numbers: two lines

  std::mutex mutex_;
  Int* host_ = nullptr;
  Int* device_ = nullptr;
  unsigned long long* sums_ = nullptr;
  std::vector<std::size_t> free_;
};

}  // namespace anydml::cuda

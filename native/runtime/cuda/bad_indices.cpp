#include "runtime/cuda/bad_indices.hpp"

#include <cstring>

#include "runtime/cuda/driver.hpp"

namespace anydml::cuda {
namespace {

std::atomic<unsigned long long> numbers{0};
thread_local unsigned long long latest_here = 0;

unsigned long long number_of(const BadIndexEntry& entry) {
  return __atomic_load_n(&entry.number, __ATOMIC_ACQUIRE);
}

}  // namespace

unsigned long long BadIndices::latest_of_thread() { return latest_here; }

void BadIndices::prepare() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ready()) return;
  const Driver& cuda = driver();
  constexpr std::size_t bytes = (kCalls + 1) * sizeof(BadIndexSlot);
  calls_.resize(kCalls);
  if (slots_ == nullptr) {
    CUdeviceptr slots = 0;
    const CUresult result = cuda.cuMemAlloc(&slots, bytes);
    if (result == kOutOfMemory) throw AllocationFailed(bytes, "what calls find, on the GPU");
    cuda.check(result, "cuMemAlloc");
    slots_ = reinterpret_cast<BadIndexSlot*>(slots);
  }
  cuda.check(cuda.cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(slots_), 0, bytes, nullptr),
             "cuMemsetD8Async");
  cuda.check(cuda.cuStreamSynchronize(nullptr), "cuStreamSynchronize");
  void* page = nullptr;
  cuda.check(cuda.cuMemHostAlloc(&page, sizeof(BadIndexPage), kHostPortable | kHostMapped),
             "cuMemHostAlloc");
  std::memset(page, 0, sizeof(BadIndexPage));
  CUdeviceptr device_address = 0;
  const CUresult result = cuda.cuMemHostGetDevicePointer(&device_address, page, 0);
  if (result != kSuccess) cuda.cuMemFreeHost(page);
  cuda.check(result, "cuMemHostGetDevicePointer");
  device_page_ = reinterpret_cast<BadIndexPage*>(device_address);
  page_.store(static_cast<BadIndexPage*>(page), std::memory_order_release);
}

BadIndexReport BadIndices::begin(const CallName& name, const Tensor& indices, const Layout& data,
                                 int axis, int count, BadIndexSlot* captured) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const unsigned long long number = ++numbers;
  Call& call = captured != nullptr ? captured_[number] : calls_[number % kCalls];
  call.number = number;
  call.indices = name.indices;
  call.axis = axis + name.data_padding;
  call.is_signed = is_signed_type(indices.type);
  call.sizes.assign(static_cast<std::size_t>(name.indices_padding), 1);
  call.sizes.insert(call.sizes.end(), indices.layout.sizes,
                    indices.layout.sizes + indices.layout.rank);
  call.bounds.assign(data.sizes + axis, data.sizes + axis + count);
  latest_here = number;
  latest_ = number;
  BadIndexSlot* const slot = captured != nullptr ? captured : slots_ + number % kCalls;
  return {slot, device_page_, reinterpret_cast<unsigned long long*>(slots_ + kCalls), number};
}

bool BadIndices::any() const {
  const BadIndexPage* const page = page_.load(std::memory_order_acquire);
  if (page == nullptr) return false;
  const unsigned long long taken = taken_.load(std::memory_order_relaxed);
  return number_of(page->entries[taken % BadIndexPage::kEntries]) == taken + 1;
}

bool BadIndices::open() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return latest_ > waited_ || !captured_.empty() || any();
}

BadIndex BadIndices::described(const BadIndexEntry& entry) const {
  BadIndex found;
  found.position = entry.position;
  found.value = entry.value;
  const auto captured = captured_.find(entry.call);
  found.captured = captured != captured_.end();
  const Call& call = found.captured ? captured->second : calls_[entry.call % kCalls];
  if (call.number != entry.call) return found;  // of an older call
  const auto coordinate = static_cast<std::size_t>(entry.position) % call.bounds.size();
  found.call = call.number;
  found.indices = call.indices;
  found.sizes = call.sizes;
  found.is_signed = call.is_signed;
  found.axis = call.axis + static_cast<int>(coordinate);
  found.size = call.bounds[coordinate];
  return found;
}

bool BadIndices::take(BadIndex& found) {
  if (!any()) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  BadIndexPage* const page = page_;
  Int count = 0;
  unsigned long long taken = taken_;
  for (;; ++taken, ++count) {
    const BadIndexEntry& entry = page->entries[taken % BadIndexPage::kEntries];
    if (number_of(entry) != taken + 1) break;
    BadIndex next = described(entry);
    if (count == 0 || next.call < found.call) found = std::move(next);
  }
  taken_ = taken;
  __atomic_store_n(&page->taken, taken, __ATOMIC_RELEASE);
  found.more = count - 1;
  return count > 0;
}

}  // namespace anydml::cuda

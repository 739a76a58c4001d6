#include "runtime/cpu/memory.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "runtime/cpu/control_groups.hpp"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace anydml {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHuge = std::size_t{2} << 20;

// Smaller blocks are left to the allocator, which reuses them well.
constexpr std::size_t kSmallest = std::size_t{64} << 10;

// Above this, rounding a size up could overflow; no machine has the memory.
constexpr std::size_t kLargest = ~std::size_t{0} / 4;

// The initial limit of kept bytes, and the largest share of the machine's memory that it may be.
constexpr std::size_t kMaxCachedBytes = std::size_t{1} << 30;
constexpr std::size_t kCachedShare = 8;

// A header directly before the returned bytes.
struct Header {
  void* raw;             // the system's address
  std::size_t capacity;  // bytes behind the header
  bool pooled;
};
static_assert(sizeof(Header) <= kAlignment && kAlignment % alignof(Header) == 0);

Header* header_of(void* block) { return static_cast<Header*>(block) - 1; }

std::size_t rounded(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// The system memory that a small block takes.
constexpr std::size_t small_total(std::size_t capacity) {
  return capacity + sizeof(Header) + kAlignment - 1;
}

void* with_header(void* raw, std::size_t capacity, bool pooled) {
  const auto first = reinterpret_cast<std::uintptr_t>(raw) + sizeof(Header);
  void* const block =
      static_cast<char*>(raw) + (rounded(first, kAlignment) - first) + sizeof(Header);
  *header_of(block) = {raw, capacity, pooled};
#if defined(__SANITIZE_ADDRESS__)  // all of it is the system's block
  if (__asan_region_is_poisoned(header_of(block), sizeof(Header) + capacity)) std::abort();
#endif
  return block;
}

// For the address sanitizer a block ends with the requested bytes: neither the capacity nor the
// alignment slack counts.
void set_end([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  if (block == nullptr) return;
  const Header& header = *header_of(block);
  char* const end = header.pooled ? static_cast<char*>(block) + header.capacity
                                  : static_cast<char*>(header.raw) + small_total(header.capacity);
  char* const last = static_cast<char*>(block) + bytes;
  __asan_unpoison_memory_region(block, bytes);
  __asan_poison_memory_region(last, static_cast<std::size_t>(end - last));
#endif
}

// For blocks of a few hundred bytes malloc is several times as fast as posix_memalign.
void* small_acquire(std::size_t bytes) {
  const std::size_t capacity = rounded(std::max<std::size_t>(bytes, 1), kAlignment);
  void* const raw = std::malloc(small_total(capacity));
  return raw != nullptr ? with_header(raw, capacity, false) : nullptr;
}

void* system_acquire(std::size_t capacity) {
  const std::size_t total = capacity + kAlignment;
  const bool huge = capacity >= 2 * kHuge;
  void* raw = nullptr;
  if (posix_memalign(&raw, huge ? kHuge : kAlignment, total) != 0) return nullptr;
#if defined(MADV_HUGEPAGE)
  if (huge) madvise(raw, total, MADV_HUGEPAGE);  // fresh pages cost more than the copy into them
#endif
  return with_header(raw, capacity, true);
}

void system_release(void* block) { std::free(header_of(block)->raw); }

// The memory that this process may use: the machine's, or less in a container.
std::size_t available_memory() {
  std::size_t physical = ~std::size_t{0};
#if defined(_SC_PHYS_PAGES)
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0)
    physical = static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);
#endif
  return memory_limit(physical);
}

class Blocks {
 public:
  void* acquire(std::size_t bytes) {
    const std::size_t capacity = rounded(bytes, bytes >= 2 * kHuge ? kHuge : 4096);
    if (void* const cached = take(capacity)) return cached;
    void* block = system_acquire(capacity);
    if (block == nullptr) {  // release kept blocks, then try once more
      trim(0);
      block = system_acquire(capacity);
      if (block == nullptr) return nullptr;
    }
    std::lock_guard<std::mutex> lock(mutex);
    lend(capacity);
    return block;
  }

  // Never throws: it runs in destructors.
  void release(void* block) noexcept {
    const std::size_t capacity = header_of(block)->capacity;
    bool is_cached = false;
    std::size_t max_bytes;
    {
      std::lock_guard<std::mutex> lock(mutex);
      lent -= capacity;
      max_bytes = limit;
      if (capacity <= limit) is_cached = cache_block({block, capacity});
    }
    if (is_cached)
      trim(max_bytes);
    else
      system_release(block);
  }

  // Releases the oldest blocks until at most `limit` bytes are kept. Calls the system without
  // holding the lock, because releasing large blocks takes long.
  void trim(std::size_t max_bytes) {
    for (;;) {
      void* oldest;
      {
        std::lock_guard<std::mutex> lock(mutex);
        if (held <= max_bytes) return;
        oldest = free_.front().block;
        remove(free_.begin());
      }
      system_release(oldest);
    }
  }

  std::mutex mutex;
  std::size_t limit = pool_limit_for(available_memory());
  std::size_t held = 0;
  std::size_t lent = 0;
  std::size_t peak = 0;  // of lent

 private:
  struct CachedBlock {
    void* block;
    std::size_t capacity;  // checked here too: the search must not visit every block
  };

  void lend(std::size_t capacity) {
    lent += capacity;
    peak = std::max(peak, lent);
  }

  // Best fit, the newest first: its pages are most likely cached.
  void* take(std::size_t capacity) {
    std::lock_guard<std::mutex> lock(mutex);
    auto best = free_.end();
    for (auto it = free_.end(); it != free_.begin();) {
      --it;
      // At most a quarter more than requested: a small array must not hold a large block.
      if (it->capacity < capacity || it->capacity - capacity > capacity / 4) continue;
      if (best == free_.end() || it->capacity < best->capacity) best = it;
      if (best->capacity == capacity) break;
    }
    if (best == free_.end()) return nullptr;
    void* const block = best->block;
    lend(best->capacity);
    remove(best);
    return block;
  }

  bool cache_block(CachedBlock entry) noexcept {
    try {
      free_.push_back(entry);
    } catch (const std::bad_alloc&) {
      return false;
    }
    held += entry.capacity;
    return true;
  }

  void remove(std::vector<CachedBlock>::iterator entry) {
    held -= entry->capacity;
    free_.erase(entry);
  }

  std::vector<CachedBlock> free_;  // oldest first
};

// Never destroyed: arrays may die after static destructors have run.
Blocks& blocks() {
  static Blocks* const instance = new Blocks;
  return *instance;
}

// A forked child inherits the pool with no thread in the middle of a change. Created when the
// module is loaded, so that no fork happens while the first call creates it.
const bool fork_safe = [] {
  blocks();
  return pthread_atfork([] { blocks().mutex.lock(); }, [] { blocks().mutex.unlock(); },
                        [] { blocks().mutex.unlock(); }) == 0;
}();

}  // namespace

std::size_t pool_limit_for(std::size_t memory) {
  return std::min(kMaxCachedBytes, memory / kCachedShare);
}

void* pool_acquire(std::size_t bytes) {
  (void)fork_safe;
  if (bytes > kLargest) return nullptr;
  void* const block = bytes < kSmallest ? small_acquire(bytes) : blocks().acquire(bytes);
  set_end(block, bytes);
  return block;
}

void pool_release(void* block) {
  if (block == nullptr) return;
  set_end(block, header_of(block)->capacity);
  if (header_of(block)->pooled)
    blocks().release(block);
  else
    system_release(block);
}

PoolState pool_state() {
  Blocks& all = blocks();
  std::lock_guard<std::mutex> lock(all.mutex);
  return {all.limit, all.held, all.lent};
}

std::size_t pool_peak() {
  Blocks& all = blocks();
  std::lock_guard<std::mutex> lock(all.mutex);
  return std::exchange(all.peak, all.lent);
}

void pool_set_limit(std::size_t bytes) {
  Blocks& all = blocks();
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    all.limit = bytes;
  }
  all.trim(bytes);
}

void stream_copy(void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  auto* out = static_cast<char*>(target);
  const auto* in = static_cast<const char*>(source);
#if defined(__AVX512F__) || defined(__AVX__) || defined(__SSE2__)
#if defined(__AVX512F__)
  constexpr std::size_t width = 64;
#elif defined(__AVX__)
  constexpr std::size_t width = 32;
#else
  constexpr std::size_t width = 16;
#endif
  const std::size_t head = std::min<std::size_t>(
      bytes, (kAlignment - reinterpret_cast<std::uintptr_t>(out) % kAlignment) % kAlignment);
  std::memcpy(out, in, head);
  out += head;
  in += head;
  bytes -= head;
  for (; bytes >= 64; bytes -= 64, out += 64, in += 64) {
    for (std::size_t i = 0; i < 64; i += width) {
#if defined(__AVX512F__)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(out + i), _mm512_loadu_si512(in + i));
#elif defined(__AVX__)
      _mm256_stream_si256(reinterpret_cast<__m256i*>(out + i),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i)));
#else
      _mm_stream_si128(reinterpret_cast<__m128i*>(out + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i)));
#endif
    }
  }
#endif
  std::memcpy(out, in, bytes);
}

}  // namespace anydml

// Output and scratch memory: a capped pool of 64-byte-aligned blocks, and copies that know that
// fresh pages and read-for-ownership cost more than the copy itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "common/layout.hpp"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace anydml {

// A block of at least `bytes`, 64-byte aligned, contents undefined; null when the system has none.
void* pool_acquire(std::size_t bytes);
void pool_release(void* block);

// Blocks below 64 KB are neither kept nor counted: the allocator reuses them well.
struct PoolState {
  std::size_t limit;  // most bytes kept for reuse; 0 switches the pool off
  std::size_t held;   // bytes kept now
  std::size_t lent;   // bytes handed out now
};
PoolState pool_state();
// The initial limit in a process that may use this much memory.
std::size_t pool_limit_for(std::size_t memory);
std::size_t pool_peak();                 // the peak of lent bytes since the last call of this
void pool_set_limit(std::size_t bytes);  // returns memory above the new limit to the system

// A failed allocation: its size and purpose.
class AllocationFailed : public std::bad_alloc {
 public:
  AllocationFailed(unsigned long long bytes, const char* purpose)
      : bytes_(bytes), purpose_(purpose) {}
  const char* what() const noexcept override { return purpose_; }
  unsigned long long bytes() const { return bytes_; }  // the largest value: more than that
  const char* purpose() const { return purpose_; }     // a string literal

 private:
  unsigned long long bytes_;
  const char* purpose_;
};

// A block for `count` elements, or AllocationFailed. All sizes of scratch are converted to bytes,
// and checked, here.
void* scratch_acquire(Int count, std::size_t element_size);

// Scratch for the length of a kernel. Throws AllocationFailed, so take it before threads start and
// before anything is written.
template <class T>
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(Int count) { reset(count); }
  Scratch(Scratch&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~Scratch() { pool_release(data_); }

  void reset(Int count) {
    pool_release(data_);
    data_ = nullptr;
    data_ = static_cast<T*>(scratch_acquire(count, sizeof(T)));
  }
  T* get() const { return data_; }
  T& operator[](Int i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
};

// Sequential writes of more output than this go past the cache: it would not stay there.
#if defined(ANYDML_STREAM_BYTES)  // lowered by tests, so that small data is streamed too
constexpr Int kStreamBytes = ANYDML_STREAM_BYTES;
#else
constexpr Int kStreamBytes = Int{8} << 20;
#endif

// memcpy whose stores go past the cache. The caller ends its last one with stream_fence().
void stream_copy(void* target, const void* source, std::size_t bytes);

inline void stream_fence() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_sfence();
#endif
}

template <class T>
inline T load(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}
template <class T>
inline void store(void* address, T value) {
  std::memcpy(address, &value, sizeof(T));
}

}  // namespace anydml

// Output and scratch memory: a capped pool of 64-byte-aligned blocks, and copies that know that
// fresh pages and read-for-ownership cost more than the copy itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "../common/layout.hpp"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace anydml {

// A block of at least `bytes`, 64-byte aligned, contents undefined; null when the system has none.
void* pool_acquire(std::size_t bytes);
void pool_release(void* block);

// Blocks below 64 KB are not kept and not counted: the allocator reuses them well.
struct PoolState {
  std::size_t limit;  // most bytes kept for reuse; 0 switches the pool off
  std::size_t held;   // bytes kept now
  std::size_t lent;   // bytes handed out now
};
PoolState pool_state();
// The limit at first, where a process may use so much memory.
std::size_t pool_limit_for(std::size_t memory);
std::size_t pool_peak();                 // most bytes lent at a time since the last call of this
void pool_set_limit(std::size_t bytes);  // returns memory above the new limit to the system

// Scratch for the length of a kernel. Throws std::bad_alloc, so take it before threads start and
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
    if (count <= static_cast<Int>(~0ull / 4 / sizeof(T)))
      data_ = static_cast<T*>(pool_acquire(static_cast<std::size_t>(count) * sizeof(T)));
    if (data_ == nullptr) throw std::bad_alloc();
  }
  T* get() const { return data_; }
  T& operator[](Int i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
};

// Above this many bytes of output a sequential write goes past the cache: it would not stay there.
constexpr Int kStreamBytes = Int{8} << 20;

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

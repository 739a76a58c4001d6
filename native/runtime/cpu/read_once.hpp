// Reading index values: once for each use, by loads that the compiler cannot repeat.
//
// Another thread may change an index tensor while a kernel runs. A value that has been checked must
// be the value that is used, so kernels work on private copies: in a register, or in a buffer that
// stays in the first cache. The barrier behind each load makes the copy the only place the value
// can come from; without it a compiler may load the value a second time after the check.
#pragma once

#include <limits>

#include "common/types.hpp"
#include "runtime/cpu/copy.hpp"

namespace anydml {

#if defined(ANYDML_TEST_READS)
// Test hook: sees every reading of a value of `size` bytes, and may replace the value.
void on_read(const char* address, char* copy, Int size);
#else
inline void on_read(const char*, char*, Int) {}
#endif

// The value at an address.
template <class T>
inline T read_once(const char* address) {
  T value = load<T>(address);
  asm volatile("" : "+r"(value));
  on_read(address, reinterpret_cast<char*>(&value), Int{sizeof(T)});
  return value;
}

// An index as 64 bits; those of uint64 that have more become the greatest.
inline Int index_once(DataType type, const char* address) {
  switch (type) {
    case DataType::int32:
      return read_once<int32_t>(address);
    case DataType::uint32:
      return read_once<uint32_t>(address);
    default: {
      const Int number = read_once<Int>(address);
      return number < 0 && type == DataType::uint64 ? std::numeric_limits<Int>::max() : number;
    }
  }
}

// Ends the copying of `count` values of `size` bytes, `step` bytes apart, to `copy`.
inline void end_copy([[maybe_unused]] const char* source, [[maybe_unused]] Int step,
                     [[maybe_unused]] Int count, [[maybe_unused]] Int size, char* copy) {
  asm volatile("" : : "r"(copy) : "memory");
#if defined(ANYDML_TEST_READS)
  for (Int i = 0; i < count; ++i) on_read(source + i * step, copy + i * size, size);
#endif
}

// Copies `count` values of `size` bytes (4 or 8) that lie `step` bytes apart next to each other.
inline void copy_once(char* copy, const char* source, Int step, Int count, int size) {
  const Int bytes = count * size;
  if (step != size) {
    copy_steps(copy, size, source, step, count, size);
  } else if (bytes < 64) {
    copy_short(copy, source, bytes);
  } else {
    // Line by line: a call of memcpy costs as much as most copies here. Uses the widest registers,
    // like the loads that follow: a load that spans two stores cannot be forwarded.
    typedef char Line __attribute__((vector_size(64), aligned(1), may_alias));
    const auto move = [&](Int at) {
      *reinterpret_cast<Line*>(copy + at) = *reinterpret_cast<const Line*>(source + at);
    };
    for (Int at = 0; at < bytes - 64; at += 64) move(at);
    move(bytes - 64);
  }
  end_copy(source, step, count, size, copy);
}

#if defined(__AVX2__)
// The values of this many bits at an address.
template <class T, class Register>
inline Register values_read_once(const char* address, Register values) {
#if defined(__AVX512VL__)
  asm volatile("" : "+v"(values));
#else
  asm volatile("" : "+x"(values));
#endif
#if defined(ANYDML_TEST_READS)
  constexpr Int size = sizeof(T);
  for (Int at = 0; at < Int{sizeof(values)}; at += size)
    on_read(address + at, reinterpret_cast<char*>(&values) + at, size);
#else
  (void)address;
#endif
  return values;
}
template <class T>
inline __m128i read_once_128(const char* address) {
  return values_read_once<T>(address, _mm_loadu_si128(reinterpret_cast<const __m128i*>(address)));
}
template <class T>
inline __m256i read_once_256(const char* address) {
  return values_read_once<T>(address,
                             _mm256_loadu_si256(reinterpret_cast<const __m256i*>(address)));
}
#endif
#if defined(__AVX512VL__)
template <class T>
inline __m512i read_once_512(const char* address) {
  return values_read_once<T>(address, _mm512_loadu_si512(address));
}
#endif

}  // namespace anydml

// Sizes and strides as the host hands them to a kernel, and divisions that cost one multiplication.
#pragma once

#if defined(__CUDACC__)
#define ANYDML_BOTH __host__ __device__
#else
#define ANYDML_BOTH
#endif

namespace anydml::cuda {

using Offset = long long;

constexpr int kMaxDims = 64;
// The largest count of a kernel, in 32 bits: the host splits larger work.
constexpr Offset kMaxUnits = Offset{1} << 30;

// Divides numbers below 2^31 by a size from 1 to 2^31 - 1, exactly: with 2^l the least power that
// is not below the size, factor is 2^(31 + l) / size rounded up, which has 32 bits; what the
// rounding adds to a quotient is less than n / 2^(31 + l), too little to reach the next whole
// number.
struct Divisor {
  unsigned size, factor, shift;

#if defined(__CUDACC__)
  __device__ unsigned quotient(unsigned n) const { return __umulhi(n << 1, factor) >> shift; }
#endif
};

inline Divisor divisor_of(Offset size) {
  unsigned log = 0;
  while ((Offset{1} << log) < size) ++log;
  const unsigned long long power = 1ull << (31 + log);
  const unsigned long long divisor = static_cast<unsigned long long>(size);
  return {static_cast<unsigned>(size), static_cast<unsigned>((power + divisor - 1) / divisor), log};
}

// Two layouts of the same sizes; strides in bytes.
struct Walk {
  int rank;
  Divisor sizes[kMaxDims];
  Offset to[kMaxDims], from[kMaxDims];
};

#if defined(__CUDACC__)
// The byte offsets of N elements by their numbers in row-major order; the dimensions outside, so
// that the divisions of all N are under way at once.
template <int N>
__device__ inline void offsets_at(const Walk& walk, unsigned (&number)[N], Offset (&to)[N],
                                  Offset (&from)[N]) {
#pragma unroll
  for (int k = 0; k < N; ++k) to[k] = from[k] = 0;
#pragma unroll 1
  for (int i = walk.rank - 1; i > 0; --i) {
    const Divisor size = walk.sizes[i];
    const Offset to_step = walk.to[i], from_step = walk.from[i];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const unsigned next = size.quotient(number[k]);
      const Offset position = number[k] - next * size.size;
      to[k] += position * to_step;
      from[k] += position * from_step;
      number[k] = next;
    }
  }
  if (walk.rank == 0) return;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    to[k] += number[k] * walk.to[0];
    from[k] += number[k] * walk.from[0];
  }
}

// The last of [low, high) that `begins`, as the first one does; those that do come first.
template <class Number, class Begins>
__device__ inline Number last_that(Number low, Number high, const Begins& begins) {
  while (high - low > 1) {
    const Number middle = (low + high) / 2;
    if (begins(middle))
      low = middle;
    else
      high = middle;
  }
  return low;
}

// An element of W bytes that is only moved.
template <int W>
struct Unit;
template <>
struct Unit<1> {
  using Type = unsigned char;
};
template <>
struct Unit<2> {
  using Type = unsigned short;
};
template <>
struct Unit<4> {
  using Type = unsigned int;
};
template <>
struct Unit<8> {
  using Type = uint2;
};
template <>
struct Unit<16> {
  using Type = uint4;
};

template <class T>
__device__ inline T read(const char* from) {
  return *reinterpret_cast<const T*>(from);
}
template <class T>
__device__ inline void write(char* to, T value) {
  *reinterpret_cast<T*>(to) = value;
}
#endif

}  // namespace anydml::cuda

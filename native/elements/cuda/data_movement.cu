// CAST from ANYDML_FROM to ANYDML_TO, values of DML_TENSOR_DATA_TYPE; where both are the same, each
// element times a scale plus a bias, product and sum rounded one after the other.
#include "elements/cuda/data_movement.cuh"
#include "runtime/cuda/numbers.cuh"

namespace {

using namespace anydml::cuda;

using From = Number<ANYDML_FROM>::Type;
using To = Number<ANYDML_TO>::Type;
constexpr int kFrom = sizeof(From), kTo = sizeof(To);
constexpr int kElementsPerVector = map_elements_at_once(kFrom, kTo);

[[maybe_unused]] __device__ float scaled(float value, float scale, float bias) {
  return canonical(__fadd_rn(__fmul_rn(value, scale), bias));
}
[[maybe_unused]] __device__ double scaled(double value, double scale, double bias) {
  return canonical(__dadd_rn(__dmul_rn(value, scale), bias));
}

// A template, so that code for other types is not compiled.
template <class T>
__device__ To mapped(T value, double scale, double bias) {
  if constexpr (ANYDML_FROM != ANYDML_TO)
    return convert<To>(value);
  else if constexpr (kIsSame<T, Half>)
    return narrow(scaled(widen(value), static_cast<float>(scale), static_cast<float>(bias)));
  else if constexpr (kIsSame<T, float>)
    return scaled(value, static_cast<float>(scale), static_cast<float>(bias));
  else
    return convert<To>(scaled(static_cast<double>(value), scale, bias));
}

// One byte scaled has 256 results: looking them up is faster than computing in FLOAT64.
constexpr bool kLookUp = ANYDML_FROM == ANYDML_TO && sizeof(From) == 1;

template <class T>
__device__ T of_byte(unsigned byte) {
  if constexpr (sizeof(T) == 1)
    return static_cast<T>(byte);
  else
    return {};
}
template <class T>
__device__ unsigned to_byte(T value) {
  if constexpr (sizeof(T) == 1)
    return static_cast<unsigned char>(value);
  else
    return 0;
}

template <class T>
union Line {
  typename Unit<kElementsPerVector* static_cast<int>(sizeof(T))>::Type vector;
  T items[kElementsPerVector];
};

}  // namespace

// Any strides: a thread an element.
extern "C" __global__ void __launch_bounds__(kMapThreads)
    map_elements(char* target, const char* source, const __grid_constant__ Walk walk,
                 unsigned count, double scale, double bias) {
  const unsigned first = blockIdx.x * (kMapThreads * kMapUnroll) + threadIdx.x;
  unsigned number[kMapUnroll];
  Offset to[kMapUnroll], from[kMapUnroll];
  From value[kMapUnroll];
#pragma unroll
  for (int k = 0; k < kMapUnroll; ++k) number[k] = min(first + k * kMapThreads, count - 1);
  offsets_at(walk, number, to, from);
#pragma unroll
  for (int k = 0; k < kMapUnroll; ++k) value[k] = read<From>(source + from[k]);
#pragma unroll
  for (int k = 0; k < kMapUnroll; ++k)
    if (first + k * kMapThreads < count) write(target + to[k], mapped(value[k], scale, bias));
}

// Contiguous on both sides, aligned; the last thread may have fewer elements.
extern "C" __global__ void __launch_bounds__(kMapThreads)
    map_lines(char* target, const char* source, const __grid_constant__ Walk walk, unsigned count,
              unsigned last, double scale, double bias) {
  static_assert(!kLookUp || kMapThreads == 256);
  __shared__ To results[kLookUp ? 256 : 1];
  if constexpr (kLookUp) {
    results[threadIdx.x] = mapped(of_byte<From>(threadIdx.x), scale, bias);
    __syncthreads();
  }
  const unsigned first = blockIdx.x * (kMapThreads * kMapUnroll) + threadIdx.x;
  unsigned number[kMapUnroll];
  Offset to[kMapUnroll], from[kMapUnroll];
  Line<From> value[kMapUnroll];
#pragma unroll
  for (int k = 0; k < kMapUnroll; ++k) number[k] = min(first + k * kMapThreads, count - 1);
  offsets_at(walk, number, to, from);
  const bool is_full =
      last == kElementsPerVector || first + (kMapUnroll - 1) * kMapThreads < count - 1;
#pragma unroll
  for (int k = 0; k < kMapUnroll; ++k) {
    const char* const here = source + from[k];
    if (is_full || first + k * kMapThreads < count - 1) {
      value[k].vector = read<decltype(value[k].vector)>(here);
    } else {
#pragma unroll
      for (int i = 0; i < kElementsPerVector; ++i)
        value[k].items[i] = read<From>(here + min(static_cast<unsigned>(i), last - 1) * kFrom);
    }
  }
#pragma unroll
  for (int k = 0; k < kMapUnroll; ++k) {
    if (first + k * kMapThreads >= count) continue;
    Line<To> output;
#pragma unroll
    for (int i = 0; i < kElementsPerVector; ++i) {
      if constexpr (kLookUp)
        output.items[i] = results[to_byte(value[k].items[i])];
      else
        output.items[i] = mapped(value[k].items[i], scale, bias);
    }
    if (is_full || first + k * kMapThreads < count - 1) {
      write(target + to[k], output.vector);
    } else {
#pragma unroll
      for (int i = 0; i < kElementsPerVector; ++i)
        if (i < static_cast<int>(last)) write(target + to[k] + i * kTo, output.items[i]);
    }
  }
}

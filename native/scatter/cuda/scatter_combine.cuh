// How SCATTER's reductions (elements.hpp) compute on a GPU.
#pragma once

#include "runtime/cuda/numbers.cuh"
#include "scatter/cuda/scatter.cuh"

namespace anydml::cuda {

using Combine = Reduction;

// NaNs are left as they come: a sum or product that is one stays one, so that it is enough to make
// the last canonical (`canonicalize`).
struct Rounded {
  template <class T>
  static __device__ auto number(T value) {
    return number_of(value);
  }
  static __device__ float sum(float a, float b) { return __fadd_rn(a, b); }
  static __device__ double sum(double a, double b) { return __dadd_rn(a, b); }
  static __device__ float product(float a, float b) { return __fmul_rn(a, b); }
  static __device__ double product(double a, double b) { return __dmul_rn(a, b); }
  template <class T>
  static __device__ T rounded_product(T a, T b) {
    return product(a, b);
  }
  template <class T>
  static __device__ T finished(T value) {
    return value;
  }
  static __device__ float quotient(float sum, Offset count) {
    return canonical(__fdiv_rn(sum, __ll2float_rn(count)));
  }
  static __device__ double quotient(double sum, Offset count) {
    return canonical(__ddiv_rn(sum, __ll2double_rn(count)));
  }
};

template <Combine kCombine, class T>
__device__ inline T canonicalize(T value) {
  if constexpr (is_arithmetic(kCombine)) {
    if constexpr (kIsComplex<T>) return {canonical(value.real), canonical(value.imaginary)};
    if constexpr (kIsFloat<T>) return canonical(value);
  }
  return value;
}

// Calls body with the reduction as a type.
template <Combine kCombine>
struct Constant {
  static constexpr Combine value = kCombine;
};
template <class Body>
__device__ inline void with_reduction(int reduction, Body&& body) {
  switch (static_cast<Combine>(reduction)) {
    case Combine::mul:
      return body(Constant<Combine::mul>{});
    case Combine::min:
      return body(Constant<Combine::min>{});
    case Combine::max:
      return body(Constant<Combine::max>{});
    default:
      return body(Constant<Combine::add>{});
  }
}

}  // namespace anydml::cuda

// What one contribution does to one element: what native/cpu/scatter/scatter_combine.hpp says, to
// the bit. NaNs are left as they come: a sum or product that is one stays one, so that it is enough
// to make the last canonical (`canonicalize`).
#pragma once

#include "numbers.cuh"
#include "scatter.cuh"
#include "types.hpp"

namespace anydml::cuda {

using Combine = Reduction;

template <class T>
__device__ inline auto number_of(T value) {
  if constexpr (kIsHalf<T> || kIsBfloat<T>)
    return widen(value);
  else
    return value;
}

__device__ inline float rounded_sum(float a, float b) { return __fadd_rn(a, b); }
__device__ inline double rounded_sum(double a, double b) { return __dadd_rn(a, b); }
__device__ inline float rounded_product(float a, float b) { return __fmul_rn(a, b); }
__device__ inline double rounded_product(double a, double b) { return __dmul_rn(a, b); }

template <Combine kCombine, class T>
__device__ inline T combined(T element, T update) {
  constexpr bool add = kCombine == Combine::add;
  if constexpr (kCombine == Combine::none) {
    return update;
  } else if constexpr (kIsComplex<T>) {  // which have no minima
    const T &a = element, &b = update;
    if constexpr (add)
      return {rounded_sum(a.real, b.real), rounded_sum(a.imaginary, b.imaginary)};
    else
      return {
          rounded_sum(rounded_product(a.real, b.real), -rounded_product(a.imaginary, b.imaginary)),
          rounded_sum(rounded_product(a.real, b.imaginary), rounded_product(a.imaginary, b.real))};
  } else if constexpr (kCombine == Combine::min || kCombine == Combine::max) {
    const auto a = number_of(element), b = number_of(update);
    bool keeps_element = kCombine == Combine::min ? a <= b : a >= b;
    if constexpr (kIsHalf<T> || kIsBfloat<T> || kIsFloat<T>)
      keeps_element = keeps_element || a != a;
    return keeps_element ? element : update;  // a comparison with a NaN update is false
  } else if constexpr (kIsFloat<T>) {
    return add ? rounded_sum(element, update) : rounded_product(element, update);
  } else {
    const auto a = static_cast<unsigned long long>(element);
    const auto b = static_cast<unsigned long long>(update);
    if constexpr (sizeof(T) == 8) {
      return static_cast<T>(add ? a + b : a * b);
    } else {
      const auto x = static_cast<unsigned>(a), y = static_cast<unsigned>(b);
      return static_cast<T>(add ? x + y : x * y);
    }
  }
}

template <Combine kCombine, class T>
__device__ inline T canonicalize(T value) {
  if constexpr (kCombine == Combine::add || kCombine == Combine::mul) {
    if constexpr (kIsComplex<T>) return {canonical(value.real), canonical(value.imaginary)};
    if constexpr (kIsFloat<T>) return canonical(value);
  }
  return value;
}

// A sum by the number of its terms, 1 at least; integers are rounded down.
template <class T>
__device__ inline T divided(T sum, Offset count) {
  if constexpr (kIsComplex<T>) {
    return {divided(sum.real, count), divided(sum.imaginary, count)};
  } else if constexpr (Same<T, double>::value) {
    return canonical(__ddiv_rn(sum, __ll2double_rn(count)));
  } else if constexpr (kIsFloat<T>) {
    return canonical(__fdiv_rn(sum, __ll2float_rn(count)));
  } else if constexpr (static_cast<T>(-1) < static_cast<T>(0)) {
    const long long all = sum, quotient = all / count;
    return static_cast<T>(quotient - (all % count < 0 ? 1 : 0));
  } else {
    return static_cast<T>(static_cast<unsigned long long>(sum) /
                          static_cast<unsigned long long>(count));
  }
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

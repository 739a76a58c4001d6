// What one contribution does to one element: what native/cpu/scatter/scatter_combine.hpp says, to
// the bit. NaNs are left as they come: a sum or product that is one stays one, so that it is enough
// to make the last canonical (`settled`).
#pragma once

#include "numbers.cuh"

namespace anydml::cuda {

// As native/cpu/plans.hpp numbers them.
enum class Combine { none, add, mul, min, max };

template <class T>
__device__ inline auto number_of(T value) {
  if constexpr (kIsHalf<T> || kIsBfloat<T>)
    return widen(value);
  else
    return value;
}

__device__ inline Half half_sum(Half a, Half b) {
  Half sum;
  asm("add.rn.f16 %0, %1, %2;" : "=h"(sum.bits) : "h"(a.bits), "h"(b.bits));
  return sum;
}
__device__ inline Half half_product(Half a, Half b) {
  Half product;
  asm("mul.rn.f16 %0, %1, %2;" : "=h"(product.bits) : "h"(a.bits), "h"(b.bits));
  return product;
}

template <Combine kCombine, class T>
__device__ inline T combined(T element, T update) {
  constexpr bool add = kCombine == Combine::add;
  if constexpr (kCombine == Combine::none) {
    return update;
  } else if constexpr (kCombine == Combine::min || kCombine == Combine::max) {
    const auto a = number_of(element), b = number_of(update);
    bool keep = kCombine == Combine::min ? a <= b : a >= b;
    if constexpr (kIsHalf<T> || kIsBfloat<T> || kIsFloat<T>) keep = keep || a != a;
    return keep ? element : update;  // a comparison with a NaN update is false
  } else if constexpr (kIsHalf<T>) {
    // A sum or product of two halves, rounded to float first, has the same bits.
    return add ? half_sum(element, update) : half_product(element, update);
  } else if constexpr (kIsBfloat<T>) {
    const float a = widen(element), b = widen(update);
    return to_bfloat(add ? __fadd_rn(a, b) : __fmul_rn(a, b));
  } else if constexpr (Same<T, float>::value) {
    return add ? __fadd_rn(element, update) : __fmul_rn(element, update);
  } else if constexpr (Same<T, double>::value) {
    return add ? __dadd_rn(element, update) : __dmul_rn(element, update);
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
__device__ inline T settled(T value) {
  if constexpr (kCombine == Combine::add || kCombine == Combine::mul) {
    if constexpr (kIsFloat<T>) return canonical(value);
    if constexpr (kIsBfloat<T>) return to_bfloat(widen(value));
    if constexpr (kIsHalf<T>)
      if ((value.bits & 0x7FFFu) > 0x7C00u) return {static_cast<unsigned short>(0x7E00)};
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

// Integers in words of their own, of 32 bits or of 64, by updates in any order.
template <class Integer>
constexpr bool kIsSigned = static_cast<Integer>(-1) < static_cast<Integer>(0);
template <class Integer, bool kWide = sizeof(Integer) == 8>
struct WordOf {
  using Bits = unsigned;
  using Signed = int;
};
template <class Integer>
struct WordOf<Integer, true> {
  using Bits = unsigned long long;
  using Signed = long long;
};

// A word's contents as a number.
template <class Integer, bool kSigned = kIsSigned<Integer>>
struct NumberOf {
  using Type = typename WordOf<Integer>::Signed;
};
template <class Integer>
struct NumberOf<Integer, false> {
  using Type = typename WordOf<Integer>::Bits;
};
template <class Integer>
using Widened = typename NumberOf<Integer>::Type;

template <Combine kCombine, class Integer>
__device__ inline void take(typename WordOf<Integer>::Bits* word, Integer update) {
  using Bits = typename WordOf<Integer>::Bits;
  using Signed = typename WordOf<Integer>::Signed;
  if constexpr (kCombine == Combine::add) {
    atomicAdd(word, static_cast<Bits>(update));
  } else if constexpr (kCombine == Combine::mul) {
    Bits known = *const_cast<volatile Bits*>(word);
    for (;;) {
      const Bits found = atomicCAS(word, known, known * static_cast<Bits>(update));
      if (found == known) return;
      known = found;
    }
  } else if constexpr (kIsSigned<Integer>) {
    Signed* const number = reinterpret_cast<Signed*>(word);
    if constexpr (kCombine == Combine::min)
      atomicMin(number, static_cast<Signed>(update));
    else
      atomicMax(number, static_cast<Signed>(update));
  } else {
    if constexpr (kCombine == Combine::min)
      atomicMin(word, static_cast<Bits>(update));
    else
      atomicMax(word, static_cast<Bits>(update));
  }
}

// What changes no word.
template <Combine kCombine, class Integer>
__device__ inline typename WordOf<Integer>::Bits neutral() {
  using Bits = typename WordOf<Integer>::Bits;
  constexpr Bits top = static_cast<Bits>(1) << (8 * sizeof(Bits) - 1);
  if constexpr (kCombine == Combine::add)
    return 0;
  else if constexpr (kCombine == Combine::mul)
    return 1;
  else if constexpr (kCombine == Combine::min)
    return kIsSigned<Integer> ? top - 1 : ~static_cast<Bits>(0);
  else
    return kIsSigned<Integer> ? top : 0;
}

}  // namespace anydml::cuda

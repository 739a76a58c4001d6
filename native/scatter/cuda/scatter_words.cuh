// Elements in words of their own, of 32 bits or of 64, that take updates in any order: integers as
// they are, by all reductions, and floats by minima and maxima, as codes.
//
// A code is the least where the wanted number is. What CPUs choose by the order of updates is in
// the code too: of several NaNs, and of zeros that differ in their sign, the first stays, so codes
// of NaNs and zeros end with the number of the update, counted from 1, 0 being the element itself.
#pragma once

#include "scatter/cuda/scatter_combine.cuh"

namespace anydml::cuda {

template <class T>
constexpr bool kIsAnyFloat = kIsFloat<T> || kIsShortFloat<T>;

template <class T, bool kWide = sizeof(T) == 8>
using WordBits = anydml::Bits<kWide ? 8 : 4>;
template <class T>
using Word = typename WordBits<T>::Unsigned;

__device__ inline unsigned bits_of(float value) { return __float_as_uint(value); }
__device__ inline unsigned long long bits_of(double value) {
  return static_cast<unsigned long long>(__double_as_longlong(value));
}
__device__ inline unsigned bits_of(Half value) { return value.bits; }
__device__ inline unsigned bits_of(Bfloat value) { return value.bits; }
__device__ inline void from_bits(unsigned bits, float& value) { value = __uint_as_float(bits); }
__device__ inline void from_bits(unsigned long long bits, double& value) {
  value = __longlong_as_double(static_cast<long long>(bits));
}
__device__ inline void from_bits(unsigned bits, Half& value) {
  value.bits = static_cast<unsigned short>(bits);
}
__device__ inline void from_bits(unsigned bits, Bfloat& value) {
  value.bits = static_cast<unsigned short>(bits);
}

// In words that may be wider than the float's own: NaNs, numbers below zero, zeros, numbers above.
// For maxima the signs are inverted.
template <Combine kCombine, class T, class Bits>
struct Codes {
  static constexpr Bits kTop = kInfinity<T>;
  static constexpr Bits kCapacity = static_cast<Bits>(1)
                                    << (sizeof(Bits) == 4 ? 23 : 40);  // numbers
  static constexpr Bits kZeros = kCapacity + kTop, kAbove = 2 * kCapacity + kTop;
  static constexpr Word<T> kSign = static_cast<Word<T> >(1) << (8 * sizeof(T) - 1);

  static __device__ Bits of(T value, Bits number) {
    const Word<T> bits = bits_of(value);
    const Bits magnitude = bits & (kSign - 1);
    if (magnitude > kTop) return number;
    if (magnitude == 0) return kZeros + number;
    const bool below = ((bits & kSign) != 0) == (kCombine == Combine::min);
    return below ? kZeros - magnitude : kAbove - 1 + magnitude;
  }
  // Whether the code names what it is of.
  static __device__ bool names(Bits code, Bits& number) {
    number = code < kCapacity ? code : code - kZeros;
    return code < kCapacity || (code >= kZeros && code < kAbove);
  }
  static __device__ T value(Bits code) {
    const bool below = code < kZeros;
    const Bits magnitude = below ? kZeros - code : code - kAbove + 1;
    T result;
    from_bits(static_cast<Word<T> >(magnitude) |
                  (below == (kCombine == Combine::min) ? kSign : static_cast<Word<T> >(0)),
              result);
    return result;
  }
};

// The word of an element, or of an update with a number.
template <Combine kCombine, class T, class Bits = Word<T> >
__device__ inline Bits word_of(T value, unsigned number) {
  if constexpr (kIsAnyFloat<T>)
    return Codes<kCombine, T, Bits>::of(value, number);
  else
    return static_cast<Bits>(value);
}

// The final value of a word; find(number) returns the element or an update.
template <Combine kCombine, class T, class Bits, class Find>
__device__ inline T element_of(Bits word, Find&& find) {
  if constexpr (kIsAnyFloat<T>) {
    using Own = Codes<kCombine, T, Bits>;
    Bits number;
    return Own::names(word, number) ? find(static_cast<unsigned>(number)) : Own::value(word);
  } else {
    return static_cast<T>(word);
  }
}

template <Combine kCombine, class T, class Bits>
__device__ inline Bits combine_words(Bits a, Bits b) {
  using Signed = typename WordBits<T>::Signed;
  if constexpr (kIsAnyFloat<T>)
    return a < b ? a : b;
  else if constexpr (kIsSigned<T>)
    return static_cast<Bits>(
        combined<kCombine, Rounded>(static_cast<Signed>(a), static_cast<Signed>(b)));
  else
    return combined<kCombine, Rounded>(a, b);
}

template <Combine kCombine, class T, class Bits>
__device__ inline void take(Bits* word, Bits update) {
  using Signed = typename WordBits<T>::Signed;
  if constexpr (kIsAnyFloat<T>) {
    atomicMin(word, update);
  } else if constexpr (kCombine == Combine::add) {
    atomicAdd(word, update);
  } else if constexpr (kCombine == Combine::mul) {
    Bits known = *const_cast<volatile Bits*>(word);
    for (;;) {
      const Bits found = atomicCAS(word, known, known * update);
      if (found == known) return;
      known = found;
    }
  } else if constexpr (kIsSigned<T>) {
    Signed* const number = reinterpret_cast<Signed*>(word);
    if constexpr (kCombine == Combine::min)
      atomicMin(number, static_cast<Signed>(update));
    else
      atomicMax(number, static_cast<Signed>(update));
  } else {
    if constexpr (kCombine == Combine::min)
      atomicMin(word, update);
    else
      atomicMax(word, update);
  }
}

// The neutral element.
template <Combine kCombine, class T, class Bits>
__device__ inline Bits neutral() {
  constexpr Bits top = static_cast<Bits>(1) << (8 * sizeof(Bits) - 1);
  if constexpr (kIsAnyFloat<T>)
    return ~static_cast<Bits>(0);
  else if constexpr (kCombine == Combine::add)
    return 0;
  else if constexpr (kCombine == Combine::mul)
    return 1;
  else if constexpr (kCombine == Combine::min)
    return kIsSigned<T> ? top - 1 : ~static_cast<Bits>(0);
  else
    return kIsSigned<T> ? top : 0;
}

// Calls body with one of the reductions whose updates may come in any order.
template <class T, class Body>
__device__ inline void with_any_order(int reduction, Body&& body) {
  if constexpr (!kIsAnyFloat<T>)
    return with_reduction(reduction, static_cast<Body&&>(body));
  else if (static_cast<Combine>(reduction) == Combine::min)
    return body(Constant<Combine::min>{});
  else
    return body(Constant<Combine::max>{});
}

}  // namespace anydml::cuda

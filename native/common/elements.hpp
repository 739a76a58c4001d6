// Elements of types that C++ lacks, and what SCATTER's reductions make of two: the meaning, in one
// place for every backend.
//
// Plain C++ without the standard library, so that a run-time GPU compiler takes it too.
#pragma once

#include "common/order.hpp"
#include "common/types.hpp"

namespace anydml {

struct Half {
  unsigned short bits;
};
struct Bfloat {
  unsigned short bits;
};
template <class Part>
struct Complex {
  Part real, imaginary;
};

template <class A, class B>
constexpr bool kIsSame = false;
template <class A>
constexpr bool kIsSame<A, A> = true;
template <class T>
constexpr bool kIsShortFloat = kIsSame<T, Half> || kIsSame<T, Bfloat>;
template <class T>
constexpr bool kIsFloat = kIsSame<T, float> || kIsSame<T, double>;
template <class T>
constexpr bool kIsComplex = kIsSame<T, Complex<float>> || kIsSame<T, Complex<double>>;
template <class T>
constexpr bool kIsSigned = static_cast<T>(-1) < static_cast<T>(0);

// The bits of a float's infinity.
template <class T>
constexpr typename Bits<sizeof(T)>::Unsigned kInfinity =
    kIsSame<T, Bfloat> ? kBfloatInfinity : Bits<sizeof(T)>::infinity;

constexpr bool is_arithmetic(Reduction reduction) {
  return reduction == Reduction::add || reduction == Reduction::mul;
}

// What one contribution does to one element.
//
// Integers wrap modulo 2^w. Sums and products of float16 and bfloat16 are those of the float32 that
// their elements are widened to, rounded to nearest even once all updates have been taken; an
// element that took none keeps its bits. A sum or product that is NaN is the canonical one,
// whatever came in: which operand's NaN an instruction gives depends on the order that a compiler
// puts them in. min and max follow NumPy's minimum and maximum: a NaN on either side gives a NaN
// (the element's, when both are). Complex numbers are summed part by part, and a product's parts
// are a difference and a sum of rounded products; they have no minima. Where the two are equal the
// element stays as it is, so that a -0 is not replaced by a +0, nor a +0 by a -0; the result is
// always one of the two, bit by bit.
//
// Numbers are the backend's: number() of an element, sum(), product() and rounded_product(), which
// is rounded before it is added to another, and finished() of the result.
template <Reduction kReduction, class Numbers, class T>
ANYDML_HD inline T combined(T element, T update) {
  constexpr bool adds = kReduction == Reduction::add;
  if constexpr (kReduction == Reduction::none) {
    return update;
  } else if constexpr (kIsComplex<T>) {
    static_assert(is_arithmetic(kReduction));
    const T &a = element, &b = update;
    const auto sum = [](auto x, auto y) { return Numbers::finished(Numbers::sum(x, y)); };
    const auto product = [](auto x, auto y) { return Numbers::rounded_product(x, y); };
    if constexpr (adds)
      return {sum(a.real, b.real), sum(a.imaginary, b.imaginary)};
    else
      return {sum(product(a.real, b.real), -product(a.imaginary, b.imaginary)),
              sum(product(a.real, b.imaginary), product(a.imaginary, b.real))};
  } else if constexpr (!is_arithmetic(kReduction)) {
    const auto a = Numbers::number(element), b = Numbers::number(update);
    bool keeps_element = kReduction == Reduction::min ? a <= b : a >= b;
    if constexpr (kIsShortFloat<T> || kIsFloat<T>) keeps_element = keeps_element | (a != a);
    return keeps_element ? element : update;  // a comparison with a NaN update is false
  } else if constexpr (kIsFloat<T>) {
    return Numbers::finished(adds ? Numbers::sum(element, update)
                                  : Numbers::product(element, update));
  } else {
    // Unsigned and at least 32 bits wide: neither signed overflow nor promotion to int.
    using Wide = typename Bits<(sizeof(T) < 4 ? 4 : static_cast<int>(sizeof(T)))>::Unsigned;
    const Wide a = static_cast<Wide>(element), b = static_cast<Wide>(update);
    return static_cast<T>(static_cast<Wide>(adds ? a + b : a * b));
  }
}

// A sum by the number of its terms, 1 at least: integers are rounded down, floats as quotient()
// rounds.
template <class Numbers, class T>
ANYDML_HD inline T divided(T sum, long long count) {
  if constexpr (kIsComplex<T>) {
    return {divided<Numbers>(sum.real, count), divided<Numbers>(sum.imaginary, count)};
  } else if constexpr (kIsFloat<T>) {
    return Numbers::quotient(sum, count);
  } else if constexpr (kIsSigned<T>) {
    const long long all = sum, quotient = all / count;
    return static_cast<T>(quotient - (all % count < 0 ? 1 : 0));
  } else {
    return static_cast<T>(static_cast<unsigned long long>(sum) /
                          static_cast<unsigned long long>(count));
  }
}

}  // namespace anydml

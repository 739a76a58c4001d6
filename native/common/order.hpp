// The order of keys: what "larger" means to TOP_K, in one place for every backend.
//
// Plain C++ without the standard library, so that a run-time GPU compiler takes it too.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define ANYDML_HD __host__ __device__
#else
#define ANYDML_HD
#endif

namespace anydml {

// Unsigned and signed integers of W bytes, and the exponent mask (infinity) of the IEEE float of
// that width. FLOAT8 does not exist: the one-byte infinity is never used.
template <int W>
struct Bits;
template <>
struct Bits<1> {
  using Unsigned = unsigned char;
  using Signed = signed char;
};
template <>
struct Bits<2> {
  using Unsigned = unsigned short;
  using Signed = short;
  static constexpr Unsigned infinity = 0x7C00u;
};
template <>
struct Bits<4> {
  using Unsigned = unsigned int;
  using Signed = int;
  static constexpr Unsigned infinity = 0x7F800000u;
};
template <>
struct Bits<8> {
  using Unsigned = unsigned long long;
  using Signed = long long;
  static constexpr Unsigned infinity = 0x7FF0000000000000ull;
};

// Of bfloat16, which has the width of float16.
constexpr unsigned short kBfloatInfinity = 0x7F80u;

// Integers: key = bits ^ flip, compared as signed. `flip` holds the sign bit for unsigned types and
// the complement when the smallest elements are wanted, so one kernel serves all four.
//
// `Flip` holds what turns an element into its key, so that one kernel serves both directions.
template <int W>
struct IntegerOrder {
  using Key = typename Bits<W>::Signed;
  using Unsigned = typename Bits<W>::Unsigned;
  static constexpr int width = W;
  static constexpr bool is_float = false;
  using Flip = Unsigned;

  static ANYDML_HD Key key(Unsigned bits, Unsigned flip) {
    return static_cast<Key>(static_cast<Unsigned>(bits ^ flip));
  }
};

// Floats: sign-magnitude to two's complement, which maps -0 onto +0; every NaN becomes the greatest
// key. `flip` is all ones when the smallest elements are wanted (NaN is then last), else zero.
// If NaN is last among the largest, too, its key is the least one, which no number has.
// `kInfinity`: its bits, which say where NaNs begin.
template <int W, typename Bits<W>::Unsigned kInfinity = Bits<W>::infinity>
struct FloatOrder {
  using Key = typename Bits<W>::Signed;
  using Unsigned = typename Bits<W>::Unsigned;
  static constexpr int width = W;
  static constexpr bool is_float = true;
  static constexpr Unsigned infinity = kInfinity;
  static constexpr Unsigned sign_bit = static_cast<Unsigned>(Unsigned(1) << (8 * W - 1));
  static constexpr Unsigned magnitude_mask = static_cast<Unsigned>(~sign_bit);

  struct Flip {
    Unsigned bits, nan;  // nan: its key
    ANYDML_HD Flip(Unsigned flip = 0, bool nan_last = false)
        : bits(flip), nan(nan_last ? sign_bit : static_cast<Unsigned>(magnitude_mask ^ flip)) {}
  };

  static ANYDML_HD Key key(Unsigned bits, Flip flip) {
    const Unsigned magnitude = static_cast<Unsigned>(bits & magnitude_mask);
    const Unsigned sign = static_cast<Unsigned>(static_cast<Key>(bits) >> (8 * W - 1));
    // Negative values: -(magnitude), in two's complement; -0 becomes 0.
    const Unsigned ordered = static_cast<Unsigned>((magnitude ^ sign) - sign);
    return static_cast<Key>(
        static_cast<Unsigned>(magnitude > infinity ? flip.nan : ordered ^ flip.bits));
  }
};

}  // namespace anydml

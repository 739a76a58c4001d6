#include "elements/cpu/segments.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "elements/cpu/convert.hpp"

namespace anydml {
namespace {

struct Format {
  int digits, min_exponent;  // of the significand; the exponent of the least normal number
  uint32_t sign;             // the bit of it
  double (*nearest)(double);
  uint32_t (*bits)(double);  // of a number of the format
};

double nearest_float(double value) { return static_cast<double>(static_cast<float>(value)); }
double nearest_half(double value) {
  return static_cast<double>(half_to_float(float_to_half(to_odd(value))));
}
uint32_t float_bits(double number) {
  return std::bit_cast<uint32_t>(canonical(static_cast<float>(number)));
}
uint32_t half_bits(double number) { return float_to_half(static_cast<float>(number)); }

constexpr Format kFloat{24, -126, 0x80000000U, nearest_float, float_bits};
constexpr Format kHalf{11, -14, 0x8000U, nearest_half, half_bits};

// The segments of `count` elements, in order; returns their number.
Int cut(const Format& format, double value, double delta, Int count, Segment* segments) {
  Int segment_count = 0;
  const auto single = [&](Int begin, double number) {
    segments[segment_count++] = {begin, format.bits(number), 0};
  };
  // Two values of a format have an exact sum in a double, or one that it rounds like the format.
  const auto next = [&](double number) { return format.nearest(number + delta); };
  const Int top = Int{1} << format.digits;
  for (Int at = 0; at < count;) {
    const double second = next(value), third = next(second);
    single(at++, value);
    if (!std::isfinite(second) ||
        (second == value && std::signbit(second) == std::signbit(value))) {
      if (at < count) single(at, second);  // and the same from here on
      break;
    }
    const int exponent =
        value == 0 ? format.min_exponent : std::max(std::ilogb(value), format.min_exponent);
    const double unit = std::ldexp(1.0, exponent - format.digits + 1);
    // The values inside the binade, in units; the lowest binade reaches across zero.
    Int low = exponent > format.min_exponent ? top / 2 + 1 : 1 - top, high = top - 1;
    if (exponent > format.min_exponent && value < 0) {
      std::swap(low, high);
      low = -low;
      high = -high;
    }
    const auto inside = [&](double number) {
      return number >= static_cast<double>(low) * unit &&
             number <= static_cast<double>(high) * unit;
    };
    // The bits of a number of units are those of the lowest number of the binade plus that number.
    const Int none = Int{exponent - format.min_exponent} << (format.digits - 1);
    const auto steps = [&](Int begin, Int units, Int step) {
      const Int size = none + (units < 0 ? -units : units);
      segments[segment_count++] = {begin,
                                   static_cast<uint32_t>(size) | (units < 0 ? format.sign : 0),
                                   static_cast<uint32_t>(units < 0 ? -step : step)};
    };
    if (at < count && inside(second) && inside(third)) {
      const Int units = static_cast<Int>(second / unit);
      const Int step = static_cast<Int>((third - second) / unit);
      Int length = count - at,
          before = length;  // the previous value is: on the first one's side of zero
      if (step > 0) length = std::min(length, (high - units) / step + 1);
      if (step < 0) length = std::min(length, (units - low) / -step + 1);
      if (step > 0 && units < 0) before = (step - 1 - units) / step;
      if (step < 0 && units >= 0) before = units / -step + 1;
      steps(at, units, step);
      if (before < length) steps(at + before, units + before * step, step);
      at += length;
      value = next(static_cast<double>(units + (length - 1) * step) * unit);
    } else {
      value = second;
    }
  }
  return segment_count;
}

}  // namespace

Int cut_sequence(bool half, double start, double delta, Int count, Segment* segments) {
  return cut(half ? kHalf : kFloat, start, delta, count, segments);
}

}  // namespace anydml

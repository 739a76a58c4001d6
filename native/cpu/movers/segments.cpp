#include "segments.hpp"

#include <algorithm>
#include <cmath>

#include "convert.hpp"

namespace anydml {
namespace {

struct Format {
  int digits, least;  // of the significand; the exponent of the least normal number
  double (*nearest)(double);
};

double nearest_float(double value) { return static_cast<double>(static_cast<float>(value)); }
double nearest_half(double value) {
  return static_cast<double>(half_to_float(float_to_half(to_odd(value))));
}

constexpr Format kFloat{24, -126, nearest_float}, kHalf{11, -14, nearest_half};

Int cut(const Format& format, double value, double delta, Int count, Segment* segments) {
  Int made = 0;
  const auto single = [&](Int begin, double number) {
    segments[made++] = {begin, 0, 0, 0, canonical(static_cast<float>(number))};
  };
  // Two values of a format have an exact sum in a double, or one that it rounds like the format.
  const auto next = [&](double number) { return format.nearest(number + delta); };
  const Int top = Int{1} << format.digits;
  for (Int at = 0; at < count;) {
    const double second = next(value), third = next(second);
    single(at++, value);
    if (!std::isfinite(second) ||
        (second == value && std::signbit(second) == std::signbit(value))) {
      if (at < count) single(at, second);  // and so on for ever
      break;
    }
    const int exponent = value == 0 ? format.least : std::max(std::ilogb(value), format.least);
    const double unit = std::ldexp(1.0, exponent - format.digits + 1);
    // What lies inside the binade, in units; the lowest one reaches across zero.
    Int low = exponent > format.least ? top / 2 + 1 : 1 - top, high = top - 1;
    if (exponent > format.least && value < 0) {
      std::swap(low, high);
      low = -low;
      high = -high;
    }
    const auto inside = [&](double number) {
      return number >= static_cast<double>(low) * unit &&
             number <= static_cast<double>(high) * unit;
    };
    if (at < count && inside(second) && inside(third)) {
      const Int units = static_cast<Int>(second / unit);
      const Int step = static_cast<Int>((third - second) / unit);
      Int length = count - at;
      if (step > 0) length = std::min(length, (high - units) / step + 1);
      if (step < 0) length = std::min(length, (units - low) / -step + 1);
      segments[made++] = {at, static_cast<int32_t>(units), static_cast<int32_t>(step),
                          static_cast<float>(unit), 0};
      at += length;
      value = next(static_cast<double>(units + (length - 1) * step) * unit);
    } else {
      value = second;
    }
  }
  return made;
}

}  // namespace

Int cut_sequence(bool half, double start, double delta, Int count, Segment* segments) {
  return cut(half ? kHalf : kFloat, start, delta, count, segments);
}

}  // namespace anydml

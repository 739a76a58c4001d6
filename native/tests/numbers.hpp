// Numbers of every type as long doubles, which hold all of them, and back by plain arithmetic.
#pragma once

#include <cfenv>
#include <cfloat>
#include <cmath>

#include "harness.hpp"

namespace anydml::test {

static_assert(LDBL_MANT_DIG >= 64, "a long double holds every integer of 64 bits");

constexpr DataType kTypes[] = {DataType::float64, DataType::float32, DataType::float16,
                               DataType::int64,   DataType::int32,   DataType::int16,
                               DataType::int8,    DataType::uint64,  DataType::uint32,
                               DataType::uint16,  DataType::uint8,   DataType::bfloat16};

inline int size_of(DataType type) { return facts_of(type).size; }

// Digits, least exponent of a normal number and largest number of a float type.
struct Format {
  int digits, min_exponent;
  long double max_value;
  uint64_t nan;
};
inline Format format_of(DataType type) {
  if (type == DataType::float16) return {11, -14, 65504.0L, 0x7E00};
  if (type == DataType::bfloat16) return {8, -126, 0x1.FEp127L, 0x7FC0};
  if (type == DataType::float32) return {24, -126, FLT_MAX, 0x7FC00000};
  return {53, -1022, DBL_MAX, 0x7FF8000000000000};
}

inline uint64_t low_bits(uint64_t bits, DataType type) {
  return size_of(type) == 8 ? bits : bits & ((uint64_t{1} << (8 * size_of(type))) - 1);
}

// The number that the bits of an element represent.
inline long double number_of(uint64_t bits, DataType type) {
  if (is_float_type(type)) {
    const Format format = format_of(type);
    const int width = 8 * size_of(type), fraction = format.digits - 1;
    const bool negative = (bits >> (width - 1) & 1) != 0;
    const int exponent =
        static_cast<int>(bits >> fraction & ((uint64_t{1} << (width - 1 - fraction)) - 1));
    const uint64_t rest = bits & ((uint64_t{1} << fraction) - 1);
    const int top = (1 << (width - 1 - fraction)) - 1;
    long double size;
    if (exponent == top)
      size = rest == 0 ? static_cast<long double>(INFINITY) : static_cast<long double>(NAN);
    else if (exponent == 0)
      size = std::ldexp(static_cast<long double>(rest), format.min_exponent - fraction);
    else
      size = std::ldexp(static_cast<long double>(rest | uint64_t{1} << fraction),
                        exponent - 1 + format.min_exponent - fraction);
    return negative ? -size : size;
  }
  if (!is_signed_type(type)) return static_cast<long double>(bits);
  const int shift = 64 - 8 * size_of(type);
  return static_cast<long double>(static_cast<int64_t>(bits << shift) >> shift);
}

// The bits of the nearest float of a type, ties to even.
inline uint64_t nearest_bits(long double value, DataType type) {
  const Format format = format_of(type);
  const int width = 8 * size_of(type), fraction = format.digits - 1;
  if (std::isnan(value)) return format.nan;
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (width - 1) : 0;
  const uint64_t infinity = ((uint64_t{1} << (width - 1 - fraction)) - 1) << fraction;
  value = std::fabs(value);
  if (std::isinf(value)) return sign | infinity;
  int exponent = value == 0 ? format.min_exponent : std::ilogb(value);
  if (exponent < format.min_exponent) exponent = format.min_exponent;
  // In units of the last place, exactly; nearbyint rounds ties to even.
  const long double units = std::nearbyint(std::ldexp(value, fraction - exponent));
  if (std::ldexp(units, exponent - fraction) > format.max_value) return sign | infinity;
  const uint64_t integer = static_cast<uint64_t>(units);
  const uint64_t base = static_cast<uint64_t>(exponent - format.min_exponent) << fraction;
  return sign | (base + integer);  // a carry goes into the exponent
}

// The bits of a number cut off to an integer, or of the nearest end; NaN gives 0.
inline uint64_t saturated_bits(long double value, DataType type) {
  if (std::isnan(value)) return 0;
  const int width = 8 * size_of(type);
  const long double half = std::ldexp(1.0L, width - 1);
  const long double low = is_signed_type(type) ? -half : 0,
                    high = is_signed_type(type) ? half - 1 : 2 * half - 1;
  value = std::trunc(value);
  if (value < low) value = low;
  if (value > high) value = high;
  if (value < 0) return low_bits(static_cast<uint64_t>(static_cast<int64_t>(value)), type);
  return static_cast<uint64_t>(value);
}

inline uint64_t bits_at(const Buffer& buffer, Int flat) {
  uint64_t bits = 0;
  std::memcpy(&bits, buffer.at(flat), static_cast<std::size_t>(buffer.tensor.element_size));
  return bits;
}
inline void set_bits(Buffer& buffer, Int flat, uint64_t bits) {
  std::memcpy(buffer.at(flat), &bits, static_cast<std::size_t>(buffer.tensor.element_size));
}

// Bits of an element: mostly numbers of ordinary size, borders of every type, random ones.
inline uint64_t odd_bits(Random& random, DataType type) {
  if (random.chance(0.2)) return low_bits(random.bits(), type);
  if (!is_float_type(type)) return low_bits(static_cast<uint64_t>(random.between(-300, 300)), type);
  long double value;
  if (random.chance(0.4)) {
    const int power = static_cast<int>(random.between(-26, 66));
    value = std::ldexp(1.0L, power) + static_cast<long double>(random.between(-4, 4)) *
                                          std::ldexp(1.0L, random.chance(0.5) ? -2 : power - 12);
    if (random.chance(0.3)) value = std::nextafter(static_cast<double>(value), 0.0);
  } else {
    value = static_cast<long double>(random.between(-40000, 40000)) / 64;
  }
  if (random.chance(0.5)) value = -value;
  if (random.chance(0.05)) value = random.chance(0.5) ? NAN : INFINITY;
  return nearest_bits(value, type);
}

}  // namespace anydml::test

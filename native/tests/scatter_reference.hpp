// What the tests of SCATTER and SCATTER_ND share: one element combined with one update, in the
// obvious way, and index values of every kind.
#pragma once

#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <map>

#include "harness.hpp"

namespace anydml::test {

inline const char* const kReductionNames[] = {"none", "add", "mul", "min", "max"};

struct TypeInfo {
  DataType type;
  int size;
};
constexpr TypeInfo kTypes[] = {
    {DataType::float32, 4}, {DataType::float16, 2}, {DataType::uint32, 4}, {DataType::uint16, 2},
    {DataType::uint8, 1},   {DataType::int32, 4},   {DataType::int16, 2},  {DataType::int8, 1},
    {DataType::float64, 8}, {DataType::uint64, 8},  {DataType::int64, 8},  {DataType::bfloat16, 2},
};
constexpr Int kLastType = static_cast<Int>(std::size(kTypes)) - 1;

// float16 by its definition.
inline double half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  return sign *
         (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}
inline uint16_t half_bits(double value) {
  if (std::isnan(value)) return 0x7E00;
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (magnitude >= 65520) return static_cast<uint16_t>(sign | 0x7C00);
  int exponent = 0;
  std::frexp(magnitude, &exponent);                                    // magnitude < 2^exponent
  const int unit = std::max(exponent - 11, -24);                       // of the last place
  const double places = std::nearbyint(std::ldexp(magnitude, -unit));  // ties to even
  return half_value(0) == 0 && places == 0
             ? static_cast<uint16_t>(sign)
             : static_cast<uint16_t>(sign + (unit + 24) * 1024 + static_cast<int>(places));
}

// bfloat16 by its definition.
inline double bfloat_value(uint16_t bits) {
  const int exponent = bits >> 7 & 255, fraction = bits & 127;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 255)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  return sign *
         (exponent == 0 ? std::ldexp(fraction, -133) : std::ldexp(128 + fraction, exponent - 134));
}
inline uint16_t bfloat_bits(double value) {
  if (std::isnan(value)) return 0x7FC0;
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (magnitude >= 0x1.FFp127) return static_cast<uint16_t>(sign | 0x7F80);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int unit = std::max(exponent - 8, -133);
  const double places = std::nearbyint(std::ldexp(magnitude, -unit));
  return places == 0 ? static_cast<uint16_t>(sign)
                     : static_cast<uint16_t>(sign + (unit + 133) * 128 + static_cast<int>(places));
}

template <class T>
bool is_nan(T value) {
  return value != value;
}

// NumPy's definition: a NaN operand, else the smaller (larger), the first of two equals.
template <class T>
T extreme(Reduction reduction, T a, T b) {
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  return (reduction == Reduction::min ? b < a : b > a) ? b : a;
}

// The NaN of arithmetic: quiet, positive, without a payload.
inline float canonical(float value) {
  return is_nan(value) ? load<float>("\x00\x00\xC0\x7F") : value;
}
inline double canonical(double value) {
  return is_nan(value) ? load<double>("\x00\x00\x00\x00\x00\x00\xF8\x7F") : value;
}

template <class T>
void combine_number(Reduction reduction, unsigned char* element, const unsigned char* update) {
  T a = load<T>(element), b = load<T>(update);
  if (reduction == Reduction::min || reduction == Reduction::max) {
    a = extreme(reduction, a, b);
  } else if constexpr (std::is_floating_point_v<T>) {
    a = canonical(reduction == Reduction::add ? a + b : a * b);
  } else {
    using Big = unsigned __int128;
    const Big x = static_cast<Big>(a), y = static_cast<Big>(b);
    a = static_cast<T>(reduction == Reduction::add ? x + y : x * y);
  }
  store(element, a);
}

inline void combine_reference(Reduction reduction, const Tensor& tensor, unsigned char* element,
                              const unsigned char* update) {
  if (reduction == Reduction::none) {
    std::memcpy(element, update, static_cast<std::size_t>(tensor.element_size));
    return;
  }
  switch (tensor.type) {
    case DataType::float32:
      return combine_number<float>(reduction, element, update);
    case DataType::float64:
      return combine_number<double>(reduction, element, update);
    case DataType::int8:
      return combine_number<int8_t>(reduction, element, update);
    case DataType::int16:
      return combine_number<int16_t>(reduction, element, update);
    case DataType::int32:
      return combine_number<int32_t>(reduction, element, update);
    case DataType::int64:
      return combine_number<int64_t>(reduction, element, update);
    case DataType::uint8:
      return combine_number<uint8_t>(reduction, element, update);
    case DataType::uint16:
      return combine_number<uint16_t>(reduction, element, update);
    case DataType::uint32:
      return combine_number<uint32_t>(reduction, element, update);
    case DataType::uint64:
      return combine_number<uint64_t>(reduction, element, update);
    default:
      break;
  }
  const uint16_t x = load<uint16_t>(element), y = load<uint16_t>(update);
  const bool half = tensor.type == DataType::float16;
  const double a = half ? half_value(x) : bfloat_value(x);
  const double b = half ? half_value(y) : bfloat_value(y);
  if (reduction == Reduction::min || reduction == Reduction::max) {
    if (!is_nan(a) && (is_nan(b) || (reduction == Reduction::min ? b < a : b > a)))
      store(element, y);
  }
}

// Elements that take updates. Sums and products of floats of 16 bits are float32 until the end.
struct Expected {
  const Tensor& tensor;
  Reduction reduction;
  std::vector<unsigned char> elements;
  std::map<std::size_t, float> sums = {};

  void take(std::size_t number, const void* data) {
    const bool half = tensor.type == DataType::float16;
    const auto* const update = static_cast<const unsigned char*>(data);
    unsigned char* const element =
        &elements[number * static_cast<std::size_t>(tensor.element_size)];
    const bool is_arithmetic = reduction == Reduction::add || reduction == Reduction::mul;
    if (!is_arithmetic || (!half && tensor.type != DataType::bfloat16))
      return combine_reference(reduction, tensor, element, update);
    const auto value = [&](const unsigned char* at) {
      const uint16_t bits = load<uint16_t>(at);
      return static_cast<float>(half ? half_value(bits) : bfloat_value(bits));
    };
    float& sum = sums.try_emplace(number, value(element)).first->second;
    sum = reduction == Reduction::add ? sum + value(update) : sum * value(update);
    store(element,
          half ? half_bits(static_cast<double>(sum)) : bfloat_bits(static_cast<double>(sum)));
  }
};

inline bool same_element(const Tensor& tensor, const unsigned char* a, const unsigned char* b) {
  return same_bytes(a, b, static_cast<std::size_t>(tensor.element_size));
}

// The upper 16 bits of a float: infinities and NaNs of both signs, quiet and signalling; the other
// bits are left as they are, a payload.
inline void set_nan(Random& random, Buffer& buffer, Int flat) {
  const DataType type = buffer.tensor.type;
  const bool half = type == DataType::float16, bfloat = type == DataType::bfloat16;
  const bool is_float = half || bfloat || type == DataType::float32 || type == DataType::float64;
  if (!is_float || random.chance(0.3)) return;
  const int fraction = half ? 10 : type == DataType::float64 ? 4 : 7;
  uint16_t top = static_cast<uint16_t>(0x7FFF << fraction);
  if (random.chance(0.5)) top = static_cast<uint16_t>(top & 0x7FFF);
  if (random.chance(0.8)) top = static_cast<uint16_t>(top | random.between(0, (1 << fraction) - 1));
  if (half || bfloat) return buffer.set(flat, top);
  std::memcpy(buffer.at(flat) + buffer.tensor.element_size - 2, &top, 2);
  if (random.chance(0.2))
    std::memset(buffer.at(flat), 0, static_cast<std::size_t>(buffer.tensor.element_size - 2));
}

// Mostly everyday numbers, because otherwise sums are infinities and NaNs only.
inline void tame(Random& random, Buffer& buffer) {
  const DataType type = buffer.tensor.type;
  const double wild = random.chance(0.2) ? 0.5 : 0.1;
  for (Int i = 0; i < buffer.count(); ++i) {
    if (random.chance(wild)) {
      set_nan(random, buffer, i);
      continue;
    }
    const double value = static_cast<double>(random.between(-40, 40)) / 16;
    if (type == DataType::float32) buffer.set(i, static_cast<float>(value));
    if (type == DataType::float64) buffer.set(i, value);
    if (type == DataType::float16) buffer.set(i, half_bits(value));
    if (type == DataType::bfloat16) buffer.set(i, bfloat_bits(value));
  }
}

inline void set_index(Buffer& indices, Int flat, uint64_t bits) {
  if (indices.tensor.element_size == 4)
    indices.set(flat, static_cast<uint32_t>(bits));
  else
    indices.set(flat, bits);
}

// The expected position of the value, or -1.
inline Int position_of(const Buffer& indices, Int flat, Int size) {
  const bool wide = indices.tensor.element_size == 8;
  if (is_signed_type(indices.tensor.type)) {
    const Int value = wide ? indices.get<int64_t>(flat) : indices.get<int32_t>(flat);
    if (value < -size || value >= size) return -1;
    return value < 0 ? value + size : value;
  }
  const uint64_t value = wide ? indices.get<uint64_t>(flat) : indices.get<uint32_t>(flat);
  return value < static_cast<uint64_t>(size) ? static_cast<Int>(value) : -1;
}

// A value in range, in either spelling.
inline uint64_t good_index(Random& random, DataType type, Int size, Int position) {
  return static_cast<uint64_t>(is_signed_type(type) && random.chance(0.3) ? position - size
                                                                          : position);
}

inline uint64_t bad_index(Random& random, DataType type, Int size) {
  const bool wide = type == DataType::int64 || type == DataType::uint64;
  const int kind = static_cast<int>(random.between(0, 4));
  if (is_signed_type(type)) {
    switch (kind) {
      case 0:
        return static_cast<uint64_t>(size);
      case 1:
        return static_cast<uint64_t>(-size - 1);
      case 2:
        return wide ? uint64_t{1} << 63 : uint64_t{0xFFFFFFFF80000000u};
      case 3:
        return wide ? ~uint64_t{0} >> 1 : uint64_t{0x7FFFFFFF};
      default:
        return static_cast<uint64_t>(size + random.between(0, 1000));
    }
  }
  switch (kind) {
    case 0:
      return static_cast<uint64_t>(size);
    case 1:
      return wide ? ~uint64_t{0} : uint64_t{0xFFFFFFFF};
    case 2:
      return wide ? uint64_t{1} << 63 : uint64_t{1} << 31;
    case 3:
      return wide ? (uint64_t{1} << 32) + 1 : uint64_t{0xFFFFFFFE};
    default:
      return static_cast<uint64_t>(size + random.between(0, 1000));
  }
}

// A position by one of several patterns: ties, runs, orders and strides.
class Pattern {
 public:
  explicit Pattern(Random& random) : random_(random), kind_(random.between(0, 6)) {}
  Int position(Int i, Int size) {
    switch (kind_) {
      case 0:
        return size / 2;
      case 1:
        return i % size;
      case 2:
        return size - 1 - i % size;
      case 3:
        return i * 64 % size;
      case 4:
        return random_.between(0, std::min<Int>(size, 3) - 1);
      case 5:  // two in turns, with few others
        return random_.chance(0.03) ? random_.between(0, size - 1) : i % 2 * (size - 1);
      default:
        return random_.between(0, size - 1);
    }
  }

 private:
  Random& random_;
  Int kind_;
};

inline bool short_run() { return std::getenv("ANYDML_TEST_SHORT") != nullptr; }

}  // namespace anydml::test

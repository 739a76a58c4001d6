// Operands of TOP_K on a GPU: types, contents, layouts in poisoned memory.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "device.hpp"

namespace anydml::test {

struct Type {
  DataType type;
  int width;
  bool is_float, is_signed;
  const char* name;
};

constexpr Type kTypes[] = {
    {DataType::float32, 4, true, true, "float32"}, {DataType::float16, 2, true, true, "float16"},
    {DataType::float64, 8, true, true, "float64"}, {DataType::int8, 1, false, true, "int8"},
    {DataType::uint8, 1, false, false, "uint8"},   {DataType::int16, 2, false, true, "int16"},
    {DataType::uint16, 2, false, false, "uint16"}, {DataType::int32, 4, false, true, "int32"},
    {DataType::uint32, 4, false, false, "uint32"}, {DataType::int64, 8, false, true, "int64"},
    {DataType::uint64, 8, false, false, "uint64"}, {DataType::bfloat16, 2, true, true, "bfloat16"},
};

enum class Fill {
  random,  // ordinary numbers, about normal
  ascending,
  descending,
  constant,
  few_values,  // four values
  zeros,       // but for 1 %
  nan,         // 1 % of them; of integers the greatest
  hot,         // one row is far above the others, and ascending
  bits,        // any bits
  specials,    // zeros of both signs, infinities, NaN of several kinds, a few numbers
  all_nan,
  crowded,   // one small range of bit patterns
  repeated,  // about 16 of each value, anywhere
  count_
};
constexpr const char* kFills[] = {"random",  "ascending", "descending", "constant", "few_values",
                                  "zeros",   "nan",       "hot",        "bits",     "specials",
                                  "all_nan", "crowded",   "repeated"};

inline uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

// The bits of a number, about, in the type.
inline uint64_t bits_of(const Type& type, double value) {
  uint64_t bits = 0;
  if (!type.is_float) {
    const double scale = type.width == 1 ? 30 : type.width == 2 ? 5000 : 1e6;
    const Int number = static_cast<Int>(value * scale);
    return static_cast<uint64_t>(type.is_signed ? number : number < 0 ? -number : number);
  }
  if (type.width == 8) {
    std::memcpy(&bits, &value, 8);
  } else if (type.width == 4) {
    const float narrow = static_cast<float>(value);
    std::memcpy(&bits, &narrow, 4);
  } else if (type.type == DataType::bfloat16) {
    const float narrow = static_cast<float>(value);
    uint32_t wide = 0;
    std::memcpy(&wide, &narrow, 4);
    bits = wide >> 16;
  } else {
    const float narrow = static_cast<float>(value);
    uint32_t wide = 0;
    std::memcpy(&wide, &narrow, 4);
    const int exponent = static_cast<int>(wide >> 23 & 255) - 127 + 15;
    const uint32_t magnitude = exponent <= 0 ? 0
                               : exponent >= 31
                                   ? 0x7C00
                                   : static_cast<uint32_t>(exponent) << 10 | (wide >> 13 & 1023);
    bits = (wide >> 16 & 0x8000) | magnitude;
  }
  return bits;
}

// Element `i` of `n` of a row.
inline uint64_t element(const Type& type, Fill fill, Int row, Int i, Int n, uint64_t seed) {
  const uint64_t hash = mixed(seed + static_cast<uint64_t>(row) * 0x51ED270Bu * 977 +
                              static_cast<uint64_t>(i) * 0x2545F491u);
  const int bits = 8 * type.width;
  const uint64_t sign = 1ull << (bits - 1), all = type.width == 8 ? ~0ull : (1ull << bits) - 1;
  const uint64_t infinity = type.type == DataType::bfloat16 ? 0x7F80
                            : type.width == 2               ? 0x7C00
                            : type.width == 4               ? 0x7F800000
                                                            : 0x7FF0000000000000;
  const double normal =
      (static_cast<double>(hash & 0xFFFF) + static_cast<double>(hash >> 16 & 0xFFFF) +
       static_cast<double>(hash >> 32 & 0xFFFF) - 98302.5) /
      32768.0;
  switch (fill) {
    case Fill::ascending:
      return bits_of(type, (static_cast<double>(i) / static_cast<double>(n) - 0.3) * 2);
    case Fill::descending:
      return bits_of(type, (0.7 - static_cast<double>(i) / static_cast<double>(n)) * 2);
    case Fill::constant:
      return bits_of(type, 1.5);
    case Fill::few_values:
      return bits_of(type, 0.5 * static_cast<double>(hash & 3));
    case Fill::zeros:
      return hash >> 40 < (1 << 24) / 100 ? bits_of(type, normal) : 0;
    case Fill::nan:
      if (hash >> 40 < (1 << 24) / 100)
        return type.is_float ? infinity + 1 + (hash >> 36 & 15) + (hash & 1 ? sign : 0)
                             : all >> (type.is_signed ? 1 : 0);
      return bits_of(type, normal);
    case Fill::hot:
      return bits_of(type, row == 1 ? 2 + static_cast<double>(i) / static_cast<double>(n) : normal);
    case Fill::bits:
      return hash & all;
    case Fill::specials: {
      const uint64_t specials[] = {0,
                                   sign,
                                   bits_of(type, 1),
                                   bits_of(type, -1),
                                   infinity,
                                   infinity | sign,
                                   infinity + 1,
                                   infinity + 3,
                                   all};
      return specials[(hash >> 8) % (type.is_float ? 9 : 4)] & all;
    }
    case Fill::all_nan:
      return type.is_float ? ((infinity + 1 + (hash & 63)) | (hash >> 32 & 1 ? sign : 0))
                           : all >> (type.is_signed ? 1 : 0);
    case Fill::crowded:
      return (bits_of(type, 1) + (type.width == 8 ? (hash & 3) << 40 : 0) + (hash >> 8 & 0x3F)) &
             all;
    case Fill::repeated: {
      const uint64_t value = (hash >> 8) % static_cast<uint64_t>(n / 16 + 1);
      return type.is_float ? bits_of(type, static_cast<double>(value)) : value & all >> 1;
    }
    default:
      return bits_of(type, normal);
  }
}

// A tensor in poisoned memory, whose every byte is compared. Elements are aligned.
struct Operand {
  Tensor tensor;
  std::vector<unsigned char> bytes;
  Int origin = 0;

  Operand(Random& random, const std::vector<Int>& sizes, DataType type, int width, Strides strides,
          Role role) {
    tensor.type = type;
    tensor.element_size = width;
    const int rank = static_cast<int>(sizes.size());
    std::vector<int> order;
    for (int i = 0; i < rank; ++i) order.push_back(i);
    const bool any = strides == Strides::any;
    if (any)
      for (int i = rank - 1; i > 0; --i)
        std::swap(order[static_cast<std::size_t>(i)],
                  order[static_cast<std::size_t>(random.between(0, i))]);
    for (const Int size : sizes) tensor.layout.push(size, 0);
    Int stride = strides == Strides::stepped ? width * random.between(1, 3) : width;
    Int low = 0, high = width;
    for (int at = rank - 1; at >= 0; --at) {
      const int i = order[static_cast<std::size_t>(at)];
      const Int size = tensor.layout.sizes[i];
      if (strides != Strides::packed && random.chance(0.3)) stride += width * random.between(0, 3);
      Int own = stride;
      if (any && role == Role::input && random.chance(0.1)) own = 0;
      if (any && role == Role::input && random.chance(0.15)) own = -own;
      tensor.layout.strides[i] = own;
      if (size > 1) (own < 0 ? low : high) += (size - 1) * own;
      if (own != 0) stride = std::abs(own) * std::max<Int>(size, 1);
    }
    origin = 64 + width * random.between(0, 31) - low;
    bytes.resize(static_cast<std::size_t>(origin + high + 64));
    random.fill(bytes.data(), std::min<std::size_t>(bytes.size(), 1 << 16));
    for (std::size_t i = 1 << 16; i < bytes.size(); ++i) bytes[i] = bytes[i - (1 << 16)];
  }

  char* data() { return reinterpret_cast<char*>(bytes.data()) + origin; }

  // Contents along an axis, by several threads.
  void set(const Type& type, Fill fill, int axis, uint64_t seed) {
    const Layout& layout = tensor.layout;
    const Int n = layout.rank == 0 ? 1 : layout.sizes[axis];
    Layout rows;
    for (int i = 0; i < layout.rank; ++i)
      if (i != axis) rows.push(layout.sizes[i], layout.strides[i]);
    const Int count = rows.count(), stride = layout.rank == 0 ? 0 : layout.strides[axis];
    const auto fill_part = [&](Int begin, Int end) {
      for (Int at = begin; at < end; ++at) {
        const Int row = at / n, i = at - row * n;
        const uint64_t value = element(type, fill, row, i, n, seed);
        std::memcpy(data() + offset_at(rows, row) + i * stride, &value,
                    static_cast<std::size_t>(type.width));
      }
    };
    const Int all = count * n, workers = all > 100000 ? 16 : 1;
    if (workers == 1) return fill_part(0, all);
    std::vector<std::thread> threads;
    for (Int w = 0; w < workers; ++w)
      threads.emplace_back(fill_part, all * w / workers, all * (w + 1) / workers);
    for (std::thread& thread : threads) thread.join();
  }
};

struct Case {
  std::vector<Int> sizes;
  int axis;
  Int k;
  bool largest = true;
  const Type* type = &kTypes[0];
  Fill fill = Fill::random;
  DataType index = DataType::int64;
  Strides strides = Strides::packed;
  bool sorted = true, nan_last = false, last_first = false;
  bool lengths = false;  // of rows, some of them 0, negative or too large

  std::string words() const {
    std::string text = std::string(type->name) + " sizes";
    for (const Int size : sizes) text += " " + std::to_string(size);
    return text + " axis " + std::to_string(axis) + " k " + std::to_string(k) +
           (largest ? " largest " : " smallest ") + kFills[static_cast<int>(fill)] + " index " +
           std::to_string(static_cast<int>(index)) + " strides " +
           std::to_string(static_cast<int>(strides)) + (sorted ? "" : " unsorted") +
           (nan_last ? " nan last" : "") + (last_first ? " last first" : "") +
           (lengths ? " lengths" : "");
  }
};

// The operands of a case, and copies of them on the device.
struct Operands {
  Operand input, values, indices;
  std::vector<Int> lengths;
  TopKPlan plan;

  Operands(Random& random, const Case& c)
      : input(random, c.sizes, c.type->type, c.type->width, c.strides, Role::input),
        values(random, out_sizes(c), c.type->type, c.type->width, c.strides, Role::output),
        indices(random, out_sizes(c), c.index, index_width(c), c.strides, Role::output),
        plan{input.tensor, values.tensor, indices.tensor, c.axis,      c.k,
             c.largest,    c.sorted,      c.nan_last,     c.last_first} {
    input.set(*c.type, c.fill, c.axis, random.bits());
    if (!c.lengths) return;
    plan.fill = random.bits();
    plan.lengths.type = DataType::int64;
    plan.lengths.element_size = 8;
    const Int n = c.sizes[static_cast<std::size_t>(c.axis)];
    for (std::size_t i = 0; i < c.sizes.size(); ++i)
      if (static_cast<int>(i) != c.axis) plan.lengths.layout.push(c.sizes[i], 0);
    set_packed_strides(plan.lengths.layout, 8);
    for (Int row = 0; row < plan.lengths.layout.count(); ++row)
      lengths.push_back(random.chance(0.2)   ? random.between(-2, 2)
                        : random.chance(0.3) ? n + random.between(-2, 2)
                                             : random.between(0, n));
  }
  const void* lengths_data() const { return lengths.empty() ? nullptr : lengths.data(); }

  static int index_width(const Case& c) {
    return c.index == DataType::uint32 || c.index == DataType::int32 ? 4 : 8;
  }
  static std::vector<Int> out_sizes(const Case& c) {
    std::vector<Int> sizes = c.sizes;
    if (!sizes.empty()) sizes[static_cast<std::size_t>(c.axis)] = c.k;
    return sizes;
  }
};

}  // namespace anydml::test

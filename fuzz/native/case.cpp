#include "case.hpp"

#include <cstring>
#include <limits>

namespace anydml::fuzz {

Int any_limit(Bytes& bytes) {
  const Int limits[] = {40, 40, 300, 300, 300, 2000, 2000, 9000};
  if (bytes.chance(4)) return 150000;
  return bytes.pick(limits);
}

Int any_size(Bytes& bytes, Int limit) {
  limit = std::max<Int>(limit, 1);
  switch (bytes.number(7)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return bytes.between(1, std::min<Int>(limit, 6));
    case 4:
      return bytes.between(1, limit);
    case 5: {
      const Int power = Int{1} << bytes.number(14);
      return std::clamp<Int>(power + bytes.between(-1, 1), 1, limit);
    }
    case 6:
      return limit;
    default:
      return bytes.chance(64) ? 0 : bytes.between(1, std::min<Int>(limit, 70));
  }
}

Sizes any_sizes(Bytes& bytes, int rank, Int limit) {
  Sizes sizes;
  for (int i = 0; i < rank; ++i) {
    sizes.push_back(any_size(bytes, limit));
    limit /= std::max<Int>(1, sizes.back());
  }
  if (rank > 1 && bytes.chance(128)) std::reverse(sizes.begin(), sizes.end());
  return sizes;
}

Sizes any_lookup(Bytes& bytes, const Sizes& in, int axis, Int limit) {
  Sizes at = in;
  Int others = 1;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (static_cast<int>(i) == axis) continue;
    if (bytes.chance(32)) at[i] = bytes.between(0, in[i]);
    others *= std::max<Int>(1, at[i]);
  }
  if (!in.empty()) at[static_cast<std::size_t>(axis)] = any_size(bytes, 2 * limit / others);
  return at;
}

// ---- Operand ------------------------------------------------------------------------------------

Operand::Operand(Bytes& bytes, const Sizes& sizes, int element_size, Role role, DataType type) {
  tensor.type = type;
  tensor.element_size = element_size;
  for (Int size : sizes) tensor.layout.push(size, 0);
  count_ = product(sizes);
  constexpr Int kMaxBytes = Int{4} << 20;
  if (!lay_out(bytes, role) || high() - low() > kMaxBytes)
    set_packed_strides(tensor.layout, element_size);
  // Fields that do not matter may be anything.
  if (bytes.chance(32)) {
    const Int wild[] = {0, 1, -1, Int{1} << 40, -(Int{1} << 40)};
    for (int i = 0; i < tensor.layout.rank; ++i)
      if (tensor.layout.sizes[i] <= 1) tensor.layout.strides[i] = bytes.pick(wild);
  }
  const Int shift = bytes.chance(48) ? bytes.between(1, 15) : 0;
  extent_ = count_ == 0 ? 0 : high() - low() + shift;
  origin_ = count_ == 0 ? 0 : shift - low();
  memory_.reset(new char[static_cast<std::size_t>(extent_)]);
  Noise noise(extent_);
  for (Int i = 0; i < extent_; ++i)
    memory_[static_cast<std::size_t>(i)] = static_cast<char>(noise.bits());
  remember();
}

Int Operand::low() const {
  Int sum = 0;
  for (int i = 0; i < tensor.layout.rank && count_ > 0; ++i)
    if (tensor.layout.sizes[i] > 1 && tensor.layout.strides[i] < 0)
      sum += (tensor.layout.sizes[i] - 1) * tensor.layout.strides[i];
  return sum;
}

Int Operand::high() const {
  Int sum = tensor.element_size;
  for (int i = 0; i < tensor.layout.rank && count_ > 0; ++i)
    if (tensor.layout.sizes[i] > 1 && tensor.layout.strides[i] > 0)
      sum += (tensor.layout.sizes[i] - 1) * tensor.layout.strides[i];
  return sum;
}

// Strides by one of some ways; false leaves it at packed.
bool Operand::lay_out(Bytes& bytes, Role role) {
  Layout& layout = tensor.layout;
  const int rank = layout.rank;
  const Int size = tensor.element_size;
  const int way = bytes.number(7);
  if (way <= 2) return false;
  if (way == 3) {  // any strides at all
    for (int i = 0; i < rank; ++i)
      layout.strides[i] = bytes.chance(64) ? bytes.between(-99, 99) : bytes.between(-9, 9) * size;
    return role == Role::input || injective();
  }
  std::vector<int> order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  if (way >= 6)
    for (int i = rank - 1; i > 0; --i)
      std::swap(order[static_cast<std::size_t>(i)],
                order[static_cast<std::size_t>(bytes.number(i))]);
  const bool gaps = way != 6, odd = bytes.chance(48);
  Int stride = size;
  for (int n = rank - 1; n >= 0; --n) {
    const int i = order[static_cast<std::size_t>(n)];
    const int what = gaps ? bytes.number(255) : 0;
    if (what & 1) stride += size * (1 + (what >> 5));
    if ((what & 2) && odd) stride += 1 + (what >> 6);
    layout.strides[i] = (what & 12) == 12 ? -stride : stride;
    if ((what & 16) && role == Role::input)
      layout.strides[i] = 0;
    else
      stride *= std::max<Int>(layout.sizes[i], 1);
    if (stride > (Int{1} << 24)) return false;
  }
  return true;
}

bool Operand::injective() const {
  if (count_ == 0) return true;
  const Int from = low(), length = high() - from;
  if (count_ > 3000 || length > 100000) return false;
  std::vector<bool> taken(static_cast<std::size_t>(length));
  for (Int i = 0; i < count_; ++i) {
    const Int begin = offset_at(tensor.layout, i) - from;
    for (Int b = begin; b < begin + tensor.element_size; ++b) {
      if (taken[static_cast<std::size_t>(b)]) return false;
      taken[static_cast<std::size_t>(b)] = true;
    }
  }
  return true;
}

std::vector<unsigned char> Operand::elements() const {
  const std::size_t size = static_cast<std::size_t>(tensor.element_size);
  std::vector<unsigned char> packed(static_cast<std::size_t>(count_) * size);
  for (Int i = 0; i < count_; ++i)
    std::memcpy(packed.data() + static_cast<std::size_t>(i) * size, at(i), size);
  return packed;
}

void Operand::fill(Bytes& bytes) {
  const int pattern_kind = bytes.number(7);
  Noise noise(bytes.between(0, 255));
  const std::size_t size = static_cast<std::size_t>(tensor.element_size);
  // Zeros of both signs, ones, infinities and NaNs of the floats, extremes of the integers.
  const unsigned char ends[] = {0x00, 0x80, 0x3F, 0x7F, 0x7C, 0xFF, 0xBF, 0x01};
  const unsigned char rest[] = {0x00, 0x80, 0xF0, 0xFF, 0xC0};
  const auto special = [&](char* element) {
    const uint64_t draw = noise.bits();
    std::memset(element, draw & 256 ? 0 : 255, size);
    if (draw & 512) std::memset(element, 0, size);
    if (size > 1) element[size - 2] = static_cast<char>(rest[draw % 5]);
    element[size - 1] = static_cast<char>(ends[draw >> 16 & 7]);
  };
  char one[16], values[4][16];
  special(one);
  for (char (&value)[16] : values) special(value);
  const Int odd = bytes.between(0, 255);
  for (Int i = 0; i < count_; ++i) {
    char* const element = at(i);
    uint64_t draw = noise.bits(), more = noise.bits();
    switch (pattern_kind) {
      case 0:  // any bits
        std::memcpy(element, &draw, std::min<std::size_t>(size, 8));
        if (size > 8) std::memcpy(element + 8, &more, size - 8);
        break;
      case 1:
        std::memcpy(element, one, size);
        break;
      case 2:
        std::memcpy(element, values[draw % 4], size);
        break;
      case 3:
        special(element);
        break;
      case 4:  // mostly zero
        std::memset(element, 0, size);
        if (static_cast<Int>(draw % 256) < odd) special(element);
        break;
      default: {  // ascending, descending, crowded
        const uint64_t value = pattern_kind == 5   ? static_cast<uint64_t>(i)
                               : pattern_kind == 6 ? static_cast<uint64_t>(count_ - i)
                                                   : uint64_t{0x3C00} + (draw & 63);
        std::memset(element, 0, size);
        std::memcpy(element, &value, std::min<std::size_t>(size, 8));
      }
    }
  }
}

void Operand::tame(Bytes& bytes) {
  Noise noise(bytes.between(0, 255));
  for (Int i = 0; i < count_; ++i) {
    const uint64_t draw = noise.bits();
    if (draw % 16 == 0) continue;
    const double value = static_cast<double>(static_cast<int>(draw >> 8 & 127) - 64) / 16;
    if (tensor.type == DataType::float32) store(at(i), static_cast<float>(value));
    if (tensor.type == DataType::float64) store(at(i), value);
    if (tensor.type == DataType::float16) store(at(i), test::half_bits(value));
    if (tensor.type == DataType::bfloat16) store(at(i), test::bfloat_bits(value));
  }
}

void Operand::remember() { before_.assign(memory_.get(), memory_.get() + extent_); }

bool Operand::unchanged() const {
  return std::equal(before_.begin(), before_.end(), memory_.get());
}

bool Operand::gaps_intact() const {
  std::vector<char> masked(memory_.get(), memory_.get() + extent_);
  for (Int i = 0; i < count_; ++i) {
    const Int from = origin_ + offset_at(tensor.layout, i);
    std::memcpy(masked.data() + from, before_.data() + from,
                static_cast<std::size_t>(tensor.element_size));
  }
  return masked == before_;
}

std::string Operand::text() const {
  std::string text = "type " + std::to_string(static_cast<int>(tensor.type)) + " of " +
                     std::to_string(tensor.element_size) + " {";
  for (int i = 0; i < tensor.layout.rank; ++i)
    text += (i > 0 ? " " : "") + std::to_string(tensor.layout.sizes[i]) + ":" +
            std::to_string(tensor.layout.strides[i]);
  return text + "}";
}

// ---- indices ------------------------------------------------------------------------------------

namespace {

void set_index(Operand& indices, Int flat, uint64_t bits) {
  if (indices.tensor.element_size == 4)
    store(indices.at(flat), static_cast<uint32_t>(bits));
  else
    store(indices.at(flat), bits);
}

// The value, sign-extended where the type has a sign, and whether it is below zero.
uint64_t value_of(const Operand& indices, Int flat, bool& negative) {
  const char* const at = indices.at(flat);
  const bool wide = indices.tensor.element_size == 8;
  const bool has_sign = is_signed_type(indices.tensor.type);
  const uint64_t bits = wide       ? load<uint64_t>(at)
                        : has_sign ? static_cast<uint64_t>(Int{load<int32_t>(at)})
                                   : load<uint32_t>(at);
  negative = has_sign && static_cast<Int>(bits) < 0;
  return bits;
}

}  // namespace

void fill_indices(Bytes& bytes, Operand& indices, const Sizes& limits) {
  const Int count = indices.count(), width = static_cast<Int>(limits.size());
  if (count == 0 || width == 0) return;
  const bool has_sign = is_signed_type(indices.tensor.type);
  const bool wide = indices.tensor.element_size == 8;
  const int pattern = bytes.number(7);
  const bool backwards = has_sign && bytes.chance(96);
  Noise noise(bytes.between(0, 255));
  for (Int i = 0; i < count; ++i) {
    const Int size = std::max<Int>(1, limits[static_cast<std::size_t>(i % width)]), n = i / width;
    Int place = 0;
    switch (pattern) {
      case 0:
        place = noise.below(size);
        break;
      case 1:
        place = n % size;
        break;
      case 2:
        place = size - 1 - n % size;
        break;
      case 3:
        place = size / 2;
        break;
      case 4:
        place = n * 64 % size;
        break;
      case 5:
        place = noise.below(std::min<Int>(size, 3));
        break;
      case 6:
        place = noise.below(16) == 0 ? noise.below(size) : n % 2 * (size - 1);
        break;
      default:
        place = size - 1;
    }
    if (backwards && noise.below(3) == 0) place -= size;
    set_index(indices, i, static_cast<uint64_t>(place));
  }
  if (!bytes.chance(64)) return;
  for (int bad = 1 + bytes.number(2); bad > 0; --bad) {
    const Int at = bytes.chance(64) ? count - 1 : bytes.between(0, count - 1);
    const Int size = limits[static_cast<std::size_t>(at % width)];
    const uint64_t top = wide ? uint64_t{1} << 63 : uint64_t{1} << 31;
    const uint64_t wrong[] = {
        static_cast<uint64_t>(size),
        static_cast<uint64_t>(-size - 1),
        top,
        top - 1,
        ~uint64_t{0},
        (wide ? uint64_t{1} << 32 : uint64_t{1} << 16) + 1,
        static_cast<uint64_t>(size + bytes.between(0, 255)),
        static_cast<uint64_t>(
            bytes.between(std::numeric_limits<Int>::min(), std::numeric_limits<Int>::max()))};
    set_index(indices, at, bytes.pick(wrong));
  }
}

Int position_of(const Operand& indices, Int flat, Int size) {
  bool negative;
  const uint64_t bits = value_of(indices, flat, negative);
  if (negative) {
    const Int value = static_cast<Int>(bits);
    return value < -size ? -1 : value + size;
  }
  return bits < static_cast<uint64_t>(size) ? static_cast<Int>(bits) : -1;
}

Int clamped_position(const Operand& indices, Int flat, Int size) {
  const Int position = position_of(indices, flat, size);
  if (position >= 0 || size == 0) return position;
  bool negative;
  value_of(indices, flat, negative);
  return negative ? 0 : size - 1;
}

}  // namespace anydml::fuzz

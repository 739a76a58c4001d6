// Helpers of all kernels' fuzzers: bytes as decisions, and operands of any layout in memory of
// exactly their extent.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/scatter_reference.hpp"

namespace anydml::fuzz {

#define REQUIRE(condition, ...)                                            \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      std::fprintf(stderr, __VA_ARGS__);                                   \
      std::fprintf(stderr, "\n");                                          \
      std::abort();                                                        \
    }                                                                      \
  } while (0)

using Sizes = std::vector<Int>;

// The fuzzer's bytes as decisions; after the last byte, every decision is the first choice.
class Bytes {
 public:
  Bytes(const uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  // In [low, high], from as few bytes as possible.
  Int between(Int low, Int high) {
    const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
    uint64_t value = 0;
    for (uint64_t rest = range; rest > 0; rest >>= 8) value = value << 8 | next();
    if (range != ~uint64_t{0}) value %= range + 1;
    return static_cast<Int>(static_cast<uint64_t>(low) + value);
  }
  int number(int high) { return static_cast<int>(between(0, high)); }
  // True for `of` of 256 values of a byte, the highest.
  bool chance(int of) { return next() >= 256 - of; }
  template <class T, std::size_t N>
  const T& pick(const T (&choices)[N]) {
    return choices[between(0, N - 1)];
  }

 private:
  uint8_t next() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }

  const uint8_t* data_;
  std::size_t left_;
};

// Randomness inside an operand: one byte of input seeds it (splitmix64).
class Noise {
 public:
  explicit Noise(Int seed) : state_(static_cast<uint64_t>(seed)) {}
  uint64_t bits() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }
  Int below(Int limit) { return static_cast<Int>(bits() % static_cast<uint64_t>(limit)); }

 private:
  uint64_t state_;
};

inline Int product(const Sizes& sizes) {
  for (Int size : sizes)
    if (size == 0) return 0;
  Int total = 1;
  for (Int size : sizes) total *= size;
  return total;
}

inline Sizes unravel(Int flat, const Sizes& sizes) {
  Sizes at(sizes.size());
  for (std::size_t i = sizes.size(); i-- > 0;) {
    at[i] = flat % sizes[i];
    flat /= sizes[i];
  }
  return at;
}

inline Int ravel(const Sizes& at, const Sizes& sizes) {
  Int flat = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) flat = flat * sizes[i] + at[i];
  return flat;
}

// The most elements of a case's tensors: mostly few, now and then enough for threads.
Int any_limit(Bytes& bytes);
// One size of at most `limit`: 0 and sizes around powers of two are more likely.
Int any_size(Bytes& bytes, Int limit);
Sizes any_sizes(Bytes& bytes, int rank, Int limit);
// Sizes of an index tensor: those of `in`, any on the axis, now and then smaller ones off it.
Sizes any_lookup(Bytes& bytes, const Sizes& in, int axis, Int limit);

enum class Role { input, output };

// A tensor of any layout. Inputs may broadcast and overlap themselves; outputs may have gaps in any
// order. Its memory ends with its outermost elements, and gaps are watched.
class Operand {
 public:
  Operand(Bytes& bytes, const Sizes& sizes, int element_size, Role role,
          DataType type = DataType::unknown);
  Operand(const Operand& other) = delete;
  Operand& operator=(const Operand& other) = delete;

  char* data() { return memory_.get() + origin_; }
  const char* data() const { return memory_.get() + origin_; }
  Int count() const { return count_; }
  char* at(Int flat) { return data() + offset_at(tensor.layout, flat); }
  const char* at(Int flat) const { return data() + offset_at(tensor.layout, flat); }
  // Row-major packed bytes of the elements.
  std::vector<unsigned char> elements() const;

  // Random bits, few values, an order, everyday numbers: a byte chooses.
  void fill(Bytes& bytes);
  // Numbers whose sums are not all infinite.
  void tame(Bytes& bytes);
  // Called after the contents are filled.
  void remember();
  bool unchanged() const;
  bool gaps_intact() const;
  // Type, sizes and strides.
  std::string text() const;

  Tensor tensor;

 private:
  bool lay_out(Bytes& bytes, Role role);
  bool injective() const;
  Int low() const;
  Int high() const;

  Int count_ = 0, extent_ = 0, origin_ = 0;
  std::unique_ptr<char[]> memory_;
  std::vector<char> before_;
};

// ---- indices ------------------------------------------------------------------------------------

using test::TypeInfo;

// Fills an index tensor; coordinate i of a tuple of `limits.size()` is below limits[i], but for a
// few that are not.
void fill_indices(Bytes& bytes, Operand& indices, const Sizes& limits);

// The position that the library must use for a value, or -1.
Int position_of(const Operand& indices, Int flat, Int size);
// The same where out of range means the nearest; -1 on an axis of no elements.
Int clamped_position(const Operand& indices, Int flat, Int size);

// ---- what each family does with the bytes -------------------------------------------------------

void fuzz_top_k(Bytes& bytes);
void fuzz_nonzero(Bytes& bytes);
void fuzz_scatter(Bytes& bytes);
void fuzz_scatter_nd(Bytes& bytes);
void fuzz_slabs(Bytes& bytes);
void fuzz_copy(Bytes& bytes);
void fuzz_gather(Bytes& bytes);
void fuzz_gather_elements(Bytes& bytes);
void fuzz_gather_nd(Bytes& bytes);

}  // namespace anydml::fuzz

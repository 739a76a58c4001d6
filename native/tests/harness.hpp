// What the native tests share: random layouts over poisoned memory whose gaps are checked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

#include "runtime/cpu/threads.hpp"
#include "runtime/plans.hpp"

namespace anydml::test {

// ANYDML_TEST_SHORT requests fewer cases. A number above 1 divides their count once more, for slow
// sanitizers. Returns 0 if it is not set.
inline int shortening() {
  const char* const text = std::getenv("ANYDML_TEST_SHORT");
  return text == nullptr ? 0 : std::max(1, std::atoi(text));
}
// The number of cases: `all`, or in a short run `short_count` divided by the shortening.
inline int cases(int all, int short_count) {
  const int by = shortening();
  return by == 0 ? all : (short_count + by - 1) / by;
}

// Whether a large case that was chosen by hand runs: always, unless ANYDML_TEST_TURN is set. Then
// every third case runs; the turns 0, 1 and 2 cover all of them.
inline bool has_turn() {
  static const char* const turn = std::getenv("ANYDML_TEST_TURN");
  static int asked = 0;
  return turn == nullptr || asked++ % 3 == std::atoi(turn);
}

#define EXPECT(condition, ...)                                    \
  do {                                                            \
    if (!(condition)) {                                           \
      std::printf("%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      std::printf(__VA_ARGS__);                                   \
      std::printf("\n");                                          \
      std::exit(1);                                               \
    }                                                             \
  } while (0)

// splitmix64: a few instructions for each number, because under a sanitizer most of a test's time
// goes into filling its operands.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // Uniform in [low, high], as far as 64 bits go.
  Int between(Int low, Int high) {
    const uint64_t count = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
    const auto scaled = static_cast<unsigned __int128>(bits()) * count;
    const uint64_t above = count == 0 ? bits() : static_cast<uint64_t>(scaled >> 64);
    return static_cast<Int>(static_cast<uint64_t>(low) + above);
  }
  bool chance(double p) { return static_cast<double>(bits() >> 11) < p * 0x1p53; }
  uint64_t bits() {
    uint64_t x = state_ += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
  }
  void fill(unsigned char* to, std::size_t count) {
    for (std::size_t at = 0; at < count; at += 8) {
      const uint64_t next = bits();
      std::memcpy(to + at, &next, std::min<std::size_t>(8, count - at));
    }
  }

 private:
  uint64_t state_;
};

// The number of threads of a case. A case of one thread has no races.
#if defined(ANYDML_TEST_RACES)
constexpr int kMinThreads = 2;
#else
constexpr int kMinThreads = 1;
#endif
inline int any_threads(Random& random) { return static_cast<int>(random.between(kMinThreads, 4)); }

// Whether two elements are equal. Sanitizers are slow on a memcmp of unknown size.
inline bool same_bytes(const void* a, const void* b, std::size_t size) {
  const auto same = [a, b]<class T>(T) {
    return load<T>(static_cast<const char*>(a)) == load<T>(static_cast<const char*>(b));
  };
  switch (size) {
    case 1:
      return same(uint8_t{});
    case 2:
      return same(uint16_t{});
    case 4:
      return same(uint32_t{});
    case 8:
      return same(uint64_t{});
    default:
      return std::memcmp(a, b, size) == 0;
  }
}

// any: gaps, permuted, negative; stepped: elements of the last dimension at one step, mostly every
// other one, some backwards or unaligned, the other dimensions packed around it.
enum class Strides { packed, any, stepped };
enum class Role { input, output };  // inputs may also broadcast (stride 0)

inline Strides random_strides(Random& random) {
  return random.chance(0.4)   ? Strides::packed
         : random.chance(0.5) ? Strides::any
                              : Strides::stepped;
}

// Address space of which only touched pages use memory; null if the system does not support it.
class Spread {
 public:
  explicit Spread(Int bytes) : size_(static_cast<std::size_t>(bytes)) {
#if defined(MAP_NORESERVE) && defined(MAP_ANONYMOUS)
    void* const all = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all != MAP_FAILED) data_ = static_cast<char*>(all);
#endif
  }
  ~Spread() {
#if defined(MAP_NORESERVE) && defined(MAP_ANONYMOUS)
    if (data_ != nullptr) munmap(data_, size_);
#endif
  }
  Spread(const Spread&) = delete;
  Spread& operator=(const Spread&) = delete;
  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
  std::size_t size_;
};

// Memory for one tensor: every byte poisoned, and none outside the elements may change.
class Buffer {
 public:
  Buffer(Random& random, std::vector<Int> sizes, int element_size, Strides strides, Role role,
         DataType type = DataType::unknown) {
    tensor.type = type;
    tensor.element_size = element_size;
    const int rank = static_cast<int>(sizes.size());
    std::vector<int> order(static_cast<std::size_t>(rank));
    for (int i = 0; i < rank; ++i) order[static_cast<std::size_t>(i)] = i;
    packed_ = strides == Strides::packed;
    const bool wild = strides == Strides::any;
    if (wild && random.chance(0.5))
      for (int i = rank - 1; i > 0; --i)
        std::swap(order[static_cast<std::size_t>(i)],
                  order[static_cast<std::size_t>(random.between(0, i))]);
    for (int i = 0; i < rank; ++i) tensor.layout.push(sizes[static_cast<std::size_t>(i)], 0);
    count_ = tensor.layout.count();
    Int stride = element_size, low = 0, high = element_size;
    if (wild && random.chance(0.2)) stride += random.between(1, 3);  // unaligned elements
    const bool stepped = strides == Strides::stepped;
    if (stepped) {
      stride = element_size * (random.chance(0.6) ? 2 : random.between(1, 6));
      if (random.chance(0.1)) stride += random.between(1, 5);
    }
    const bool back = stepped && random.chance(0.2);
    for (int n = rank - 1; n >= 0; --n) {
      const int i = order[static_cast<std::size_t>(n)];
      const Int size = tensor.layout.sizes[i];
      if (wild && random.chance(0.3)) stride += random.between(0, 2) * element_size;
      Int own = stride;
      if (wild && role == Role::input && random.chance(0.15)) own = 0;
      if ((wild && random.chance(0.15)) || (back && i == rank - 1)) own = -own;
      tensor.layout.strides[i] = own;
      if (size > 1) (own < 0 ? low : high) += (size - 1) * own;
      if (own != 0) stride = std::abs(own) * std::max<Int>(size, 1);
    }
    origin_ = kCanary - low;
    bytes_.resize(static_cast<std::size_t>(high - low + 2 * kCanary));
    random.fill(bytes_.data(), bytes_.size());
    before_ = bytes_;
  }

  char* data() { return reinterpret_cast<char*>(bytes_.data()) + origin_; }
  const char* data() const { return reinterpret_cast<const char*>(bytes_.data()) + origin_; }
  Int count() const { return count_; }
  char* at(Int flat) { return data() + offset(flat); }
  const char* at(Int flat) const { return data() + offset(flat); }
  template <class T>
  T get(Int flat) const {
    return load<T>(at(flat));
  }
  template <class T>
  void set(Int flat, T value) {
    store(at(flat), value);
  }
  // Row-major packed bytes of the elements.
  std::vector<unsigned char> elements() const {
    const std::size_t size = static_cast<std::size_t>(tensor.element_size);
    const Int all = count();
    if (packed_) return {bytes_.begin() + origin_, bytes_.begin() + origin_ + all * Int(size)};
    std::vector<unsigned char> packed(static_cast<std::size_t>(all) * size);
    for (Int i = 0; i < all; ++i)
      std::memcpy(packed.data() + static_cast<std::size_t>(i) * size, at(i), size);
    return packed;
  }
  // For another layout of the same elements.
  Layout& relaid() {
    packed_ = false;
    return tensor.layout;
  }
  // Call before the kernel runs, when set() is done.
  void remember() { before_ = bytes_; }
  bool unchanged() const { return before_ == bytes_; }
  // True when no byte outside the elements changed since remember().
  bool gaps_intact() const {
    const Int size = tensor.element_size, all = count();
    if (packed_) {
      const auto same = [this](Int begin, Int end) {
        return std::equal(bytes_.begin() + begin, bytes_.begin() + end, before_.begin() + begin);
      };
      return same(0, origin_) && same(origin_ + all * size, static_cast<Int>(bytes_.size()));
    }
    std::vector<unsigned char> masked = bytes_;
    for (Int i = 0; i < all; ++i) {
      const Int from = origin_ + offset(i);
      std::memcpy(masked.data() + from, before_.data() + from, static_cast<std::size_t>(size));
    }
    return masked == before_;
  }

  Tensor tensor;

 private:
  static constexpr Int kCanary = 128;
  Int offset(Int flat) const {
    return packed_ ? flat * tensor.element_size : offset_at(tensor.layout, flat);
  }

  bool packed_;
  std::vector<unsigned char> bytes_, before_;
  Int origin_ = 0, count_ = 0;
};

}  // namespace anydml::test

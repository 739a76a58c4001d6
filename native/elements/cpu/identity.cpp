// A copy, or each element times a scale plus a bias.
//
// Product and sum are rounded one after the other: the build allows no instruction that makes one
// rounding of the two, and where one is used the product is exact. Elements become FLOAT32 or
// FLOAT64 in registers where the level has vectors for that, or block by block in the nearest
// cache. Of many bytes each value is computed once and looked up.
#include <cmath>

#include "elements/cpu/cast.hpp"
#include "elements/cpu/convert.hpp"
#include "elements/cpu/lanes.hpp"
#include "runtime/cpu/copy.hpp"
#include "runtime/cpu/with_type.hpp"

namespace anydml {
namespace {

// Source and target are the same, or do not overlap.
template <class T>
void scale_and_add(const char* source, char* target, Int count, T scale, T bias) {
  constexpr Int size = sizeof(T);
#pragma GCC ivdep
  for (Int i = 0; i < count; ++i) {
    const T product = load<T>(source + i * size) * scale;
    store(target + i * size, canonical(product + bias));
  }
}

// Blocks of elements as T.
template <class T>
class BlockMap : public ElementMap {
 public:
  explicit BlockMap(const IdentityPlan& plan)
      : plain_(plan.input.type == kType),
        scale_(static_cast<T>(plan.scale)),
        bias_(static_cast<T>(plan.bias)),
        read_(plan.input.type, kType),
        write_(kType, plan.input.type) {}
  void run(const char* source, char* target, Int count) const override {
    if (plain_) return scale_and_add(source, target, count, scale_, bias_);
    alignas(64) char block[kMapBlock * sizeof(T)];
    read_.run(source, block, count);
    scale_and_add(block, block, count, scale_, bias_);
    write_.run(block, target, count);
  }

 private:
  static constexpr DataType kType = sizeof(T) == 4 ? DataType::float32 : DataType::float64;

  bool plain_;
  T scale_, bias_;
  CastMap read_, write_;  // neither, of the very type
};

#if defined(__AVX2__) && defined(__F16C__)
// FLOAT16 and FLOAT32.
template <class T>
class SingleMap : public ElementMap {
 public:
  explicit SingleMap(const IdentityPlan& plan)
      : scale_(static_cast<float>(plan.scale)), bias_(static_cast<float>(plan.bias)) {}
  void run(const char* source, char* target, Int count) const override {
    constexpr int width = kLanes<float, Half>;
    const float scale = scale_, bias = bias_;
    for_lanes<width, T, T>(source, target, count, [=](const char* from, char* to) {
#if defined(__AVX512F__)
      using namespace lanes;
      write_sixteen<T>(to, canonical_sixteen(read_sixteen<T>(from) * scale + bias));
#else
      using namespace lanes;
      write_eight<T>(to, canonical_eight(read_eight<T>(from) * scale + bias));
#endif
    });
  }

 private:
  float scale_, bias_;
};
#else
template <class>
using SingleMap = BlockMap<float>;
#endif

#if defined(__AVX512F__)
// FLOAT64 and integers.
template <class T>
class DoubleMap : public ElementMap {
 public:
  explicit DoubleMap(const IdentityPlan& plan) : scale_(plan.scale), bias_(plan.bias) {}
  void run(const char* source, char* target, Int count) const override {
    using namespace lanes;
    const double scale = scale_, bias = bias_;
    for_lanes<8, T, T>(source, target, count, [=](const char* from, char* to) {
      const __m512d sums = doubles<T>(read_wide<T>(from)) * scale + bias;
      if constexpr (std::is_same_v<T, double>)
        write_wide<T>(to, canonical_wide(sums));
      else
        write_wide<T>(to, to_wide_integers<T>(sums));
    });
  }

 private:
  double scale_, bias_;
};

// Integers of 16 bits, by finite numbers. A product with the 24 digits of a FLOAT is exact in a
// double, so that one rounding is two.
template <class T>
class ShortMap : public ElementMap {
 public:
  explicit ShortMap(const IdentityPlan& plan) : scale_(plan.scale), bias_(plan.bias) {}
  void run(const char* source, char* target, Int count) const override {
    const __m512d scale = _mm512_set1_pd(scale_), bias = _mm512_set1_pd(bias_);
    for_lanes<16, T, T>(source, target, count, [=](const char* from, char* to) {
      lanes::scale_sixteen<T>(from, to, scale, bias);
    });
  }

 private:
  double scale_, bias_;
};

// The least count of elements for which a table of bytes pays.
constexpr Int kTabled = 4096;

// Integers of 8 bits, by a table of the 256 results.
template <class T>
class ByteMap : public ElementMap {
 public:
  explicit ByteMap(const IdentityPlan& plan) {
    char all[kValues];
    for (int i = 0; i < kValues; ++i) all[i] = static_cast<char>(i);
    DoubleMap<T>(plan).run(all, table_, kValues);
  }
  void run(const char* source, char* target, Int count) const override {
    const lanes::ByteTable table(table_);
    for_lanes<64, T, T>(source, target, count, [&](const char* from, char* to) {
      _mm512_storeu_si512(to, table.at(_mm512_loadu_si512(from)));
    });
  }

 private:
  static constexpr int kValues = 256;
  char table_[kValues];
};
#else
template <class>
using DoubleMap = BlockMap<double>;
#endif

}  // namespace

void IdentityPlan::run(const void* from, void* to, int threads) const {
  if (!scaled) {
    if (from == to) return;  // in place
    return copy_elements(output.layout, to, input.layout, from, input.element_size, threads);
  }
  const auto by = [&](const ElementMap& map) {
    map_elements(map, output, to, input, from, threads);
  };
  with_type<Half, Bfloat>(input.type, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, Half>)
      return by(SingleMap<T>(*this));
#if defined(__AVX512F__)
    if constexpr (std::is_integral_v<T> && sizeof(T) == 2)
      if (std::isfinite(scale) && std::isfinite(bias)) return by(ShortMap<T>(*this));
    if constexpr (sizeof(T) == 1)
      if (output.layout.count() >= kTabled) return by(ByteMap<T>(*this));
#endif
    if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>) by(DoubleMap<T>(*this));
  });
}

}  // namespace anydml

// A copy, or each element times a scale plus a bias.
//
// Blocks become FLOAT32 or FLOAT64 as CAST makes them, are computed with in the nearest cache, and
// become their type again. Product and sum are loops of their own, so that no compiler makes one
// rounding of the two at the levels that have an instruction for it.
#include "../runtime/copy.hpp"
#include "cast.hpp"
#include "convert.hpp"

namespace anydml {
namespace {

template <class T>
void scale_and_add(const T* from, T* to, Int count, T scale, T bias) {
  for (Int i = 0; i < count; ++i) to[i] = from[i] * scale;
  for (Int i = 0; i < count; ++i) {
    const T sum = to[i] + bias;
    const T nan = kept(canonical(std::numeric_limits<T>::quiet_NaN()), sum != sum);
    to[i] = joined(kept(sum, sum == sum), nan);
  }
}

template <class T>
class ScaledMap : public ElementMap {
 public:
  explicit ScaledMap(const IdentityPlan& plan)
      : plain_(plan.input.type == kType),
        size_(plan.input.element_size),
        scale_(static_cast<T>(plan.scale)),
        bias_(static_cast<T>(plan.bias)),
        read_(plan.input.type, kType),
        write_(kType, plan.input.type) {}

  void run(const char* source, char* target, Int count) const override {
    alignas(64) T numbers[kMapBlock];
    char* const block = reinterpret_cast<char*>(numbers);
    if (plain_)
      std::memcpy(block, source, static_cast<std::size_t>(count * size_));
    else
      read_.run(source, block, count);
    scale_and_add(numbers, numbers, count, scale_, bias_);
    if (plain_)
      std::memcpy(target, block, static_cast<std::size_t>(count * size_));
    else
      write_.run(block, target, count);
  }

 private:
  static constexpr DataType kType = sizeof(T) == 4 ? DataType::float32 : DataType::float64;

  bool plain_;
  Int size_;
  T scale_, bias_;
  CastMap read_, write_;
};

}  // namespace

void IdentityPlan::run(const void* from, void* to, int threads) const {
  if (!scaled) {
    if (from == to) return;  // in place
    return copy_elements(output.layout, to, input.layout, from, input.element_size, threads);
  }
  if (input.type == DataType::float32 || input.type == DataType::float16)
    map_elements(ScaledMap<float>(*this), output, to, input, from, threads);
  else
    map_elements(ScaledMap<double>(*this), output, to, input, from, threads);
}

}  // namespace anydml

// Writing updates with a reduction: every element type by every reduction.

#include "runtime/cpu/with_type.hpp"
#include "scatter/cpu/scatter_writers.hpp"

namespace anydml::scatter {
namespace {

template <Reduction kReduction>
const Writer& by_type(DataType type) {
  if constexpr (is_arithmetic(kReduction)) {
    if (type == DataType::complex64) return kWriter<kReduction, Complex<float>>;
    if (type == DataType::complex128) return kWriter<kReduction, Complex<double>>;
  }
  return with_type<Half, Bfloat>(
      type, []<class T>(T) -> const Writer& { return kWriter<kReduction, T>; });
}

}  // namespace

const Writer& reduce_writer(Reduction reduction, DataType type) {
  switch (reduction) {
    case Reduction::mul:
      return by_type<Reduction::mul>(type);
    case Reduction::min:
      return by_type<Reduction::min>(type);
    case Reduction::max:
      return by_type<Reduction::max>(type);
    default:
      return by_type<Reduction::add>(type);
  }
}

}  // namespace anydml::scatter

// Writing updates with a reduction: every element type by every reduction.

#include "scatter_writers.hpp"

namespace anydml::scatter {
namespace {

template <Reduction kReduction>
const Writer& by_type(DataType type) {
  switch (type) {
    case DataType::float16:
      return kWriter<kReduction, Float16>;
    case DataType::bfloat16:
      return kWriter<kReduction, Bfloat16>;
    case DataType::float64:
      return kWriter<kReduction, double>;
    case DataType::int8:
      return kWriter<kReduction, int8_t>;
    case DataType::int16:
      return kWriter<kReduction, int16_t>;
    case DataType::int32:
      return kWriter<kReduction, int32_t>;
    case DataType::int64:
      return kWriter<kReduction, int64_t>;
    case DataType::uint8:
      return kWriter<kReduction, uint8_t>;
    case DataType::uint16:
      return kWriter<kReduction, uint16_t>;
    case DataType::uint32:
      return kWriter<kReduction, uint32_t>;
    case DataType::uint64:
      return kWriter<kReduction, uint64_t>;
    case DataType::complex64:
      if constexpr (is_arithmetic(kReduction)) return kWriter<kReduction, Complex<float>>;
      [[fallthrough]];
    case DataType::complex128:
      if constexpr (is_arithmetic(kReduction)) return kWriter<kReduction, Complex<double>>;
      [[fallthrough]];
    default:
      return kWriter<kReduction, float>;
  }
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

// Writing updates without a reduction: bits are moved, so the element size is all that matters.

#include "scatter/cpu/scatter_writers.hpp"

namespace anydml::scatter {
namespace {

struct Sixteen {
  uint64_t low, high;
};

}  // namespace

const Writer& move_writer(int element_size) {
  switch (element_size) {
    case 1:
      return kWriter<Reduction::none, uint8_t>;
    case 2:
      return kWriter<Reduction::none, uint16_t>;
    case 4:
      return kWriter<Reduction::none, uint32_t>;
    case 8:
      return kWriter<Reduction::none, uint64_t>;
    default:
      return kWriter<Reduction::none, Sixteen>;
  }
}

const Writer& writer(Reduction reduction, DataType type, int element_size) {
  return reduction == Reduction::none ? move_writer(element_size) : reduce_writer(reduction, type);
}

}  // namespace anydml::scatter

// UPSAMPLE_2D of elements of ANYDML_SIZE bytes, 1 to 8, that repeat: the output's rows are whole
// lines of 16 bytes.
#include "images/cuda/images.cuh"

namespace {

using namespace anydml::cuda;

using Element = Unit<ANYDML_SIZE>::Type;
constexpr unsigned kElementsPerVector = 16 / ANYDML_SIZE;
struct alignas(16) Elements {
  Element of[kElementsPerVector];
};

}  // namespace

extern "C" __global__ void __launch_bounds__(kImageThreads)
    upsample_nearest(char* target, const char* source, const __grid_constant__ Walk images,
                     const __grid_constant__ Repeating shape) {
  const unsigned item = blockIdx.x * kImageThreads + threadIdx.x;
  if (item >= shape.items) return;
  const unsigned above = shape.lines.quotient(item), line = item - above * shape.lines.size;
  unsigned number[1] = {shape.rows.quotient(above)};
  const unsigned row = above - number[0] * shape.rows.size;
  Offset to[1], from[1];
  offsets_at(images, number, to, from);
  unsigned column = shape.width.quotient(line * kElementsPerVector);
  unsigned left = shape.width.size - (line * kElementsPerVector - column * shape.width.size);
  source += from[0] + row * shape.from_row;
  target += to[0] + Offset{row} * shape.height * shape.to_row + Offset{line} * 16;
  Elements result;
  Element value = read<Element>(source + column * shape.from_column);
#pragma unroll
  for (unsigned j = 0; j < kElementsPerVector; ++j) {
    result.of[j] = value;
    if (j + 1 == kElementsPerVector || --left != 0) continue;
    left = shape.width.size;
    ++column;
    value = read<Element>(source + column * shape.from_column);
  }
  for (unsigned i = 0; i < shape.height; ++i) write(target + i * shape.to_row, result);
}

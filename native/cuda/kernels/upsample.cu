// UPSAMPLE_2D by linear interpolation, of elements of ANYDML_TYPE, a value of DML_TENSOR_DATA_TYPE.
//
// A thread goes down one column of an image: where its elements lie along the width is computed
// once, along the height once for all threads of a row, and what two rows of the input give in its
// column is kept until the next ones are needed.
#include "images.cuh"
#include "numbers.cuh"

namespace {

using namespace anydml::cuda;

using Element = Number<ANYDML_TYPE>::Type;

// Between which elements the middle of an output element lies, and how far from the first one:
// native/cpu/movers/upsample.cpp.
struct alignas(16) Between {
  Offset first;
  float part;  // 0: it is the first one
};

__device__ Between between(Offset at, Offset scale, Offset size) {
  const Offset middle = 2 * at + 1 - scale;  // in units of half an output element
  if (middle <= 0) return {0, 0};
  const Offset first = middle / (2 * scale);
  if (first >= size - 1) return {size - 1, 0};
  const double rest = static_cast<double>(middle - first * (2 * scale));
  return {first, static_cast<float>(rest / static_cast<double>(2 * scale))};
}

// A template, so that what is not for this type is not compiled.
template <class T>
__device__ float number_of(T value) {
  if constexpr (kIsHalf<T>)
    return widen(value);
  else
    return value;
}
template <class T>
__device__ T element_of(float value) {
  if constexpr (kIsHalf<T>)
    return narrow(value);
  else
    return value;
}

__device__ float mixed(float a, float b, float part) {
  return __fadd_rn(__fmul_rn(a, 1 - part), __fmul_rn(b, part));
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kImageThreads)
    upsample_linear(char* target, const char* source, const __grid_constant__ Walk images,
                    const __grid_constant__ Stretching shape) {
  extern __shared__ uint4 memory[];  // a place for each row of the block
  Between* const places = reinterpret_cast<Between*>(memory);
  const Offset above = blockIdx.x / shape.across;
  const Offset image = above / shape.down;
  const unsigned lane = threadIdx.x & ((1u << shape.columns_log) - 1);
  const unsigned group = threadIdx.x >> shape.columns_log;
  const unsigned groups = kImageThreads >> shape.columns_log;
  const Offset column = ((blockIdx.x - above * shape.across) << shape.columns_log) + lane;
  const Offset top = (above - image * shape.down) * (groups * kUpsampleRows);
  for (unsigned i = threadIdx.x; i < groups * kUpsampleRows; i += kImageThreads)
    if (top + i < shape.rows) places[i] = between(top + i, shape.height, shape.high);
  __syncthreads();
  if (column >= shape.columns) return;

  unsigned number[1] = {static_cast<unsigned>(image)};
  Offset to[1], from[1];
  offsets_at(images, number, to, from);
  const Between across = between(column, shape.width, shape.wide);
  source += from[0] + across.first * shape.from_column;
  target += to[0] + column * shape.to_column;
  const auto stretched = [&](Offset row) {
    const char* const here = source + row * shape.from_row;
    const float a = number_of(read<Element>(here));
    if (across.part == 0) return a;
    return mixed(a, number_of(read<Element>(here + shape.from_column)), across.part);
  };
  Offset held = -1;  // the row that `upper` is of; `lower` is of the next one, if it has one
  float upper = 0, lower = 0;
  bool has_lower = false;
#pragma unroll 1
  for (int i = 0; i < kUpsampleRows; ++i) {
    const unsigned place = group * kUpsampleRows + i;
    const Offset row = top + place;
    if (row >= shape.rows) return;
    const Between down = places[place];
    if (down.first != held) {
      upper = has_lower && down.first == held + 1 ? lower : stretched(down.first);
      held = down.first;
      has_lower = false;
    }
    if (down.part != 0 && !has_lower) {
      lower = stretched(held + 1);
      has_lower = true;
    }
    const float made = down.part == 0 ? upper : mixed(upper, lower, down.part);
    write(target + row * shape.to_row, element_of<Element>(canonical(made)));
  }
}

// UPSAMPLE_2D by linear interpolation, of elements of ANYDML_TYPE, a value of DML_TENSOR_DATA_TYPE.
//
// A thread goes down some columns of an image, one or 16 bytes of elements: where rows and columns
// of a block lie between those of the input is computed once, and what two rows of the input give
// in a column is kept until the next ones are needed.
#include "images/cuda/images.cuh"
#include "runtime/cuda/numbers.cuh"

namespace {

using namespace anydml::cuda;

using Element = Number<ANYDML_TYPE>::Type;

// Between which elements the middle of an output element lies, and how far from the first one:
// native/images/cpu/upsample.cpp.
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

// A template, so that code for other types is not compiled.
template <class T>
__device__ T element_of(float value) {
  if constexpr (kIsSame<T, Half>)
    return narrow(value);
  else
    return value;
}

__device__ float mixed(float a, float b, float part) {
  return __fadd_rn(__fmul_rn(a, 1 - part), __fmul_rn(b, part));
}

// kWide elements of an output's row at a time; places on the input's rows are steps of a type.
template <int kWide, int kRows, class Step>
__device__ void stretch(char* target, const char* source, const Walk& images,
                        const Stretching& shape, Between* places) {
  const Offset above = blockIdx.x / shape.across;
  const Offset image = above / shape.down;
  const unsigned lane = threadIdx.x & ((1u << shape.columns_log) - 1);
  const unsigned group = threadIdx.x >> shape.columns_log;
  const unsigned groups = kImageThreads >> shape.columns_log;
  const unsigned side = static_cast<unsigned>(kWide) << shape.columns_log;
  const Offset left = (blockIdx.x - above * shape.across) * side;
  const Offset top = (above - image * shape.down) * (groups * kRows);
  Between* const column_places = places + groups * kRows;
  for (unsigned i = threadIdx.x; i < groups * kRows; i += kImageThreads)
    if (top + i < shape.rows) places[i] = between(top + i, shape.height, shape.high);
  for (unsigned i = threadIdx.x; i < side; i += kImageThreads)
    if (left + i < shape.columns) column_places[i] = between(left + i, shape.width, shape.wide);
  __syncthreads();
  const Offset column = left + lane * kWide;
  if (column >= shape.columns) return;

  unsigned number[1] = {static_cast<unsigned>(image)};
  Offset to[1], from[1];
  offsets_at(images, number, to, from);
  source += from[0];
  target += to[0] + column * shape.to_column;
  Step across[kWide];
  float part[kWide];
#pragma unroll
  for (int j = 0; j < kWide; ++j) {
    const Between place = column_places[lane * kWide + j];
    across[j] = static_cast<Step>(place.first * shape.from_column);
    part[j] = place.part;
  }
  const Step step = static_cast<Step>(shape.from_column);
  const auto stretched = [&](Offset row, float (&result)[kWide]) {
    const char* const here = source + row * shape.from_row;
#pragma unroll
    for (int j = 0; j < kWide; ++j) {
      result[j] = number_of(read<Element>(here + across[j]));
      if (part[j] != 0)
        result[j] = mixed(result[j], number_of(read<Element>(here + across[j] + step)), part[j]);
    }
  };
  Offset held = -1;  // the row that `upper` is of; `lower` is of the next one, if it has one
  float upper[kWide], lower[kWide];
  bool has_lower = false;
#pragma unroll 1
  for (int i = 0; i < kRows; ++i) {
    const unsigned place = group * kRows + i;
    const Offset row = top + place;
    if (row >= shape.rows) return;
    const Between down = places[place];
    if (down.first != held) {
      if (has_lower && down.first == held + 1) {
#pragma unroll
        for (int j = 0; j < kWide; ++j) upper[j] = lower[j];
      } else {
        stretched(down.first, upper);
      }
      held = down.first;
      has_lower = false;
    }
    if (down.part != 0 && !has_lower) {
      stretched(held + 1, lower);
      has_lower = true;
    }
    struct alignas(kWide * sizeof(Element)) Result {
      Element of[kWide];
    } result;
#pragma unroll
    for (int j = 0; j < kWide; ++j) {
      const float value = down.part == 0 ? upper[j] : mixed(upper[j], lower[j], down.part);
      result.of[j] = element_of<Element>(canonical(value));
    }
    write(target + row * shape.to_row, result);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kImageThreads)
    upsample_linear(char* target, const char* source, const __grid_constant__ Walk images,
                    const __grid_constant__ Stretching shape) {
  extern __shared__ uint4 memory[];  // places of the block's rows, and of its columns
  stretch<1, kUpsampleRows, Offset>(target, source, images, shape,
                                    reinterpret_cast<Between*>(memory));
}

// An output of whole lines of 16 bytes, and input rows below 2^31 bytes.
extern "C" __global__ void __launch_bounds__(kImageThreads)
    upsample_linear_wide(char* target, const char* source, const __grid_constant__ Walk images,
                         const __grid_constant__ Stretching shape) {
  extern __shared__ uint4 memory[];
  stretch<16 / sizeof(Element), kWideRows, unsigned>(target, source, images, shape,
                                                     reinterpret_cast<Between*>(memory));
}

// REVERSE_SUBSEQUENCES in units of ANYDML_SIZE bytes: 1, 2, 4, 8 or 16.
//
// Each unit of the output is read at its own place of the line, or at the opposite one of those in
// front of the line's length. A length, of the type that ANYDML_LENGTH is the DML_TENSOR_DATA_TYPE
// of, is read once for each unit that it decides.
#include "images.cuh"
#include "numbers.cuh"

namespace {

using namespace anydml::cuda;

using Element = Unit<ANYDML_SIZE>::Type;
using Length = Number<ANYDML_LENGTH>::Type;

__device__ Offset length_at(const char* address, Offset size) {
  const Length told = *reinterpret_cast<const volatile Length*>(address);
  constexpr bool is_signed = static_cast<Length>(-1) < static_cast<Length>(0);
  if constexpr (is_signed)
    if (told < 0) return 0;
  const unsigned long long length = static_cast<unsigned long long>(told);
  return length > static_cast<unsigned long long>(size) ? size : static_cast<Offset>(length);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kImageThreads)
    reverse_units(char* target, const char* source, const char* lengths,
                  const __grid_constant__ Turning turning, unsigned count) {
  constexpr int kUnroll = kReverseUnroll;
  const Walk& walk = turning.walk;
  const unsigned first = blockIdx.x * (kImageThreads * kUnroll) + threadIdx.x;
  unsigned number[kUnroll];
  Offset to[kUnroll], from[kUnroll], length[kUnroll], place[kUnroll];
#pragma unroll
  for (int k = 0; k < kUnroll; ++k) {
    number[k] = min(first + k * kImageThreads, count - 1);
    to[k] = from[k] = length[k] = place[k] = 0;
  }
#pragma unroll 1
  for (int i = walk.rank - 1; i >= 0; --i) {
    const Divisor size = walk.sizes[i];
    const Offset to_step = walk.to[i], from_step = walk.from[i], length_step = turning.lengths[i];
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      const unsigned next = size.quotient(number[k]);
      const Offset position = number[k] - next * size.size;
      to[k] += position * to_step;
      from[k] += position * from_step;
      length[k] += position * length_step;
      if (i == turning.axis) place[k] = turning.begin + position;
      number[k] = next;
    }
  }
  Element value[kUnroll];
#pragma unroll
  for (int k = 0; k < kUnroll; ++k) {
    const Offset turned = length_at(lengths + length[k], turning.size);
    if (place[k] < turned) from[k] += (turned - 1 - 2 * place[k]) * turning.from_step;
  }
#pragma unroll
  for (int k = 0; k < kUnroll; ++k) value[k] = read<Element>(source + from[k]);
#pragma unroll
  for (int k = 0; k < kUnroll; ++k)
    if (first + k * kImageThreads < count) write(target + to[k], value[k]);
}

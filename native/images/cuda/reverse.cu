// REVERSE_SUBSEQUENCES in units of ANYDML_SIZE bytes: 1, 2, 4, 8 or 16.
//
// Three ways: any units; lines side by side, whose lengths are read once for some positions; packed
// rows, 16 bytes at a time.
//
// Each unit of the output is read at its own place of the line, or at the opposite one of those in
// front of the line's length. A length, of the type that ANYDML_LENGTH is the DML_TENSOR_DATA_TYPE
// of, is read once for each unit that it decides.
#include "images/cuda/images.cuh"
#include "runtime/cuda/numbers.cuh"
#include "moving/cuda/pieces.cuh"

namespace {

using namespace anydml::cuda;

using Element = Unit<ANYDML_SIZE>::Type;
using Length = Number<ANYDML_LENGTH>::Type;

__device__ Offset length_at(const char* address, Offset size) {
  const Length stored = *reinterpret_cast<const volatile Length*>(address);
  constexpr bool is_signed = static_cast<Length>(-1) < static_cast<Length>(0);
  if constexpr (is_signed)
    if (stored < 0) return 0;
  const unsigned long long length = static_cast<unsigned long long>(stored);
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
    const Offset reversed_count = length_at(lengths + length[k], turning.size);
    if (place[k] < reversed_count)
      from[k] += (reversed_count - 1 - 2 * place[k]) * turning.from_step;
  }
#pragma unroll
  for (int k = 0; k < kUnroll; ++k) value[k] = read<Element>(source + from[k]);
#pragma unroll
  for (int k = 0; k < kUnroll; ++k)
    if (first + k * kImageThreads < count) write(target + to[k], value[k]);
}

// Lines side by side.
extern "C" __global__ void __launch_bounds__(kImageThreads)
    reverse_lines(char* target, const char* source, const char* lengths,
                  const __grid_constant__ ReverseLines turning) {
  constexpr unsigned kGroups = kImageThreads / 32, kRowsAtOnce = 4;
  const unsigned strip = turning.chunks.quotient(blockIdx.x);
  const unsigned column = strip * 32 + (threadIdx.x & 31);
  const unsigned first =
      (blockIdx.x - strip * turning.chunks.size) * kReverseRowsPerBlock + threadIdx.x / 32;
  if (column >= turning.count) return;
  Offset to = 0, from = 0, length = 0;
  unsigned number = column;
#pragma unroll 1
  for (int i = turning.columns.rank - 1; i >= 0; --i) {
    const Divisor size = turning.columns.sizes[i];
    const unsigned next = size.quotient(number);
    const Offset position = number - next * size.size;
    to += position * turning.columns.to[i];
    from += position * turning.columns.from[i];
    length += position * turning.lengths[i];
    number = next;
  }
  const Offset reversed_count = length_at(lengths + length, turning.size);
#pragma unroll 1
  for (unsigned k = 0; k < kReversePerThread; k += kRowsAtOnce) {
    Element value[kRowsAtOnce];
#pragma unroll
    for (unsigned n = 0; n < kRowsAtOnce; ++n) {
      const unsigned row = first + (k + n) * kGroups;
      const Offset place = turning.begin + row;
      const Offset taken = place < reversed_count ? reversed_count - 1 - place : place;
      if (row < turning.positions)
        value[n] = read<Element>(source + from + (taken - turning.begin) * turning.from_step);
    }
#pragma unroll
    for (unsigned n = 0; n < kRowsAtOnce; ++n) {
      const unsigned row = first + (k + n) * kGroups;
      if (row < turning.positions) write(target + to + row * turning.to_step, value[n]);
    }
  }
}

namespace {

// The elements of 16 bytes in the opposite order.
__device__ inline unsigned reversed_word(unsigned word) {
  if constexpr (ANYDML_SIZE == 1)
    return word >> 24 | (word >> 8 & 0xFF00u) | (word << 8 & 0xFF0000u) | word << 24;
  else if constexpr (ANYDML_SIZE == 2)
    return word >> 16 | word << 16;
  else
    return word;
}
__device__ inline uint4 reversed_line(uint4 line) {
  if constexpr (ANYDML_SIZE == 16)
    return line;
  else if constexpr (ANYDML_SIZE == 8)
    return {line.z, line.w, line.x, line.y};
  else
    return {reversed_word(line.w), reversed_word(line.z), reversed_word(line.y),
            reversed_word(line.x)};
}

struct alignas(16) Elements {
  Element of[16 / ANYDML_SIZE];
};

}  // namespace

// Lines that are packed rows.
extern "C" __global__ void __launch_bounds__(kImageThreads)
    reverse_rows(char* target, const char* source, const char* lengths,
                 const __grid_constant__ ReverseRows turning) {
  constexpr unsigned kElementsPerVector = 16 / ANYDML_SIZE;
#pragma unroll
  for (int k = 0; k < kReverseRowUnroll; ++k) {
    const unsigned item = (blockIdx.x * kReverseRowUnroll + k) * kImageThreads + threadIdx.x;
    if (item >= turning.items) return;
    unsigned number = turning.lines.quotient(item);
    const unsigned line = item - number * turning.lines.size;
    Offset to = 0, from = 0, length = 0;
#pragma unroll 1
    for (int i = turning.rows.rank - 1; i >= 0; --i) {
      const Divisor size = turning.rows.sizes[i];
      const unsigned next = size.quotient(number);
      const Offset position = number - next * size.size;
      to += position * turning.rows.to[i];
      from += position * turning.rows.from[i];
      length += position * turning.lengths[i];
      number = next;
    }
    const char* const row = source + from;
    const Offset reversed_count = length_at(lengths + length, turning.size);
    const Offset place = Offset{line} * kElementsPerVector;
    Elements result;
    if (place >= reversed_count) {
      result = read<Elements>(row + Offset{line} * 16);
    } else if (place + kElementsPerVector <= reversed_count) {
      // Inside the row, which is whole lines.
      const Offset begin = (reversed_count - place - kElementsPerVector) * ANYDML_SIZE;
      const unsigned shift = static_cast<unsigned>(begin) & 15;
      const char* const low = row + (begin - shift);
      const uint4 first = read<uint4>(low);
      const uint4 second = shift == 0 ? first : read<uint4>(low + 16);
      const uint4 line_at = reversed_line(line_between(first, second, shift));
      *reinterpret_cast<uint4*>(&result) = line_at;
    } else {
#pragma unroll
      for (unsigned j = 0; j < kElementsPerVector; ++j) {
        const Offset own = place + j;
        result.of[j] = read<Element>(row + (own < reversed_count ? reversed_count - 1 - own : own) *
                                               ANYDML_SIZE);
      }
    }
    write(target + to + Offset{line} * 16, result);
  }
}

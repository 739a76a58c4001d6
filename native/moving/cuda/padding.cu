// PADDING, in units of ANYDML_SIZE bytes: 1, 2, 4, 8 or 16.
#include "moving/cuda/padding.cuh"
#include "common/types.hpp"

namespace {

using namespace anydml::cuda;
using anydml::PaddingMode;

using Element = Unit<ANYDML_SIZE>::Type;

// Where the input is read for a position of the output; negative where the value is.
__device__ Offset place_of(const PadAxis& axis, int number, unsigned position) {
  const Offset size = axis.from_size;
  Offset at = position - axis.start;
  if (at >= 0 && at < size) return at;
  const auto mode = static_cast<PaddingMode>(number);
  if (mode == PaddingMode::constant) return -1;
  if (mode == PaddingMode::edge) return at < 0 ? 0 : size - 1;
  if (size == 1) return 0;
  const bool reflects = mode == PaddingMode::reflection;
  const Offset period = mode == PaddingMode::wrap ? size : reflects ? 2 * size - 2 : 2 * size;
  if (at < -period || at >= period) at %= period;
  if (at < 0) at += period;
  if (at < size) return at;
  return reflects ? period - at : period - 1 - at;
}

// Moves the addresses to a row, by its number; false where the row is all of the value.
__device__ bool go_to_row(const Pad& pad, unsigned number, char*& target, const char*& source) {
  bool inside = true;
#pragma unroll 1
  for (int i = pad.rank - 1; i >= 0; --i) {
    const PadAxis& axis = pad.axes[i];
    const unsigned next = axis.size.quotient(number);
    const unsigned position = number - next * axis.size.size;
    const Offset place = place_of(axis, pad.mode, position);
    inside = inside && place >= 0;
    target += position * axis.to;
    source += place * axis.from;
    number = next;
  }
  return inside;
}

union Fill {
  unsigned words[4];
  uint4 line;
  Element element;
};

}  // namespace

extern "C" __global__ void __launch_bounds__(kPadThreads)
    pad_units(char* target, const char* source, const __grid_constant__ Pad pad) {
  const unsigned lanes = 1u << pad.lanes_log;
  const unsigned item =
      (blockIdx.x << (kPadThreadsLog - pad.lanes_log)) + (threadIdx.x >> pad.lanes_log);
  if (item >= pad.items) return;
  const unsigned number = pad.segments.quotient(item);
  const unsigned first =
      (item - number * pad.segments.size) * (lanes * kPadUnroll) + (threadIdx.x & (lanes - 1));
  const bool inside = go_to_row(pad, number, target, source);
  Fill fill;
#pragma unroll
  for (int i = 0; i < 4; ++i) fill.words[i] = pad.value[i];
  Element value[kPadUnroll];
#pragma unroll
  for (unsigned k = 0; k < kPadUnroll; ++k) {
    const unsigned position = first + k * lanes;
    value[k] = fill.element;
    if (!inside || position >= pad.inner.size.size) continue;
    const Offset place = place_of(pad.inner, pad.mode, position);
    if (place >= 0) value[k] = read<Element>(source + place * pad.inner.from);
  }
#pragma unroll
  for (unsigned k = 0; k < kPadUnroll; ++k) {
    const unsigned position = first + k * lanes;
    if (position < pad.inner.size.size) write(target + position * pad.inner.to, value[k]);
  }
}

// Rows that are contiguous on both sides: a piece of the input, and what is around it.
extern "C" __global__ void __launch_bounds__(kPadThreads, 4)
    pad_rows(char* target, const char* source, const __grid_constant__ Pad pad) {
  constexpr int kSize = ANYDML_SIZE;
  const unsigned lanes = 1u << pad.lanes_log, length = lanes * kLaneBytes;
  const unsigned item =
      (blockIdx.x << (kPadThreadsLog - pad.lanes_log)) + (threadIdx.x >> pad.lanes_log);
  if (item >= pad.items) return;
  const unsigned lane = threadIdx.x & (lanes - 1);
  const unsigned number = pad.segments.quotient(item);
  // The segment, from the row's first byte on.
  const Offset begin = static_cast<Offset>(item - number * pad.segments.size) * length;
  const Offset end = min(begin + length, static_cast<Offset>(pad.inner.size.size) * kSize);
  const bool inside = go_to_row(pad, number, target, source);
  Fill fill;
#pragma unroll
  for (int i = 0; i < 4; ++i) fill.words[i] = pad.value[i];
  if (!inside)
    return fill_piece(target + begin, fill.line, static_cast<unsigned>(end - begin), lane, lanes);
  const Offset shift = pad.inner.start * kSize;  // of the input's first byte
  const Offset first = min(max(begin, shift), end);
  const Offset last = max(min(end, shift + pad.inner.from_size * kSize), first);
  const auto element_at = [&](Offset at) {
    const Offset place = place_of(pad.inner, pad.mode, static_cast<unsigned>(at / kSize));
    return place >= 0 ? read<Element>(source + place * kSize) : fill.element;
  };
  // Few elements around the piece: one a thread, read before the piece is written.
  const Offset left = first - begin, around = left + (end - last);
  const bool is_thin_edge = around <= static_cast<Offset>(lanes) * kSize;
  const Offset own = static_cast<Offset>(lane) * kSize;
  const Offset at = own < left ? begin + own : last + (own - left);
  Element edge;
  if (is_thin_edge && own < around) edge = element_at(at);
  if (first < last)
    copy_piece(target + first, source + (first - shift), static_cast<unsigned>(last - first), lane,
               lanes);
  if (is_thin_edge) {
    if (own < around) write(target + at, edge);
    return;
  }
  const auto surround = [&](Offset from, Offset to) {
    if (static_cast<PaddingMode>(pad.mode) == PaddingMode::constant) {
      fill_piece(target + from, fill.line, static_cast<unsigned>(to - from), lane, lanes);
      return;
    }
    for (Offset i = from + own; i < to; i += static_cast<Offset>(lanes) * kSize)
      write(target + i, element_at(i));
  };
  surround(begin, first);
  surround(last, end);
}

// NONZERO_COORDINATES: one pass over the input to a bitmap, then rows from the bitmap.
//
// scan() turns every element into one bit (nonzero_bits.cpp) and counts the bits of every chunk of
// 32768 elements; a prefix sum over the chunks says where each chunk's rows begin. write() decodes
// the bitmap chunk by chunk into coordinates (nonzero_rows.cpp); threads own disjoint row ranges.
// O(elements + rows x columns). Scratch: one bit an element and 8 bytes a chunk, at most 1/8 of the
// input; inputs of up to 1024 elements use none.
#include "nonzero/cpu/nonzero.hpp"

#include <algorithm>

#include "runtime/cpu/threads.hpp"

namespace anydml::nonzero {
namespace {

// Input bytes below which a second thread costs more than it saves; also the minimum of a range.
constexpr Int kScanGrain = Int{1} << 20;

// Rough costs of the write on one thread, in picoseconds, and the minimum cost of a range.
constexpr Int kChunkCost = 500'000;
constexpr Int kValueCost = 350;
constexpr Int kWriteGrain = 50'000'000;

uint64_t counted_bits(const Tensor& tensor) {
  switch (tensor.type) {
    case DataType::float16:
    case DataType::bfloat16:
      return 0x7FFFu;
    case DataType::float32:
      return 0x7FFF'FFFFu;
    case DataType::float64:
      return 0x7FFF'FFFF'FFFF'FFFFull;
    default:
      return ~uint64_t{0};
  }
}

Int bits_set(const uint64_t* words, Int count) {
  Int total = 0;
  for (Int i = 0; i < count; ++i) total += __builtin_popcountll(words[i]);
  return total;
}

Scan choose_scan(Scan requested, bool packed, const Tiling& tiling) {
  if (requested == Scan::gathered) return Scan::gathered;
  if (packed) return Scan::packed;
  return tiling.dimension >= 0 ? Scan::transposed : Scan::gathered;
}

Write choose_write(Write requested, const RowTarget& target, Int count) {
  const Int value = target.element_size, row = target.columns * value;
  if (requested == Write::strided || (target.columns > 1 && target.column_stride != value))
    return Write::strided;
  const bool packed = target.row_stride == row &&
                      reinterpret_cast<uintptr_t>(target.data) % static_cast<uintptr_t>(value) == 0;
  if (requested == Write::grouped || !packed) return Write::grouped;
  if (requested != Write::automatic) return requested;
  return count * row >= kStreamBytes ? Write::streamed : Write::direct;
}

}  // namespace

NonzeroPlan::Found scan(const NonzeroPlan& plan, const void* data, int threads, Scan requested) {
  NonzeroPlan::Found found;
  const Tensor& input = plan.input;
  const Int elements = input.layout.count();
  const Int words = (elements + kWord - 1) / kWord;
  const Int chunks = (elements + kChunk - 1) / kChunk;

  Source source;
  source.data = static_cast<const char*>(data);
  source.element_size = input.element_size;
  source.mask = counted_bits(input);
  const bool packed = input.layout.packed(input.element_size);
  Tiling tiling;
  if (!packed || requested == Scan::gathered) {
    source.layout = input.layout;
    Layout* only[] = {&source.layout};
    collapse(only);
    tiling = transposed_tiling(source, requested == Scan::transposed);
  }
  const Scan scan_mode = choose_scan(requested, packed, tiling);

  constexpr Int inline_bits = sizeof(found.inline_bits) / sizeof(found.inline_bits[0]);
  if (words > inline_bits) found.bits.reset(words);
  uint64_t* const bits = words > inline_bits ? found.bits.get() : found.inline_bits;
  if (chunks > 1) found.starts.reset(chunks);

  if (scan_mode == Scan::transposed) {
    const Int tile_bytes = kWord * tiling.row_length * input.element_size;
    parallel_ranges(
        tiling.tiles(), std::max<Int>(1, kScanGrain / tile_bytes), threads,
        [&](Int first, Int last) { fill_transposed(source, tiling, first, last, bits); });
  }
  if (chunks == 1) {
    if (scan_mode == Scan::packed) fill_packed(source, 0, elements, bits);
    if (scan_mode == Scan::gathered) fill_gathered(source, 0, elements, bits);
    found.count = bits_set(bits, words);
    return found;
  }
  Int* const starts = found.starts.get();
  const Int grain = std::max<Int>(1, kScanGrain / (kChunk * input.element_size));
  parallel_ranges(chunks, grain, threads, [&](Int first, Int last) {
    for (Int chunk = first; chunk < last; ++chunk) {
      const Int begin = chunk * kChunk, end = std::min(begin + kChunk, elements);
      uint64_t* const own = bits + begin / kWord;
      if (scan_mode == Scan::packed) fill_packed(source, begin, end, own);
      if (scan_mode == Scan::gathered) fill_gathered(source, begin, end, own);
      starts[chunk] = bits_set(own, (end - begin + kWord - 1) / kWord);
    }
  });
  for (Int chunk = 0; chunk < chunks; ++chunk) {
    const Int own = starts[chunk];
    starts[chunk] = found.count;
    found.count += own;
  }
  return found;
}

void write(const NonzeroPlan& plan, const NonzeroPlan::Found& found, const Tensor& rows,
           void* coordinates, int threads, Write requested) {
  const Layout& layout = plan.input.layout;
  if (plan.columns == 0) return;
  RowTarget target;
  target.data = static_cast<char*>(coordinates);
  target.row_stride = rows.layout.strides[0];
  target.column_stride = rows.layout.strides[1];
  target.element_size = rows.element_size;
  target.sizes = layout.sizes + (layout.rank - plan.columns);
  target.columns = plan.columns;
  target.write_mode = choose_write(requested, target, found.count);

  const Int elements = layout.count();
  const Bitmap bitmap{found.bits.get() != nullptr ? found.bits.get() : found.inline_bits,
                      found.starts.get(), elements, (elements + kChunk - 1) / kChunk, found.count};
  // Ranges of equal work, not of equal length: the non-zero elements may all be in one place.
  const Int row_cost = kValueCost * plan.columns * rows.element_size / 4;
  const auto work_before = [&](Int chunk) {
    return chunk * kChunkCost + bitmap.rows_before(chunk) * row_cost;
  };
  const Int total = work_before(bitmap.chunks);
  const Int ranges = std::min({bitmap.chunks, Int{8} * threads, total / kWriteGrain});
  if (ranges <= 1) {
    write_chunks(target, bitmap, 0, bitmap.chunks);
    return;
  }
  const auto first_chunk = [&](Int range) {
    const Int before = total / ranges * range;
    Int low = 0, high = bitmap.chunks;
    while (low < high) {
      const Int middle = low + (high - low) / 2;
      if (work_before(middle) < before)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  parallel_chunks(ranges, threads, [&](Int range) {
    const Int first = first_chunk(range);
    const Int last = range + 1 < ranges ? first_chunk(range + 1) : bitmap.chunks;
    if (first < last) write_chunks(target, bitmap, first, last);
  });
}

}  // namespace anydml::nonzero

namespace anydml {

NonzeroPlan::Found NonzeroPlan::scan(const void* data, int threads) const {
  return nonzero::scan(*this, data, threads, nonzero::Scan::automatic);
}

void NonzeroPlan::write(const Found& found, const Tensor& rows, void* coordinates,
                        int threads) const {
  nonzero::write(*this, found, rows, coordinates, threads, nonzero::Write::automatic);
}

}  // namespace anydml

// Index values to byte offsets, checked in the same read.
//
// Loops over contiguous values have no branches, so that they vectorise; one out-of-range value
// makes a whole run fail, and the caller then looks for it one by one.

#include <type_traits>

#include "scatter_parts.hpp"

namespace anydml::scatter {
namespace {

using Unsigned = unsigned long long;

// The sign bit is set when position >= size, for any size below 2^63: cheaper in vectors than an
// unsigned comparison.
inline Unsigned beyond(Unsigned position, Unsigned size) { return ~(position - size) | position; }
inline bool any_beyond(Unsigned gathered) { return (gathered >> 63) != 0; }

// 32 by 32 bits is one vector instruction, 64 by 64 is none before AVX-512.
inline bool narrow(Int size, Int scale) {
  return size <= (Int{1} << 32) && scale >= 0 && scale < (Int{1} << 32);
}
template <bool kNarrow>
inline Int scaled(Unsigned position, Int scale) {
  if constexpr (kNarrow)
    return static_cast<Int>(static_cast<Unsigned>(static_cast<uint32_t>(position)) *
                            static_cast<Unsigned>(static_cast<uint32_t>(scale)));
  else  // unsigned, because a position that is out of range may overflow
    return static_cast<Int>(position * static_cast<Unsigned>(scale));
}

// Calls body with the stride, as a constant where values are contiguous or every other one: loads
// of whole vectors.
template <class Index, class Body>
inline bool with_stride(Int stride, Body&& body) {
  constexpr Int size = sizeof(Index);
  if (stride == size) return body(std::integral_constant<Int, size>{});
  if (stride == 2 * size) return body(std::integral_constant<Int, 2 * size>{});
  return body(stride);
}

template <class Index, bool kNarrow, class Stride>
bool convert_run(const char* __restrict source, Stride stride, Int count, Int size, Int scale,
                 Int base, Int step, Int* __restrict offsets) {
  const Unsigned limit = static_cast<Unsigned>(size);
  Unsigned gathered = 0;
  for (Int i = 0; i < count; ++i) {
    const Unsigned position = wrap_index(load<Index>(source + i * stride), limit);
    gathered |= beyond(position, limit);
    // The sum of base and steps is kept apart from the product: both are known to be in range.
    offsets[i] = static_cast<Int>(static_cast<Unsigned>(scaled<kNarrow>(position, scale)) +
                                  static_cast<Unsigned>(base + i * step));
  }
  return !any_beyond(gathered);
}

template <class Index>
bool convert(const char* source, Int stride, Int count, Int size, Int scale, Int base, Int step,
             Int* offsets) {
  return with_stride<Index>(stride, [=](auto known) {
    return narrow(size, scale)
               ? convert_run<Index, true>(source, known, count, size, scale, base, step, offsets)
               : convert_run<Index, false>(source, known, count, size, scale, base, step, offsets);
  });
}

template <class Index, class Stride>
bool good_run(const char* source, Stride stride, Int count, Unsigned limit) {
  Unsigned gathered = 0;
  for (Int i = 0; i < count; ++i)
    gathered |= beyond(wrap_index(load<Index>(source + i * stride), limit), limit);
  return !any_beyond(gathered);
}

template <class Index>
Int check(const char* source, Int stride, Int count, Int size) {
  const Unsigned limit = static_cast<Unsigned>(size);
  for (Int from = 0; from < count; from += 4096) {
    const Int some = count - from < 4096 ? count - from : 4096;
    const char* const part = source + from * stride;
    if (with_stride<Index>(stride,
                           [=](auto known) { return good_run<Index>(part, known, some, limit); }))
      continue;
    for (Int i = 0; i < some; ++i)
      if (wrap_index(load<Index>(part + i * stride), limit) >= limit) return from + i;
  }
  return -1;
}

// Tuples of a length known to the compiler, coordinates contiguous.
template <class Index, int kLength, bool kNarrow>
bool packed_tuples(const char* __restrict source, Int count, const Int* sizes, const Int* scales,
                   Int* __restrict offsets) {
  Unsigned limits[kLength];
  Int factors[kLength];
  for (int d = 0; d < kLength; ++d) {
    limits[d] = static_cast<Unsigned>(sizes[d]);
    factors[d] = scales[d];
  }
  Unsigned gathered = 0;
  for (Int i = 0; i < count; ++i) {
    Unsigned sum = 0;
    for (int d = 0; d < kLength; ++d) {
      const Unsigned position = wrap_index(
          load<Index>(source + (i * kLength + d) * static_cast<Int>(sizeof(Index))), limits[d]);
      gathered |= beyond(position, limits[d]);
      sum += static_cast<Unsigned>(scaled<kNarrow>(position, factors[d]));
    }
    offsets[i] = static_cast<Int>(sum);
  }
  return !any_beyond(gathered);
}

// One at a time; every value is read once, so that what it returns fits what it wrote.
template <class Index>
Int any_tuples(const char* source, Int stride, Int coordinate_stride, int length, Int count,
               const Int* sizes, const Int* scales, Int* offsets) {
  for (Int i = 0; i < count; ++i) {
    Int sum = 0;
    for (int d = 0; d < length; ++d) {
      const Unsigned limit = static_cast<Unsigned>(sizes[d]);
      const Unsigned position =
          wrap_index(load<Index>(source + i * stride + d * coordinate_stride), limit);
      if (position >= limit) return i * length + d;
      sum += static_cast<Int>(position) * scales[d];
    }
    offsets[i] = sum;
  }
  return -1;
}

template <class Index>
Int tuples(const char* source, Int stride, Int coordinate_stride, int length, Int count,
           const Int* sizes, const Int* scales, Int* offsets) {
  const Int bytes = static_cast<Int>(sizeof(Index));
  if (length == 1) {
    if (convert<Index>(source, stride, count, sizes[0], scales[0], 0, 0, offsets)) return -1;
  } else if (length <= 4 && coordinate_stride == bytes && stride == length * bytes) {
    bool small = true;
    for (int d = 0; d < length; ++d) small = small && narrow(sizes[d], scales[d]);
    bool good = false;
    if (length == 2)
      good = small ? packed_tuples<Index, 2, true>(source, count, sizes, scales, offsets)
                   : packed_tuples<Index, 2, false>(source, count, sizes, scales, offsets);
    else if (length == 3 && small)
      good = packed_tuples<Index, 3, true>(source, count, sizes, scales, offsets);
    else if (length == 4 && small)
      good = packed_tuples<Index, 4, true>(source, count, sizes, scales, offsets);
    if (good) return -1;
  }
  return any_tuples<Index>(source, stride, coordinate_stride, length, count, sizes, scales,
                           offsets);
}

template <class Index>
constexpr IndexReader kReader = {convert<Index>, check<Index>, tuples<Index>,
                                 static_cast<int>(sizeof(Index))};

}  // namespace

const IndexReader& index_reader(DataType type) {
  switch (type) {
    case DataType::int32:
      return kReader<int32_t>;
    case DataType::uint32:
      return kReader<uint32_t>;
    case DataType::uint64:
      return kReader<uint64_t>;
    default:
      return kReader<int64_t>;
  }
}

Status check_indices(const IndexReader& reader, const Layout& layout, const void* indices, Int size,
                     int threads) {
  const char* const base = static_cast<const char*>(indices);
  Layout rows = layout;
  Layout* all[] = {&rows};
  collapse(all);
  const Int total = rows.count();
  if (total == 0) return {};
  Int length = 1, stride = 0;
  if (rows.rank > 0) {
    --rows.rank;
    length = rows.sizes[rows.rank];
    stride = rows.strides[rows.rank];
  }
  if (rows.rank == 0 && total < kParallelElements)
    return {reader.check(base, stride, length, size)};
  std::atomic<Int> least{kNoBadIndex};
  parallel_ranges(total, kParallelElements, threads, [&](Int begin, Int end) {
    const Layout* const walked[] = {&rows};
    Walker<1> walker(walked, rows.rank);
    Int row = begin / length;
    Int column = begin - row * length;
    walker.start(row);
    for (Int at = begin; at < end;) {
      const Int count = length - column < end - at ? length - column : end - at;
      const Int bad = reader.check(base + walker.offset[0] + column * stride, stride, count, size);
      if (bad >= 0) {
        lower(least, at + bad);
        return;
      }
      at += count;
      column = 0;
      if (at < end) walker.next();
    }
  });
  return status_of(least.load(std::memory_order_relaxed));
}

}  // namespace anydml::scatter

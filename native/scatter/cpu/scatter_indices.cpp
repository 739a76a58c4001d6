// Index values to byte offsets, checked in the same read.
//
// Every value is read once, in place where a register takes it (index_lanes.hpp). Else values are
// copied to a buffer first, kPiece at a time (read_once.hpp): loops over the buffer have no
// branches, so that they vectorise; one out-of-range value makes a whole run fail, and is then
// searched one by one.

#include "runtime/cpu/index_lanes.hpp"
#include "runtime/cpu/with_type.hpp"
#include "scatter/cpu/scatter_parts.hpp"

namespace anydml::scatter {
namespace {

using Unsigned = unsigned long long;

// The sign bit is set when position >= size, for any size below 2^63: cheaper in vectors than an
// unsigned comparison.
inline Unsigned beyond(Unsigned position, Unsigned size) { return ~(position - size) | position; }
inline bool any_beyond(Unsigned gathered) { return (gathered >> 63) != 0; }

// 32 by 32 bits is one vector instruction, 64 by 64 does not exist before AVX-512.
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

// A buffer for copies of index values.
template <class Index>
struct Values {
  alignas(64) Index at[kPiece];  // not cleared

  void read(const char* source, Int stride, Int count) {
    copy_once(reinterpret_cast<char*>(at), source, stride, count, int{sizeof(Index)});
  }
};

template <class Index, bool kNarrow>
bool convert_run(const Index* __restrict values, Int count, Int size, Int scale, Int base, Int step,
                 Int* __restrict offsets) {
  const Unsigned limit = static_cast<Unsigned>(size);
  Unsigned gathered = 0;
  for (Int i = 0; i < count; ++i) {
    const Unsigned position = wrap_index(values[i], limit);
    gathered |= beyond(position, limit);
    // The sum of base and steps is kept apart from the product: both are known to be in range.
    offsets[i] = static_cast<Int>(static_cast<Unsigned>(scaled<kNarrow>(position, scale)) +
                                  static_cast<Unsigned>(base + i * step));
  }
  return !any_beyond(gathered);
}

// Through a copy. Not inlined: its buffer would enlarge the stack frame of short calls.
template <class Index>
[[gnu::noinline]] bool copied(const char* source, Int stride, Int count, Int size, Int scale,
                              Int base, Int step, Int* offsets) {
  Values<Index> values;
  values.read(source, stride, count);
  return narrow(size, scale)
             ? convert_run<Index, true>(values.at, count, size, scale, base, step, offsets)
             : convert_run<Index, false>(values.at, count, size, scale, base, step, offsets);
}

template <class Index>
bool convert(const char* source, Int stride, Int count, Int size, Int scale, Int base, Int step,
             Int* offsets) {
#if defined(ANYDML_LANES)
  if (stride == Int{sizeof(Index)} && lanes_apply(1, &size, &scale))
    return lane_offsets<Index, 1>(source, count, &size, &scale, base, step, offsets) < 0;
#endif
  return copied<Index>(source, stride, count, size, scale, base, step, offsets);
}

template <class Index>
[[gnu::noinline]] Int copied_check(const char* source, Int stride, Int count, Int size) {
  const Unsigned limit = static_cast<Unsigned>(size);
  Values<Index> values;
  for (Int from = 0; from < count; from += kPiece) {
    const Int chunk = std::min(kPiece, count - from);
    values.read(source + from * stride, stride, chunk);
    Unsigned gathered = 0;
    for (Int i = 0; i < chunk; ++i) gathered |= beyond(wrap_index(values.at[i], limit), limit);
    if (!any_beyond(gathered)) continue;
    for (Int i = 0; i < chunk; ++i)
      if (wrap_index(values.at[i], limit) >= limit) return from + i;
  }
  return -1;
}

template <class Index>
Int check(const char* source, Int stride, Int count, Int size) {
#if defined(ANYDML_LANES)
  if (stride == Int{sizeof(Index)}) return lane_check<Index>(source, count, size);
#endif
  return copied_check<Index>(source, stride, count, size);
}

// Tuples of a length known to the compiler.
template <class Index, int kLength, bool kNarrow>
bool fixed_tuples(const Index* __restrict values, Int count, const Int* sizes, const Int* scales,
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
      const Unsigned position = wrap_index(values[i * kLength + d], limits[d]);
      gathered |= beyond(position, limits[d]);
      sum += static_cast<Unsigned>(scaled<kNarrow>(position, factors[d]));
    }
    offsets[i] = static_cast<Int>(sum);
  }
  return !any_beyond(gathered);
}

// One at a time. Returns the first bad coordinate as i * length + d, or -1.
template <class Index>
Int any_tuples(const Index* values, int length, Int count, const Int* sizes, const Int* scales,
               Int* offsets) {
  for (Int i = 0; i < count; ++i) {
    Int sum = 0;
    for (int d = 0; d < length; ++d) {
      const Unsigned limit = static_cast<Unsigned>(sizes[d]);
      const Unsigned position = wrap_index(values[i * length + d], limit);
      if (position >= limit) return i * length + d;
      sum += static_cast<Int>(position) * scales[d];
    }
    offsets[i] = sum;
  }
  return -1;
}

// False if a value is out of range, or if no loop here supports the tuples.
template <class Index>
bool convert_packed_tuples(const Index* values, int length, Int count, const Int* sizes,
                           const Int* scales, Int* offsets) {
  bool small = true;
  for (int d = 0; d < length; ++d) small = small && narrow(sizes[d], scales[d]);
  switch (length) {
    case 1:
      return small ? convert_run<Index, true>(values, count, sizes[0], scales[0], 0, 0, offsets)
                   : convert_run<Index, false>(values, count, sizes[0], scales[0], 0, 0, offsets);
    case 2:
      return small ? fixed_tuples<Index, 2, true>(values, count, sizes, scales, offsets)
                   : fixed_tuples<Index, 2, false>(values, count, sizes, scales, offsets);
    case 3:
      return small && fixed_tuples<Index, 3, true>(values, count, sizes, scales, offsets);
    case 4:
      return small && fixed_tuples<Index, 4, true>(values, count, sizes, scales, offsets);
    default:
      return false;
  }
}

template <class Index>
[[gnu::noinline]] Int copied_tuples(const char* source, Int stride, Int coordinate_stride,
                                    int length, Int count, const Int* sizes, const Int* scales,
                                    Int* offsets) {
  constexpr Int size = sizeof(Index);
  Values<Index> values;
  const Int max_tuples = kPiece / std::max(1, length);
  for (Int from = 0; from < count;
       from += max_tuples, source += max_tuples * stride, offsets += max_tuples) {
    const Int chunk = std::min(max_tuples, count - from);
    if (length == 1)
      values.read(source, stride, chunk);
    else if (coordinate_stride == size && stride == length * size)
      values.read(source, size, chunk * length);
    else
      for (Int i = 0; i < chunk; ++i)
        for (int d = 0; d < length; ++d)
          values.at[i * length + d] = read_once<Index>(source + i * stride + d * coordinate_stride);
    if (convert_packed_tuples(values.at, length, chunk, sizes, scales, offsets)) continue;
    const Int bad = any_tuples(values.at, length, chunk, sizes, scales, offsets);
    if (bad >= 0) return from * length + bad;
  }
  return -1;
}

template <class Index>
Int tuples(const char* source, Int stride, Int coordinate_stride, int length, Int count,
           const Int* sizes, const Int* scales, Int* offsets) {
#if defined(ANYDML_LANES)
  constexpr Int size = sizeof(Index);
  if (stride == length * size && (length == 1 || coordinate_stride == size) &&
      lanes_apply(length, sizes, scales))
    return length == 1 ? lane_offsets<Index, 1>(source, count, sizes, scales, 0, 0, offsets)
                       : lane_offsets<Index, 2>(source, count, sizes, scales, 0, 0, offsets);
#endif
  return copied_tuples<Index>(source, stride, coordinate_stride, length, count, sizes, scales,
                              offsets);
}

template <class Index>
constexpr IndexReader kReader = {convert<Index>, check<Index>, tuples<Index>,
                                 static_cast<int>(sizeof(Index))};

}  // namespace

const IndexReader& index_reader(DataType type) {
  return with_index(type, []<class Index>(Index) -> const IndexReader& { return kReader<Index>; });
}

Status check_indices(const IndexReader& reader, const Layout& layout, const void* indices, Int size,
                     int threads) {
  const char* const base = static_cast<const char*>(indices);
  Layout rows = layout;
  Layout* all[] = {&rows};
  collapse(all);
  const Int total = rows.count();
  Int length = 1, stride = 0;
  if (rows.rank > 0) {
    --rows.rank;
    length = rows.sizes[rows.rank];
    stride = rows.strides[rows.rank];
  }
  if (rows.rank == 0 && total < kParallelElements)
    return {reader.check(base, stride, length, size)};
  std::atomic<Int> first_bad{kNoBadIndex};
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
        lower(first_bad, at + bad);
        return;
      }
      at += count;
      column = 0;
      if (at < end) walker.next();
    }
  });
  return status_of(first_bad);
}

}  // namespace anydml::scatter

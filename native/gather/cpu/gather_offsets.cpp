// Index values to byte offsets: see gather.hpp.
//
// Every value is read once, in place where a register takes it (index_lanes.hpp), else by way of a
// copy. Checks are free of branches, a chunk at a time; the first bad value is searched only in a
// chunk that has one, in the copy. O(1) scratch.
#include "gather/cpu/gather.hpp"
#include "runtime/cpu/index_lanes.hpp"

namespace anydml::gather {
namespace {

// Offsets of single indices. `narrow`: size and stride fit 32 bits, so one short multiplication
// does.
template <class Index, bool Narrow>
inline bool wrapped_offsets(const char* values, Int count, Int size, Int stride, Int* offsets) {
  const unsigned long long limit = static_cast<unsigned long long>(size);
  unsigned long long bad = 0;
  for (Int i = 0; i < count; ++i) {
    const unsigned long long position =
        wrap_index(load<Index>(values + i * Int{sizeof(Index)}), limit);
    const unsigned long long good = position < limit ? ~0ull : 0ull;
    bad |= ~good;
    if constexpr (Narrow)
      offsets[i] =
          static_cast<Int>(static_cast<unsigned long long>(static_cast<uint32_t>(position & good)) *
                           static_cast<uint32_t>(stride));
    else
      offsets[i] = static_cast<Int>(position & good) * stride;
  }
  return bad != 0;
}

template <OutOfRange kMode, class Index>
void moved_offsets(const char* values, Int count, Int size, Int stride, Int* offsets) {
  for (Int i = 0; i < count; ++i)
    offsets[i] = static_cast<Int>(move_inside<kMode>(load<Index>(values + i * Int{sizeof(Index)}),
                                                     static_cast<unsigned long long>(size))) *
                 stride;
}

// body(std::integral_constant) of the mode.
template <class Body>
inline void with_mode(OutOfRange mode, Body&& body) {
  switch (mode) {
    case OutOfRange::clamp:
      return body(std::integral_constant<OutOfRange, OutOfRange::clamp>{});
    case OutOfRange::wrap:
      return body(std::integral_constant<OutOfRange, OutOfRange::wrap>{});
    case OutOfRange::clip:
      return body(std::integral_constant<OutOfRange, OutOfRange::clip>{});
    default:
      return body(std::integral_constant<OutOfRange, OutOfRange::raise>{});
  }
}

// True when a value is out of range; offsets are in range in any case. The size is not zero.
template <class Index>
inline bool single_offsets(const char* values, Int count, Int size, Int stride, OutOfRange mode,
                           Int* offsets) {
  constexpr Int narrow = Int{1} << 32;
  if (mode != OutOfRange::raise) {
    with_mode(mode, [&]<class Mode>(Mode) {
      if constexpr (Mode::value != OutOfRange::raise)
        moved_offsets<Mode::value, Index>(values, count, size, stride, offsets);
    });
    return false;
  }
  if (size <= narrow && stride >= 0 && stride < narrow)
    return wrapped_offsets<Index, true>(values, count, size, stride, offsets);
  return wrapped_offsets<Index, false>(values, count, size, stride, offsets);
}

// Offsets of tuples of Width, or of axes.count where Width is 0.
template <class Index, int Width>
bool convert_tuples(const char* values, Int count, const Axes& axes, OutOfRange mode,
                    Int* offsets) {
  constexpr int capacity = Width == 0 ? kMaxRank : Width;
  const int width = Width == 0 ? axes.count : Width;
  unsigned long long sizes[capacity];
  Int strides[capacity];
  for (int k = 0; k < width; ++k) {
    sizes[k] = static_cast<unsigned long long>(axes.sizes[k]);
    strides[k] = axes.strides[k];
  }
  unsigned long long bad = 0;
  with_mode(mode, [&]<class Mode>(Mode) {
    for (Int i = 0; i < count; ++i) {
      Int offset = 0;
      for (int k = 0; k < width; ++k) {
        const Index value = load<Index>(values + (i * width + k) * Int{sizeof(Index)});
        unsigned long long position;
        if constexpr (Mode::value == OutOfRange::raise)
          position = wrap_index(value, sizes[k]);
        else
          position = move_inside<Mode::value>(value, sizes[k]);
        const unsigned long long good = position < sizes[k] ? ~0ull : 0ull;
        bad |= ~good;
        offset += static_cast<Int>(position & good) * strides[k];
      }
      offsets[i] = offset;
    }
  });
  return bad != 0;
}

// The first value out of range, or -1.
template <class Index>
Int find_bad(const char* values, Int tuples, const Axes& axes) {
  for (Int i = 0; i < tuples; ++i)
    for (int k = 0; k < axes.count; ++k) {
      const unsigned long long limit = static_cast<unsigned long long>(axes.sizes[k]);
      const Int at = i * axes.count + k;
      if (wrap_index(load<Index>(values + at * Int{sizeof(Index)}), limit) >= limit) return at;
    }
  return -1;
}

template <class Index>
Int convert_chunk(const char* values, Int count, const Axes& axes, OutOfRange mode, Int* offsets) {
  bool bad;
  if (axes.count == 1) {
    bad = single_offsets<Index>(values, count, axes.sizes[0], axes.strides[0], mode, offsets);
  } else if (axes.count == 2) {
    bad = convert_tuples<Index, 2>(values, count, axes, mode, offsets);
  } else if (axes.count == 3) {
    bad = convert_tuples<Index, 3>(values, count, axes, mode, offsets);
  } else {
    bad = convert_tuples<Index, 0>(values, count, axes, mode, offsets);
  }
  return bad ? find_bad<Index>(values, count, axes) : -1;
}

// True when a value of the chunk is out of range. Values of one axis: one addition and comparison.
template <class Index>
bool any_bad(const char* values, Int tuples, const Axes& axes) {
  constexpr bool is_signed = static_cast<Index>(-1) < static_cast<Index>(0);
  unsigned long long bad = 0;
  if (axes.count == 1) {
    const unsigned long long size = static_cast<unsigned long long>(axes.sizes[0]);
    const unsigned long long shift = is_signed ? size : 0, limit = size + shift;
    for (Int i = 0; i < tuples; ++i) {
      const Index value = load<Index>(values + i * Int{sizeof(Index)});
      const unsigned long long wide = static_cast<unsigned long long>(
          static_cast<std::conditional_t<is_signed, long long, unsigned long long>>(value));
      bad |= wide + shift >= limit ? 1ull : 0ull;
    }
  } else {
    for (Int i = 0; i < tuples; ++i)
      for (int k = 0; k < axes.count; ++k) {
        const unsigned long long limit = static_cast<unsigned long long>(axes.sizes[k]);
        const Index value = load<Index>(values + (i * axes.count + k) * Int{sizeof(Index)});
        bad |= wrap_index(value, limit) >= limit ? 1ull : 0ull;
      }
  }
  return bad != 0;
}

// Through a copy. Not inlined: its buffer would enlarge the stack frame of short calls.
[[gnu::noinline]] Int copied_offsets(const IndexValues& reader, Int first, Int count,
                                     const Axes& axes, OutOfRange mode, Int* offsets) {
  alignas(64) char buffer[kIndexChunk * 8];
  const Int width = axes.count;
  const char* const values = reader.read(first * width, count * width, buffer);
  Int bad = -1;
  with_index(reader.type(), [&](auto index) {
    bad = convert_chunk<decltype(index)>(values, count, axes, mode, offsets);
  });
  return bad < 0 ? -1 : first * width + bad;
}

}  // namespace

const char* IndexValues::read(Int flat, Int count, char* buffer) const {
  if (packed_) {
    copy_once(buffer, data_ + flat * size_, size_, count, size_);
    return buffer;
  }
  const Layout* const layouts[1] = {&layout_};
  const int inner = layout_.rank - 1;
  const Int length = layout_.sizes[inner], stride = layout_.strides[inner];
  Walker<1> walker(layouts, inner);
  walker.start(flat / length);
  Int at = flat % length;
  for (Int done = 0; done < count;) {
    const Int run = std::min(length - at, count - done);
    const char* const source = data_ + walker.offset[0] + at * stride;
    copy_once(buffer + done * size_, source, stride, run, size_);
    done += run;
    at = 0;
    walker.next();
  }
  return buffer;
}

Int read_offsets(const IndexValues& reader, Int first, Int count, const Axes& axes, OutOfRange mode,
                 Int* offsets) {
#if defined(ANYDML_LANES)
  const Int width = axes.count;
  const char* const place = reader.place(first * width);
  if (place != nullptr && mode == OutOfRange::raise &&
      lanes_apply(axes.count, axes.sizes, axes.strides)) {
    Int bad = -1;
    with_index(reader.type(), [&](auto index) {
      using Index = decltype(index);
      bad = width == 1
                ? lane_offsets<Index, 1>(place, count, axes.sizes, axes.strides, 0, 0, offsets)
                : lane_offsets<Index, 2>(place, count, axes.sizes, axes.strides, 0, 0, offsets);
    });
    return bad < 0 ? -1 : first * width + bad;
  }
#endif
  return copied_offsets(reader, first, count, axes, mode, offsets);
}

Int first_bad_index(const IndexValues& reader, Int tuples, const Axes& axes, OutOfRange mode,
                    int threads) {
  if (axes.count == 0) return -1;
  if (mode != OutOfRange::raise)  // called only if an axis has no position
    return std::find(axes.sizes, axes.sizes + axes.count, 0) - axes.sizes;
  std::atomic<Int> first{kNoBadIndex};
  const Int width = axes.count;
  const Int step = std::max<Int>(1, kNearChunk / width);  // tuples at a time
  with_index(reader.type(), [&](auto index) {
    using Index = decltype(index);
    parallel_ranges(
        tuples, std::max<Int>(1, 2 * kIndexGrain / width), threads, [&](Int begin, Int end) {
          alignas(64) char buffer[std::max<Int>(kNearChunk, kMaxRank) * Int{sizeof(Index)}];
          for (Int i = begin; i < end; i += step) {
            if (i * width >= first.load(std::memory_order_relaxed)) return;
            const Int count = std::min(step, end - i);
            const char* const place = reader.place(i * width);
            const auto copy = [&] { return reader.read(i * width, count * width, buffer); };
            if (!any_bad<Index>(place != nullptr ? place : copy(), count, axes)) continue;
            const Int bad = find_bad<Index>(copy(), count, axes);
            if (bad < 0) continue;  // another thread has changed it since
            lower(first, i * width + bad);
            return;
          }
        });
  });
  return status_of(first).bad_index;
}

}  // namespace anydml::gather

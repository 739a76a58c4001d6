// Indices to offsets, and blocks at offsets to the output: see gather.hpp.
//
// Checks are free of branches, a chunk at a time; the first bad value is looked for only in a chunk
// that has one. O(1) scratch.
#include "gather.hpp"

namespace anydml::gather {
namespace {

// Offsets of tuples of Width, or of axes.count where Width is 0.
template <class Index, int Width>
bool convert_tuples(const char* values, Int count, const Axes& axes, OutOfRange mode,
                    Int* offsets) {
  constexpr int most = Width == 0 ? kMaxRank : Width;
  const int width = Width == 0 ? axes.count : Width;
  unsigned long long sizes[most];
  Int strides[most];
  for (int k = 0; k < width; ++k) {
    sizes[k] = static_cast<unsigned long long>(axes.sizes[k]);
    strides[k] = axes.strides[k];
  }
  unsigned long long bad = 0;
  const auto each = [&]<bool clamp>(std::bool_constant<clamp>) {
    for (Int i = 0; i < count; ++i) {
      Int offset = 0;
      for (int k = 0; k < width; ++k) {
        const Index value = load<Index>(values + (i * width + k) * Int{sizeof(Index)});
        const unsigned long long position =
            clamp ? clamp_index(value, sizes[k]) : wrap_index(value, sizes[k]);
        const unsigned long long good = position < sizes[k] ? ~0ull : 0ull;
        bad |= ~good;
        offset += static_cast<Int>(position & good) * strides[k];
      }
      offsets[i] = offset;
    }
  };
  if (mode == OutOfRange::clamp)
    each(std::true_type{});
  else
    each(std::false_type{});
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

// ---- blocks -------------------------------------------------------------------------------------

// Cache lines that are announced ahead, and the most of one row.
constexpr Int kAheadLines = 160, kRowLines = 16;

// Rows that so many lines are.
Int rows_ahead(Int lines) { return std::max<Int>(4, kAheadLines / std::max<Int>(1, lines)); }

template <class T>
void copy_each(char* target, Int step, const char* source, const Int* offsets, Int count,
               bool far) {
  constexpr Int size = sizeof(T);
  Int i = 0;
  if (far)
    for (; i < count - kAheadElements; ++i) {
      prefetch(source + offsets[i + kAheadElements]);
      store(target + i * step, load<T>(source + offsets[i]));
    }
  if (step == size)
    for (; i < count; ++i) store(target + i * size, load<T>(source + offsets[i]));
  else
    for (; i < count; ++i) store(target + i * step, load<T>(source + offsets[i]));
}

}  // namespace

const char* IndexReader::read(Int flat, Int count, char* buffer) const {
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

Int to_offsets(DataType type, const char* values, Int count, const Axes& axes, OutOfRange mode,
               Int* offsets) {
  Int bad = -1;
  with_index(type, [&](auto index) {
    bad = convert_chunk<decltype(index)>(values, count, axes, mode, offsets);
  });
  return bad;
}

Int first_bad_index(const IndexReader& reader, DataType type, Int tuples, const Axes& axes,
                    OutOfRange mode, int threads) {
  if (tuples == 0 || axes.count == 0) return -1;
  if (mode == OutOfRange::clamp) {
    for (int k = 0; k < axes.count; ++k)
      if (axes.sizes[k] == 0) return k;
    return -1;
  }
  std::atomic<Int> first{kNoIndex};
  const Int width = axes.count;
  const Int step = std::max<Int>(1, kNearChunk / width);  // tuples at a time
  with_index(type, [&](auto index) {
    using Index = decltype(index);
    parallel_ranges(
        tuples, std::max<Int>(1, 2 * kIndexGrain / width), threads, [&](Int begin, Int end) {
          alignas(64) char buffer[std::max<Int>(kNearChunk, kMaxRank) * Int{sizeof(Index)}];
          for (Int i = begin; i < end; i += step) {
            if (i * width >= first.load(std::memory_order_relaxed)) return;
            const Int count = std::min(step, end - i);
            const char* const values = reader.read(i * width, count * width, buffer);
            if (!any_bad<Index>(values, count, axes)) continue;
            lower(first, i * width + find_bad<Index>(values, count, axes));
            return;
          }
        });
  });
  return status_of(first).bad_index;
}

void BlockCopier::copy(char* target, Int step, const char* source, const Int* offsets, Int count,
                       bool far, LineWriter* writer) const {
  const Int block = plan_.bytes();
  if (!plan_.contiguous() && plan_.single())
    return copy_single(target, step, source, offsets, count, far, writer);
  if (!plan_.contiguous()) {
    for (Int i = 0; i < count; ++i) plan_.run(target + i * step, source + offsets[i], 1, false);
    return;
  }
  if (is_element_size(block)) {
    alignas(64) char buffer[kIndexChunk * 16];
    char* const out = writer != nullptr ? buffer : target;
    const Int out_step = writer != nullptr ? block : step;
    with_element(static_cast<int>(block), [&](auto unit) {
      copy_each<decltype(unit)>(out, out_step, source, offsets, count, far);
    });
    if (writer != nullptr) writer->append(buffer, count * block);
    return;
  }
  // Rows: the first lines of one that comes soon are announced, the prefetcher gets the others.
  const Int head = std::min<Int>(block, 512), ahead = far ? rows_ahead(head / 64 + 1) : count;
  for (Int i = 0; i < count; ++i) {
    if (i + ahead < count) {
      const char* const later = source + offsets[i + ahead];
      for (Int at = 0; at < head; at += 64) prefetch(later + at);
      prefetch(later + head - 1);  // rows seldom begin with a line
    }
    if (writer != nullptr)
      writer->append(source + offsets[i], block);
    else
      copy_short(target + i * step, source + offsets[i], block);
  }
}

void BlockCopier::copy_single(char* target, Int step, const char* source, const Int* offsets,
                              Int count, bool far, LineWriter* writer) const {
  const CopyPlan::Steps steps = plan_.steps();
  target += steps.to;
  source += steps.from;
  // As for rows, of the lines that elements lie in.
  const Int length = (steps.count - 1) * steps.from_step + steps.size;
  const Int line = std::abs(steps.from_step) < 64 ? (length < 0 ? -64 : 64) : steps.from_step;
  const Int lines = std::min<Int>(length / line + 1, kRowLines);
  const Int ahead = far ? rows_ahead(lines) : count;
  for (Int i = 0; i < count; ++i) {
    if (i + ahead < count) {
      const char* const later = source + offsets[i + ahead];
      for (Int at = 0; at < lines; ++at) prefetch(later + at * line);
    }
    const char* const from = source + offsets[i];
    if (writer != nullptr)
      append_steps(*writer, from, steps.from_step, steps.count, steps.size);
    else
      copy_steps(target + i * step, steps.to_step, from, steps.from_step, steps.count, steps.size);
  }
}

}  // namespace anydml::gather

// What the three gathers share: reading indices in row-major order from any layout, checking them,
// turning them into byte offsets, and copying the blocks at a list of offsets to the output.
#pragma once

#include <atomic>

#include "common/indexing.hpp"
#include "runtime/cpu/copy.hpp"
#include "runtime/cpu/first_bad.hpp"
#include "runtime/cpu/read_once.hpp"
#include "runtime/cpu/threads.hpp"
#include "runtime/cpu/with_type.hpp"
#include "runtime/plans.hpp"

namespace anydml::gather {

// Indices that are turned into offsets at a time, on the stack. Where reads have to be prefetched a
// long chunk hides more of them; elsewhere offsets and elements should fit the first cache.
constexpr Int kIndexChunk = 2048, kNearChunk = 512;
// Index values that are worth a second thread.
constexpr Int kIndexGrain = Int{1} << 16;
// A source of more bytes than this is not in a near cache: reads are prefetched.
constexpr Int kFarBytes = Int{512} << 10;

// The values of an index tensor in row-major order.
class IndexValues {
 public:
  IndexValues(const Tensor& tensor, const void* data)
      : layout_(tensor.layout),
        type_(tensor.type),
        data_(static_cast<const char*>(data)),
        size_(tensor.element_size) {
    Layout* one[1] = {&layout_};
    if (layout_.count() == 0) return;
    collapse(one);
    packed_ = layout_.rank == 0 || (layout_.rank == 1 && layout_.strides[0] == size_);
  }

  DataType type() const { return type_; }

  // Values [flat, flat + count) in place, or null if they are not contiguous. To be read once: see
  // read_once.hpp.
  const char* place(Int flat) const { return packed_ ? data_ + flat * size_ : nullptr; }

  // Values [flat, flat + count), copied to `buffer`, so that the values that are checked are the
  // values that are used.
  const char* read(Int flat, Int count, char* buffer) const;

  // Prefetches the values from `flat` on, if all have one short step. Inlined, because GCC drops
  // calls of functions that only prefetch.
  [[gnu::always_inline]] void prefetch(Int flat, Int count) const {
    const Int step = layout_.rank == 0 ? 0 : layout_.strides[0];
    if (layout_.rank > 1 || step <= 0 || step > 64) return;
    const char* const begin = data_ + flat * step;
    for (Int at = 0; at < count * step; at += 64) __builtin_prefetch(begin + at, 0, 3);
    __builtin_prefetch(begin + count * step - 1, 0, 3);  // values seldom begin with a line
  }

 private:
  Layout layout_;
  DataType type_;
  const char* data_;
  int size_;
  bool packed_ = true;
};

// Tuples of indices and what their components address. GATHER and GATHER_ELEMENTS have tuples of
// one.
struct Axes {
  int count = 0;
  Int sizes[kMaxRank];
  Int strides[kMaxRank];  // in bytes
};

// Byte offsets of the tuples [first, first + count) of an index tensor, at most kIndexChunk values,
// each read once. Returns the position of the first value (not tuple) that is out of range, or -1;
// offsets are in range in any case. In clamp mode nothing is out of range, unless an axis is empty.
Int read_offsets(const IndexValues& reader, Int first, Int count, const Axes& axes, OutOfRange mode,
                 Int* offsets);

// The first value out of range of `tuples` tuples, or -1.
Int first_bad_index(const IndexValues& reader, Int tuples, const Axes& axes, OutOfRange mode,
                    int threads);

// The distance at which reads of elements are prefetched.
constexpr Int kPrefetchElements = 128;
// The distance for reads of their indices, which the hardware prefetcher cannot follow among so
// many others.
constexpr Int kPrefetchIndices = 4 * kPrefetchElements;

// Single elements and short blocks from a far source are not streamed: the many outstanding reads
// and such writes block each other, which costs more than reading the output's lines.
constexpr Int kStreamBlock = 64;

[[gnu::always_inline]] inline void prefetch(const char* address) {
  __builtin_prefetch(address, 0, 3);
}

// Elements [begin, end) of a far source, to places `step` bytes apart. make(first, count, offsets)
// computes their offsets one piece before they are read, so that every read is prefetched. Elements
// are gathered into whole lines before they are written: single stores to a line that is not cached
// yet would fill the store buffer.
template <class T, class Make>
inline void copy_far(char* target, Int step, const char* source, Int begin, Int end, Make&& make) {
  constexpr Int size = sizeof(T);
  alignas(64) Int offsets[2][kPrefetchElements];
  alignas(64) char lines[kPrefetchElements * size];
  Int count = std::min(kPrefetchElements, end - begin);
  make(begin, count, offsets[0]);
  for (Int i = 0; i < count; ++i) prefetch(source + offsets[0][i]);
  for (int turn = 0; count > 0; turn ^= 1) {
    const Int* const now = offsets[turn];
    Int* const later = offsets[turn ^ 1];
    const Int more = std::min(kPrefetchElements, end - begin - count);
    if (more > 0) make(begin + count, more, later);
    Int i = 0;
    for (; i < more; ++i) {
      prefetch(source + later[i]);
      store(lines + i * size, load<T>(source + now[i]));
    }
    for (; i < count; ++i) store(lines + i * size, load<T>(source + now[i]));
    if (step == size)
      std::memcpy(target + begin * size, lines, static_cast<std::size_t>(count * size));
    else
      for (i = 0; i < count; ++i) store(target + (begin + i) * step, load<T>(lines + i * size));
    begin += count;
    count = more;
  }
}

// Copies the blocks at `offsets` from a source to places `step` bytes apart.
class BlockCopier {
 public:
  BlockCopier(const Layout& target, const Layout& source, int element_size)
      : plan_(target, source, element_size) {}

  Int bytes() const { return plan_.bytes(); }
  const CopyPlan& plan() const { return plan_; }
  bool is_element() const { return plan_.contiguous() && is_element_size(plan_.bytes()); }
  template <class Make>
  void copy_far(char* target, Int step, const char* source, Int begin, Int end, Make&& make) const {
    with_element(static_cast<int>(bytes()), [&](auto unit) {
      gather::copy_far<decltype(unit)>(target, step, source, begin, end, make);
    });
  }
  // `far`: the source does not fit a near cache. `writer`: null, or the output past the cache.
  void copy(char* target, Int step, const char* source, const Int* offsets, Int count, bool far,
            LineWriter* writer) const;

 private:
  void copy_single(char* target, Int step, const char* source, const Int* offsets, Int count,
                   bool far, LineWriter* writer) const;

  CopyPlan plan_;
};

// The output as items of one block each, written in order from any item on.
class OutputItems {
 public:
  // `layout`: collapsed, of the items.
  OutputItems(const Layout& layout, char* data, const BlockCopier& block, bool stream)
      : items_{&layout},
        walker_(items_, std::max(layout.rank - 1, 0)),
        data_(data),
        block_(block),
        writer_(data),
        stream_(stream),
        length_(layout.rank == 0 ? 1 : layout.sizes[layout.rank - 1]),
        step_(layout.rank == 0 ? block.bytes() : layout.strides[layout.rank - 1]) {}
  ~OutputItems() {
    writer_.finish();
    if (stream_) stream_fence();
  }
  OutputItems(const OutputItems&) = delete;
  OutputItems& operator=(const OutputItems&) = delete;

  // True when the items of this layout can go past the cache.
  static bool streams(const Layout& layout, const BlockCopier& block, bool far) {
    const Int bytes = block.bytes();
    return (!far || bytes >= kStreamBlock) && layout.count() * bytes >= kStreamBytes &&
           (block.plan().contiguous() || block.plan().packs()) &&
           (layout.rank == 0 || layout.strides[layout.rank - 1] == bytes);
  }

  void start(Int item) {
    walker_.start(item / length_);
    at_ = item % length_;
  }
  void copy(const char* source, const Int* offsets, Int count, bool far) {
    while (count > 0) {
      const Int run = std::min(count, length_ - at_);
      char* const target = data_ + walker_.offset[0] + at_ * step_;
      if (stream_ && target != writer_.position()) {
        writer_.finish();
        writer_.start(target);
      }
      block_.copy(target, step_, source, offsets, run, far, stream_ ? &writer_ : nullptr);
      offsets += run;
      count -= run;
      at_ += run;
      if (at_ < length_) return;
      at_ = 0;
      walker_.next();
    }
  }

 private:
  const Layout* const items_[1];
  Walker<1> walker_;
  char* data_;
  const BlockCopier& block_;
  LineWriter writer_;
  bool stream_;
  Int length_, step_, at_ = 0;
};

}  // namespace anydml::gather

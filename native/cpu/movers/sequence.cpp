// Sequences whose sums are rounded one after the other, made without adding one after the other.
//
// Integers wrap around: element i is start + i * delta. Floats come from segments (segments.hpp).
#include <algorithm>

#include "../plans.hpp"
#include "../runtime/copy.hpp"
#include "../runtime/threads.hpp"
#include "cast.hpp"
#include "segments.hpp"

namespace anydml {
namespace {

constexpr Int kBlock = 1024;

void make_floats(const Segment& segment, Int skip, Int count, char* target) {
  if (segment.unit == 0) {
    for (Int i = 0; i < count; ++i) store(target + i * 4, segment.value);
    return;
  }
  int32_t units = segment.units + static_cast<int32_t>(skip) * segment.step;
  const int32_t step = segment.step;
  const float unit = segment.unit;
  for (Int i = 0; i < count; ++i, units += step)
    store(target + i * 4, static_cast<float>(units) * unit);
}

class FloatSource {
 public:
  FloatSource(const SequencePlan& plan, Int count)
      : half_(plan.output.type == DataType::float16),
        segments_(segments_room(count)),
        made_(cut_sequence(half_, plan.float_start, plan.float_delta, count, segments_.get())) {}

  // `count` elements from `first` on, packed.
  void operator()(Int first, Int count, char* target) const {
    alignas(64) char block[kBlock * 4];
    char* const floats = half_ ? block : target;
    Int n = std::upper_bound(segments_.get(), segments_.get() + made_, first,
                             [](Int at, const Segment& segment) { return at < segment.begin; }) -
            segments_.get() - 1;
    for (Int at = 0; at < count; ++n) {
      const Int end = n + 1 < made_ ? segments_[n + 1].begin : first + count;
      const Int some = std::min(count - at, end - first - at);
      make_floats(segments_[n], first + at - segments_[n].begin, some, floats + at * 4);
      at += some;
    }
    if (half_) to_halves_.run(floats, target, count);
  }

 private:
  bool half_;
  CastMap to_halves_{DataType::float32, DataType::float16};
  Scratch<Segment> segments_;
  Int made_;
};

template <class T>
struct IntegerSource {
  T start, delta;

  void operator()(Int first, Int count, char* target) const {
    const T step = delta;  // a copy: the stores could alias the member
    T value = static_cast<T>(start + static_cast<T>(first) * step);
    for (Int i = 0; i < count; ++i, value = static_cast<T>(value + step))
      store(target + i * Int{sizeof(T)}, value);
  }
};

// In the order of the elements, whatever that of the memory is.
template <class Source>
void fill(const Source& source, const Tensor& output, char* target, int threads) {
  Layout layout = output.layout;
  Layout* layouts[1] = {&layout};
  const Int total = layout.count(), size = output.element_size;
  collapse(layouts);
  if (layout.rank == 0) layout.push(1, size);
  const int inner = layout.rank - 1;
  const Int row = layout.sizes[inner], step = layout.strides[inner];
  const bool packed = layout.rank == 1 && step == size,
             stream = packed && total * size >= kStreamBytes;
  const Layout* const outer[1] = {&layout};
  parallel_ranges(total, kCopyGrain / size, threads, [&](Int begin, Int end) {
    alignas(64) char block[kBlock * 8];
    Walker<1> walker(outer, inner);
    walker.start(begin / row);
    Int column = begin % row;
    LineWriter writer(target + (packed ? begin * size : 0));
    for (Int at = begin; at < end; at += kBlock) {
      const Int count = std::min(kBlock, end - at);
      source(at, count, stream || !packed ? block : target + at * size);
      if (stream) writer.append(block, count * size);
      for (Int done = 0; !packed && done < count;) {
        const Int some = std::min(count - done, row - column);
        copy_steps(target + walker.offset[0] + column * step, step, block + done * size, size, some,
                   static_cast<int>(size));
        done += some;
        column += some;
        if (column == row) {
          column = 0;
          walker.next();
        }
      }
    }
    writer.finish();
    stream_fence();
  });
}

}  // namespace

void SequencePlan::run(void* to, int threads) const {
  const Int total = output.layout.count();
  if (total == 0) return;
  char* const target = static_cast<char*>(to);
  if (output.type == DataType::float32 || output.type == DataType::float16)
    return fill(FloatSource(*this, total), output, target, threads);
  switch (output.element_size) {
    case 1:
      return fill(IntegerSource<uint8_t>{static_cast<uint8_t>(start), static_cast<uint8_t>(delta)},
                  output, target, threads);
    case 2:
      return fill(
          IntegerSource<uint16_t>{static_cast<uint16_t>(start), static_cast<uint16_t>(delta)},
          output, target, threads);
    case 4:
      return fill(
          IntegerSource<uint32_t>{static_cast<uint32_t>(start), static_cast<uint32_t>(delta)},
          output, target, threads);
    default:
      return fill(IntegerSource<uint64_t>{start, delta}, output, target, threads);
  }
}

}  // namespace anydml

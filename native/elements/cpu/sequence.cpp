// Sequences whose sums are rounded one after the other, computed without that chain of additions.
//
// Integers wrap around: element i is start + i * delta. Floats come from segments (segments.hpp),
// whose bits are written as integers are.
#include <algorithm>

#include "elements/cpu/segments.hpp"
#include "runtime/cpu/copy.hpp"
#include "runtime/cpu/threads.hpp"
#include "runtime/plans.hpp"

namespace anydml {
namespace {

constexpr Int kBlock = 8192;  // bytes that are made at a time

#if defined(__AVX512BW__)
constexpr int kVector = 64;
#elif defined(__AVX2__)
constexpr int kVector = 32;
#else
constexpr int kVector = 16;
#endif

// `count` elements, each `step` more than the one before, modulo the type.
// Not inlined: its loop is aligned then.
template <class T>
[[gnu::noinline]] void ramp(char* target, Int count, T value, T step) {
  typedef T Vector __attribute__((vector_size(kVector)));
  typedef Vector Unaligned __attribute__((aligned(1), may_alias));
  constexpr Int lanes = kVector / Int{sizeof(T)};
  alignas(kVector) T first[lanes];
  for (Int i = 0; i < lanes; ++i)
    first[i] = static_cast<T>(value + static_cast<T>(i) * uint64_t{step});
  Vector values = *reinterpret_cast<const Unaligned*>(first);
  const Vector more = Vector{} + static_cast<T>(static_cast<uint64_t>(lanes) * step);
  for (; count >= lanes; count -= lanes, target += kVector, values += more)
    *reinterpret_cast<Unaligned*>(target) = values;
  char rest[kVector];
  *reinterpret_cast<Unaligned*>(rest) = values;
  copy_short(target, rest, count * Int{sizeof(T)});
}

// T has the bits of the floats.
template <class T>
class FloatSource {
 public:
  using Element = T;

  FloatSource(const SequencePlan& plan, Int count)
      : segments_(segment_capacity(count)),
        segment_count_(cut_sequence(sizeof(T) == 2, plan.float_start, plan.float_delta, count,
                                    segments_.get())) {}

  // `count` elements from `first` on, packed.
  void operator()(Int first, Int count, char* target) const {
    Int n = std::upper_bound(segments_.get(), segments_.get() + segment_count_, first,
                             [](Int at, const Segment& segment) { return at < segment.begin; }) -
            segments_.get() - 1;
    for (Int at = 0; at < count; ++n) {
      const Segment& segment = segments_[n];
      const Int end = n + 1 < segment_count_ ? segments_[n + 1].begin : first + count;
      const Int chunk = std::min(count - at, end - first - at);
      const uint32_t skip = static_cast<uint32_t>(first + at - segment.begin);
      ramp(target + at * Int{sizeof(T)}, chunk, static_cast<T>(segment.bits + skip * segment.step),
           static_cast<T>(segment.step));
      at += chunk;
    }
  }

 private:
  Scratch<Segment> segments_;
  Int segment_count_;
};

template <class T>
struct IntegerSource {
  using Element = T;

  T start, delta;

  void operator()(Int first, Int count, char* target) const {
    ramp(target, count, static_cast<T>(start + static_cast<uint64_t>(first) * delta), delta);
  }
};

// In the order of the elements, whatever the order in memory.
template <class Source>
void fill(const Source& source, const Tensor& output, char* target, int threads) {
  Layout layout = output.layout;
  Layout* layouts[1] = {&layout};
  constexpr Int size = sizeof(typename Source::Element), block_count = kBlock / size;
  const Int total = layout.count();
  collapse(layouts);
  if (layout.rank == 0) layout.push(1, size);
  const int inner = layout.rank - 1;
  const Int row = layout.sizes[inner], step = layout.strides[inner];
  const bool packed = layout.rank == 1 && step == size,
             stream = packed && total * size >= kStreamBytes;
  const Layout* const outer[1] = {&layout};
  parallel_ranges(total, kCopyGrain / size, threads, [&](Int begin, Int end) {
    if (packed && !stream) return source(begin, end - begin, target + begin * size);
    alignas(64) char block[kBlock];
    RunWriter writer(stream);
    Walker<1> walker(outer, inner);
    walker.start(begin / row);
    Int column = begin % row;
    for (Int at = begin; at < end; at += block_count) {
      const Int count = std::min(block_count, end - at);
      source(at, count, block);
      for (Int done = 0; done < count;) {
        const Int chunk = std::min(count - done, row - column);
        writer.put(target + walker.offset[0] + column * step, step, block + done * size, size, size,
                   chunk, static_cast<int>(size));
        done += chunk;
        column += chunk;
        if (column == row) {
          column = 0;
          walker.next();
        }
      }
    }
  });
}

}  // namespace

void SequencePlan::run(void* to, int threads) const {
  const Int total = output.layout.count();
  if (total == 0) return;
  char* const target = static_cast<char*>(to);
  if (output.type == DataType::float32)
    return fill(FloatSource<uint32_t>(*this, total), output, target, threads);
  if (output.type == DataType::float16)
    return fill(FloatSource<uint16_t>(*this, total), output, target, threads);
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

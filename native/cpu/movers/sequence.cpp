// Sequences whose sums are rounded one after the other, made without adding one after the other.
//
// Integers wrap around: element i is start + i * delta. For floats let u be the distance between
// neighbours of a value. Within a binade, where u does not change, every sum moves by one and the
// same whole number of u: delta rounded to a multiple of u. Only a tie (delta ends in half a u)
// depends on the value, on whether its last bit is even; but a sum that was a tie is even, so from
// the second value in a binade on all steps are equal. So the sequence is cut into segments, of one
// element or of equal steps inside a binade, of which a segment gives any element at once: a whole
// number that FLOAT32 holds, times u. The cuts are found by adding: there are a few for each
// binade, whatever the length. Where a sum is the value itself, it stays for ever.
#include <algorithm>
#include <cmath>

#include "../plans.hpp"
#include "../runtime/copy.hpp"
#include "../runtime/threads.hpp"
#include "cast.hpp"
#include "convert.hpp"

namespace anydml {
namespace {

constexpr Int kBlock = 1024;
// More than two formats' binades can need.
constexpr Int kMostSegments = 8192;

struct Segment {
  Int begin;            // the first element
  int32_t units, step;  // element begin + i is (units + i * step) * unit, or
  float unit, value;    // this value, where unit is 0
};

struct Format {
  int digits, least;  // of the significand; the exponent of the least normal number
  double (*nearest)(double);
};

double nearest_float(double value) { return static_cast<double>(static_cast<float>(value)); }
double nearest_half(double value) {
  return static_cast<double>(half_to_float(float_to_half(to_odd(value))));
}

constexpr Format kFloat{24, -126, nearest_float}, kHalf{11, -14, nearest_half};

// The segments of `count` elements, ordered; how many there are.
Int cut(const Format& format, double value, double delta, Int count, Segment* segments) {
  Int made = 0;
  const auto single = [&](Int begin, double number) {
    segments[made++] = {begin, 0, 0, 0, canonical(static_cast<float>(number))};
  };
  // Two values of a format have an exact sum in a double, or one that it rounds like the format.
  const auto next = [&](double number) { return format.nearest(number + delta); };
  const Int top = Int{1} << format.digits;
  for (Int at = 0; at < count;) {
    const double second = next(value), third = next(second);
    single(at++, value);
    if (!std::isfinite(second) ||
        (second == value && std::signbit(second) == std::signbit(value))) {
      if (at < count) single(at, second);  // and so on for ever
      break;
    }
    const int exponent = value == 0 ? format.least : std::max(std::ilogb(value), format.least);
    const double unit = std::ldexp(1.0, exponent - format.digits + 1);
    // What lies inside the binade, in units; the lowest one reaches across zero.
    Int low = exponent > format.least ? top / 2 + 1 : 1 - top, high = top - 1;
    if (exponent > format.least && value < 0) {
      std::swap(low, high);
      low = -low;
      high = -high;
    }
    const auto inside = [&](double number) {
      return number >= static_cast<double>(low) * unit &&
             number <= static_cast<double>(high) * unit;
    };
    if (at < count && inside(second) && inside(third)) {
      const Int units = static_cast<Int>(second / unit);
      const Int step = static_cast<Int>((third - second) / unit);
      Int length = count - at;
      if (step > 0) length = std::min(length, (high - units) / step + 1);
      if (step < 0) length = std::min(length, (units - low) / -step + 1);
      segments[made++] = {at, static_cast<int32_t>(units), static_cast<int32_t>(step),
                          static_cast<float>(unit), 0};
      at += length;
      value = next(static_cast<double>(units + (length - 1) * step) * unit);
    } else {
      value = second;
    }
  }
  return made;
}

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
        segments_(std::min(2 * count + 2, kMostSegments)),
        made_(cut(half_ ? kHalf : kFloat, plan.float_start, plan.float_delta, count,
                  segments_.get())) {}

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

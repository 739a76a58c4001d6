// Sequences whose sums are rounded one after the other, made without adding one after the other.
//
// Integers wrap around: element i is start + i * delta. For floats let u be the distance between
// neighbours of a value. Within a binade, where u does not change, every sum moves by one and the
// same whole number of u: delta rounded to a multiple of u. Only a tie (delta ends in half a u)
// depends on the value, on whether its last bit is even; but a sum that was a tie is even, so from
// the second value in a binade on all steps are equal. So the sequence is cut into segments, of one
// element or of equal steps inside a binade and on one side of zero, where the bits of the floats,
// taken for integers, have equal steps as well. So floats too are written as integers are. The cuts
// are found by adding: there are a few for each binade, whatever the length. Where a sum is the
// value itself, it stays for ever.
#include <algorithm>
#include <cmath>

#include "../plans.hpp"
#include "../runtime/copy.hpp"
#include "../runtime/threads.hpp"
#include "convert.hpp"

namespace anydml {
namespace {

constexpr Int kBlock = 8192;  // bytes that are made at a time
// More than two formats' binades can need.
constexpr Int kMostSegments = 8192;

#if defined(__AVX512BW__)
constexpr int kVector = 64;
#elif defined(__AVX2__)
constexpr int kVector = 32;
#else
constexpr int kVector = 16;
#endif

typedef char Bytes __attribute__((vector_size(kVector)));

// To an aligned address, past the cache.
inline void stream_vector(char* target, Bytes value) {
#if defined(__AVX512BW__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(target), (__m512i)value);
#elif defined(__AVX2__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(target), (__m256i)value);
#elif defined(__SSE2__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(target), (__m128i)value);
#else
  std::memcpy(target, &value, kVector);
#endif
}

// `count` elements, each `step` more than the one before, modulo the type. `stream`: past the
// cache, but for those in front of the first whole line.
template <class T>
void ramp(char* target, Int count, T value, T step, bool stream) {
  stream = stream && reinterpret_cast<uintptr_t>(target) % sizeof(T) == 0;
  for (; stream && count > 0 && reinterpret_cast<uintptr_t>(target) % 64 != 0; --count) {
    store(target, value);
    target += sizeof(T);
    value = static_cast<T>(value + step);
  }
  typedef T Vector __attribute__((vector_size(kVector)));
  typedef Vector Unaligned __attribute__((aligned(1), may_alias));
  constexpr Int lanes = kVector / Int{sizeof(T)};
  alignas(kVector) T first[lanes];
  for (Int i = 0; i < lanes; ++i)
    first[i] = static_cast<T>(value + static_cast<T>(i) * uint64_t{step});
  Vector values = *reinterpret_cast<const Unaligned*>(first);
  const Vector more = Vector{} + static_cast<T>(static_cast<uint64_t>(lanes) * step);
  if (stream)
    for (; count >= lanes; count -= lanes, target += kVector, values += more)
      stream_vector(target, (Bytes)values);
  else
    for (; count >= lanes; count -= lanes, target += kVector, values += more)
      *reinterpret_cast<Unaligned*>(target) = values;
  char rest[kVector];
  *reinterpret_cast<Unaligned*>(rest) = values;
  copy_short(target, rest, count * Int{sizeof(T)});
}

// From element `begin` on: bits, which are `step` more from one element to the next.
struct Segment {
  Int begin;
  uint32_t bits, step;
};

struct Format {
  int digits, least;  // of the significand; the exponent of the least normal number
  uint32_t sign;      // the bit of it
  double (*nearest)(double);
  uint32_t (*bits)(double);  // of a number of the format
};

double nearest_float(double value) { return static_cast<double>(static_cast<float>(value)); }
double nearest_half(double value) {
  return static_cast<double>(half_to_float(float_to_half(to_odd(value))));
}
uint32_t float_bits(double number) {
  return std::bit_cast<uint32_t>(canonical(static_cast<float>(number)));
}
uint32_t half_bits(double number) { return float_to_half(static_cast<float>(number)); }

constexpr Format kFloat{24, -126, 0x80000000U, nearest_float, float_bits};
constexpr Format kHalf{11, -14, 0x8000U, nearest_half, half_bits};

// The segments of `count` elements, ordered; how many there are.
Int cut(const Format& format, double value, double delta, Int count, Segment* segments) {
  Int made = 0;
  const auto single = [&](Int begin, double number) {
    segments[made++] = {begin, format.bits(number), 0};
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
    // The bits of a number of units are those of the binade's lowest number of none, and so many.
    const Int none = Int{exponent - format.least} << (format.digits - 1);
    const auto steps = [&](Int begin, Int units, Int step) {
      const Int size = none + (units < 0 ? -units : units);
      segments[made++] = {begin, static_cast<uint32_t>(size) | (units < 0 ? format.sign : 0),
                          static_cast<uint32_t>(units < 0 ? -step : step)};
    };
    if (at < count && inside(second) && inside(third)) {
      const Int units = static_cast<Int>(second / unit);
      const Int step = static_cast<Int>((third - second) / unit);
      Int length = count - at, before = length;  // before is: on the first one's side of zero
      if (step > 0) length = std::min(length, (high - units) / step + 1);
      if (step < 0) length = std::min(length, (units - low) / -step + 1);
      if (step > 0 && units < 0) before = (step - 1 - units) / step;
      if (step < 0 && units >= 0) before = units / -step + 1;
      steps(at, units, step);
      if (before < length) steps(at + before, units + before * step, step);
      at += length;
      value = next(static_cast<double>(units + (length - 1) * step) * unit);
    } else {
      value = second;
    }
  }
  return made;
}

// T has the bits of the floats.
template <class T>
class FloatSource {
 public:
  using Element = T;

  FloatSource(const SequencePlan& plan, Int count)
      : segments_(std::min(2 * count + 2, kMostSegments)),
        made_(cut(sizeof(T) == 2 ? kHalf : kFloat, plan.float_start, plan.float_delta, count,
                  segments_.get())) {}

  // `count` elements from `first` on, packed.
  void operator()(Int first, Int count, char* target, bool stream = false) const {
    Int n = std::upper_bound(segments_.get(), segments_.get() + made_, first,
                             [](Int at, const Segment& segment) { return at < segment.begin; }) -
            segments_.get() - 1;
    for (Int at = 0; at < count; ++n) {
      const Segment& segment = segments_[n];
      const Int end = n + 1 < made_ ? segments_[n + 1].begin : first + count;
      const Int some = std::min(count - at, end - first - at);
      const uint32_t skip = static_cast<uint32_t>(first + at - segment.begin);
      ramp(target + at * Int{sizeof(T)}, some, static_cast<T>(segment.bits + skip * segment.step),
           static_cast<T>(segment.step), stream);
      at += some;
    }
  }

 private:
  Scratch<Segment> segments_;
  Int made_;
};

template <class T>
struct IntegerSource {
  using Element = T;

  T start, delta;

  void operator()(Int first, Int count, char* target, bool stream = false) const {
    ramp(target, count, static_cast<T>(start + static_cast<uint64_t>(first) * delta), delta,
         stream);
  }
};

// In the order of the elements, whatever that of the memory is.
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
    if (packed) {
      source(begin, end - begin, target + begin * size, stream);
      stream_fence();
      return;
    }
    alignas(64) char block[kBlock];
    Walker<1> walker(outer, inner);
    walker.start(begin / row);
    Int column = begin % row;
    for (Int at = begin; at < end; at += block_count) {
      const Int count = std::min(block_count, end - at);
      source(at, count, block);
      for (Int done = 0; done < count;) {
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

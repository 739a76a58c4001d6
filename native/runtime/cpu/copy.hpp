// Building blocks of every kernel that only moves elements: copies of a few bytes, rows that go
// past the cache, the grain of parallel copies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/cpu/memory.hpp"

namespace anydml {

// Elements of 16 bytes; only ever moved.
struct Wide {
  uint64_t low, high;
};

// The least output, in bytes, for which a second thread pays.
constexpr Int kCopyGrain = Int{1} << 20;

// Calls body(T{}) with the unsigned type of `element_size` bytes: 1, 2, 4, 8 or 16.
template <class Body>
inline void with_element(int element_size, Body&& body) {
  switch (element_size) {
    case 1:
      return body(uint8_t{});
    case 2:
      return body(uint16_t{});
    case 4:
      return body(uint32_t{});
    case 8:
      return body(uint64_t{});
    default:
      return body(Wide{});
  }
}

inline bool is_element_size(Int bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

// memcpy, inlined for sizes that are too short for a call: two overlapping moves.
inline void copy_short(char* target, const char* source, Int bytes) {
  const auto two = [&](auto unit) {
    using T = decltype(unit);
    const Int last = bytes - static_cast<Int>(sizeof(T));
    const T head = load<T>(source), tail = load<T>(source + last);
    store(target, head);
    store(target + last, tail);
  };
  if (bytes > 64) {
    std::memcpy(target, source, static_cast<std::size_t>(bytes));
  } else if (bytes > 32) {
    struct Pair {
      Wide low, high;
    };
    two(Pair{});
  } else if (bytes > 16) {
    two(Wide{});
  } else if (bytes >= 8) {
    two(uint64_t{});
  } else if (bytes >= 4) {
    two(uint32_t{});
  } else if (bytes >= 2) {
    two(uint16_t{});
  } else if (bytes == 1) {
    *target = *source;
  }
}

// Elements of `size` bytes (1, 2, 4, 8 or 16) from places `from_step` bytes apart to places
// `to_step` bytes apart, which do not overlap. Gaps between elements of the source may be read.
void copy_steps(char* target, Int to_step, const char* source, Int from_step, Int count, int size);

// `count` runs of `bytes` each, from places `from_step` bytes apart to places `to_step` bytes
// apart.
void copy_pieces(char* target, Int to_step, const char* source, Int from_step, Int bytes,
                 Int count);

// One line, 64-byte aligned at the target, past the cache.
inline void stream_line(char* target, const char* source) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(target), _mm512_loadu_si512(source));
#elif defined(__AVX__)
  for (int i = 0; i < 64; i += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(target + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + i)));
#elif defined(__SSE2__)
  for (int i = 0; i < 64; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(target + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i)));
#else
  std::memcpy(target, source, 64);
#endif
}

// A copy between two layouts, prepared once for many pairs of addresses.
class CopyPlan {
 public:
  // Sizes and strides in bytes as copy_elements takes them.
  CopyPlan(const Layout& target, const Layout& source, int element_size);

  // Bytes of all elements.
  Int bytes() const { return bytes_; }
  // Whether both sides are one run of bytes() from the given addresses on.
  bool contiguous() const {
    return to_shift_ == 0 && from_shift_ == 0 &&
           (to_.rank == 0 ||
            (to_.rank == 1 && to_.strides[0] == size_ && from_.strides[0] == size_));
  }
  // Whether all elements, of which there is at least one, have one step on each side.
  bool single() const { return to_.rank == 1; }
  // The same, and the target is one run of bytes() from the given address on.
  bool packs() const { return single() && to_shift_ == 0 && to_.strides[0] == size_; }
  // A single copy: the offsets of its first elements from the given addresses, and the steps.
  struct Steps {
    Int to, to_step, from, from_step, count;
    int size;
  };
  Steps steps() const {
    return {to_shift_, to_.strides[0], from_shift_, from_.strides[0], to_.sizes[0], size_};
  }
  // `stream`: stores go past the cache where that pays; ends with a fence.
  void run(void* target, const void* source, int threads, bool stream) const;

 private:
  void normalize() { order_by_target(to_, to_shift_, from_, from_shift_); }
  template <class Body>
  void for_pieces(int threads, bool stream, Body&& body) const;
  void copy_rows(char* target, const char* source, int threads, bool stream) const;
  template <class T>
  void copy_strided(char* target, const char* source, int threads, bool stream) const;
  template <class T>
  void copy_plane(char* target, const char* source, int threads, bool stream) const;

  Layout to_, from_;
  Int to_shift_ = 0, from_shift_ = 0;  // from the given addresses to those of the flipped layouts
  int size_;                           // of an element
  int densest_ = 0;                    // the dimension of the source's smallest stride
  Int bytes_;
};

// Prefetches bytes that are read next, a part at a time between other work; without it, code that
// alternates reads and writes waits for each read. The addresses may be invalid.
class Prefetcher {
 public:
  Prefetcher() = default;
  // Prefetches all of `bytes` within this many parts.
  Prefetcher(const char* from, Int bytes, Int parts)
      : at_(from), step_(parts > 0 ? (bytes + parts - 1) / parts : 0) {}

  void next() {
#if defined(__SSE2__)
    for (Int i = 0; i < step_; i += 64) _mm_prefetch(at_ + i, _MM_HINT_T0);
#endif
    at_ += step_;
  }

 private:
  const char* at_ = nullptr;
  Int step_ = 0;
};

// A prefetcher for the `count` elements at a step that are read next, in this many parts; empty if
// the step is large.
inline Prefetcher prefetcher_for(const char* source, Int step, Int count, Int size, Int parts) {
  const Int distance = step < 0 ? -step : step;
  if (count <= 0 || distance > 64) return {};
  const Int bytes = (count - 1) * distance + size;
  return {step < 0 ? source + size - bytes : source, bytes, parts};
}

// Sequential output past the cache, for pieces of any length: writes whole lines only, and gathers
// a line in a buffer where a piece ends inside one.
class LineWriter {
 public:
  // The caller ends a series of writers with stream_fence().
  explicit LineWriter(void* target) { start(target); }
  ~LineWriter() { finish(); }
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  void start(void* target) {
    const Int into = static_cast<Int>(reinterpret_cast<uintptr_t>(target) % 64);
    out_ = static_cast<char*>(target) - into;
    head_ = fill_ = into;
  }

  // The position of the next byte.
  char* position() const { return out_ + fill_; }

  void append(const char* source, Int bytes, Prefetcher prefetcher = {}) {
    if (fill_ != 0) {
      const Int take = std::min(bytes, 64 - fill_);
      copy_short(line_ + fill_, source, take);
      fill_ += take;
      if (fill_ < 64) return;
      if (head_ <= 0)  // never less, but GCC 12 warns of more than a line otherwise
        stream_line(out_, line_);
      else
        copy_short(out_ + head_, line_ + head_, 64 - head_);
      head_ = fill_ = 0;
      out_ += 64;
      source += take;
      bytes -= take;
    }
    char* out = out_;  // the lines could alias the member
    for (; bytes >= 64; bytes -= 64, source += 64, out += 64) {
      prefetcher.next();
      stream_line(out, source);
    }
    out_ = out;
    copy_short(line_, source, bytes);
    fill_ = bytes;
  }

  // `bytes` of data that repeat after `round` bytes, 64 or more, from the one at `at` on. The first
  // 64 of them are repeated behind their end.
  void append_round(const char* source, Int round, Int at, Int bytes) {
    const auto next = [&](Int step) {
      at += step;
      if (at >= round) at -= round;
      bytes -= step;
    };
    if (fill_ != 0) {
      const Int take = std::min(bytes, 64 - fill_);
      append(source + at, take);
      next(take);
      if (bytes == 0) return;
    }
    char* out = out_;
    for (; bytes >= 64; out += 64) {
      stream_line(out, source + at);
      next(64);
    }
    out_ = out;
    copy_short(line_, source + at, bytes);
    fill_ = bytes;
  }

  void finish() {
    copy_short(out_ + head_, line_ + head_, fill_ - head_);
    head_ = fill_;
  }

 private:
  alignas(64) char line_[64];
  char* out_;  // the line that `line_` buffers
  Int head_;   // bytes of it that belong to others, or are written already
  Int fill_;
};

// Appends elements at a stride of `step` bytes to the writer, packed.
void append_steps(LineWriter& writer, const char* source, Int step, Int count, int size);

// Runs of bytes and of elements to an output: past the cache, which pays where most runs begin
// where the previous one ended, or not.
class RunWriter {
 public:
  explicit RunWriter(bool stream) : stream_(stream), writer_(nullptr) {}
  ~RunWriter() {
    if (!stream_) return;
    writer_.finish();
    stream_fence();
  }
  RunWriter(const RunWriter&) = delete;
  RunWriter& operator=(const RunWriter&) = delete;

  bool streams() const { return stream_; }

  // `prefetcher`: nothing, or what is read next.
  template <class... Next>
  void put(char* target, const char* source, Int bytes, const Next&... prefetcher) {
    if (!stream_) return copy_short(target, source, bytes);
    seek(target);
    writer_.append(source, bytes, prefetcher...);
  }
  // `count` blocks of `bytes` bytes, which are one or more elements of `size` bytes. Blocks that
  // are written past the cache have no gaps between them.
  void put(char* target, Int to_step, const char* source, Int from_step, Int bytes, Int count,
           int size);
  // A period of `bytes` bytes or more: see LineWriter.
  [[gnu::noinline]] void put_round(char* target, const char* source, Int round, Int at, Int bytes) {
    seek(target);
    writer_.append_round(source, round, at, bytes);
  }

 private:
  void seek(char* target) {
    if (target == writer_.position()) return;
    writer_.finish();
    writer_.start(target);
  }

  bool stream_;
  LineWriter writer_;
};

}  // namespace anydml

// NONZERO_COORDINATES, second step: rows of coordinates from the bitmap.
//
// A chunk's bits are decoded into offsets from a base (compress on AVX-512, a table of bytes
// elsewhere; empty words are skipped), up to 1024 at a time, and the offsets turned into
// coordinates by adding the base's own and dividing. A base covers at most 32768 elements and ends
// where a dimension would wrap whose suffix product is larger than that: only dimensions inside it
// need a division, all numbers are below 2^16, and single precision is exact. O(elements / 64 +
// rows x columns); no heap.
#include <algorithm>

#include "nonzero/cpu/nonzero.hpp"

namespace anydml::nonzero {
namespace {

constexpr Int kBatch = 1024;
constexpr Int kStage = 16384;  // bytes

// Elements a row from which a word rarely has more than 4 and 8 bits set.
constexpr Int kSparse = 40, kMiddling = 12;

// ---- bits to offsets ----------------------------------------------------------------------------

#if !defined(__AVX512F__)
// The positions of the bits of every byte.
struct Positions {
  unsigned char of[256][8] = {};
  constexpr Positions() {
    for (int byte = 0; byte < 256; ++byte) {
      int n = 0;
      for (int bit = 0; bit < 8; ++bit)
        if ((byte >> bit & 1) != 0) of[byte][n++] = static_cast<unsigned char>(bit);
    }
  }
};
constexpr Positions positions;
#endif

// Appends first + position of every bit set; may write up to 64 offsets past the returned end.
inline uint32_t* decode(uint64_t word, uint32_t first, uint32_t* out) {
#if defined(__AVX512F__)
  __m512i at =
      _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(first)),
                       _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  for (int i = 0; i < 4; ++i) {
    const auto mask = static_cast<__mmask16>(word >> (16 * i));
    // To a register and then out: a compress that stores is far slower on some processors.
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(mask, at));
    out += __builtin_popcount(mask);
    at = _mm512_add_epi32(at, _mm512_set1_epi32(16));
  }
#else
  for (int i = 0; i < 8; ++i) {
    const unsigned byte = static_cast<unsigned>(word >> (8 * i)) & 0xFFu;
    const unsigned char* const bits = positions.of[byte];
    const uint32_t base = first + static_cast<uint32_t>(8 * i);
    for (int j = 0; j < 8; ++j) out[j] = base + bits[j];
    out += __builtin_popcount(byte);
  }
#endif
  return out;
}

// The same for words with rarely more than `kMaxBits` bits set, eight words at a time: without a
// branch for each of them, because a random one costs more than the work.
template <int kMaxBits>
inline uint32_t* decode_sparse(const uint64_t* words, uint32_t first, uint32_t* out) {
  uint64_t any = 0;
  for (int i = 0; i < 8; ++i) any |= words[i];
  if (any == 0) return out;
  for (uint32_t i = 0; i < 8; ++i) {
    uint64_t word = words[i];
    const uint32_t base = first + 64 * i;
    const int count = __builtin_popcountll(word);
    if (count > kMaxBits) {
      out = decode(word, base, out);
      continue;
    }
    // The top bit keeps zero out of the count of trailing zeros, which would become a branch.
    for (int j = 0; j < kMaxBits; ++j, word &= word - 1)
      out[j] = base + static_cast<uint32_t>(__builtin_ctzll(word | uint64_t{1} << 63));
    out += count;
  }
  return out;
}

// ---- offsets to coordinates ---------------------------------------------------------------------

// What a base adds, and what each column divides by.
struct Digits {
  int divided;              // this many last columns wrap within a base; the one before may grow
  uint64_t base[kMaxRank];  // the base's coordinates
  uint32_t size[kMaxRank];  // of the divided columns
  float inverse[kMaxRank];
};

// (y + 1/2) / size misses the quotient's lower edge by 1/(2 size) at least and by y/size * 2^-23 of
// rounding at most, so truncation is exact for y < 2^16.
inline uint32_t quotient(uint32_t y, float inverse) {
  return static_cast<uint32_t>(
      static_cast<int>((static_cast<float>(static_cast<int>(y)) + 0.5f) * inverse));
}

// Packed rows of the C columns from `left` on, the last D of them divided.
template <class Value, int C, int D>
void emit(const uint32_t* offsets, Int count, const Digits& digits, int left, Value* out) {
  uint32_t size[C], low[C];
  float inverse[C];
  Value base[C];
  for (int j = 0; j < C; ++j) {
    base[j] = static_cast<Value>(digits.base[left + j]);
    low[j] = static_cast<uint32_t>(digits.base[left + j]);
    size[j] = j >= C - D ? digits.size[left + j] : 1;
    inverse[j] = j >= C - D ? digits.inverse[left + j] : 0.0f;
  }
  for (Int i = 0; i < count; ++i) {
    uint32_t carry = offsets[i];
    Value row[C];
    for (int j = C - 1; j >= 0; --j) {
      if (j >= C - D) {
        const uint32_t y = carry + low[j];
        carry = quotient(y, inverse[j]);
        row[j] = y - carry * size[j];
      } else {
        row[j] = j == C - D - 1 ? static_cast<Value>(base[j] + carry) : base[j];
      }
    }
    for (int j = 0; j < C; ++j) out[i * C + j] = row[j];
  }
}

template <class Value>
using Emit = void (*)(const uint32_t*, Int, const Digits&, int, Value*);

template <class Value, int C>
Emit<Value> emit_for(int divided) {
  if constexpr (C >= 4)
    if (divided == 4) return emit<Value, C, 4>;
  if constexpr (C >= 3)
    if (divided == 3) return emit<Value, C, 3>;
  if constexpr (C >= 2)
    if (divided == 2) return emit<Value, C, 2>;
  return divided == 0 ? emit<Value, C, 0> : emit<Value, C, 1>;
}

template <class Value>
Emit<Value> emit_for(int columns, int divided) {
  switch (columns) {
    case 1:
      return emit_for<Value, 1>(divided);
    case 2:
      return emit_for<Value, 2>(divided);
    case 3:
      return emit_for<Value, 3>(divided);
    case 4:
      return emit_for<Value, 4>(divided);
    default:
      return nullptr;
  }
}

// More than 4 columns, or rows apart: groups of 4 columns (fewer if there are not 4) are
// made packed, and each row's piece then copied to its place; the last group may overlap.
template <class Value>
void emit_groups(const uint32_t* offsets, Int count, const Digits& digits, const RowTarget& target,
                 char* out) {
  const int group = std::min(target.columns, 4);
  const auto piece = static_cast<std::size_t>(group) * sizeof(Value);
  uint32_t carry[kBatch];
  Value packed[4 * kBatch];
  for (int right = target.columns; right > 0; right -= group) {
    const int left = std::max(right - group, 0), inside = target.columns - (left + group);
    const uint32_t* own = offsets;
    if (inside > 0) {  // what the columns further in carry over: one division by their product
      uint32_t low = 0, product = 1;
      float inverse = 0.0f;  // zero, if one of them does not wrap within a base
      if (inside <= digits.divided) {
        for (int j = target.columns - 1; j >= left + group; --j) {
          low += static_cast<uint32_t>(digits.base[j]) * product;
          product *= digits.size[j];
        }
        inverse = 1.0f / static_cast<float>(product);
      }
      for (Int i = 0; i < count; ++i) carry[i] = quotient(offsets[i] + low, inverse);
      own = carry;
    }
    const int divided = std::clamp(digits.divided - inside, 0, group);
    emit_for<Value>(group, divided)(own, count, digits, left, packed);
    char* to = out + left * Int{sizeof(Value)};
    const auto* from = reinterpret_cast<const char*>(packed);
    if (group == 4) {
      for (Int i = 0; i < count; ++i, to += target.row_stride, from += 4 * sizeof(Value))
        std::memcpy(to, from, 4 * sizeof(Value));
    } else {
      for (Int i = 0; i < count; ++i, to += target.row_stride, from += piece)
        std::memcpy(to, from, piece);
    }
  }
}

// Any number of columns, any strides.
template <class Value>
void emit_strided(const uint32_t* offsets, Int count, const Digits& digits, const RowTarget& target,
                  char* out) {
  const int columns = target.columns;
  const Int row_stride = target.row_stride;
  uint32_t carry[kBatch], digit[kBatch];
  std::copy(offsets, offsets + count, carry);
  for (int j = columns - 1; j >= 0; --j) {
    char* const column = out + j * target.column_stride;
    const auto base = static_cast<Value>(digits.base[j]);
    const int inside = columns - 1 - j;  // columns further in than this one
    if (inside < digits.divided) {
      const auto low = static_cast<uint32_t>(base);
      const uint32_t size = digits.size[j];
      const float inverse = digits.inverse[j];
      for (Int i = 0; i < count; ++i) {
        const uint32_t y = carry[i] + low, q = quotient(y, inverse);
        digit[i] = y - q * size;
        carry[i] = q;
      }
      for (Int i = 0; i < count; ++i) store(column + i * row_stride, static_cast<Value>(digit[i]));
    } else if (inside == digits.divided) {
      for (Int i = 0; i < count; ++i)
        store(column + i * row_stride, static_cast<Value>(base + carry[i]));
    } else {
      for (Int i = 0; i < count; ++i) store(column + i * row_stride, base);
    }
  }
}

// ---- the rows of a range of chunks --------------------------------------------------------------

template <class Value>
class RowWriter {
 public:
  RowWriter(const RowTarget& target, Int row)
      : target_(target), out_(target.data + row * target.row_stride) {
    const int columns = target.columns;
    digits_.divided = 0;
    for (int j = columns - 1; j >= 0; --j) {
      period_ *= target.sizes[j];
      if (period_ > kChunk) break;
      digits_.size[j] = static_cast<uint32_t>(target.sizes[j]);
      digits_.inverse[j] = 1.0f / static_cast<float>(target.sizes[j]);
      ++digits_.divided;
    }
    if (period_ <= kChunk) period_ = 0;  // every column wraps inside: no boundary matters
    if (target.write_mode == Write::direct || target.write_mode == Write::streamed)
      emit_ = emit_for<Value>(columns, digits_.divided);
  }

  // The elements [begin, end) lie within a chunk, which has this many rows.
  void chunk(const uint64_t* bits, Int begin, Int end, Int rows) {
    const Int elements = end - begin;
    const int max_bits = elements >= kSparse * rows ? 4 : elements >= kMiddling * rows ? 8 : 64;
    while (begin < end) {
      Int stop = end;
      if (period_ != 0) stop = std::min(end, (begin / period_ + 1) * period_);
      base(begin);
      decode_range(bits, begin, stop, max_bits);
      begin = stop;
    }
  }

  void finish() {
    if (target_.write_mode != Write::streamed) return;
    flush();
    stream_fence();
  }

 private:
  void base(Int element) {
    if (element == 0) {  // divisions would slow down a small call
      std::fill_n(digits_.base, target_.columns, 0);
      return;
    }
    for (int j = target_.columns - 1; j >= 0; --j) {
      const Int size = target_.sizes[j];
      const Int next = element / size;
      digits_.base[j] = static_cast<uint64_t>(element - next * size);
      element = next;
    }
  }

  // Elements [begin, stop) in batches; the base is that of begin.
  void decode_range(const uint64_t* bits, Int begin, Int stop, int max_bits) {
    Int word = begin / kWord;
    const Int last = (stop - 1) / kWord;  // the first and last may belong in part only
    uint64_t mask = ~uint64_t{0} << (begin % kWord);
    while (word <= last) {
      uint32_t* out = offsets_;
      while (word <= last && out <= offsets_ + (kBatch - 8 * kWord)) {
        const auto first = static_cast<uint32_t>(word * kWord - begin);
        if (max_bits < 64 && mask == ~uint64_t{0} && word + 8 <= last) {
          out = max_bits == 4 ? decode_sparse<4>(bits + word, first, out)
                              : decode_sparse<8>(bits + word, first, out);
          word += 8;
          continue;
        }
        if (word == last) mask &= ~uint64_t{0} >> (last * kWord + kWord - stop);
        const uint64_t word_bits = bits[word] & mask;
        if (word_bits != 0) out = decode(word_bits, first, out);
        mask = ~uint64_t{0};
        ++word;
      }
      rows(offsets_, out - offsets_);
    }
  }

  void rows(const uint32_t* offsets, Int count) {
    if (target_.write_mode == Write::streamed) {
      const Int row_bytes = target_.row_stride;
      while (count > 0) {
        const Int capacity = (kStage - filled_) / row_bytes;
        const Int chunk = std::min(capacity, count);
        put(offsets, chunk, stage_ + filled_);
        filled_ += chunk * row_bytes;
        offsets += chunk;
        count -= chunk;
        if (filled_ + row_bytes > kStage) flush();
      }
      return;
    }
    put(offsets, count, out_);
    out_ += count * target_.row_stride;
  }

  void put(const uint32_t* offsets, Int count, char* out) {
    if (emit_ != nullptr)
      emit_(offsets, count, digits_, 0, reinterpret_cast<Value*>(out));
    else if (target_.write_mode == Write::strided)
      emit_strided<Value>(offsets, count, digits_, target_, out);
    else
      emit_groups<Value>(offsets, count, digits_, target_, out);
  }

  void flush() {
    stream_copy(out_, stage_, static_cast<std::size_t>(filled_));
    out_ += filled_;
    filled_ = 0;
  }

  const RowTarget& target_;
  char* out_;
  Int period_ = 1;
  Emit<Value> emit_ = nullptr;  // packed rows of up to 4 columns
  Int filled_ = 0;
  Digits digits_;
  uint32_t offsets_[kBatch + kWord];
  alignas(64) char stage_[kStage];
};

template <class Value>
void write_all(const RowTarget& target, const Bitmap& bitmap, Int first, Int last) {
  RowWriter<Value> writer(target, bitmap.rows_before(first));
  for (Int chunk = first; chunk < last; ++chunk) {
    const Int rows = bitmap.rows_before(chunk + 1) - bitmap.rows_before(chunk);
    const Int begin = chunk * kChunk;
    if (rows > 0) writer.chunk(bitmap.bits, begin, std::min(begin + kChunk, bitmap.elements), rows);
  }
  writer.finish();
}

}  // namespace

void write_chunks(const RowTarget& target, const Bitmap& bitmap, Int first, Int last) {
  if (target.element_size == 4)
    write_all<uint32_t>(target, bitmap, first, last);
  else
    write_all<uint64_t>(target, bitmap, first, last);
}

}  // namespace anydml::nonzero

// NONZERO_COORDINATES, first step: one bit an element.
//
// Packed elements go 64 at a time through vector tests into a word. Other layouts are gathered a
// few kilobytes at a time into a stage that stays in the first cache, then packed from there. A
// transposed input would touch a cache line for every element: it is read along its contiguous
// dimension instead, in tiles of 64 rows whose 64 x 64 bit blocks are turned in registers.
// O(elements); no heap.
#include <algorithm>

#include "nonzero/cpu/nonzero.hpp"
#include "runtime/cpu/mask.hpp"

namespace anydml::nonzero {
namespace {

template <int W>
using Element = typename Bits<W>::Unsigned;

struct Wide {
  uint64_t low, high;
};

// ---- 64 packed elements to a word ---------------------------------------------------------------

// One byte an element, all ones if it is not zero: compilers vectorise this.
template <int W>
inline void flag_elements(const char* data, uint64_t mask, unsigned char* flags) {
  if constexpr (W == 16) {
    for (int i = 0; i < 64; ++i) {
      const uint64_t both = load<uint64_t>(data + 16 * i) | load<uint64_t>(data + 16 * i + 8);
      flags[i] = static_cast<unsigned char>(both != 0 ? 0xFF : 0);
    }
  } else {
    const auto own = static_cast<Element<W>>(mask);
    for (int i = 0; i < 64; ++i) {
      const auto bits = static_cast<Element<W>>(load<Element<W>>(data + W * i) & own);
      flags[i] = static_cast<unsigned char>(bits != 0 ? 0xFF : 0);
    }
  }
}

inline uint64_t flags_to_word(const unsigned char* flags) {
  uint64_t word = 0;
#if defined(__SSE2__)
  for (int i = 0; i < 4; ++i) {
    const __m128i loaded = _mm_load_si128(reinterpret_cast<const __m128i*>(flags) + i);
    word |= static_cast<uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(loaded))) << (16 * i);
  }
#else
  for (int i = 0; i < 8; ++i) {
    // Bit 0 of each of eight bytes to the top byte, in order; endian-safe by building the lanes.
    uint64_t lanes = 0;
    for (int j = 0; j < 8; ++j) lanes |= static_cast<uint64_t>(flags[8 * i + j] & 1u) << (8 * j);
    word |= (lanes * 0x0102040810204080ull >> 56) << (8 * i);
  }
#endif
  return word;
}

template <int W>
inline uint64_t word_portable(const char* data, uint64_t mask) {
  alignas(64) unsigned char flags[64];
  flag_elements<W>(data, mask, flags);
  return flags_to_word(flags);
}

#if defined(ANYDML_MASK_BITS)

template <int W>
struct Packer {
  __m512i mask;
  explicit Packer(uint64_t bits)
      : mask(W == 2   ? _mm512_set1_epi16(static_cast<short>(bits))
             : W == 4 ? _mm512_set1_epi32(static_cast<int>(bits))
                      : _mm512_set1_epi64(static_cast<long long>(bits))) {}

  uint64_t word(const char* data) const {
    if constexpr (W == 16) return word_portable<16>(data, ~uint64_t{0});
    uint64_t result = 0;
    for (int i = 0; i < W; ++i) {
      const __m512i loaded = _mm512_loadu_si512(data + 64 * i);
      uint64_t bits;
      if constexpr (W == 1)
        bits = mask_bits(_mm512_test_epi8_mask(loaded, mask));
      else if constexpr (W == 2)
        bits = mask_bits(_mm512_test_epi16_mask(loaded, mask));
      else if constexpr (W == 4)
        bits = mask_bits(_mm512_test_epi32_mask(loaded, mask));
      else
        bits = mask_bits(_mm512_test_epi64_mask(loaded, mask));
      result |= bits << (64 / W * i);
    }
    return result;
  }
};

#elif defined(__AVX2__)

template <int W>
struct Packer {
  uint64_t bits;
  explicit Packer(uint64_t mask) : bits(mask) {}

  // All ones where the masked element is zero.
  __m256i zeros(const char* data) const {
    const __m256i loaded = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data));
    const __m256i none = _mm256_setzero_si256();
    if constexpr (W == 1) return _mm256_cmpeq_epi8(loaded, none);
    if constexpr (W == 2)
      return _mm256_cmpeq_epi16(
          _mm256_and_si256(loaded, _mm256_set1_epi16(static_cast<short>(bits))), none);
    if constexpr (W == 4)
      return _mm256_cmpeq_epi32(_mm256_and_si256(loaded, _mm256_set1_epi32(static_cast<int>(bits))),
                                none);
    return _mm256_cmpeq_epi64(
        _mm256_and_si256(loaded, _mm256_set1_epi64x(static_cast<long long>(bits))), none);
  }

  uint64_t word(const char* data) const {
    if constexpr (W == 16) return word_portable<16>(data, bits);
    uint64_t result = 0;
    if constexpr (W == 8) {
      for (int i = 0; i < 16; ++i) {
        const int four = _mm256_movemask_pd(_mm256_castsi256_pd(zeros(data + 32 * i)));
        result |= static_cast<uint64_t>(static_cast<unsigned>(four)) << (4 * i);
      }
      return ~result;
    }
    for (int i = 0; i < 2; ++i) {  // 32 elements each; packs works within halves, so reorder
      const char* const from = data + 32 * W * i;
      __m256i bytes;
      if constexpr (W == 1)
        bytes = zeros(from);
      else if constexpr (W == 2)
        bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(zeros(from), zeros(from + 32)), 0xD8);
      else
        bytes = _mm256_permutevar8x32_epi32(
            _mm256_packs_epi16(_mm256_packs_epi32(zeros(from), zeros(from + 32)),
                               _mm256_packs_epi32(zeros(from + 64), zeros(from + 96))),
            _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
      result |= static_cast<uint64_t>(static_cast<unsigned>(_mm256_movemask_epi8(bytes)))
                << (32 * i);
    }
    return ~result;
  }
};

#else

template <int W>
struct Packer {
  uint64_t bits;
  explicit Packer(uint64_t mask) : bits(mask) {}
  uint64_t word(const char* data) const { return word_portable<W>(data, bits); }
};

#endif

// Fewer than 64 elements.
template <int W>
inline uint64_t partial_word(const Packer<W>& packer, const char* data, Int count) {
  alignas(64) char stage[64 * W] = {};
  std::memcpy(stage, data, static_cast<std::size_t>(count * W));
  return packer.word(stage);
}

template <int W>
void pack(const Packer<W>& packer, const char* data, Int count, uint64_t* words) {
  const Int full = count / kWord;
  for (Int i = 0; i < full; ++i) words[i] = packer.word(data + i * (kWord * W));
  const Int rest = count - full * kWord;
  if (rest > 0) words[full] = partial_word(packer, data + full * (kWord * W), rest);
}

// ---- any layout through a stage -----------------------------------------------------------------

template <int W>
inline void copy_one(char* target, const char* source) {
  if constexpr (W == 16)
    store(target, load<Wide>(source));
  else
    store(target, load<Element<W>>(source));
}

// Row-major elements of a collapsed layout, any number at a time.
template <int W>
class Gatherer {
 public:
  Gatherer(const Layout& layout, const char* data)
      : data_(data),
        width_(from_end(layout.sizes, layout.rank, 1, 1)),
        stride_(from_end(layout.strides, layout.rank, 1, 0)),
        height_(from_end(layout.sizes, layout.rank, 2, 1)),
        pitch_(from_end(layout.strides, layout.rank, 2, 0)),
        outer_({&layout}, std::max(layout.rank - 2, 0)) {}

  void start(Int flat) {
    const Int row = flat / width_;
    column_ = flat - row * width_;
    outer_.start(row / height_);
    row_ = row % height_;
  }

  void take(Int count, char* target) {
    while (count > 0) {
      const char* const from = data_ + outer_.offset[0] + row_ * pitch_;
      Int rows = 0;
      if (column_ == 0 && count >= width_) {
        rows = std::min(height_ - row_, count / width_);
        copy_rows(target, from, rows);
        target += rows * width_ * W;
        count -= rows * width_;
      } else {
        const Int chunk = std::min(width_ - column_, count);
        copy_row(target, from + column_ * stride_, chunk);
        target += chunk * W;
        count -= chunk;
        column_ += chunk;
        if (column_ < width_) continue;
        column_ = 0;
        rows = 1;
      }
      row_ += rows;
      if (row_ == height_) {
        row_ = 0;
        outer_.next();
      }
    }
  }

 private:
  // The value at this distance from the end, or `otherwise` if there are fewer.
  static Int from_end(const Int* values, int rank, int place, Int otherwise) {
    return place <= rank ? values[rank - place] : otherwise;
  }

  void copy_row(char* target, const char* from, Int count) const {
    if (stride_ == W) {
      std::memcpy(target, from, static_cast<std::size_t>(count * W));
      return;
    }
    for (Int i = 0; i < count; ++i) copy_one<W>(target + i * W, from + i * stride_);
  }

  void copy_rows(char* target, const char* from, Int rows) const {
    if (width_ >= 16) {
      for (Int r = 0; r < rows; ++r) copy_row(target + r * width_ * W, from + r * pitch_, width_);
      return;
    }
    for (Int r = 0; r < rows; ++r)  // short rows: avoids a call for each
      for (Int i = 0; i < width_; ++i, target += W)
        copy_one<W>(target, from + r * pitch_ + i * stride_);
  }

  const char* data_;
  Int width_, stride_, height_, pitch_;
  Walker<1> outer_;
  Int row_ = 0, column_ = 0;
};

template <int W>
void gather(const Source& source, Int begin, Int end, uint64_t* words) {
  constexpr Int capacity = 8192 / W;
  alignas(64) char stage[8192];
  const Packer<W> packer(source.mask);
  Gatherer<W> elements(source.layout, source.data);
  elements.start(begin);
  for (; begin < end; begin += capacity, words += capacity / kWord) {
    const Int count = std::min(capacity, end - begin);
    elements.take(count, stage);
    pack(packer, stage, count, words);
  }
}

// ---- transposed inputs --------------------------------------------------------------------------

// Bit c of word r to bit r of word c: halves, quarters, .. change places.
inline void transpose_bits(uint64_t* words) {
  uint64_t mask = 0x00000000FFFFFFFFull;
  for (int distance = 32; distance > 0; distance >>= 1, mask ^= mask << distance) {
    for (int base = 0; base < 64; base += 2 * distance) {
      for (int i = base; i < base + distance; ++i) {
        const uint64_t swapped = ((words[i] >> distance) ^ words[i + distance]) & mask;
        words[i] ^= swapped << distance;
        words[i + distance] ^= swapped;
      }
    }
  }
}

template <int W>
void transpose(const Source& source, const Tiling& tiling, Int first_tile, Int last_tile,
               uint64_t* words) {
  const Layout& layout = source.layout;
  const Layout outer = layout.slice(0, tiling.dimension);
  const Layout inner = layout.slice(tiling.dimension + 1, layout.rank);
  const Int size = layout.sizes[tiling.dimension], length = tiling.row_length;
  const Packer<W> packer(source.mask);
  Walker<1> columns({&inner}, inner.rank);
  for (Int tile = first_tile; tile < last_tile; ++tile) {
    const Int first_row = tile * kWord, rows = std::min(kWord, tiling.rows - first_row);
    const Int bits = rows * length;
    std::fill(words + tile * length, words + tile * length + (bits + kWord - 1) / kWord, 0);
    columns.start(0);
    for (Int column = 0; column < length; column += kWord) {
      const Int width = std::min(kWord, length - column);
      uint64_t block[64] = {};
      Int offsets[64];
      for (Int c = 0; c < width; ++c, columns.next()) offsets[c] = columns.offset[0];
      // The tile's rows may end one outer element and begin the next ones.
      for (Int r = 0; r < rows;) {
        const Int row = first_row + r, at = row % size, chunk = std::min(size - at, rows - r);
        const char* const from = source.data + offset_at(outer, row / size) + at * W;
        if (chunk == kWord) {
          for (Int c = 0; c < width; ++c) block[c] = packer.word(from + offsets[c]);
        } else {
          for (Int c = 0; c < width; ++c)
            block[c] |= partial_word(packer, from + offsets[c], chunk) << r;
        }
        r += chunk;
      }
      transpose_bits(block);
      for (Int r = 0; r < rows; ++r) {
        const Int bit = (first_row + r) * length + column;
        uint64_t* const word = words + bit / kWord;
        const int shift = static_cast<int>(bit % kWord);
        word[0] |= block[r] << shift;
        if (shift + width > kWord) word[1] |= block[r] >> (kWord - shift);
      }
    }
  }
}

}  // namespace

#define ANYDML_BY_SIZE(call)     \
  switch (source.element_size) { \
    case 1: {                    \
      constexpr int W = 1;       \
      call;                      \
      break;                     \
    }                            \
    case 2: {                    \
      constexpr int W = 2;       \
      call;                      \
      break;                     \
    }                            \
    case 4: {                    \
      constexpr int W = 4;       \
      call;                      \
      break;                     \
    }                            \
    case 8: {                    \
      constexpr int W = 8;       \
      call;                      \
      break;                     \
    }                            \
    default: {                   \
      constexpr int W = 16;      \
      call;                      \
    }                            \
  }

void fill_packed(const Source& source, Int begin, Int end, uint64_t* words) {
  ANYDML_BY_SIZE(pack(Packer<W>(source.mask), source.data + begin * W, end - begin, words))
}

void fill_gathered(const Source& source, Int begin, Int end, uint64_t* words) {
  ANYDML_BY_SIZE(gather<W>(source, begin, end, words))
}

void fill_transposed(const Source& source, const Tiling& tiling, Int first_tile, Int last_tile,
                     uint64_t* words){
    ANYDML_BY_SIZE(transpose<W>(source, tiling, first_tile, last_tile, words))}
#undef ANYDML_BY_SIZE

Tiling transposed_tiling(const Source& source, bool force) {
  const Layout& layout = source.layout;
  const Int min_rows = force ? 2 : 32, min_length = force ? 2 : 16;
  Tiling tiling;
  tiling.row_length = layout.rank > 0 ? layout.sizes[layout.rank - 1] : 1;
  for (int i = layout.rank - 2; i >= 0; --i) {
    if (layout.strides[i] == source.element_size && layout.sizes[i] >= min_rows &&
        tiling.row_length >= min_length) {
      tiling.dimension = i;
      tiling.rows = 1;
      for (int j = 0; j <= i; ++j) tiling.rows *= layout.sizes[j];
      return tiling;
    }
    tiling.row_length *= layout.sizes[i];
  }
  return tiling;
}

}  // namespace anydml::nonzero

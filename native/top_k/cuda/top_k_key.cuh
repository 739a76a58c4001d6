// Keys of TOP_K: unsigned, the wanted order ascending. ANYDML_width and ANYDML_is_float give the
// type of the elements: 0 an integer, 1 the float of that width, 2 bfloat16.
#pragma once

#include "runtime/cuda/order.cuh"
#include "common/order.hpp"
#include "top_k/cuda/top_k_arguments.cuh"

namespace anydml::top_k {

constexpr int W = ANYDML_width;
constexpr bool kFloat = ANYDML_is_float != 0;
constexpr bool kBfloat = ANYDML_is_float == 2;
constexpr int kVector = 16 / W;  // elements of 16 bytes

template <bool Float>
struct OrderOf {
  using Type = IntegerOrder<W>;
};
#if ANYDML_is_float != 0  // one-byte floats do not exist
template <>
struct OrderOf<true> {
#if ANYDML_is_float == 2
  using Type = FloatOrder<W, kBfloatInfinity>;
#else
  using Type = FloatOrder<W>;
#endif
};
#endif
using Order = OrderOf<kFloat>::Type;

template <int Width>
struct KeyOf {
  using Type = unsigned;
};
template <>
struct KeyOf<8> {
  using Type = unsigned long long;
};
using Raw = Bits<W>::Unsigned;
using Signed = Bits<W>::Signed;
using Key = KeyOf<W>::Type;  // of its low W bytes
constexpr int kKeyBits = 8 * W;
constexpr Raw kSign = static_cast<Raw>(Raw(1) << (8 * W - 1));
constexpr Raw kMaxRaw = static_cast<Raw>(~Raw(0));

using Flip = Order::Flip;

__device__ inline Key make_key(Raw bits, const Flip& flip) {
  return static_cast<Raw>(static_cast<Raw>(Order::key(bits, flip)) ^ kSign);
}
__device__ inline Key key_of(Raw bits, Raw flip) { return make_key(bits, flip); }

__device__ inline Flip flip_of(const Rows& rows) {
#if ANYDML_is_float != 0
  return {static_cast<Raw>(rows.flip), rows.nan_last};
#else
  return static_cast<Raw>(rows.flip);
#endif
}

// The bits that have this key; of several (zeros, NaN, which may have the key 0) none, and false.
__device__ inline bool bits_of(Key key, Raw flip, Raw* bits) {
  const Raw ordered = static_cast<Raw>(static_cast<Raw>(key) ^ kSign ^ flip);
  if constexpr (!kFloat) {
    *bits = ordered;
    return true;
  } else {
    *bits = ordered & kSign ? static_cast<Raw>(kSign | static_cast<Raw>(~ordered + 1)) : ordered;
    return static_cast<Raw>(ordered & ~kSign) != 0 && ordered != static_cast<Raw>(~kSign);
  }
}

// An element of 16 bytes.
template <int Width>
__device__ inline Raw element(const uint4& x, int i) {
  if constexpr (Width == 8) {
    const unsigned low = i == 0 ? x.x : x.z, high = i == 0 ? x.y : x.w;
    return static_cast<Raw>(low | static_cast<unsigned long long>(high) << 32);
  } else {
    constexpr int kElementsPerWord = 4 / Width;
    const int word = i / kElementsPerWord;
    const unsigned bits = word == 0 ? x.x : word == 1 ? x.y : word == 2 ? x.z : x.w;
    return static_cast<Raw>(bits >> (8 * Width * (i % kElementsPerWord)));
  }
}

// A candidate: key, and complement of the place in its row, so that the greater item goes first.
template <int Width>
struct Items {
  using Type = unsigned long long;
  static __device__ Type make(unsigned key, unsigned back) {
    return static_cast<unsigned long long>(key) << 32 | back;
  }
  static __device__ unsigned key(Type item) { return static_cast<unsigned>(item >> 32); }
  static __device__ unsigned back(Type item) { return static_cast<unsigned>(item); }
  static __device__ bool above(Type a, Type b) { return a > b; }
  static __device__ Type from_lane(Type item, int distance) {
    return __shfl_xor_sync(0xFFFFFFFFu, item, distance);
  }
};
template <>
struct Items<8> {
  struct alignas(16) Type {
    unsigned long long item_key;
    unsigned item_back;
  };
  static __device__ Type make(unsigned long long key, unsigned back) { return {key, back}; }
  static __device__ unsigned long long key(const Type& item) { return item.item_key; }
  static __device__ unsigned back(const Type& item) { return item.item_back; }
  static __device__ bool above(const Type& a, const Type& b) {
    return a.item_key > b.item_key || (a.item_key == b.item_key && a.item_back > b.item_back);
  }
  static __device__ Type from_lane(const Type& item, int distance) {
    return {__shfl_xor_sync(0xFFFFFFFFu, item.item_key, distance),
            __shfl_xor_sync(0xFFFFFFFFu, item.item_back, distance)};
  }
};
using Candidate = Items<W>;
using Item = Candidate::Type;

// Where a row begins: bytes from each tensor's first element; and how many keys it has.
struct RowOffsets {
  long long input, values, indices, length;
};

__device__ inline long long length_of(const Rows& rows, long long row) {
  if (rows.lengths == nullptr) return rows.n;
  const char* const at = static_cast<const char*>(rows.lengths) + row * rows.length_stride;
  long long length = rows.wide_lengths       ? *reinterpret_cast<const long long*>(at)
                     : rows.unsigned_lengths ? *reinterpret_cast<const unsigned*>(at)
                                             : *reinterpret_cast<const int*>(at);
  if (length < 0) length = rows.unsigned_lengths ? rows.n : 0;
  return length < rows.n ? length : rows.n;
}

__device__ __noinline__ RowOffsets general_offsets(const Rows& rows, long long row) {
  RowOffsets at{0, 0, 0, length_of(rows, row)};
#pragma unroll 1
  for (int i = rows.rank - 1; i >= 0; --i) {
    const long long next = row / rows.sizes[i], position = row - next * rows.sizes[i];
    at.input += position * rows.input_strides[i];
    at.values += position * rows.value_strides[i];
    at.indices += position * rows.index_strides[i];
    row = next;
  }
  return at;
}

__device__ inline RowOffsets offsets_of(const Rows& rows, long long row) {
  if (rows.rank > 1) return general_offsets(rows, row);
  return {row * rows.input_strides[0], row * rows.value_strides[0], row * rows.index_strides[0],
          length_of(rows, row)};
}

// The row's keys, or elements that become keys.
__device__ inline const Raw* keys_of(const Rows& rows, long long row, const RowOffsets& at) {
  const char* const first =
      rows.source != nullptr ? rows.source + row * rows.n * W : rows.input + at.input;
  return reinterpret_cast<const Raw*>(first);
}

__device__ inline long long place_of(const Rows& rows, long long row, long long position) {
  if (rows.places == nullptr) return position;
  const long long at = row * rows.n + position;
  return rows.wide_places ? static_cast<const long long*>(rows.places)[at]
                          : static_cast<const unsigned*>(rows.places)[at];
}

// Writes result r of a row: the element with this key, at this place on the axis. If the row has
// fewer elements, writes `fill` and -1. Reads the element again if its bits do not follow from the
// key, and in results by position, where the position has replaced the key.
__device__ inline void write_result(const Rows& rows, const RowOffsets& at, long long r, Key key,
                                    long long place, Raw flip) {
  Raw bits;
  if (r >= at.length)
    bits = static_cast<Raw>(rows.fill), place = -1;
  else if (rows.source != nullptr || !rows.sorted || !bits_of(key, flip, &bits))
    bits = *reinterpret_cast<const Raw*>(rows.input + at.input + place * rows.stride);
  *reinterpret_cast<Raw*>(rows.values + at.values + r * rows.value_stride) = bits;
  char* const index = rows.indices + at.indices + r * rows.index_stride;
  if (rows.wide_indices)
    *reinterpret_cast<long long*>(index) = place;
  else
    *reinterpret_cast<unsigned*>(index) = static_cast<unsigned>(place);
}

}  // namespace anydml::top_k

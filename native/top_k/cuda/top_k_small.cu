// TOP_K of rows of up to 128 elements, in registers of one warp or a part of one.
#include "top_k/cuda/top_k_key.cuh"

namespace anydml::top_k {
namespace {

constexpr unsigned kAll = 0xFFFFFFFFu;
constexpr long long kNoIndex = 1ll << 62;

__device__ inline Key from_lane(Key value, int lane, int width) {
  return __shfl_sync(kAll, value, lane, width);
}

// How many of some lanes have a lower index.
__device__ inline int rank_of(long long index, int count, int width) {
  int rank = 0;
  for (int other = 0; other < count; ++other)
    rank += __shfl_sync(kAll, index, other, width) < index ? 1 : 0;
  return rank;
}

// The greatest key of the warp, and the lanes that have it.
template <class Any>
__device__ inline Any greatest(Any key, bool is_valid, unsigned* lanes) {
  if constexpr (sizeof(Any) == 4) {
    const unsigned largest = __reduce_max_sync(kAll, is_valid ? key : 0u);
    *lanes = __ballot_sync(kAll, is_valid && key == largest);
    return largest;
  } else {
    const unsigned high = static_cast<unsigned>(key >> 32), low = static_cast<unsigned>(key);
    const unsigned largest = __reduce_max_sync(kAll, is_valid ? high : 0u);
    const bool among = is_valid && high == largest;
    const unsigned rest = __reduce_max_sync(kAll, among ? low : 0u);
    *lanes = __ballot_sync(kAll, among && low == rest);
    return static_cast<Any>(largest) << 32 | rest;
  }
}

// Whether a key cannot mark a missing element.
constexpr bool kMarked = !kFloat && W >= 4;

// Four neighbouring elements, read at once where the rows allow it.
struct alignas(W == 8 ? 16 : 4 * W) Four {
  Raw bits[4];
};

}  // namespace
}  // namespace anydml::top_k

using namespace anydml::top_k;

// Up to 32 elements: the rank of each, by counting. `lanes` of a row is a power of two.
extern "C" __global__ void top_k_ranks(const __grid_constant__ Rows rows, int lanes) {
  const Raw flip = static_cast<Raw>(rows.flip);
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x / lanes;
  const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int i = static_cast<int>(threadIdx.x) & (lanes - 1), n = static_cast<int>(rows.n);
  const long long in_warp = (threadIdx.x & 31) / lanes;
  // All lanes of a warp go on as long as one has a row.
  for (long long row = thread / lanes; row - in_warp < rows.rows; row += step) {
    const RowOffsets at = offsets_of(rows, row < rows.rows ? row : 0);
    const bool is_valid = i < at.length && row < rows.rows;
    Key key = 0;
    if (is_valid) key = key_of(keys_of(rows, row, at)[i], flip);
    int rank = 0;
    for (int other = 0; other < n; ++other) {
      const Key its = from_lane(key, other, lanes);
      rank += its > key || (its == key && other < i) ? 1 : 0;
    }
    const bool taken = is_valid && rank < rows.k;
    const long long index = taken ? place_of(rows, row, i) : kNoIndex;
    if (!rows.sorted) rank = rank_of(index, lanes, lanes);
    if (taken) write_result(rows, at, rank, key, index, flip);
    if (!is_valid && row < rows.rows && i < rows.k) write_result(rows, at, i, 0, 0, flip);
  }
}

// Up to 128 elements and k of up to 32: every lane orders four, and the best of the lanes' first
// ones is taken k times.
extern "C" __global__ void __launch_bounds__(256, 8)
    top_k_rounds(const __grid_constant__ Rows rows, int fours) {
  const Raw flip = static_cast<Raw>(rows.flip);
  // For the smallest floats NaN has the key 0, for the largest no value does; narrow keys have a
  // spare bit.
  Key shift = W < 4 || (kFloat && flip != 0) ? 1 : 0;
#if ANYDML_width == 4
  asm("" : "+r"(shift));  // made once, not for every key
#endif
  const int lane = static_cast<int>(threadIdx.x & 31);
  const long long warps = static_cast<long long>(gridDim.x) * (blockDim.x / 32);
  for (long long row = static_cast<long long>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
       row < rows.rows; row += warps) {
    const RowOffsets at = offsets_of(rows, row);
    const Raw* const first = keys_of(rows, row, at);
    const int n = static_cast<int>(at.length), k = n < rows.k ? n : static_cast<int>(rows.k);
    Four read{};
    int left = n - 4 * lane;
    left = left < 0 ? 0 : left > 4 ? 4 : left;
    if (fours != 0) {
      if (left > 0) read = reinterpret_cast<const Four*>(first)[lane];
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (i < left) read.bits[i] = first[4 * lane + i];
    }
    // Keys above zero, which marks a missing element: only integers may need the key that is left
    // out.
    Key key[4];
    unsigned subs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) key[i] = i < left ? key_of(read.bits[i], flip) + shift : Key(0);
#pragma unroll
    for (int i = 0; i < 4; ++i) subs[i] = static_cast<unsigned>(i);
    // Neighbours change places only where the later one is greater, so that equals stay in order,
    // and what is not there stays last: its key is the least.
#pragma unroll
    for (int round = 0; round < 4; ++round) {
#pragma unroll
      for (int i = round & 1; i < 3; i += 2) {
        const bool swap = key[i + 1] > key[i];
        const Key greater = swap ? key[i + 1] : key[i], less = swap ? key[i] : key[i + 1];
        const unsigned before = swap ? subs[i + 1] : subs[i], behind = swap ? subs[i] : subs[i + 1];
        key[i] = greater, key[i + 1] = less, subs[i] = before, subs[i + 1] = behind;
      }
    }
    // Places, the first of them in the lowest byte.
    unsigned places = (subs[0] | subs[1] << 8 | subs[2] << 16 | subs[3] << 24) +
                      static_cast<unsigned>(4 * lane) * 0x01010101u;
    Key mine = 0;
    unsigned place = 0;
    for (int r = 0; r < k; ++r) {
      unsigned with = 0;
      const Key largest = greatest(key[0], !kMarked || left > 0, &with);
      const int winner = __ffs(static_cast<int>(with)) - 1;  // k <= n: there is one
      const unsigned its = __shfl_sync(kAll, places, winner);
      if (lane == r) mine = largest, place = its & 255;
      if (lane == winner) {
        key[0] = key[1], key[1] = key[2], key[2] = key[3], key[3] = 0;
        places >>= 8;
        --left;
      }
    }
    mine -= shift;
    const long long index = lane < k ? place_of(rows, row, place) : kNoIndex;
    int rank = lane;
    if (!rows.sorted && k > 0) rank = rank_of(index, 32, 32);
    if (lane >= k) rank = lane;
    if (lane < rows.k) write_result(rows, at, rank, mine, index, flip);
  }
}

// The order of a list of items in shared memory: they are spread over bins of equal width by their
// distance from the greatest one, and each is ranked among those of its bin. A crowded bin is
// spread in the same way, by the next bits of the distance.
#pragma once

#include "top_k/cuda/top_k_team.cuh"

namespace anydml::top_k {
namespace {

constexpr int kMaxListed = max_listed(ANYDML_team),
              kListed = kMaxListed / kThreads;  // items of a thread
constexpr unsigned kRanked = 128;               // of a bin, ranked by comparing all
constexpr int kOrderBits = order_bits(ANYDML_team), kOrderBins = 1 << kOrderBits;

// The shared memory of a block: the list, bins, and positions in the list.
extern __shared__ __align__(16) unsigned char shared_bytes[];
__device__ inline Item* list() { return reinterpret_cast<Item*>(shared_bytes); }

// Items of the list that share a bin; by which bits of their distance they are spread.
struct Segment {
  unsigned begin, end;
  int shift;  // below 0: by the place alone
};
__shared__ Segment segments[kMaxListed / kRanked + 1];
__shared__ unsigned segment_count;
__shared__ Key greatest_of_warp[kWarps];

// No key of the warp is above it.
__device__ inline unsigned above_all(unsigned key) { return __reduce_max_sync(kAll, key); }
__device__ inline unsigned long long above_all(unsigned long long key) {
  const unsigned high = __reduce_max_sync(kAll, static_cast<unsigned>(key >> 32));
  return static_cast<unsigned long long>(high) << 32 | 0xFFFFFFFFu;
}
// The same of the block.
__device__ inline Key above_all_keys(Key own) {
  own = above_all(own);
  if (lane_of() == 0) greatest_of_warp[threadIdx.x / 32] = own;
  __syncthreads();
  return above_all(greatest_of_warp[lane_of() % kWarps]);
}

// The bin of an item in a segment. Distances of keys are followed by those of places, if both fit
// 64 bits; places are below 2^place_bits.
struct Spread {
  Key greatest;
  int shift, place_bits;
  unsigned place_mask;
  bool fits;

  __device__ unsigned bin(const Item& item) const {
    const Key key = greatest - Candidate::key(item);
    const unsigned place = place_mask - (Candidate::back(item) & place_mask);
    if (shift < 0) return place >> (-1 - shift) & (kOrderBins - 1);
    if (!fits) return static_cast<unsigned>(key >> shift) & (kOrderBins - 1);
    if (shift >= place_bits)
      return static_cast<unsigned>(key >> (shift - place_bits)) & (kOrderBins - 1);
    return (static_cast<unsigned>(key) << (place_bits - shift) | place >> shift) & (kOrderBins - 1);
  }
};

// Finds where the k greatest of the first m items of the list are, from the greatest on; items move
// within the list. No key is below `least`, and places are below n. Not inlined, to keep its values
// out of the registers of the caller.
__device__ __noinline__ void put_in_order(unsigned m, unsigned k, Key least, unsigned n,
                                          unsigned* bins, unsigned short* order) {
  constexpr int kBinLines = kOrderBins / kThreads / 4;
  uint4* const lines = reinterpret_cast<uint4*>(bins) + threadIdx.x * kBinLines;
  Key own_greatest = least;
  for (unsigned i = threadIdx.x; i < m; i += kThreads) {
    const Key key = Candidate::key(list()[i]);
    own_greatest = key > own_greatest ? key : own_greatest;
  }
  Spread spread;
  spread.greatest = above_all_keys(own_greatest);
  spread.place_bits = 32 - __clz(static_cast<int>(n - 1));
  spread.place_mask = spread.place_bits == 32 ? ~0u : (1u << spread.place_bits) - 1;
  const Key range = spread.greatest - least;
  const int key_bits = 64 - __clzll(static_cast<long long>(range));
  spread.fits = key_bits + spread.place_bits <= 64;
  const int bits = spread.fits ? key_bits + spread.place_bits : key_bits;
  if (threadIdx.x == 0) {
    segment_count = 1;
    segments[0] = {0, m, bits > kOrderBits ? bits - kOrderBits : 0};
  }
  while (true) {
    __syncthreads();
    const unsigned number = segment_count - 1;
    if (number == ~0u) return;
    const unsigned begin = segments[number].begin, size = segments[number].end - begin;
    spread.shift = segments[number].shift;
    Item* const items = list() + begin;
#pragma unroll
    for (int i = 0; i < kBinLines; ++i) lines[i] = {0, 0, 0, 0};
    __syncthreads();
    if (threadIdx.x == 0) segment_count = number;
    Item own[kListed];
#pragma unroll
    for (int j = 0; j < kListed; ++j)
      if (threadIdx.x + j * kThreads < size) {
        own[j] = items[threadIdx.x + j * kThreads];
        atomicAdd(&bins[spread.bin(own[j])], 1u);
      }
    __syncthreads();
    unsigned has[4 * kBinLines], sum = 0;
#pragma unroll
    for (int i = 0; i < kBinLines; ++i) {
      const uint4 line = lines[i];
      has[4 * i] = line.x, has[4 * i + 1] = line.y, has[4 * i + 2] = line.z,
              has[4 * i + 3] = line.w;
      sum += line.x + line.y + line.z + line.w;
    }
    unsigned before = sum_before(sum);
    // Of one place there is one item.
    const bool is_last = spread.shift == -1 || (spread.shift == 0 && spread.fits);
#pragma unroll
    for (int i = 0; i < 4 * kBinLines; ++i) {
      if (has[i] > kRanked && !is_last && begin + before < k) {
        int next = spread.shift - kOrderBits;
        if (spread.shift == 0)  // all items of the bin have one key
          next = spread.place_bits > kOrderBits ? kOrderBits - spread.place_bits - 1 : -1;
        else if (spread.shift > 0)
          next = next < 0 ? 0 : next;
        else
          next = spread.shift + kOrderBits < -1 ? spread.shift + kOrderBits : -1;
        segments[atomicAdd(&segment_count, 1u)] = {begin + before, begin + before + has[i], next};
      }
      before += has[i];
      has[i] = before - has[i];
    }
#pragma unroll
    for (int i = 0; i < kBinLines; ++i)
      lines[i] = {has[4 * i], has[4 * i + 1], has[4 * i + 2], has[4 * i + 3]};
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kListed; ++j)
      if (threadIdx.x + j * kThreads < size)
        items[atomicAdd(&bins[spread.bin(own[j])], 1u)] = own[j];
    __syncthreads();
    // Each bin ends where the next one began.
    for (unsigned i = threadIdx.x; i < size; i += kThreads) {
      const Item item = items[i];
      const unsigned bin = spread.bin(item), from = bin == 0 ? 0 : bins[bin - 1], to = bins[bin];
      if (begin + from >= k || (to - from > kRanked && !is_last)) continue;
      unsigned rank = begin + from;
      for (unsigned other = from; other < to; ++other)
        rank += Candidate::above(items[other], item) ? 1 : 0;
      if (rank < k) order[rank] = static_cast<unsigned short>(begin + i);
    }
  }
}

}  // namespace
}  // namespace anydml::top_k

// What a block does with candidates: find a bound by counting, cut to k, put in order.
#pragma once

#include "top_k_key.cuh"

namespace anydml::top_k {

constexpr int kThreads = ANYDML_threads;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kAll = 0xFFFFFFFFu;

// Longest list that is ranked by counting; longer ones are sorted.
constexpr int kMostRanked = kThreads < 256 ? kThreads : 256;

struct BlockState {
  int slots[2][32];
  int count;  // candidates found, those that found no room included
  int ranks[kMostRanked];
  unsigned histogram[256];  // of digits, or what else is needed
  unsigned chosen[2];
};

__device__ inline int lane_of() { return static_cast<int>(threadIdx.x & 31); }

// The sum over the block, in every thread; `turn` alternates from call to call.
__device__ inline int block_sum(int value, BlockState& state, int& turn) {
  value = __reduce_add_sync(kAll, value);
  if constexpr (kWarps == 1) return value;
  turn ^= 1;
  int* const slots = state.slots[turn];
  if (lane_of() == 0) slots[threadIdx.x / 32] = value;
  __syncthreads();
  return __reduce_add_sync(kAll, lane_of() < kWarps ? slots[lane_of()] : 0);
}

// Every bit that a thread of the block has set.
__device__ inline unsigned block_or(unsigned value, BlockState& state, int& turn) {
  value = __reduce_or_sync(kAll, value);
  if constexpr (kWarps == 1) return value;
  turn ^= 1;
  int* const slots = state.slots[turn];
  if (lane_of() == 0) slots[threadIdx.x / 32] = static_cast<int>(value);
  __syncthreads();
  const int all = lane_of() < kWarps ? slots[lane_of()] : 0;
  return __reduce_or_sync(kAll, static_cast<unsigned>(all));
}

// The highest bit that a thread of the block has set, -1 without one.
__device__ inline int block_top(unsigned value, BlockState& state, int& turn) {
  return 31 - __clz(static_cast<int>(block_or(value, state, turn)));
}
__device__ inline int block_top(unsigned long long value, BlockState& state, int& turn) {
  const int high = block_top(static_cast<unsigned>(value >> 32), state, turn);
  const int low = block_top(static_cast<unsigned>(value), state, turn);
  return high >= 0 ? high + 32 : low;
}

// Bits that tell the places below n apart.
__device__ inline int place_bits(unsigned n) { return 32 - __clz(static_cast<int>(n)); }

// An item that at least `low` of all threads' items reach, and at most `high` where places allow
// it, which they do when high >= low and the places differ. There are `low` items of places below
// n; what is no item is 0. The bits of the keys above `top` are those of `known`.
template <int Count>
__device__ Item bound_of(const Item (&own)[Count], int low, int high, Key known, int top,
                         unsigned n, BlockState& state, int& turn) {
  const auto reached = [&](const auto& reaches) {
    if constexpr (Count == 1) {
      return __syncthreads_count(reaches(own[0]));
    } else {
      int count = 0;
#pragma unroll
      for (int i = 0; i < Count; ++i) count += reaches(own[i]) ? 1 : 0;
      return block_sum(count, state, turn);
    }
  };
  Key key = known;
  for (int bit = top; bit >= 0; --bit) {
    const Key next = key | Key(1) << bit;
    const int count = reached([&](const Item& item) { return Candidate::key(item) >= next; });
    if (count < low) continue;
    key = next;
    if (count <= high) return Candidate::make(key, 0);
  }
  // Too many equals: the first of them.
  const int bits = place_bits(n);
  unsigned back = bits >= 32 ? 0 : ~0u << bits;
  for (int bit = bits - 1; bit >= 0; --bit) {
    const unsigned next = back | 1u << bit;
    const Item least = Candidate::make(key, next);
    const int count = reached([&](const Item& item) { return !Candidate::above(least, item); });
    if (count < low) continue;
    back = next;
    if (count <= high) break;
  }
  return Candidate::make(key, back);
}

// A slot in the list for each thread that is here.
__device__ inline unsigned slot_of(int& count) {
  const unsigned here = __activemask();
  const int leader = __ffs(static_cast<int>(here)) - 1;
  const unsigned before = __popc(here & ((1u << lane_of()) - 1));
  int first = 0;
  if (lane_of() == leader) first = atomicAdd(&count, __popc(here));
  return static_cast<unsigned>(__shfl_sync(here, first, leader)) + before;
}

// Leaves the k greatest of `count` items (at most Each a thread), in any order.
template <int Each>
__device__ void cut(Item* items, int count, int k, unsigned n, BlockState& state, int& turn) {
  Item own[Each];
  const Key first = Candidate::key(items[0]);
  Key differing = 0;
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    const int at = i * kThreads + static_cast<int>(threadIdx.x);
    own[i] = at < count ? items[at] : Candidate::make(0, 0);
    if (at < count) differing |= Candidate::key(own[i]) ^ first;
  }
  const int top = block_top(differing, state, turn);
  const Key known =
      top + 1 >= 8 * static_cast<int>(sizeof(Key)) ? 0 : first >> (top + 1) << (top + 1);
  const Item bound = bound_of(own, k, k, known, top, n, state, turn);
  __syncthreads();
  if (threadIdx.x == 0) state.count = 0;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    const int at = i * kThreads + static_cast<int>(threadIdx.x);
    if (at < count && !Candidate::above(bound, own[i])) {
      const unsigned slot = slot_of(state.count);
      if (slot < static_cast<unsigned>(k)) items[slot] = own[i];
    }
  }
  __syncthreads();
}

// Bitonic, greatest first. `size` is a power of two; what is behind the items is 0.
__device__ inline void sort(Item* items, int size) {
  const int pairs = size / 2;
  bool apart = true;  // what comes was written by other warps
  for (int run = 2; run <= size; run *= 2) {
    for (int step = run / 2; step > 0; step /= 2) {
      if (apart || step > 32)
        __syncthreads();
      else
        __syncwarp();
      apart = step > 32;
      for (int pair = static_cast<int>(threadIdx.x); pair < pairs; pair += kThreads) {
        const int low = 2 * pair - (pair & (step - 1)), high = low + step;
        const Item a = items[low], b = items[high];
        const bool descending = (low & run) == 0;
        if (Candidate::above(descending ? b : a, descending ? a : b)) {
          items[low] = b;
          items[high] = a;
        }
      }
    }
  }
  __syncthreads();
}

// The k greatest of `count` items, greatest first, each given to write(rank, item). There is room
// for the next power of two.
template <int Each, class Write>
__device__ void finish(Item* items, int count, int k, unsigned n, BlockState& state, int& turn,
                       const Write& write) {
  const int me = static_cast<int>(threadIdx.x);
  int size = 32;
  while (size < count) size *= 2;
  if (size / 2 >= k && count > kMostRanked) {
    cut<Each>(items, count, k, n, state, turn);
    count = k;
    size = 32;
    while (size < count) size *= 2;
  }
  if (count <= kMostRanked) {
    // Several threads an item, each comparing with some of the others.
    const int shares = kThreads / size > 0 ? kThreads / size : 1, share = me / size, i = me % size;
    if (me < kMostRanked) state.ranks[me] = 0;
    __syncthreads();
    Item mine = Candidate::make(0, 0);
    if (share < shares && i < count) {
      mine = items[i];
      int rank = 0;
      for (int other = share; other < count; other += shares)
        rank += Candidate::above(items[other], mine) ? 1 : 0;
      if (shares > 1)
        atomicAdd(&state.ranks[i], rank);
      else
        state.ranks[i] = rank;
    }
    __syncthreads();
    if (share == 0 && i < count && state.ranks[i] < k) write(state.ranks[i], mine);
  } else {
    for (int i = count + me; i < size; i += kThreads) items[i] = Candidate::make(0, 0);
    sort(items, size);
    for (int i = me; i < k && i < count; i += kThreads) write(i, items[i]);
  }
  // Fewer than k there are only when somebody changes the input meanwhile.
  for (int i = count + me; i < k; i += kThreads)
    write(i, Candidate::make(0, ~static_cast<unsigned>(i)));
  __syncthreads();
}

}  // namespace anydml::top_k

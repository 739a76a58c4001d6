// What a block does with candidates: find a bound by counting, cut to k, put in order.
#pragma once

#include "top_k_key.cuh"

namespace anydml::top_k {

constexpr int kThreads = ANYDML_threads;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kAll = 0xFFFFFFFFu;

// Longest list that is ranked by counting; longer ones are sorted.
constexpr int kMostRanked = kThreads < 128 ? kThreads : 128;

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

// The greatest key that at least `low` of all threads' keys reach, from the known bits above `top`
// on. Ends early where no more than `high` do, which `exact` tells. There are `low` keys, and what
// is no key is 0.
template <int Count>
__device__ Key key_bound(const Key (&own)[Count], int low, int high, Key known, int top,
                         BlockState& state, int& turn, bool& exact) {
  Key key = known;
  exact = false;
  for (int bit = top; bit >= 0; --bit) {
    const Key next = key | Key(1) << bit;
    int count = 0;
    if constexpr (Count == 1) {
      count = __syncthreads_count(own[0] >= next);
    } else {
#pragma unroll
      for (int i = 0; i < Count; ++i) count += own[i] >= next ? 1 : 0;
      count = block_sum(count, state, turn);
    }
    if (count < low) continue;
    key = next;
    exact = count <= high;
    if (exact) break;
  }
  return key;
}

// The complement of the place, up to which `low` to `high` items of this key or above are found:
// places are below n.
template <int Count>
__device__ unsigned place_bound(const Item (&own)[Count], Key key, int low, int high, unsigned n,
                                BlockState& state, int& turn) {
  const int bits = place_bits(n);
  unsigned back = bits >= 32 ? 0 : ~0u << bits;
  for (int bit = bits - 1; bit >= 0; --bit) {
    const unsigned next = back | 1u << bit;
    const Item least = Candidate::make(key, next);
    int count = 0;
    if constexpr (Count == 1) {
      count = __syncthreads_count(!Candidate::above(least, own[0]));
    } else {
#pragma unroll
      for (int i = 0; i < Count; ++i) count += !Candidate::above(least, own[i]) ? 1 : 0;
      count = block_sum(count, state, turn);
    }
    if (count < low) continue;
    back = next;
    if (count <= high) break;
  }
  return back;
}

// An item that at least `low` of all threads' items reach, and no more than `high`, as places
// differ. What is no item is 0.
template <int Count>
__device__ Item bound_of(const Item (&own)[Count], int low, int high, Key known, int top,
                         unsigned n, BlockState& state, int& turn) {
  Key keys[Count];
#pragma unroll
  for (int i = 0; i < Count; ++i) keys[i] = Candidate::key(own[i]);
  bool exact = false;
  const Key key = key_bound(keys, low, high, known, top, state, turn, exact);
  return Candidate::make(key, exact ? 0 : place_bound(own, key, low, high, n, state, turn));
}

// A slot in the list, for one thread.
__device__ inline unsigned slot_of(int& count) {
  unsigned slot;
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(&count));
  asm volatile("atom.shared.add.u32 %0, [%1], 1;" : "=r"(slot) : "r"(address) : "memory");
  return slot;
}

// The same for the threads of a warp that want one; all are here.
__device__ inline unsigned slot_of(int& count, bool wanted) {
  const unsigned with = __ballot_sync(kAll, wanted);
  if (with == 0) return 0;
  int first = 0;
  if (lane_of() == 0) first = atomicAdd(&count, __popc(with));
  first = __shfl_sync(kAll, first, 0);
  return static_cast<unsigned>(first) + __popc(with & ((1u << lane_of()) - 1));
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
    const bool stays = at < count && !Candidate::above(bound, own[i]);
    const unsigned slot = slot_of(state.count, stays);
    if (stays && slot < static_cast<unsigned>(k)) items[slot] = own[i];
  }
  __syncthreads();
}

// One step of a bitonic sort between the lanes of a warp.
__device__ inline void exchange(Item& item, int step, bool greater_first) {
  const Item other = Candidate::from_lane(item, step);
  const bool lower = (lane_of() & step) == 0;
  if (Candidate::above(other, item) == (lower == greater_first)) item = other;
}

// Steps of 32 and less of a run, on the 64 items of a warp: lane and lane + 32.
__device__ inline void exchange_64(Item& a, Item& b, int run, int first) {
  const bool wide = (first & run) == 0;  // of runs of 64 and more
  if (run >= 64) {
    if (Candidate::above(b, a) == wide) {
      const Item swap = a;
      a = b;
      b = swap;
    }
  }
  for (int step = run >= 64 ? 16 : run / 2; step > 0; step /= 2) {
    exchange(a, step, run >= 64 ? wide : (lane_of() & run) == 0);
    exchange(b, step, run >= 64 ? wide : ((lane_of() + 32) & run) == 0);
  }
}

// Bitonic, greatest first: in registers where 64 neighbours meet. `size` is a power of two of at
// least 64; what is behind the items is 0.
__device__ inline void sort(Item* items, int size) {
  __syncthreads();
  for (int run = 64; run <= size; run *= 2) {
    for (int step = run / 2; step > 32; step /= 2) {
      for (int pair = static_cast<int>(threadIdx.x); pair < size / 2; pair += kThreads) {
        const int low = 2 * pair - (pair & (step - 1)), high = low + step;
        const Item a = items[low], b = items[high];
        if (Candidate::above(b, a) == ((low & run) == 0)) {
          items[low] = b;
          items[high] = a;
        }
      }
      __syncthreads();
    }
    for (int first = static_cast<int>(threadIdx.x) / 32 * 64; first < size; first += 2 * kThreads) {
      Item a = items[first + lane_of()], b = items[first + lane_of() + 32];
      if (run == 64)
        for (int small = 2; small < 64; small *= 2) exchange_64(a, b, small, first);
      exchange_64(a, b, run, first);
      items[first + lane_of()] = a;
      items[first + lane_of() + 32] = b;
    }
    __syncthreads();
  }
}

// The k greatest of `count` items, each given to write(rank, item), greatest first if `ordered`.
// There is room for the next power of two.
template <int Each, class Write>
__device__ void finish(Item* items, int count, int k, bool ordered, unsigned n, BlockState& state,
                       int& turn, const Write& write) {
  const int me = static_cast<int>(threadIdx.x);
  int size = 64, wanted = 64;
  while (size < count) size *= 2;
  while (wanted < k) wanted *= 2;
  // To sort twice of what is wanted takes as long as to cut it, while it is not much.
  const bool much = count > kMostRanked && (size > 2 * wanted || (size > wanted && size >= 2048));
  if (count > k && (much || !ordered)) {
    if (Each > 1 && count <= kThreads)
      cut<1>(items, count, k, n, state, turn);
    else
      cut<Each>(items, count, k, n, state, turn);
    count = k;
    size = wanted;
  }
  if (!ordered) {
    for (int i = me; i < count && i < k; i += kThreads) write(i, items[i]);
  } else {
    for (int i = count + me; i < size; i += kThreads) items[i] = Candidate::make(0, 0);
    if (count <= kMostRanked) {
      // Several threads an item, each comparing with some of the others.
      const int shares = kThreads / size > 0 ? kThreads / size : 1, share = me / size;
      const int i = me & (size - 1), length = size / shares;
      if (me < kMostRanked) state.ranks[me] = 0;
      __syncthreads();
      const Item mine = items[i];
      if (share < shares && i < count) {
        int rank = 0;
#pragma unroll 4
        for (int other = share * length; other < (share + 1) * length; ++other)
          rank += Candidate::above(items[other], mine) ? 1 : 0;
        atomicAdd(&state.ranks[i], rank);
      }
      __syncthreads();
      if (share == 0 && i < count && state.ranks[i] < k) write(state.ranks[i], mine);
    } else {
      sort(items, size);
      for (int i = me; i < k && i < count; i += kThreads) write(i, items[i]);
    }
  }
  // Fewer than k there are only when somebody changes the input meanwhile.
  for (int i = count + me; i < k; i += kThreads)
    write(i, Candidate::make(0, ~static_cast<unsigned>(i)));
  __syncthreads();
}

}  // namespace anydml::top_k

// What a block does with candidates: find a bound by counting, cut to k, put in order.
#pragma once

#include "top_k/cuda/top_k_key.cuh"

namespace anydml::top_k {

constexpr int kThreads = ANYDML_threads;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kAll = 0xFFFFFFFFu;

// Longest list that is ranked by counting; longer ones are sorted.
constexpr int kMaxRanked = kThreads < 128 ? kThreads : 128;

struct BlockState {
  int slots[2][32];
  int count;  // candidates found, including those that did not fit
  int ranks[kMaxRanked];
};

// The shared memory of a block, followed by as many candidates as the launch requests.
__shared__ BlockState state;
extern __shared__ __align__(16) unsigned char shared_bytes[];
__device__ inline Item* list() { return reinterpret_cast<Item*>(shared_bytes); }

__device__ inline int lane_of() { return static_cast<int>(threadIdx.x & 31); }

// The sum over the block, in every thread; `turn` alternates from call to call, and a barrier lies
// between calls with different ones.
__device__ inline int block_sum(int value, int& turn) {
  value = __reduce_add_sync(kAll, value);
  if constexpr (kWarps == 1) return value;
  turn ^= 1;
  int* const slots = state.slots[turn];
  if (lane_of() == 0) slots[threadIdx.x / 32] = value;
  __syncthreads();
  return __reduce_add_sync(kAll, lane_of() < kWarps ? slots[lane_of()] : 0);
}

// The highest bit that a thread of the block has set, -1 without one.
__device__ inline int block_top(unsigned value, int& turn) {
  value = __reduce_or_sync(kAll, value);
  if constexpr (kWarps > 1) {
    turn ^= 1;
    int* const slots = state.slots[turn];
    if (lane_of() == 0) slots[threadIdx.x / 32] = static_cast<int>(value);
    __syncthreads();
    const int all = lane_of() < kWarps ? slots[lane_of()] : 0;
    value = __reduce_or_sync(kAll, static_cast<unsigned>(all));
  }
  return 31 - __clz(static_cast<int>(value));
}
__device__ inline int block_top(unsigned long long value, int& turn) {
  const int high = block_top(static_cast<unsigned>(value >> 32), turn);
  const int low = block_top(static_cast<unsigned>(value), turn);
  return high >= 0 ? high + 32 : low;
}

// The greatest key of the block's threads, or one above it.
__device__ inline unsigned block_max(unsigned value, int& turn) {
  value = __reduce_max_sync(kAll, value);
  if constexpr (kWarps == 1) return value;
  turn ^= 1;
  int* const slots = state.slots[turn];
  if (lane_of() == 0) slots[threadIdx.x / 32] = static_cast<int>(value);
  __syncthreads();
  const int all = lane_of() < kWarps ? slots[lane_of()] : 0;
  return __reduce_max_sync(kAll, static_cast<unsigned>(all));
}
__device__ inline unsigned long long block_max(unsigned long long value, int& turn) {
  const unsigned high = block_max(static_cast<unsigned>(value >> 32), turn);
  return static_cast<unsigned long long>(high) << 32 | 0xFFFFFFFFu;
}

// The number of bits of a place below n.
__device__ inline int place_bits(unsigned n) { return 32 - __clz(static_cast<int>(n)); }

// The greatest key, from the known bits above `top` on, that at least `low` keys reach; or earlier
// one that at most `high` reach; `exact` says which. count_of(key) is how many do.
template <class CountOf>
__device__ Key key_bound(int low, int high, Key known, int top, bool& exact,
                         const CountOf& count_of) {
  Key key = known;
  exact = false;
  for (int bit = top; bit >= 0 && !exact; --bit) {
    const Key next = key | Key(1) << bit;
    const int count = count_of(next);
    if (count < low) continue;
    key = next;
    exact = count <= high;
  }
  return key;
}

// The complement of the place, up to which `low` to `high` items of this key or above are found:
// places are below n. count_of(item) is how many reach it.
template <class CountOf>
__device__ unsigned place_bound(Key key, int low, int high, unsigned n, const CountOf& count_of) {
  const int bits = place_bits(n);
  unsigned back = bits >= 32 ? 0 : ~0u << bits;
  for (int bit = bits - 1; bit >= 0; --bit) {
    const unsigned next = back | 1u << bit;
    const int count = count_of(Candidate::make(key, next));
    if (count < low) continue;
    back = next;
    if (count <= high) break;
  }
  return back;
}

// An item that at least `low` of the first `count` of the list reach, and no more than `high`: as
// places differ there is one.
__device__ __noinline__ Item bound_of(int count, int low, int high, unsigned n) {
  __syncthreads();
  int turn = 0;
  const Item* const items = list();
  const int me = static_cast<int>(threadIdx.x);
  const Key first = Candidate::key(items[0]);
  Key differing = 0;
  for (int i = me; i < count; i += kThreads) differing |= Candidate::key(items[i]) ^ first;
  const int top = block_top(differing, turn);
  const Key known =
      top + 1 >= 8 * static_cast<int>(sizeof(Key)) ? 0 : first >> (top + 1) << (top + 1);
  bool exact = false;
  if (count <= kThreads) {
    const Item mine = me < count ? items[me] : Candidate::make(0, 0);
    const Key key = key_bound(low, high, known, top, exact, [&](Key next) {
      return __syncthreads_count(me < count && Candidate::key(mine) >= next);
    });
    if (exact) return Candidate::make(key, 0);
    return Candidate::make(key, place_bound(key, low, high, n, [&](const Item& lowest) {
                             return __syncthreads_count(!Candidate::above(lowest, mine));
                           }));
  }
  constexpr int kKeysPerThread = 4;
  Key key;
  if (count <= kKeysPerThread * kThreads) {
    Key own[kKeysPerThread];
#pragma unroll
    for (int i = 0; i < kKeysPerThread; ++i)
      own[i] = i * kThreads + me < count ? Candidate::key(items[i * kThreads + me]) : 0;
    key = key_bound(low, high, known, top, exact, [&](Key next) {
      int reached = 0;
#pragma unroll
      for (int i = 0; i < kKeysPerThread; ++i) reached += own[i] >= next ? 1 : 0;
      return block_sum(reached, turn);
    });
  } else {
    key = key_bound(low, high, known, top, exact, [&](Key next) {
      int reached = 0;
#pragma unroll 4
      for (int i = me; i < count; i += kThreads)
        reached += Candidate::key(items[i]) >= next ? 1 : 0;
      return block_sum(reached, turn);
    });
  }
  if (exact) return Candidate::make(key, 0);
  return Candidate::make(key, place_bound(key, low, high, n, [&](const Item& lowest) {
                           int reached = 0;
                           for (int i = me; i < count; i += kThreads)
                             reached += !Candidate::above(lowest, items[i]) ? 1 : 0;
                           return block_sum(reached, turn);
                         }));
}

// Reserves this many slots in the list for one thread.
__device__ inline unsigned slots_of(int count) {
  unsigned slot;
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(&state.count));
  asm volatile("atom.shared.add.u32 %0, [%1], %2;"
               : "=r"(slot)
               : "r"(address), "r"(count)
               : "memory");
  return slot;
}

// Reserves a list slot for each thread with `takes_slot`; called by all threads of a warp.
__device__ inline unsigned slot_of(bool takes_slot) {
  const unsigned with = __ballot_sync(kAll, takes_slot);
  if (with == 0) return 0;
  unsigned first = 0;
  if (lane_of() == 0) first = slots_of(__popc(with));
  first = __shfl_sync(kAll, first, 0);
  return first + __popc(with & ((1u << lane_of()) - 1));
}

// Leaves the k greatest of `count` items of the list, in any order. They move to the front piece by
// piece: nothing is overwritten that has not been read, as no more is kept than was read.
__device__ inline void cut(int count, int k, unsigned n) {
  Item* const items = list();
  const Item bound = bound_of(count, k, k, n);
  __syncthreads();
  if (threadIdx.x == 0) state.count = 0;
  __syncthreads();
#pragma unroll 1
  for (int begin = 0; begin < count; begin += kThreads) {
    const int i = begin + static_cast<int>(threadIdx.x);
    Item mine = Candidate::make(0, 0);
    if (i < count) mine = items[i];
    __syncthreads();
    const bool stays = i < count && !Candidate::above(bound, mine);
    const unsigned slot = slot_of(stays);
    if (stays && slot < static_cast<unsigned>(k)) items[slot] = mine;
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

// The k greatest of the first `count` items of the list, each given to write(rank, item), greatest
// first; if not `by_key`, in the order of index_of(item), which takes the place of the key. The
// list has capacity for the next power of two.
template <class Write, class IndexOf>
__device__ void finish(int count, int k, bool by_key, unsigned n, const Write& write,
                       const IndexOf& index_of) {
  Item* const items = list();
  const int me = static_cast<int>(threadIdx.x);
  int size = 64, result_size = 64;
  while (size < count) size *= 2;
  while (result_size < k) result_size *= 2;
  // While the list is less than twice the result, sorting all of it takes no longer than cutting it
  // first.
  const bool much =
      count > kMaxRanked && (size > 2 * result_size || (size > result_size && size >= 2048));
  if (count > k && (much || !by_key)) {
    cut(count, k, n);
    count = k;
    size = result_size;
  }
  if (!by_key) {
    __syncthreads();
    for (int i = me; i < count; i += kThreads)
      items[i] = Candidate::make(static_cast<Key>(~index_of(items[i])), Candidate::back(items[i]));
    __syncthreads();
  }
  for (int i = count + me; i < size; i += kThreads) items[i] = Candidate::make(0, 0);
  if (count <= kMaxRanked) {
    // Several threads an item, each comparing with some of the others.
    const int shares = kThreads / size > 0 ? kThreads / size : 1, share = me / size;
    const int i = me & (size - 1), length = size / shares;
    if (me < kMaxRanked) state.ranks[me] = 0;
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
    if (share == 0 && i < count) items[state.ranks[i]] = mine;
    __syncthreads();
  } else {
    sort(items, size);
  }
#pragma unroll 1
  for (int i = me; i < k; i += kThreads) {
    // There are fewer than k in a short row, and if another stream changes the input meanwhile.
    write(i, i < count ? items[i] : Candidate::make(0, ~static_cast<unsigned>(i)));
  }
  __syncthreads();
}

}  // namespace anydml::top_k

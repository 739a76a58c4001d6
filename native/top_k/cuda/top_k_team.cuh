// The blocks that share a row of TOP_K: how they meet, and where they add up what each has counted.
#pragma once

#include "top_k/cuda/top_k_key.cuh"
#include "top_k/cuda/top_k_select.cuh"

namespace anydml::top_k {
namespace {

constexpr bool kAlone = ANYDML_team == kTeamAlone || ANYDML_team == kTeamMany;
constexpr bool kCluster = ANYDML_team == kTeamCluster;
constexpr int kThreads = select_threads(ANYDML_team);
constexpr int kWarps = kThreads / 32;
constexpr unsigned kAll = 0xFFFFFFFFu;
// Of a sample that one block has, few bins are enough.
constexpr int kDigitBits = kAlone ? 8 : digit_bits(W);
constexpr unsigned kBins = 1u << kDigitBits;
constexpr int kLevels = (8 * W + kDigitBits - 1) / kDigitBits;
constexpr long long kSumBytes = work_sums(W);

// Counts of a row's elements.
using Total = Bits<ANYDML_team == kTeamWide ? 8 : 4>::Unsigned;

__device__ inline unsigned lane_of() { return threadIdx.x & 31; }

// A variable of this block's shared memory in that of another block of the cluster.
template <class Any>
__device__ inline Any* in_block(Any* own, unsigned rank) {
#if __CUDA_ARCH__ >= 900
  unsigned long long address;
  asm("mapa.u64 %0, %1, %2;"
      : "=l"(address)
      : "l"(reinterpret_cast<unsigned long long>(own)), "r"(rank));
  return reinterpret_cast<Any*>(address);
#else
  return own;
#endif
}

__device__ inline void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
__device__ inline void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

__device__ inline unsigned arrivals(const unsigned* at) {
  unsigned count;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(at) : "memory");
  return count;
}

// In shared memory, as what is the same for all threads: it would take many registers.
struct Team {
  unsigned blocks, rank;
  Total* sums;                // of digits: of a cluster one level, else all
  Total* counts;              // two of each block
  Item* list;                 // of the row
  unsigned* listed;           // items in it
  unsigned long long* range;  // of keys: the greatest, and that of their complements
  unsigned* arrived;          // in global memory
  unsigned met;               // arrivals until the last barrier

  // By one thread. `own_sums` and `own_list` are in shared memory.
  __device__ void begin(const Selection& selection, long long row, Total* own_sums, Item* own_list);

  // A barrier of the row's blocks: what was written before it is visible after it.
  __device__ void arrive() {
    if constexpr (kCluster) {
      cluster_arrive();
    } else if constexpr (!kAlone) {
      __syncthreads();
      if (threadIdx.x != 0) return;
      met += blocks;
      __threadfence();
      atomicAdd(arrived, 1u);
    }
  }
  __device__ void wait() {
    if constexpr (kCluster) return cluster_wait();
    if (!kAlone && threadIdx.x == 0) {
      while (arrivals(arrived) < met) {
      }
      __threadfence();
    }
    __syncthreads();
  }
  __device__ void meet() {
    arrive();
    wait();
  }

  // Past the first-level cache, where it is global memory.
  template <class Any>
  static __device__ Any read(const Any* at) {
    if constexpr (kAlone || kCluster) {
      return *at;
    } else if constexpr (sizeof(Any) == 16) {
      const uint4 bits = __ldcg(reinterpret_cast<const uint4*>(at));
      return Candidate::make(bits.x | static_cast<unsigned long long>(bits.y) << 32, bits.z);
    } else {
      return __ldcg(at);
    }
  }
};
__shared__ Team team;

// What the first block of a cluster keeps for all, and a block for itself.
struct Meeting {
  Total counts[2 * kMaxCluster];
  unsigned long long range[2];
  unsigned listed;
};
__shared__ Meeting meeting;

__device__ inline void Team::begin(const Selection& selection, long long row, Total* own_sums,
                                   Item* own_list) {
  blocks = kAlone ? 1 : selection.blocks;
  rank = kAlone ? 0 : blockIdx.x % selection.blocks;
  met = 0;
  meeting.listed = 0;
  meeting.range[0] = meeting.range[1] = 0;
  if constexpr (kAlone || kCluster) {
    Meeting* const first = kAlone ? &meeting : in_block(&meeting, 0);
    sums = kAlone ? own_sums : in_block(own_sums, 0);
    list = kAlone ? own_list : in_block(own_list, 0);
    counts = first->counts;
    range = first->range;
  } else {
    char* const work = selection.work + row * selection.work_bytes;
    range = reinterpret_cast<unsigned long long*>(work);
    arrived = reinterpret_cast<unsigned*>(range + 2);
    listed = arrived + 1;
    sums = reinterpret_cast<Total*>(work + kWorkHead);
    counts = sums + 2 * kLevels * kBins;
    list = reinterpret_cast<Item*>(work + kWorkHead + kSumBytes + 16 * blocks);
  }
}

__shared__ Total slots[kWarps + 1];

// The sum of the values of the threads before this one, and of all.
template <class Number>
__device__ inline Number sum_before(Number value, Number* total = nullptr) {
  Number sum = value;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const Number before = __shfl_up_sync(kAll, sum, step);
    if (lane_of() >= static_cast<unsigned>(step)) sum += before;
  }
  if (lane_of() == 31) slots[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    const Total own = threadIdx.x < kWarps ? slots[threadIdx.x] : 0;
    Total warps = own;
#pragma unroll
    for (int step = 1; step < kWarps; step *= 2) {
      const Total before = __shfl_up_sync(kAll, warps, step);
      if (lane_of() >= static_cast<unsigned>(step)) warps += before;
    }
    if (threadIdx.x < kWarps) slots[threadIdx.x] = warps - own;
    if (threadIdx.x == kWarps - 1) slots[kWarps] = warps;
  }
  __syncthreads();
  if (total != nullptr) *total = static_cast<Number>(slots[kWarps]);
  return sum - value + static_cast<Number>(slots[threadIdx.x / 32]);
}

// How many items are above a key and how many have it: in the blocks before this one, and in all.
struct Counts {
  Total above_before, equal_before, above, equal;
};
__shared__ Total sums_of[4];
// From the counts of each thread.
__device__ inline Counts share_counts(Total above, Total equal) {
  if (threadIdx.x < 4) sums_of[threadIdx.x] = 0;
  __syncthreads();
  if (above != 0) atomicAdd(&sums_of[2], above);
  if (equal != 0) atomicAdd(&sums_of[3], equal);
  __syncthreads();
  if constexpr (!kAlone) {
    if (threadIdx.x < 2) team.counts[2 * team.rank + threadIdx.x] = sums_of[2 + threadIdx.x];
    team.meet();
    for (unsigned i = threadIdx.x; i < 2 * team.blocks; i += kThreads) {
      if (i / 2 == team.rank) continue;
      const Total count = Team::read(team.counts + i);
      atomicAdd(&sums_of[2 + i % 2], count);
      if (i / 2 < team.rank) atomicAdd(&sums_of[i % 2], count);
    }
    __syncthreads();
  }
  const Counts counts{sums_of[0], sums_of[1], sums_of[2], sums_of[3]};
  __syncthreads();
  return counts;
}

// The greatest and the least key of all blocks, from those of each thread: `complement` is the
// greatest complement.
struct Range {
  Key greatest, least;
};
__device__ inline Range share_range(unsigned long long greatest, unsigned long long complement) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const unsigned long long a = __shfl_xor_sync(kAll, greatest, step);
    const unsigned long long b = __shfl_xor_sync(kAll, complement, step);
    greatest = a > greatest ? a : greatest;
    complement = b > complement ? b : complement;
  }
  if (lane_of() == 0) atomicMax(&meeting.range[0], greatest);
  if (lane_of() == 0) atomicMax(&meeting.range[1], complement);
  __syncthreads();
  if (!kAlone && threadIdx.x < 2 && !(kCluster && team.rank == 0))
    atomicMax(team.range + threadIdx.x, meeting.range[threadIdx.x]);
  team.meet();
  return {static_cast<Key>(Team::read(team.range)), static_cast<Key>(~Team::read(team.range + 1))};
}

// The digit of the `need`-th item of all blocks, from the greatest on: how many are above it, and
// how many have it. `bins` has room for a block's own counts and, behind them, a cluster's sums.
struct Digit {
  unsigned digit;
  Total before, has;
};
__shared__ Digit found;

template <class Has>
__device__ inline void find(Total need, const Has& has) {
  constexpr unsigned kEach = (kBins + kThreads - 1) / kThreads;
  Total own[kEach], sum = 0;
  const unsigned first = threadIdx.x * kEach;
#pragma unroll
  for (unsigned i = 0; i < kEach; ++i) {
    own[i] = first + i < kBins ? has(kBins - 1 - first - i) : 0;
    sum += own[i];
  }
  if (threadIdx.x == 0) found = {0, 0, 0};
  Total before = sum_before(sum);
#pragma unroll
  for (unsigned i = 0; i < kEach; ++i) {
    if (before < need && need <= before + own[i]) found = {kBins - 1 - first - i, before, own[i]};
    before += own[i];
  }
  __syncthreads();
}

// count(bins) counts a digit of this block's keys. `level`: from 0, each is used once.
template <class Count>
__device__ inline void find_digit(Total need, int level, unsigned* bins, const Count& count) {
  Total* const sums = kCluster ? team.sums : team.sums + level * kBins;
  const bool is_first = team.rank == 0;
  __syncthreads();
  if (kCluster && level > 0) team.meet();  // the last sums have been read
  for (unsigned i = threadIdx.x; i < kBins; i += kThreads) {
    bins[i] = 0;
    if (kCluster && is_first) bins[kBins + i] = 0;
  }
  if (kCluster) team.arrive();
  __syncthreads();
  count(bins);
  if (kCluster) team.wait();
  __syncthreads();
  if constexpr (kAlone) {
    find(need, [&](unsigned bin) -> Total { return bins[bin]; });
  } else {
    for (unsigned i = threadIdx.x; i < kBins; i += kThreads)
      if (bins[i] != 0) atomicAdd(sums + i, static_cast<Total>(bins[i]));
    team.meet();
    if (!kCluster || is_first)
      find(need, [&](unsigned bin) -> Total {
        return kCluster ? bins[kBins + bin] : Team::read(sums + bin);
      });
    if constexpr (kCluster) {
      if (is_first && threadIdx.x < team.blocks) *in_block(&found, threadIdx.x) = found;
      team.meet();
    }
  }
}

}  // namespace
}  // namespace anydml::top_k

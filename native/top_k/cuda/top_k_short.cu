// TOP_K of rows that fit the registers of a block, a block a row. The bound is about the k-th of
// the threads' greatest items: k of them reach it, and no thread has more than it holds, so the
// list holds all that do, for any input. If k is too large for that, everything is sorted.
#include "top_k/cuda/top_k_block.cuh"

namespace anydml::top_k {
namespace {

constexpr int kElementsPerThread = ANYDML_per_thread;  // elements of a thread
constexpr int kVectors = kElementsPerThread / kVector;
constexpr int kResident = W == 8                    ? 768
                          : kElementsPerThread == 8 ? 1536
                                                    : 1280;  // threads of a multiprocessor

// Groups of neighbouring threads whose maxima are compared where k is small: of 32 the k-th is
// reached by not many more than k elements.
constexpr int kGroups = 32, kGroup = kThreads / kGroups;
constexpr bool kSmallK = ANYDML_small_k != 0;  // k is at most 16
// Rows of as many elements as the block holds, which begin at multiples of 16 bytes.
constexpr bool kFull = ANYDML_full != 0;
__shared__ Key maxima[kGroups];
__shared__ Key small_k_bound;

// The k-th greatest of the groups' maxima, of which equal ones count one by one.
__device__ inline Key bound_of_small_k(Key greatest, int k) {
#pragma unroll
  for (int step = 1; step < kGroup; step *= 2) {
    const Key other = __shfl_xor_sync(kAll, greatest, step);
    greatest = other > greatest ? other : greatest;
  }
  const int me = static_cast<int>(threadIdx.x), group = me / kGroup, share = me % kGroup;
  if (share == 0) maxima[group] = greatest;
  __syncthreads();
  int rank = 0;
#pragma unroll
  for (int i = 0; i < kGroups / kGroup; ++i) {
    const int other = share * (kGroups / kGroup) + i;
    const Key its = maxima[other];
    rank += its > greatest || (its == greatest && other < group) ? 1 : 0;
  }
#pragma unroll
  for (int step = 1; step < kGroup; step *= 2) rank += __shfl_xor_sync(kAll, rank, step);
  if (share == 0 && rank == k - 1) small_k_bound = greatest;
  __syncthreads();
  return small_k_bound;
}

// Not inlined, to keep its values out of the registers of every row.
__device__ __noinline__ void finish_row(const Rows& rows, long long row, int count) {
  const Raw flip = static_cast<Raw>(rows.flip);
  const RowOffsets at = offsets_of(rows, row);
  const auto index_of = [&](const Item& item) {
    return place_of(rows, row, ~Candidate::back(item));
  };
  finish(
      count, static_cast<int>(rows.k), rows.sorted, static_cast<unsigned>(rows.n),
      [&](int r, const Item& item) {
        write_result(rows, at, r, Candidate::key(item), index_of(item), flip);
      },
      index_of);
}

}  // namespace
}  // namespace anydml::top_k

using namespace anydml::top_k;

// `capacity`: capacity of the candidate list, which holds all elements, or kElementsPerThread for
// each of `high` threads.
extern "C" __global__ void __launch_bounds__(kThreads, kResident / kThreads)
    top_k_short(const __grid_constant__ Rows rows, int high, int capacity) {
  Item* const items = list();
  const Raw flip = static_cast<Raw>(rows.flip);
  const int k = static_cast<int>(rows.k), me = static_cast<int>(threadIdx.x);
  anydml::await_previous();
  for (long long row = blockIdx.x; row < rows.rows; row += gridDim.x) {
    const RowOffsets at = offsets_of(rows, row);
    const Raw* const first = keys_of(rows, row, at);
    const int n = static_cast<int>(at.length);
    // Vectors begin at multiples of 16 bytes; the first and the last may lie in the row in part.
    const int lead =
        kFull ? 0 : static_cast<int>(reinterpret_cast<unsigned long long>(first) & 15) / W;
    Key own[kElementsPerThread];
    union {
      uint4 vector;
      Raw bits[kVector];
    } read[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int begin = (v * kThreads + me) * kVector - lead;
      if (kFull || (begin >= 0 && begin + kVector <= n)) {
        read[v].vector = *reinterpret_cast<const uint4*>(first + begin);
      } else {
#pragma unroll
        for (int i = 0; i < kVector; ++i)
          read[v].bits[i] = begin + i >= 0 && begin + i < n ? first[begin + i] : Raw(0);
      }
    }
    if (me == 0) state.count = 0;
    const auto place_at = [&](int i) {
      return (i / kVector * kThreads + me) * kVector - lead + i % kVector;
    };
    const auto is_in_row = [&](int place) { return kFull || (place >= 0 && place < n); };
    Key greatest = 0;
#pragma unroll
    for (int i = 0; i < kElementsPerThread; ++i) {
      own[i] = is_in_row(place_at(i)) ? key_of(read[i / kVector].bits[i % kVector], flip) : 0;
      greatest = own[i] > greatest ? own[i] : greatest;
    }
    if constexpr (kSmallK) {
      const Key bound = bound_of_small_k(greatest, k);
      if (greatest >= bound) {
#pragma unroll
        for (int i = 0; i < kElementsPerThread; ++i) {
          const int place = place_at(i);
          if (own[i] < bound || !is_in_row(place)) continue;
          const unsigned slot = slots_of(1);
          if (slot < static_cast<unsigned>(capacity))
            items[slot] = Candidate::make(own[i], ~static_cast<unsigned>(place));
        }
      }
      __syncthreads();
      const int count = state.count;
      if (count <= 32 && rows.sorted) {  // a warp ranks them
        if (me < count) {
          const Item mine = items[me];
          int rank = 0;
          for (int other = 0; other < count; ++other)
            rank += Candidate::above(items[other], mine) ? 1 : 0;
          const unsigned place = ~Candidate::back(mine);
          if (rank < k)
            write_result(rows, at, rank, Candidate::key(mine), place_of(rows, row, place), flip);
        } else if (me < k) {
          write_result(rows, at, me, 0, 0, flip);
        }
        __syncthreads();
        continue;
      }
      __syncthreads();
      if (count <= capacity) {
        finish_row(rows, row, count);
        continue;
      }
      if (me == 0) state.count = 0;  // many equals: by their places
    }
    Item lower_bound = Candidate::make(0, 0);
    if (high > 0) {
      bool exact = false;
      Key key;
      if (kSmallK && __syncthreads_count(greatest > small_k_bound) < k) {
        key = small_k_bound;  // at least k threads reach it: many have equal keys
      } else {
        int turn = 0;
        const Key block_greatest = block_max(greatest, turn);
        key = key_bound(k, high, 0, kKeyBits - 1, exact, [&](Key next) {
          return next > block_greatest ? 0 : __syncthreads_count(greatest >= next);
        });
      }
      unsigned back = 0;
      if (!exact) {
        // Many threads have this key: the bound is the first place of it in each.
        Item first = Candidate::make(greatest, 0);
#pragma unroll
        for (int i = kElementsPerThread - 1; i >= 0; --i) {
          const int place = place_at(i);
          if (own[i] == greatest && is_in_row(place))
            first = Candidate::make(greatest, ~static_cast<unsigned>(place));
        }
        back = place_bound(key, k, high, static_cast<unsigned>(n), [&](const Item& bound) {
          return __syncthreads_count(!Candidate::above(bound, first));
        });
      }
      lower_bound = Candidate::make(key, back);
    } else {
      __syncthreads();
    }
    if (high == 0) {
#pragma unroll
      for (int i = 0; i < kElementsPerThread; ++i) {
        const int place = place_at(i);
        if (is_in_row(place)) items[place] = Candidate::make(own[i], ~static_cast<unsigned>(place));
      }
    } else if (greatest >= Candidate::key(lower_bound)) {
#pragma unroll
      for (int i = 0; i < kElementsPerThread; ++i) {
        if (own[i] < Candidate::key(lower_bound)) continue;
        const int place = place_at(i);
        const Item item = Candidate::make(own[i], ~static_cast<unsigned>(place));
        if (!is_in_row(place) || Candidate::above(lower_bound, item)) continue;
        const unsigned slot = slots_of(1);
        if (slot < static_cast<unsigned>(capacity)) items[slot] = item;
      }
    }
    __syncthreads();
    const int count = high == 0 ? n : state.count < capacity ? state.count : capacity;
    __syncthreads();
    finish_row(rows, row, count);
  }
}

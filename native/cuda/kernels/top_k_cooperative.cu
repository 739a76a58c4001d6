// TOP_K of few long rows: the blocks of a row work together in one launch, all of them resident.
// Each samples its segment; one bound is made of the whole row's sample, so that the row's
// candidates are not many more than k; all read their segments and put what reaches the bound into
// one list, and the block that came last puts that in order.
//
// The first reads are in flight while the bound is computed. As in top_k_long.cu the bound is
// a key and a place; where the sample misled, a second one is made of what was found, or of more of
// the sample, and a third is exact: a bounded number of readings. Which way the blocks of a row go
// depends on counts that all of them read behind a barrier, so that all go the same one.
#include "top_k_stream.cuh"

namespace anydml::top_k {
namespace {

// The row, in shared memory.
struct Row {
  unsigned* arrived;         // at barriers, by all blocks together
  unsigned* counts;          // what was found, by attempt
  unsigned* digits;          // 256 for each pass of the exact bound
  unsigned blocks, reached;  // `reached`: arrivals until the last barrier
  bool last;                 // whether this block was the last to arrive
};
__shared__ Row row;
__shared__ unsigned first_slot;

// Barrier of the row's blocks; writes before it are visible after it.
__device__ void meet() {
  __syncthreads();
  if (threadIdx.x == 0) {
    row.reached += row.blocks;
    __threadfence();
    unsigned arrived_count = atomicAdd(row.arrived, 1u) + 1;
    row.last = arrived_count == row.reached;
    while (arrived_count < row.reached)
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                   : "=r"(arrived_count)
                   : "l"(row.arrived)
                   : "memory");
    __threadfence();
  }
  __syncthreads();
}

// Items that other blocks write, past the first-level cache.
template <class Any>
__device__ inline Any read_shared(const Any* at) {
  if constexpr (sizeof(Any) == 16) {
    const uint4 bits = __ldcg(reinterpret_cast<const uint4*>(at));
    return Candidate::make(bits.x | static_cast<unsigned long long>(bits.y) << 32, bits.z);
  } else {
    return __ldcg(at);
  }
}
template <class Any>
__device__ inline void write_shared(Any* to, const Any& item) {
  if constexpr (sizeof(Any) == 16) {
    const unsigned long long key = Candidate::key(item);
    *reinterpret_cast<uint4*>(to) = {static_cast<unsigned>(key), static_cast<unsigned>(key >> 32),
                                     Candidate::back(item), 0};
  } else {
    *to = item;
  }
}

// The greatest of some threads' samples: as many for each block as the host says. Threads that are
// together have their strata all over the segment.
__device__ void publish_sample(int groups, Item* to) {
  Item own[kSampled];
  Item greatest = take_sample(own);
  const int lanes = kThreads / groups;
#pragma unroll 1
  for (int step = 16; step > 16 / lanes; step /= 2) {
    const Item other = Candidate::from_lane(greatest, step);
    if (Candidate::above(other, greatest)) greatest = other;
  }
  const int in_warp = 32 / lanes;
  if (lane_of() < in_warp) write_shared(to + threadIdx.x / 32 * in_warp + lane_of(), greatest);
}

// The bound that about `low` of the published items reach; all that a thread reads counts as one.
__device__ __noinline__ Item bound_of_sample(const Item* all, int count, int low, int high,
                                             unsigned n) {
  Item mine = Candidate::make(0, 0);
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const Item item = read_shared(all + i);
    if (Candidate::above(item, mine)) mine = item;
  }
  int turn = 0;
  const Key block_greatest = block_max(Candidate::key(mine), turn);
  bool exact = false;
  const Key key = key_bound(low, high, 0, kKeyBits - 1, exact, [&](Key next) {
    return next > block_greatest ? 0 : __syncthreads_count(Candidate::key(mine) >= next);
  });
  if (exact) return Candidate::make(key, 0);
  return Candidate::make(key, place_bound(key, low, high, n, [&](const Item& lowest) {
                           return __syncthreads_count(!Candidate::above(lowest, mine));
                         }));
}

// The host's plan (plan_cooperation), for a row that is shorter than others; low 0: all it has.
__device__ void bounds_of_row(unsigned n, int k, unsigned blocks, int capacity, int& low,
                              int& high) {
  const int vectors = static_cast<int>(n / blocks / kVector) - 1;
  const float size = static_cast<float>(blocks) *
                     static_cast<float>(kSampled * (vectors < kThreads ? vectors : kThreads));
  const float part = static_cast<float>(k) / static_cast<float>(n), expected = size * part;
  low = static_cast<int>(expected + 3.5f * sqrtf(expected * (1 - part))) + kSampled;
  high = low + (low < 16 ? 2 : low / 8);
  if (n < static_cast<unsigned>(capacity)) low = 0;
}

// The digit, as `digit_among`, of all blocks' elements.
template <class Tally>
__device__ Digit digit_of_row(unsigned* digits, unsigned need, bool from_top, const Tally& tally) {
  for (unsigned i = threadIdx.x; i < 256; i += kThreads) histogram[i] = 0;
  __syncthreads();
  tally();
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 256; i += kThreads)
    if (histogram[i] != 0) atomicAdd(digits + i, histogram[i]);
  meet();
  for (unsigned i = threadIdx.x; i < 256; i += kThreads) histogram[i] = __ldcg(digits + i);
  __syncthreads();
  const Digit found = digit_of(need, from_top);
  __syncthreads();
  return found;
}

// The bound that exactly k of the row reach.
__device__ __noinline__ Item exact_of_row(int k) {
  Key key = 0;
  Digit found{0, static_cast<unsigned>(k), 0};
  unsigned* digits = row.digits;
  for (int shift = kKeyBits - 8; shift >= 0; shift -= 8, digits += 256) {
    found = digit_of_row(digits, found.need, true, [&] { tally_keys(key, shift); });
    key |= static_cast<Key>(found.digit) << shift;
  }
  if (found.has <= found.need) return Candidate::make(key, 0);
  unsigned place = 0;
  for (int shift = 24; shift >= 0; shift -= 8, digits += 256) {
    found = digit_of_row(digits, found.need, false, [&] { tally_places(key, place, shift); });
    place |= found.digit << shift;
  }
  return Candidate::make(key, ~place);
}

}  // namespace
}  // namespace anydml::top_k

using namespace anydml::top_k;

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    top_k_cooperative(const __grid_constant__ Rows rows,
                      const __grid_constant__ Cooperation cooperation) {
  const unsigned blocks = static_cast<unsigned>(cooperation.segments);
  const unsigned number = blockIdx.x / blocks, segment = blockIdx.x - number * blocks;
  const int capacity = cooperation.capacity;
  const Raw flip = static_cast<Raw>(rows.flip);
  const RowOffsets at = offsets_of(rows, number);
  const unsigned n = static_cast<unsigned>(at.length);
  const int k = n < static_cast<unsigned>(rows.k) ? static_cast<int>(n) : static_cast<int>(rows.k);
  int low = cooperation.low, high = cooperation.high;
  if (rows.lengths != nullptr) bounds_of_row(n, k, blocks, capacity, low, high);
  if (threadIdx.x == 0) {
    const unsigned length = n / blocks, longer = n - length * blocks;
    span.base = segment * length + (segment < longer ? segment : longer);
    span.first = keys_of(rows, number, at) + span.base;
    span.n = length + (segment < longer ? 1 : 0);
    span.places = nullptr;
    span.place_limit = n;
    const unsigned misaligned =
        static_cast<unsigned>(reinterpret_cast<unsigned long long>(span.first) & 15) / W;
    const unsigned head = misaligned == 0 ? 0 : kVector - misaligned;
    span.head = head < span.n ? head : span.n;
    span.vectors = (span.n - span.head) / kVector;
    span.salt = blockIdx.x * 7919u;
    span.flip = flip;
    unsigned* const work = cooperation.work + number * kCooperationWords;
    row = {work, work + 1, work + 32, blocks, 0, false};
  }
  __syncthreads();
  const int published = static_cast<int>(blocks) * cooperation.groups;
  Item* const sample = static_cast<Item*>(cooperation.sample) + number * published;
  Item* const lists = static_cast<Item*>(cooperation.found) + number * 2ll * capacity;
  publish_sample(cooperation.groups, sample + segment * cooperation.groups);
  meet();
  unsigned count = 0;
  Item bound = Candidate::make(0, 0);
  if (low > 0) bound = bound_of_sample(sample, published, low, high, n);
  Item* found = lists;
#pragma unroll 1
  for (int attempt = 0;; ++attempt) {
    if (threadIdx.x == 0) state.count = 0;
    __syncthreads();
    collect<kSmallest>(bound, capacity);
    __syncthreads();
    const int own = state.count < capacity ? state.count : capacity;
    __syncthreads();
    if (threadIdx.x == 0 && own > 0)
      first_slot = atomicAdd(row.counts + attempt, static_cast<unsigned>(own));
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < own; i += kThreads)
      if (first_slot + static_cast<unsigned>(i) < static_cast<unsigned>(capacity))
        write_shared(found + first_slot + i, list()[i]);
    meet();
    count = __ldcg(row.counts + attempt);
    // A block whose list was full stopped at `capacity`.
    const bool enough = count >= static_cast<unsigned>(k);
    const bool fits = count < static_cast<unsigned>(capacity);
    if ((enough && fits) || attempt == 2) break;
    if (attempt == 1) {
      bound = exact_of_row(k);
    } else if (enough) {
      for (int i = static_cast<int>(threadIdx.x); i < capacity; i += kThreads)
        list()[i] = read_shared(found + i);
      bound = bound_of(capacity, k, k + k / 8, n);
    } else {
      const int more = 3 * low + 8;
      bound = bound_of_sample(sample, published, more, more + more / 8, n);
    }
    __syncthreads();
    // Others may still read the list of this attempt.
    found = lists + (attempt == 0 ? capacity : 0);
  }
  if (!row.last) return;
  const int all = static_cast<int>(count) < capacity ? static_cast<int>(count) : capacity;
  for (int i = static_cast<int>(threadIdx.x); i < all; i += kThreads)
    list()[i] = read_shared(found + i);
  __syncthreads();
  const auto index_of = [](const Item& item) -> long long { return ~Candidate::back(item); };
  finish(
      all, static_cast<int>(rows.k), true, rows.sorted, n,
      [&](int r, const Item& item) {
        write_result(rows, at, r, Candidate::key(item), index_of(item), flip);
      },
      index_of);
}

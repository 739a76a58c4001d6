// TOP_K along an axis whose neighbours are not neighbours in memory, while the rows beside it are:
// a block reads a tile, which lies in shared memory column by column, and each warp finds the k
// greatest of its columns, exactly. They are left in their order or in that of their places, which
// is the same to equal ones; the row-wise kernels choose among the tiles' results.
#include "top_k/cuda/top_k_key.cuh"

namespace anydml::top_k {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kAll = 0xFFFFFFFFu;
constexpr int kElementsPerThread = ANYDML_per_thread;  // elements of a lane
constexpr int kPitch = 32 * kElementsPerThread + 1;

// An element into the tile. From 4 bytes on it takes no register on its way, so that all that a
// thread reads are on their way at a time.
__device__ inline void fetch(Raw* to, const char* from) {
#if __CUDA_ARCH__ >= 800
  if constexpr (W >= 4) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(to))),
                 "l"(from), "n"(W)
                 : "memory");
    return;
  }
#endif
  *to = *reinterpret_cast<const Raw*>(from);
}
__device__ inline void fetched() {
#if __CUDA_ARCH__ >= 800
  if constexpr (W >= 4) asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// The destination of the results of a segment of a row.
struct Results {
  const Parts& parts;
  long long first, begin;

  __device__ void put(int r, Key key, int i) const {
    static_cast<Raw*>(parts.keys)[first + r] = static_cast<Raw>(key);
    if (parts.wide_places)
      static_cast<long long*>(parts.places)[first + r] = begin + i;
    else
      static_cast<unsigned*>(parts.places)[first + r] = static_cast<unsigned>(begin + i);
  }
};

// The k greatest, at most 32, where no more than 32 elements reach the k-th of the lanes' greatest:
// their ranks by counting. False: there are more.
__device__ bool put_small_k(const Key (&own)[kElementsPerThread], Key greatest, int n, int k,
                            const Results& results, Item* found) {
  const int lane = static_cast<int>(threadIdx.x & 31);
  int rank = 0;
#pragma unroll
  for (int other = 0; other < 32; ++other) {
    const Key its = __shfl_sync(kAll, greatest, other);
    rank += its > greatest || (its == greatest && other < lane) ? 1 : 0;
  }
  const unsigned last = __ballot_sync(kAll, rank == k - 1);
  const Key bound = __shfl_sync(kAll, greatest, __ffs(static_cast<int>(last)) - 1);
  int count = 0;
  __syncwarp();  // the previous column has been read
#pragma unroll
  for (int j = 0; j < kElementsPerThread; ++j) {
    const int i = 32 * j + lane;
    const bool reaches = i < n && own[j] >= bound;
    const unsigned with = __ballot_sync(kAll, reaches);
    const int slot = count + __popc(with & ((1u << lane) - 1));
    if (reaches && slot < 32) found[slot] = Candidate::make(own[j], ~static_cast<unsigned>(i));
    count += __popc(with);
  }
  if (count > 32) return false;
  __syncwarp();
  const Item mine = lane < count ? found[lane] : Candidate::make(0, 0);
  rank = 0;
  for (int other = 0; other < count; ++other) rank += Candidate::above(found[other], mine) ? 1 : 0;
  if (lane < count && rank < k)
    results.put(rank, Candidate::key(mine), static_cast<int>(~Candidate::back(mine)));
  return true;
}

}  // namespace
}  // namespace anydml::top_k

using namespace anydml::top_k;

// rows: of packed columns, the last of their dimensions being the one in memory order; `across` of
// its rows are done together, `bands` times to do all. Results: [row][segment][k].
extern "C" __global__ void __launch_bounds__(kThreads, 4)
    top_k_columns(const __grid_constant__ Rows rows, const __grid_constant__ Parts parts,
                  int across, long long columns, long long bands) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ Item found[kWarps][32];
  Raw* const tile = reinterpret_cast<Raw*>(shared);
  const Raw flip = static_cast<Raw>(rows.flip);
  const int k = static_cast<int>(rows.k);
  const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
  anydml::let_next_begin();
  const long long all = rows.rows / columns * bands * parts.segments;
  for (long long task = blockIdx.x; task < all; task += gridDim.x) {
    const long long segment = task % parts.segments, group = task / parts.segments;
    const long long outer = group / bands, column = (group - outer * bands) * across;
    const long long first_row = outer * columns + column;
    const int width = static_cast<int>(columns - column < across ? columns - column : across);
    const long long begin =
        segment * parts.length + (segment < parts.longer ? segment : parts.longer);
    const int n = static_cast<int>(parts.length + (segment < parts.longer ? 1 : 0));
    const char* const from = rows.input + offsets_of(rows, first_row).input + begin * rows.stride;
    __syncthreads();  // the previous tile has been read
    const int own_column = static_cast<int>(threadIdx.x) % across;
    const int rows_at_once = kThreads / across;
    if (own_column < width && static_cast<int>(threadIdx.x) / across < rows_at_once) {
#pragma unroll 8
      for (int i = static_cast<int>(threadIdx.x) / across; i < n; i += rows_at_once)
        fetch(tile + own_column * kPitch + i, from + i * rows.stride + own_column * W);
    }
    fetched();
    __syncthreads();
    for (int c = warp; c < width; c += kWarps) {
      Key own[kElementsPerThread];
      Key greatest = 0;
#pragma unroll
      for (int j = 0; j < kElementsPerThread; ++j) {
        const int i = 32 * j + lane;
        own[j] = i < n ? key_of(tile[c * kPitch + i], flip) : 0;
        greatest = own[j] > greatest ? own[j] : greatest;
      }
      const long long row = first_row + c;
      const Results results{parts, (row * parts.segments + segment) * rows.k, begin};
      if (k <= 32 && n > 32 && put_small_k(own, greatest, n, k, results, found[warp])) continue;
      Key bound = 0;
      int reached = n;
      for (int bit = kKeyBits - 1; bit >= 0 && reached != k; --bit) {
        const Key next = bound | Key(1) << bit;
        int count = 0;
#pragma unroll
        for (int j = 0; j < kElementsPerThread; ++j) count += own[j] >= next ? 1 : 0;
        count = __reduce_add_sync(kAll, count);
        if (count >= k) bound = next, reached = count;
      }
      // Takes all greater keys, and the first of the equal ones, up to k.
      int equals = 0;
      if (reached == k) {
        equals = k;
      } else {
        int greater = 0;
#pragma unroll
        for (int j = 0; j < kElementsPerThread; ++j) greater += own[j] > bound ? 1 : 0;
        equals = k - __reduce_add_sync(kAll, greater);
      }
      int written_count = 0;
#pragma unroll
      for (int j = 0; j < kElementsPerThread; ++j) {
        const int i = 32 * j + lane;
        const unsigned lower = (1u << lane) - 1;
        const bool equal = i < n && own[j] == bound;
        const unsigned with = __ballot_sync(kAll, equal);
        const bool taken = (i < n && own[j] > bound) || (equal && __popc(with & lower) < equals);
        const unsigned takers = __ballot_sync(kAll, taken);
        if (taken) results.put(written_count + __popc(takers & lower), own[j], i);
        written_count += __popc(takers);
        equals -= __popc(with);
        equals = equals < 0 ? 0 : equals;
      }
    }
  }
}

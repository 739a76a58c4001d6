// TOP_K along an axis whose neighbours are not neighbours in memory, while the rows beside it are:
// a block reads a tile, which lies in shared memory column by column, and each warp finds the k
// greatest of its columns, exactly, by counting. They are left in the order of their places; the
// row-wise kernels choose among the tiles' results.
#include "top_k_key.cuh"

namespace anydml::top_k {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kAll = 0xFFFFFFFFu;
constexpr int kEach = ANYDML_each;  // elements of a lane
constexpr int kPitch = 32 * kEach + 1;

}  // namespace
}  // namespace anydml::top_k

using namespace anydml::top_k;

// rows: of packed columns, the last of their dimensions being the one in memory order; `across` of
// its rows are done together, `bands` times to do all. Results: [row][segment][k].
extern "C" __global__ void __launch_bounds__(kThreads)
    top_k_columns(const __grid_constant__ Rows rows, const __grid_constant__ Parts parts,
                  int across, long long columns, long long bands) {
  extern __shared__ __align__(16) unsigned char shared[];
  Raw* const tile = reinterpret_cast<Raw*>(shared);
  const Raw flip = static_cast<Raw>(rows.flip);
  const int k = static_cast<int>(rows.k);
  const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
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
    __syncthreads();  // the tile before has been read
    const int own_column = static_cast<int>(threadIdx.x) % across;
    const int together = kThreads / across;
    if (own_column < width && static_cast<int>(threadIdx.x) / across < together) {
#pragma unroll 8
      for (int i = static_cast<int>(threadIdx.x) / across; i < n; i += together)
        tile[own_column * kPitch + i] =
            *reinterpret_cast<const Raw*>(from + i * rows.stride + own_column * W);
    }
    __syncthreads();
    for (int c = warp; c < width; c += kWarps) {
      Key own[kEach];
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const int i = 32 * j + lane;
        own[j] = i < n ? key_of(tile[c * kPitch + i], flip) : 0;
      }
      Key bound = 0;
      int reached = n;
      for (int bit = kKeyBits - 1; bit >= 0 && reached != k; --bit) {
        const Key next = bound | Key(1) << bit;
        int count = 0;
#pragma unroll
        for (int j = 0; j < kEach; ++j) count += own[j] >= next ? 1 : 0;
        count = __reduce_add_sync(kAll, count);
        if (count >= k) bound = next, reached = count;
      }
      // All that is greater, and of the equals the first, as many as are left to take.
      int equals = 0;
      if (reached == k) {
        equals = k;
      } else {
        int greater = 0;
#pragma unroll
        for (int j = 0; j < kEach; ++j) greater += own[j] > bound ? 1 : 0;
        equals = k - __reduce_add_sync(kAll, greater);
      }
      const long long row = first_row + c;
      const long long results = (row * parts.segments + segment) * rows.k;
      int written = 0;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const int i = 32 * j + lane;
        const unsigned lower = (1u << lane) - 1;
        const bool equal = i < n && own[j] == bound;
        const unsigned with = __ballot_sync(kAll, equal);
        const bool taken = (i < n && own[j] > bound) || (equal && __popc(with & lower) < equals);
        const unsigned takers = __ballot_sync(kAll, taken);
        if (taken) {
          const long long to = results + written + __popc(takers & lower);
          static_cast<Raw*>(parts.keys)[to] = static_cast<Raw>(own[j]);
          if (parts.wide_places)
            static_cast<long long*>(parts.places)[to] = begin + i;
          else
            static_cast<unsigned*>(parts.places)[to] = static_cast<unsigned>(begin + i);
        }
        written += __popc(takers);
        equals -= __popc(with);
        equals = equals < 0 ? 0 : equals;
      }
    }
  }
}

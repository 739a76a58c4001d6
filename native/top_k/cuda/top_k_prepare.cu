// Keys of TOP_K for orders that its kernels do not have: NaN last among the largest; and the last
// of equal elements first, for which rows are read from their end.
#include "top_k/cuda/top_k_key.cuh"

using namespace anydml::top_k;

// keys: [row][n], of which each row has its length; places as well, if positions descend.
extern "C" __global__ void __launch_bounds__(256)
    top_k_prepare(const __grid_constant__ Rows rows, Raw* keys, void* places, long long tiles) {
  const Flip flip = flip_of(rows);
  for (long long task = blockIdx.x; task < rows.rows * tiles; task += gridDim.x) {
    const long long row = task / tiles, begin = (task - row * tiles) * 1024;
    const RowOffsets at = offsets_of(rows, row);
    const Raw* const elements = keys_of(rows, row, at);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const long long i = begin + j * 256 + threadIdx.x, to = row * rows.n + i;
      if (i >= at.length) continue;
      const long long place = rows.last_first ? at.length - 1 - i : i;
      keys[to] = static_cast<Raw>(make_key(elements[place], flip));
      if (places == nullptr) continue;
      if (rows.wide_places)
        static_cast<long long*>(places)[to] = place;
      else
        static_cast<unsigned*>(places)[to] = static_cast<unsigned>(place);
    }
  }
}

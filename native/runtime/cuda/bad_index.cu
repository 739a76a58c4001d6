// The end of a call that validates indices while it runs.
#include "runtime/cuda/bad_index.cuh"
#include "runtime/cuda/order.cuh"

using namespace anydml::cuda;

// One block, after all other kernels of the call. If an index was bad, this many bytes of a private
// result become zeros.
extern "C" __global__ void __launch_bounds__(kPublishThreads)
    bad_index_publish(const __grid_constant__ BadIndexReport report, char* result, Offset bytes) {
  anydml::await_previous();
  if (!bad_index_found(report)) return;
  clear_result(result, bytes);
  __syncthreads();
  if (threadIdx.x == 0) publish_bad_index(report);
}

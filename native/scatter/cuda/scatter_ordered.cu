// Updates whose indices ascend or descend as they lie (scatter_ordered.cpp), put over a copy of the
// input. Elements of ANYDML_SIZE bytes that are only moved (ANYDML_TYPE 0), of updates of one
// element the last; or numbers of type ANYDML_TYPE, of each element one update.
#include "runtime/cuda/order.cuh"
#include "scatter/cuda/scatter_device.cuh"
#include "scatter/cuda/scatter_words.cuh"

namespace {

using namespace anydml::cuda;

#if ANYDML_TYPE == 0
using Element = Unit<ANYDML_SIZE>::Type;
#else
using Element = Number<ANYDML_TYPE>::Type;
#endif

// Whether every element has its update: each index is known without being read again.
__device__ inline bool is_full(const InOrder& job) {
  return job.count == job.slices && (job.order->seen & kEqual) == 0;
}

__device__ void copy_all(char* to, const char* from, Offset bytes) {
  const Offset thread = static_cast<Offset>(blockIdx.x) * kOrderThreads + threadIdx.x;
  const Offset step = static_cast<Offset>(gridDim.x) * kOrderThreads;
  Offset lines = 0;
  if (((reinterpret_cast<unsigned long long>(to) | reinterpret_cast<unsigned long long>(from)) &
       15) == 0) {
    lines = bytes / 16;
    for (Offset base = thread; base < lines; base += kOrderPerThread * step) {
      uint4 line[kOrderPerThread];
#pragma unroll
      for (unsigned k = 0; k < kOrderPerThread; ++k)
        if (base + k * step < lines) line[k] = read<uint4>(from + (base + k * step) * 16);
#pragma unroll
      for (unsigned k = 0; k < kOrderPerThread; ++k)
        if (base + k * step < lines) write(to + (base + k * step) * 16, line[k]);
    }
  }
  for (Offset at = lines * 16 + thread * Offset{sizeof(Element)}; at < bytes;
       at += step * Offset{sizeof(Element)})
    write(to + at, read<Element>(from + at));
}

template <Combine kCombine, class Index, bool kFull>
__device__ void put(char* output, const char* input, const char* indices, const char* updates,
                    const InOrder& job) {
  const unsigned long long size = job.slices;
  const bool falls = (job.order->seen & kFalls) != 0;
  const unsigned thread = blockIdx.x * kOrderThreads + threadIdx.x;
  const unsigned step = gridDim.x * kOrderThreads;
  for (unsigned base = thread; base < job.count; base += kOrderPerThread * step) {
    unsigned long long key[kOrderPerThread];
    Element value[kOrderPerThread], known[kOrderPerThread];
#pragma unroll
    for (unsigned k = 0; k < kOrderPerThread; ++k) {
      const unsigned i = base + k * step;
      key[k] = size;
      if (i >= job.count) continue;
      if constexpr (kFull) {
        key[k] = falls ? job.count - 1 - i : i;
      } else {
        const char* const at = indices + Offset{i} * Offset{sizeof(Index)};
        key[k] = anydml::wrap_index(read_once<Index>(at), size);
        // Of several in a row the last one counts.
        if (kCombine == Combine::none && i + 1 < job.count &&
            anydml::wrap_index(read_once<Index>(at + sizeof(Index)), size) == key[k])
          key[k] = size;
      }
    }
#pragma unroll
    for (unsigned k = 0; k < kOrderPerThread; ++k) {
      if (key[k] >= size) continue;
      value[k] = read<Element>(updates + (base + k * step) * job.update_step);
      if (kCombine != Combine::none)
        known[k] = read<Element>(input + static_cast<Offset>(key[k]) * Offset{sizeof(Element)});
    }
#pragma unroll
    for (unsigned k = 0; k < kOrderPerThread; ++k)
      if (key[k] < size)
        write(output + static_cast<Offset>(key[k]) * Offset{sizeof(Element)},
              combined<kCombine, Rounded>(known[k], value[k]));
  }
}

template <Combine kCombine>
__device__ void put_all(char* output, const char* input, const char* indices, const char* updates,
                        const InOrder& job) {
  if (is_full(job)) {
    if (kCombine == Combine::none && job.update_step == Offset{sizeof(Element)} &&
        (job.order->seen & kFalls) == 0)
      return copy_all(output, updates, Offset{job.count} * Offset{sizeof(Element)});
    return put<kCombine, int, true>(output, input, indices, updates, job);
  }
  with_index_type(job.type, [&](auto index) {
    put<kCombine, decltype(index), false>(output, input, indices, updates, job);
  });
}

}  // namespace

// What no update names.
extern "C" __global__ void __launch_bounds__(kOrderThreads)
    scatter_ordered_copy(char* output, const char* input, const __grid_constant__ InOrder job) {
  anydml::let_next_begin();
  anydml::await_previous();
  if (!is_done(job.order, job.once != 0) || !job.copies || is_full(job)) return;
  copy_all(output, input, Offset{job.slices} * Offset{sizeof(Element)});
}

// One update. An index that has changed since its check is skipped if it is bad now.
extern "C" __global__ void __launch_bounds__(kOrderThreads)
    scatter_ordered_put(char* output, const char* input, const char* indices, const char* updates,
                        int reduction, const __grid_constant__ InOrder job) {
  anydml::let_next_begin();
  anydml::await_previous();
  if (!is_done(job.order, job.once != 0)) return;
#if ANYDML_TYPE == 0
  put_all<Combine::none>(output, input, indices, updates, job);
#else
  with_any_order<Element>(reduction, [&](auto constant) {
    put_all<decltype(constant)::value>(output, input, indices, updates, job);
  });
#endif
}

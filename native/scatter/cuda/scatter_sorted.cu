// SCATTER and SCATTER_ND from sorted keys, for elements of type ANYDML_TYPE by ANYDML_COMBINE, or
// for ones of ANYDML_SIZE bytes that are only moved (ANYDML_TYPE 0). The updates of a slice lie
// side by side, in order: the last one is moved, or all are combined, one after the other.
#include "scatter/cuda/scatter_combine.cuh"
#include "scatter/cuda/scatter_device.cuh"

namespace {

using namespace anydml::cuda;

#if ANYDML_TYPE == 0
using Element = Unit<ANYDML_SIZE>::Type;
#else
using Element = Number<ANYDML_TYPE>::Type;
constexpr Combine kCombine = static_cast<Combine>(ANYDML_COMBINE);

// Sums and products of floats of 16 bits are float until they have taken all updates.
constexpr bool kWidens = kIsShortFloat<Element> && is_arithmetic(kCombine);
template <class T>
__device__ inline auto term(T element) {
  if constexpr (kWidens)
    return widen(element);
  else
    return element;
}
using Sum = decltype(term(Element{}));

// The first term of a slice, and the result of combining this many updates with it.
__device__ inline Sum first_term(const char* element, int mean) {
  return mean == kMeanOfUpdates ? Sum{} : term(read<Element>(element));
}
template <class T>
__device__ inline Element last_value(T sum, int mean, Offset updates) {
  T last = canonicalize<kCombine>(sum);
  if constexpr (kCombine == Combine::add)
    if (mean != 0) last = divided<Rounded>(last, mean == kMeanOfUpdates ? updates : updates + 1);
  if constexpr (kWidens)
    return convert<Element>(last);
  else
    return last;
}
#endif

__device__ inline Offset key_at(const Sorted& sorted, Offset i) {
  return number_at(sorted.keys, sorted.key_width, i);
}
__device__ inline const char* update_at(const Sorted& sorted, const Places& tuples,
                                        const char* updates, Offset i) {
  return updates + places_of(tuples, number_at(sorted.updates, sorted.update_width, i)).first;
}

}  // namespace

#if ANYDML_TYPE == 0
// The last update of every slice. Places: `outer` of slices in the output, `tuples` of updates,
// `slice` of elements in an output's slice and in an update.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_move(char* output, const char* updates, const __grid_constant__ Sorted sorted,
                 const __grid_constant__ Places outer, const __grid_constant__ Places tuples,
                 const __grid_constant__ Places slice,
                 const __grid_constant__ BadIndexReport report) {
  if (bad_index_found(report)) return;
  const Offset thread = static_cast<Offset>(blockIdx.x) * kScatterThreads + threadIdx.x;
  const Offset i = thread >> sorted.lanes_log, lanes = Offset{1} << sorted.lanes_log;
  if (i >= sorted.count) return;
  const Offset key = key_at(sorted, i);
  if (key < 0 || key >= sorted.slices) return;
  if (i + 1 < sorted.count && key_at(sorted, i + 1) == key) return;
  char* const to = output + places_of(outer, key).first;
  const char* const from = update_at(sorted, tuples, updates, i);
  for (Offset e = thread & (lanes - 1); e < sorted.elements; e += lanes) {
    const PlacePair at = places_of(slice, e);
    write(to + at.first, read<Element>(from + at.second));
  }
}
#else
// All updates of every slice that has few of them; the others are listed.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_combine(char* output, const char* updates, const __grid_constant__ Sorted sorted,
                    const __grid_constant__ Places outer, const __grid_constant__ Places tuples,
                    const __grid_constant__ Places slice, const __grid_constant__ Chains chains,
                    int mean, const __grid_constant__ BadIndexReport report) {
  if (bad_index_found(report)) return;
  const Offset thread = static_cast<Offset>(blockIdx.x) * kScatterThreads + threadIdx.x;
  const Offset i = thread >> sorted.lanes_log, lanes = Offset{1} << sorted.lanes_log;
  if (i >= sorted.count) return;
  const Offset key = key_at(sorted, i), lane = thread & (lanes - 1);
  if (key < 0 || key >= sorted.slices) return;
  if (i > 0 && key_at(sorted, i - 1) == key) return;
  if (i + kLongChain < sorted.count && key_at(sorted, i + kLongChain) == key) {
    if (lane == 0) chains.starts[atomicAdd(chains.count, 1ull)] = i;
    return;
  }
  char* const to = output + places_of(outer, key).first;
  for (Offset e = lane; e < sorted.elements; e += lanes) {
    const PlacePair at = places_of(slice, e);
    Sum value = first_term(to + at.first, mean);
    Offset j = i;
    for (; j < sorted.count && key_at(sorted, j) == key; ++j)
      value = combined<kCombine, Rounded>(
          value, term(read<Element>(update_at(sorted, tuples, updates, j) + at.second)));
    write(to + at.first, last_value(value, mean, j - i));
  }
}

// The listed slices: a block each, for some elements at a time. While one thread an element
// combines a tile of updates in shared memory, all of them read the next one.
extern "C" __global__ void __launch_bounds__(kChainThreads)
    scatter_chains(char* output, const char* updates, const __grid_constant__ Sorted sorted,
                   const __grid_constant__ Places outer, const __grid_constant__ Places tuples,
                   const __grid_constant__ Places slice, const __grid_constant__ Chains chains,
                   int mean, const __grid_constant__ BadIndexReport report) {
  constexpr unsigned kSize = sizeof(Element);
  constexpr unsigned kTile = kChainBytes / (kSize < 4 ? 4 : kSize);
  constexpr unsigned kElementsPerThread = kTile / kChainThreads;
  extern __shared__ uint4 memory[];
  Element* const tiles = reinterpret_cast<Element*>(memory);
  if (bad_index_found(report)) return;
  unsigned wide_log = 0;
  while (wide_log < chain_log(kSize) && (Offset{1} << wide_log) < sorted.elements) ++wide_log;
  const unsigned wide = 1u << wide_log, rows = kTile >> wide_log;
  const unsigned mine = threadIdx.x & (wide - 1);
  const Offset pieces = (sorted.elements + wide - 1) >> wide_log;
  const Offset all = static_cast<Offset>(*chains.count) * pieces;
  for (Offset item = blockIdx.x; item < all; item += gridDim.x) {
    const Offset begin = chains.starts[item / pieces];
    const Offset e = item % pieces * wide + mine;
    const Offset key = key_at(sorted, begin);
    Offset end = begin + 1, beyond = sorted.count;
    while (end < beyond) {
      const Offset middle = end + (beyond - end) / 2;
      if (key_at(sorted, middle) == key)
        end = middle + 1;
      else
        beyond = middle;
    }
    const bool is_valid = e < sorted.elements;
    PlacePair at{0, 0};
    if (is_valid) at = places_of(slice, e);
    char* const to = output + places_of(outer, key).first + at.first;
    const bool combines = is_valid && threadIdx.x < wide;
    Sum value{};
    if (combines) value = first_term(to, mean);
    Offset number[kElementsPerThread];  // of the updates of the tile after the next; -1: none
    Element next[kElementsPerThread];
#pragma unroll
    for (unsigned k = 0; k < kElementsPerThread; ++k) number[k] = -1;
    unsigned turn = 0;
    // Two rounds before the first tile find it and read it.
    for (Offset first = begin - 2 * rows; first < end; first += rows) {
      Element* const tile = tiles + turn * kTile;
      if (first >= begin) {
#pragma unroll
        for (unsigned k = 0; k < kElementsPerThread; ++k)
          tile[k * kChainThreads + threadIdx.x] = next[k];
        __syncthreads();
      }
#pragma unroll
      for (unsigned k = 0; k < kElementsPerThread; ++k)
        if (number[k] >= 0)
          next[k] = read<Element>(updates + places_of(tuples, number[k]).first + at.second);
#pragma unroll
      for (unsigned k = 0; k < kElementsPerThread; ++k) {
        const Offset j = first + 2 * rows + ((k * kChainThreads + threadIdx.x) >> wide_log);
        number[k] = -1;
        if (is_valid && j < end) number[k] = number_at(sorted.updates, sorted.update_width, j);
      }
      if (first < begin) continue;
      if (combines) {
        const unsigned count = static_cast<unsigned>(end - first < rows ? end - first : rows);
        // Read ahead of the chain, or every sum waits for shared memory.
        constexpr unsigned kRowsPerRead = 16;
        const Element* const own = tile + mine;
        unsigned row = 0;
        for (; row + kRowsPerRead <= count; row += kRowsPerRead) {
          Element terms[kRowsPerRead];
#pragma unroll
          for (unsigned k = 0; k < kRowsPerRead; ++k) terms[k] = own[(row + k) << wide_log];
#pragma unroll
          for (unsigned k = 0; k < kRowsPerRead; ++k)
            value = combined<kCombine, Rounded>(value, term(terms[k]));
        }
        for (; row < count; ++row)
          value = combined<kCombine, Rounded>(value, term(own[row << wide_log]));
      }
      turn ^= 1;
    }
    if (combines) write(to, last_value(value, mean, end - begin));
    __syncthreads();  // before another item's first tile
  }
}
#endif

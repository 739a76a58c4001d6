// The keys of SCATTER's and SCATTER_ND's updates, which is where indices are checked: those of type
// ANYDML_INDEX.
#include "scatter/cuda/scatter_device.cuh"

namespace {

using namespace anydml::cuda;

using Index = Number<ANYDML_INDEX>::Type;

__device__ inline void put_key(void* keys, int width, Offset i, Offset key) {
  switch (width) {
    case 1:
      static_cast<unsigned char*>(keys)[i] = static_cast<unsigned char>(key);
      return;
    case 2:
      static_cast<unsigned short*>(keys)[i] = static_cast<unsigned short>(key);
      return;
    case 4:
      static_cast<unsigned*>(keys)[i] = static_cast<unsigned>(key);
      return;
    default:
      static_cast<Offset*>(keys)[i] = key;
  }
}

struct alignas(16) IndexLine {
  static constexpr int kCount = 16 / static_cast<int>(sizeof(Index));
  Index values[kCount];
};

}  // namespace

// Places of the tuples: first in the indices, second what the key begins with. Without keys and
// winners the indices are checked only. The key of a bad one is -1, cut to the width. A slice's
// winner is the last update that names it, counted from 1.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_keys(const char* indices, const __grid_constant__ Places places,
                 const __grid_constant__ Tuples tuples, void* keys, unsigned* winners,
                 const __grid_constant__ BadIndexReport report) {
  const Offset first =
      static_cast<Offset>(blockIdx.x) * (kKeysPerThread * kScatterThreads) + threadIdx.x;
  const char* from[kKeysPerThread];
  Offset key[kKeysPerThread];
  FirstBad bad;
#pragma unroll
  for (unsigned k = 0; k < kKeysPerThread; ++k) {
    const Offset i = first + k * kScatterThreads;
    PlacePair at{0, 0};
    if (i < tuples.count) at = places_of(places, i);
    from[k] = indices + at.first;
    key[k] = at.second;
  }
#pragma unroll 1
  for (int d = 0; d < tuples.length; ++d) {
    const Offset size = tuples.sizes[d], scale = tuples.scales[d];
    Index value[kKeysPerThread] = {};
#pragma unroll
    for (unsigned k = 0; k < kKeysPerThread; ++k)
      if (first + k * kScatterThreads < tuples.count)
        value[k] = read_once<Index>(from[k] + d * tuples.step);
#pragma unroll
    for (unsigned k = 0; k < kKeysPerThread; ++k) {
      const Offset i = first + k * kScatterThreads;
      if (i >= tuples.count) continue;
      const auto limit = static_cast<unsigned long long>(size);
      const unsigned long long position = anydml::wrap_index(value[k], limit);
      if (position >= limit) {
        bad.see(i * tuples.length + d, static_cast<Offset>(value[k]));
        key[k] = -1;
      } else if (key[k] >= 0) {
        key[k] += static_cast<Offset>(position) * scale;
      }
    }
  }
  if (keys != nullptr) {
#pragma unroll
    for (unsigned k = 0; k < kKeysPerThread; ++k) {
      const Offset i = first + k * kScatterThreads;
      if (i < tuples.count) put_key(keys, tuples.width, i, key[k]);
    }
  }
  if (winners != nullptr) {
#pragma unroll
    for (unsigned k = 0; k < kKeysPerThread; ++k) {
      const Offset i = first + k * kScatterThreads;
      const Offset own = i < tuples.count ? key[k] : -1;
      // Of equal keys in a warp only the last one counts.
      const unsigned equal = __match_any_sync(kAllLanes, own);
      if (own >= 0 && equal >> (threadIdx.x & 31) == 1)
        atomicMax(winners + own, static_cast<unsigned>(i + 1));
    }
  }
  bad.publish(report);
}

// Packed indices from an address of whole lines on, `count` of them, only checked.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_check(const char* indices, Offset count, const __grid_constant__ Tuples tuples,
                  const __grid_constant__ BadIndexReport report) {
  const Offset first =
      static_cast<Offset>(blockIdx.x) * (kCheckLinesPerThread * kScatterThreads) + threadIdx.x;
  const auto size_of = [&](Offset position) {
    return static_cast<unsigned long long>(
        tuples.sizes[tuples.length == 1 ? 0 : position % tuples.length]);
  };
  IndexLine line[kCheckLinesPerThread];
#pragma unroll
  for (unsigned k = 0; k < kCheckLinesPerThread; ++k) {
    const Offset at = first + k * kScatterThreads;
    line[k] = {};  // position 0: of an axis without elements bad all the same
    if ((at + 1) * IndexLine::kCount <= count)
      line[k] = reinterpret_cast<const IndexLine*>(indices)[at];
  }
  FirstBad bad;
  const unsigned long long first_size = size_of(0);
  bool same = true, good = true;
  for (int d = 1; d < tuples.length; ++d) same = same && tuples.sizes[d] == tuples.sizes[0];
#pragma unroll
  for (unsigned k = 0; k < kCheckLinesPerThread; ++k)
#pragma unroll
    for (int i = 0; i < IndexLine::kCount; ++i)
      good = good && anydml::wrap_index(line[k].values[i], first_size) < first_size;
  const Offset last = first + (kCheckLinesPerThread - 1) * kScatterThreads;
  if (!same || !good || (last + 1) * IndexLine::kCount > count) {
    // One by one, in the order of positions.
#pragma unroll
    for (unsigned k = 0; k < kCheckLinesPerThread; ++k) {
      const Offset at = first + k * kScatterThreads;
#pragma unroll
      for (int i = 0; i < IndexLine::kCount; ++i) {
        const Offset position = at * IndexLine::kCount + i;
        if (position >= count) continue;
        Index value = line[k].values[i];
        if ((at + 1) * IndexLine::kCount > count)
          value = read_once<Index>(indices + position * static_cast<Offset>(sizeof(Index)));
        const unsigned long long size = size_of(position);
        if (anydml::wrap_index(value, size) >= size) bad.see(position, static_cast<Offset>(value));
      }
    }
  }
  bad.publish(report);
}

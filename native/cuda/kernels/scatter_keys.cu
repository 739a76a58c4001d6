// The keys of SCATTER's and SCATTER_ND's updates, which is where indices are checked; copies that
// are left out, and results that are cleared, where one is bad.
#include "scatter_device.cuh"

namespace {

using namespace anydml::cuda;

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

template <class Index>
__device__ void find_keys(const char* indices, const Places& places, const Tuples& tuples,
                          void* keys, unsigned* winners, const BadIndexReport& report) {
  const Offset first =
      static_cast<Offset>(blockIdx.x) * (kKeysEach * kScatterThreads) + threadIdx.x;
  const char* from[kKeysEach];
  Offset key[kKeysEach];
  FirstBad bad;
#pragma unroll
  for (unsigned k = 0; k < kKeysEach; ++k) {
    const Offset i = first + k * kScatterThreads;
    PlacePair at{0, 0};
    if (i < tuples.count) at = places_of(places, i);
    from[k] = indices + at.first;
    key[k] = at.second;
  }
#pragma unroll 1
  for (int d = 0; d < tuples.length; ++d) {
    const Offset size = tuples.sizes[d], scale = tuples.scales[d];
    Index value[kKeysEach] = {};
#pragma unroll
    for (unsigned k = 0; k < kKeysEach; ++k)
      if (first + k * kScatterThreads < tuples.count)
        value[k] = read_once<Index>(from[k] + d * tuples.step);
#pragma unroll
    for (unsigned k = 0; k < kKeysEach; ++k) {
      const Offset i = first + k * kScatterThreads;
      if (i >= tuples.count) continue;
      const auto whole = static_cast<unsigned long long>(size);
      const unsigned long long position = anydml::wrap_index(value[k], whole);
      if (position >= whole) {
        bad.see(i * tuples.length + d, static_cast<Offset>(value[k]));
        key[k] = -1;
      } else if (key[k] >= 0) {
        key[k] += static_cast<Offset>(position) * scale;
      }
    }
  }
  if (tuples.last_only) {
    // Of equal keys in a warp only the last one counts; of those before the warp's next round, what
    // equals the last key of a later round. Where no neighbours are equal few others are.
    unsigned own[kKeysEach], later[kKeysEach];
    bool some = false;
#pragma unroll
    for (unsigned k = 0; k < kKeysEach; ++k) {
      own[k] = first + k * kScatterThreads < tuples.count ? static_cast<unsigned>(key[k]) : ~0u;
      later[k] = __shfl_sync(kAllLanes, own[k], 31);
      const unsigned next = __shfl_xor_sync(kAllLanes, own[k], 1);
      some = some || (own[k] == next && own[k] != ~0u);
    }
    if (__any_sync(kAllLanes, some)) {
#pragma unroll
      for (unsigned k = 0; k < kKeysEach; ++k) {
        const unsigned equal = __match_any_sync(kAllLanes, own[k]);
        bool last = equal >> (threadIdx.x & 31) == 1;
#pragma unroll
        for (unsigned n = k + 1; n < kKeysEach; ++n) last = last && own[k] != later[n];
        if (!last) key[k] = -1;
      }
    }
  }
  if (keys != nullptr) {
#pragma unroll
    for (unsigned k = 0; k < kKeysEach; ++k) {
      const Offset i = first + k * kScatterThreads;
      if (i < tuples.count) put_key(keys, tuples.width, i, key[k]);
    }
  }
  if (winners != nullptr) {
#pragma unroll
    for (unsigned k = 0; k < kKeysEach; ++k) {
      const Offset i = first + k * kScatterThreads;
      const Offset own = i < tuples.count ? key[k] : -1;
      // Of equal keys in a warp only the last one counts.
      const unsigned equal = __match_any_sync(kAllLanes, own);
      if (own >= 0 && equal >> (threadIdx.x & 31) == 1)
        atomicMax(winners + own, static_cast<unsigned>(i + 1));
    }
  }
  bad.tell(report);
}

template <class T>
__device__ void copy_units(char* target, const char* source, const Places& places, Offset count) {
  const Offset step = static_cast<Offset>(gridDim.x) * kScatterThreads;
  for (Offset i = static_cast<Offset>(blockIdx.x) * kScatterThreads + threadIdx.x; i < count;
       i += step) {
    const PlacePair at = places_of(places, i);
    write(target + at.first, source == nullptr ? T{} : read<T>(source + at.second));
  }
}

__device__ void copy_units(char* target, const char* source, const Places& places, Offset count,
                           int size) {
  switch (size) {
    case 1:
      return copy_units<unsigned char>(target, source, places, count);
    case 2:
      return copy_units<unsigned short>(target, source, places, count);
    case 4:
      return copy_units<unsigned>(target, source, places, count);
    case 8:
      return copy_units<uint2>(target, source, places, count);
    default:
      return copy_units<uint4>(target, source, places, count);
  }
}

}  // namespace

// Places of the tuples: first in the indices, second what the key begins with. Without keys and
// winners the indices are checked only. The key of a bad one is -1, cut to the width. A slice's
// winner is the last update that names it, counted from 1.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_keys(const char* indices, const __grid_constant__ Places places,
                 const __grid_constant__ Tuples tuples, void* keys, unsigned* winners,
                 const __grid_constant__ BadIndexReport report) {
  with_index_type(tuples.type, [&](auto index) {
    find_keys<decltype(index)>(indices, places, tuples, keys, winners, report);
  });
}

// A copy of units of `size` bytes, if all indices are good.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_copy(char* target, const char* source, const __grid_constant__ Places places,
                 Offset count, int size, const __grid_constant__ BadIndexReport report) {
  if (!bad_index_found(report)) copy_units(target, source, places, count, size);
}

// Zeros, if an index is bad.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_clear(char* target, const __grid_constant__ Places places, Offset count, int size,
                  const __grid_constant__ BadIndexReport report) {
  if (bad_index_found(report)) copy_units(target, nullptr, places, count, size);
}

namespace {

__device__ inline Offset value_of(unsigned long long bits, int size, bool is_signed) {
  if (size == 8) return static_cast<Offset>(bits);
  return is_signed ? static_cast<int>(bits) : static_cast<Offset>(bits);
}

}  // namespace

// Packed indices from an address of whole lines on, `count` of them, only checked.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_check(const char* indices, Offset count, const __grid_constant__ Tuples tuples,
                  const __grid_constant__ BadIndexReport report) {
  const int size = tuples.type >= 10 ? 8 : 4;
  const bool is_signed = tuples.type == 6 || tuples.type == 11;
  const Offset each = 16 / size, lines = (count + each - 1) / each;
  const Offset first =
      static_cast<Offset>(blockIdx.x) * (kCheckEach * kScatterThreads) + threadIdx.x;
  const uint4* const line = reinterpret_cast<const uint4*>(indices);
  uint4 value[kCheckEach];
#pragma unroll
  for (unsigned k = 0; k < kCheckEach; ++k) {
    value[k] = uint4{0, 0, 0, 0};
    const Offset at = first + k * kScatterThreads;
    if ((at + 1) * each <= count) value[k] = line[at];
  }
  FirstBad bad;
#pragma unroll 1
  for (unsigned k = 0; k < kCheckEach; ++k) {
    const Offset at = first + k * kScatterThreads;
    if (at >= lines) break;
    uint4 own = value[0];
#pragma unroll
    for (unsigned n = 1; n < kCheckEach; ++n)  // no index into registers at run time
      if (n == k) own = value[n];
    const unsigned words[4] = {own.x, own.y, own.z, own.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (size == 8 && i >= 2) continue;
      const Offset position = at * each + i;
      if (position >= count) continue;
      unsigned long long bits =
          size == 8
              ? words[(2 * i) & 3] | static_cast<unsigned long long>(words[(2 * i + 1) & 3]) << 32
              : words[i];
      if ((at + 1) * each > count)
        bits = size == 8 ? read_once<unsigned long long>(indices + 8 * position)
                         : read_once<unsigned>(indices + 4 * position);
      const Offset index = value_of(bits, size, is_signed);
      const auto most = static_cast<unsigned long long>(
          tuples.sizes[tuples.length == 1 ? 0 : position % tuples.length]);
      const unsigned long long wrapped =
          static_cast<unsigned long long>(index) + (is_signed && index < 0 ? most : 0ull);
      if (wrapped >= most) bad.see(position, index);
    }
  }
  bad.tell(report);
}

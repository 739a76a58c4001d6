// GATHER, GATHER_ELEMENTS and GATHER_ND: units of ANYDML_SIZE bytes (1, 2, 4, 8 or 16) from where
// indices of ANYDML_INDEX bytes (4 or 8) point, in one ANYDML_WAY (a GatherWay): each is compiled
// when it is first used.
//
// A kernel uses exactly the copy of an index that it validated: if it is bad, position 0 is read. A
// call of one block finds all bad indices before it writes. Others write to a private output
// (bad_index_publish makes it zeros), or run after gather_check and write nothing if that found
// one.
#include "gather/cuda/gather.cuh"
#include "common/indexing.hpp"
#include "runtime/cuda/order.cuh"
#include "common/types.hpp"

namespace {

using namespace anydml::cuda;
using anydml::move_inside;
using anydml::OutOfRange;
using anydml::wrap_index;

constexpr int kSize = ANYDML_SIZE;
constexpr bool kWide = ANYDML_INDEX == 8;
using Element = Unit<kSize>::Type;

// One load, which the compiler neither repeats nor drops.
__device__ Offset index_at(const char* from, bool is_signed) {
  if constexpr (kWide) {
    Offset value;
    asm volatile("ld.global.b64 %0, [%1];" : "=l"(value) : "l"(from));
    return value;
  } else {
    int value;
    asm volatile("ld.global.b32 %0, [%1];" : "=r"(value) : "l"(from));
    return is_signed ? value : static_cast<Offset>(static_cast<unsigned>(value));
  }
}

__device__ unsigned long long wrapped(Offset value, bool is_signed, Offset size) {
  const unsigned long long count = static_cast<unsigned long long>(size);
  return is_signed ? wrap_index<long long>(value, count)
                   : wrap_index<unsigned long long>(static_cast<unsigned long long>(value), count);
}

// A valid position, in a mode without errors.
template <OutOfRange kMode>
__device__ unsigned long long moved(Offset value, bool is_signed, Offset size) {
  const unsigned long long count = static_cast<unsigned long long>(size);
  return is_signed ? move_inside<kMode>(value, count)
                   : move_inside<kMode>(static_cast<unsigned long long>(value), count);
}
__device__ unsigned long long moved_inside(Offset value, bool is_signed, Offset size,
                                           OutOfRange mode) {
  if (mode == OutOfRange::clamp) return moved<OutOfRange::clamp>(value, is_signed, size);
  if (mode == OutOfRange::clip) return moved<OutOfRange::clip>(value, is_signed, size);
  return moved<OutOfRange::wrap>(value, is_signed, size);
}

// The slow path, for bad indices. `step`: of a tuple or of a run.
template <int kDims>
__device__ __noinline__ void report_at(const Gather<kDims>& gather, const BadIndexReport& report,
                                       unsigned number, int step, Offset value) {
  Offset position = gather.head.first + step * gather.head.flat_step;
  for (int i = gather.head.rank - 1; i >= 0; --i) {
    const GatherDim& dim = gather.dims[i];
    const unsigned next = i > 0 ? dim.size.quotient(number) : 0;
    position += static_cast<Offset>(number - next * dim.size.size) * dim.flat;
    number = next;
  }
  report_bad_index(report, position, value);
}

// Where N outputs by their numbers lie, and their inputs. True where an index of one that is `own`
// is bad.
template <int N, int kDims>
__device__ bool places_of(const Gather<kDims>& gather, const BadIndexReport& report,
                          const unsigned (&numbers)[N], const bool (&own)[N], Offset (&to)[N],
                          Offset (&from)[N]) {
  const GatherHead& head = gather.head;
  unsigned number[N];
  Offset index[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    number[k] = numbers[k];
    to[k] = from[k] = index[k] = 0;
  }
#pragma unroll 1
  for (int i = head.rank - 1; i >= 0; --i) {
    const GatherDim& dim = gather.dims[i];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const unsigned next = i > 0 ? dim.size.quotient(number[k]) : 0;
      const Offset position = number[k] - next * dim.size.size;
      to[k] += position * dim.to;
      from[k] += position * dim.from;
      index[k] += position * dim.index;
      number[k] = next;
    }
  }
  bool bad = false;
#pragma unroll 1
  for (int c = 0; c < head.tuple; ++c) {
    const GatherAxis axis = gather.axes[c];
    Offset value[N];
#pragma unroll
    for (int k = 0; k < N; ++k)
      value[k] = index_at(head.indices + index[k] + c * head.index_step, head.is_signed);
    if (static_cast<OutOfRange>(head.mode) != OutOfRange::raise) {
#pragma unroll
      for (int k = 0; k < N; ++k)
        from[k] += static_cast<Offset>(moved_inside(value[k], head.is_signed, axis.size,
                                                    static_cast<OutOfRange>(head.mode))) *
                   axis.stride;
      continue;
    }
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const unsigned long long place = wrapped(value[k], head.is_signed, axis.size);
      const bool inside = place < static_cast<unsigned long long>(axis.size);
      from[k] += inside ? static_cast<Offset>(place) * axis.stride : 0;
      if (!inside && own[k]) {
        bad = true;
        report_at(gather, report, numbers[k], c, value[k]);
      }
    }
  }
  return bad;
}

// Whether nothing is to be written: in a call of one block, which knows all indices here.
__device__ bool stops(const GatherHead& head, const BadIndexReport& report, bool bad) {
  if (!head.alone || report.slot == nullptr) return false;
  if (!__syncthreads_or(bad)) return false;
  if (threadIdx.x == 0) publish_bad_index(report);
  return true;
}

template <int kDims>
[[maybe_unused]] __device__ void gather_units(const BadIndexReport& report,
                                              const Gather<kDims>& gather, unsigned tile) {
  const GatherHead& head = gather.head;
  const unsigned first = tile * (kGatherThreads * kGatherUnroll) + threadIdx.x;
  unsigned number[kGatherUnroll];
  bool own[kGatherUnroll];
#pragma unroll
  for (int k = 0; k < kGatherUnroll; ++k) {
    const unsigned at = first + k * kGatherThreads;
    own[k] = at < head.items;
    number[k] = own[k] ? at : 0;
  }
  Offset to[kGatherUnroll], from[kGatherUnroll];
  const bool bad = places_of(gather, report, number, own, to, from);
  const bool none = stops(head, report, bad);
  Element value[kGatherUnroll] = {};
  if (!none) {
#pragma unroll
    for (int k = 0; k < kGatherUnroll; ++k) value[k] = read<Element>(head.source + from[k]);
  } else if (!head.output_is_private) {
    return;
  }
#pragma unroll
  for (int k = 0; k < kGatherUnroll; ++k)
    if (own[k]) write(head.target + to[k], value[k]);
}

// kRun indices that lie together.
[[maybe_unused]] __device__ void indices_at(const char* from, bool is_signed,
                                            Offset (&value)[kRun]) {
  if constexpr (kWide) {
    asm volatile("ld.global.v2.b64 {%0, %1}, [%2];" : "=l"(value[0]), "=l"(value[1]) : "l"(from));
    asm volatile("ld.global.v2.b64 {%0, %1}, [%2];"
                 : "=l"(value[2]), "=l"(value[3])
                 : "l"(from + 16));
  } else {
    int word[kRun];
    asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                 : "l"(from));
#pragma unroll
    for (int j = 0; j < kRun; ++j)
      value[j] = is_signed ? word[j] : static_cast<Offset>(static_cast<unsigned>(word[j]));
  }
}

struct alignas(4 * kSize < 16 ? 4 * kSize : 16) Run {
  Element values[kRun];
};

// Elements that lie together in the output and have their indices together, kRun at a time.
template <int kDims>
[[maybe_unused]] __device__ void gather_runs(const BadIndexReport& report,
                                             const Gather<kDims>& gather, unsigned tile) {
  const GatherHead& head = gather.head;
  const GatherAxis axis = gather.axes[0];
  const GatherDim& inner = gather.dims[head.rank - 1];
  const unsigned first = tile * (kGatherThreads * kRunUnroll) + threadIdx.x;
  unsigned number[kRunUnroll];
  int own[kRunUnroll];  // elements of the run
  Offset to[kRunUnroll], from[kRunUnroll][kRun], index[kRunUnroll];
#pragma unroll
  for (int k = 0; k < kRunUnroll; ++k) {
    const unsigned at = first + k * kGatherThreads;
    number[k] = at < head.items ? at : 0;
    const unsigned next = head.rank > 1 ? inner.size.quotient(number[k]) : 0;
    const Offset position = number[k] - next * inner.size.size;
    const Offset left = head.inner - position * kRun;
    own[k] = at >= head.items ? 0 : left < kRun ? static_cast<int>(left) : kRun;
    number[k] = next;
    to[k] = position * inner.to;
    from[k][0] = position * inner.from;
    index[k] = position * inner.index;
  }
#pragma unroll 1
  for (int i = head.rank - 2; i >= 0; --i) {
    const GatherDim& dim = gather.dims[i];
#pragma unroll
    for (int k = 0; k < kRunUnroll; ++k) {
      const unsigned next = i > 0 ? dim.size.quotient(number[k]) : 0;
      const Offset position = number[k] - next * dim.size.size;
      to[k] += position * dim.to;
      from[k][0] += position * dim.from;
      index[k] += position * dim.index;
      number[k] = next;
    }
  }
  Offset value[kRunUnroll][kRun];
#pragma unroll
  for (int k = 0; k < kRunUnroll; ++k) {
    const char* const lookup = head.indices + index[k];
    if (own[k] == kRun) {
      indices_at(lookup, head.is_signed, value[k]);
    } else {
#pragma unroll
      for (int j = 0; j < kRun; ++j)
        value[k][j] = j < own[k] ? index_at(lookup + j * ANYDML_INDEX, head.is_signed) : Offset{0};
    }
  }
  bool bad = false;
#pragma unroll
  for (int k = 0; k < kRunUnroll; ++k) {
    const Offset begin = from[k][0];
#pragma unroll
    for (int j = 0; j < kRun; ++j) {
      unsigned long long place;
      bool inside = true;
      if (static_cast<OutOfRange>(head.mode) != OutOfRange::raise) {
        place = moved_inside(value[k][j], head.is_signed, axis.size,
                             static_cast<OutOfRange>(head.mode));
      } else {
        place = wrapped(value[k][j], head.is_signed, axis.size);
        inside = place < static_cast<unsigned long long>(axis.size);
      }
      from[k][j] =
          begin + j * head.from_step + (inside ? static_cast<Offset>(place) * axis.stride : 0);
      if (!inside && j < own[k]) {
        bad = true;
        report_at(gather, report, first + k * kGatherThreads, j, value[k][j]);
      }
    }
  }
  const bool none = stops(head, report, bad);
  if (none && !head.output_is_private) return;
  Run run[kRunUnroll] = {};
#pragma unroll
  for (int k = 0; k < kRunUnroll; ++k)
#pragma unroll
    for (int j = 0; j < kRun; ++j)
      if (!none && j < own[k]) run[k].values[j] = read<Element>(head.source + from[k][j]);
#pragma unroll
  for (int k = 0; k < kRunUnroll; ++k) {
    char* const target = head.target + to[k];
    if (own[k] == kRun) {
      write(target, run[k]);
    } else {
#pragma unroll
      for (int j = 0; j < kRun; ++j)
        if (j < own[k]) write(target + j * kSize, run[k].values[j]);
    }
  }
}

// Rows: at any addresses, or if ANYDML_SIZE is 16 of whole lines. The threads of a segment belong
// to one warp and use the index that one of them reads.
template <int kDims>
[[maybe_unused]] __device__ void gather_rows(const BadIndexReport& report,
                                             const Gather<kDims>& gather, unsigned tile) {
  const GatherHead& head = gather.head;
  const unsigned lanes = 1u << head.lanes_log, length = lanes * kLaneBytes;
  const unsigned item = (tile << (8 - head.lanes_log)) + (threadIdx.x >> head.lanes_log);
  const bool own[1] = {item < head.items};
  const unsigned mine = own[0] ? item : 0;
  const unsigned number[1] = {head.segments.quotient(mine)};
  const Offset at = static_cast<Offset>(mine - number[0] * head.segments.size) * length;
  Offset to[1], from[1];
  const bool bad = places_of(gather, report, number, own, to, from);
  from[0] = __shfl_sync(0xFFFFFFFFu, from[0], (threadIdx.x & 31) & ~(lanes - 1));
  const bool none = stops(head, report, bad);
  if (!own[0] || (none && !head.output_is_private)) return;
  const Offset left = head.bytes - at;
  const unsigned bytes = left < length ? static_cast<unsigned>(left) : length;
  const unsigned lane = threadIdx.x & (lanes - 1);
  char* const target = head.target + to[0] + at;
  const char* const source = head.source + from[0] + at;
  if constexpr (kSize == 16) {
    constexpr int kLines = kLaneBytes / 16;
    const unsigned lines = bytes / 16;
    uint4 value[kLines] = {};
#pragma unroll
    for (int k = 0; k < kLines; ++k)
      if (!none && lane + k * lanes < lines)
        value[k] = read<uint4>(source + (lane + k * lanes) * 16);
#pragma unroll
    for (int k = 0; k < kLines; ++k)
      if (lane + k * lanes < lines) write(target + (lane + k * lanes) * 16, value[k]);
  } else if (none) {
    fill_piece(target, {0, 0, 0, 0}, bytes, lane, lanes);
  } else {
    copy_piece(target, source, bytes, lane, lanes);
  }
}

}  // namespace

#define ANYDML_KERNEL(name) extern "C" __global__ void __launch_bounds__(kGatherThreads) name

// Each kernel for few dimensions and for many.
#define ANYDML_KERNEL_OF(way, suffix, dims)                                                      \
  ANYDML_KERNEL(way##suffix)                                                                     \
  (const __grid_constant__ BadIndexReport report, const __grid_constant__ Gather<dims> gather) { \
    anydml::let_next_begin();                                                                    \
    const GatherHead& head = gather.head;                                                        \
    if (head.alone || head.output_is_private || !bad_index_found(report))                        \
      way(report, gather, blockIdx.x);                                                           \
    if (head.last) publish_report_by_last_block(report, head.result, head.result_bytes);         \
  }
#define ANYDML_KERNELS(way) \
  ANYDML_KERNEL_OF(way, _few, kSmallDims) ANYDML_KERNEL_OF(way, _many, kMaxDims)

#if ANYDML_WAY == 0
ANYDML_KERNELS(gather_units)
#elif ANYDML_WAY == 1
ANYDML_KERNELS(gather_runs)
#elif ANYDML_WAY == 2
ANYDML_KERNELS(gather_rows)
#else
// Only checks the indices, before anything is written.
ANYDML_KERNEL(gather_check)
(const __grid_constant__ BadIndexReport report, const __grid_constant__ IndexCheck check) {
  const Offset first = static_cast<Offset>(blockIdx.x) * (kGatherThreads * kGatherUnroll);
  Offset offset[kGatherUnroll] = {}, value[kGatherUnroll];
  unsigned number[kGatherUnroll];
  bool own[kGatherUnroll];
#pragma unroll
  for (int k = 0; k < kGatherUnroll; ++k) {
    const Offset at = first + k * kGatherThreads + threadIdx.x;
    own[k] = at < check.count;
    number[k] = own[k] ? static_cast<unsigned>(at) : 0;
  }
#pragma unroll 1
  for (int i = check.rank - 1; i >= 0; --i) {
#pragma unroll
    for (int k = 0; k < kGatherUnroll; ++k) {
      const unsigned next = i > 0 ? check.sizes[i].quotient(number[k]) : 0;
      offset[k] += static_cast<Offset>(number[k] - next * check.sizes[i].size) * check.strides[i];
      number[k] = next;
    }
  }
#pragma unroll
  for (int k = 0; k < kGatherUnroll; ++k)
    value[k] = index_at(check.indices + offset[k], check.is_signed);
#pragma unroll
  for (int k = 0; k < kGatherUnroll; ++k) {
    const Offset at = first + k * kGatherThreads + threadIdx.x;
    const unsigned coordinate =
        check.tuple == 1 ? 0 : (static_cast<unsigned>(at) + check.coordinate) % check.tuple;
    const Offset size = check.bounds[coordinate];
    if (own[k] && wrapped(value[k], check.is_signed, size) >= static_cast<unsigned long long>(size))
      report_bad_index(report, check.first + at, value[k]);
  }
}
#endif

// The last phase of NONZERO_COORDINATES: the rows. ANYDML_SIZE: bytes of a coordinate, 4 or 8.
// ANYDML_COLUMNS: 1 to 4, rows one after the other; or 0, any number of columns at any strides.
#include "nonzero/cuda/nonzero.cuh"

namespace {

using namespace anydml::cuda;

constexpr unsigned kAll = 0xFFFFFFFFu;
constexpr unsigned kWarps = kNonzeroThreads / 32;
constexpr int kColumns = ANYDML_COLUMNS;
// From this many set bits of a slice on, it is faster to visit every bit.
constexpr unsigned kDense = 320;
constexpr int kHeld = kColumns == 0 ? 1 : kColumns;

template <int W>
struct Value;
template <>
struct Value<4> {
  using Type = unsigned;
  using Pair = uint2;
};
template <>
struct Value<8> {
  using Type = unsigned long long;
  using Pair = ulonglong2;
};
using Coordinate = Value<ANYDML_SIZE>::Type;

struct Target {
  char* data;
  Offset row_step, column_step;
  Offset max_rows;  // rows
  bool paired;      // rows of two coordinates are written as one
};

// Elements of a granule, of which some are made rows.
struct Stretch {
  const Axes& axes;
  const Offset* starts;  // the position of its first element, in shared memory where there may be
  Offset held[kHeld];    // many columns
  unsigned length;       // elements

  // By their place in the stretch.
  __device__ void coordinates(unsigned place, Offset (&at)[kHeld]) const {
#pragma unroll
    for (int c = kColumns - 1; c >= 0; --c) at[c] = advance(axes.axes[c], held[c], place);
  }
};

template <int N>
__device__ void write_row(char* to, const Offset (&at)[N], bool paired) {
  if constexpr (N == 2) {
    if (paired) {
      using Pair = Value<ANYDML_SIZE>::Pair;
      write(to, Pair{static_cast<Coordinate>(at[0]), static_cast<Coordinate>(at[1])});
      return;
    }
  }
#pragma unroll
  for (int c = 0; c < N; ++c) write(to + c * ANYDML_SIZE, static_cast<Coordinate>(at[c]));
}

// Rows [row, row + count) by a warp; place(i) is where the i-th is in the stretch. Mostly a stretch
// lies in one row of the innermost axis: then all coordinates but one are the first element's.
template <class Place>
__device__ void write_rows(const Stretch& stretch, const Target& target, Offset row, unsigned count,
                           Coordinate* stage, Place&& place) {
  const unsigned lane = threadIdx.x & 31;
  if (row >= target.max_rows) return;
  if (target.max_rows - row < count) count = static_cast<unsigned>(target.max_rows - row);
  if constexpr (kColumns == 0) {
    for (unsigned i = lane; i < count; i += 32) {
      char* const here = target.data + (row + i) * target.row_step;
      unsigned carry = place(i);
      for (int c = stretch.axes.count - 1; c >= 0; --c)
        write(here + c * target.column_step,
              static_cast<Coordinate>(advance(stretch.axes.axes[c], stretch.starts[c], carry)));
    }
  } else {
    constexpr unsigned kRow = kHeld * ANYDML_SIZE;
    constexpr int kLast = kHeld - 1;
    char* const out = target.data + row * kRow;
    const bool straight = stretch.held[kLast] + stretch.length <= stretch.axes.axes[kLast].size;
    if constexpr (kColumns <= 2) {
      const auto write_all = [&](auto&& make) {
        // Up to where a line of 128 bytes begins; then the warp's stores fill lines.
        const unsigned into =
            static_cast<unsigned>(reinterpret_cast<unsigned long long>(out)) & 127;
        const unsigned lead = min((128 - into) / kRow % (128 / kRow), count);
        if (lane < lead) make(lane);
        unsigned i = lead + lane;
        for (; i - lane + 128 <= count; i += 128) {
#pragma unroll
          for (unsigned k = 0; k < 4; ++k) make(i + k * 32);
        }
        for (; i < count; i += 32) make(i);
      };
      if (straight) {
        Offset at[kHeld];
#pragma unroll
        for (int c = 0; c < kHeld; ++c) at[c] = stretch.held[c];
        const Offset first = at[kLast];
        write_all([&](unsigned i) {
          at[kLast] = first + place(i);
          write_row<kHeld>(out + i * kRow, at, target.paired);
        });
      } else {
        write_all([&](unsigned i) {
          Offset at[kHeld];
          stretch.coordinates(place(i), at);
          write_row<kHeld>(out + i * kRow, at, target.paired);
        });
      }
    } else {  // through shared memory, so that the warp's stores fill sectors
      for (unsigned begin = 0; begin < count; begin += 32) {
        const unsigned chunk = min(32u, count - begin);
        if (lane < chunk) {
          Offset at[kHeld];
#pragma unroll
          for (int c = 0; c < kHeld; ++c) at[c] = stretch.held[c];
          if (straight)
            at[kLast] += place(begin + lane);
          else
            stretch.coordinates(place(begin + lane), at);
#pragma unroll
          for (int c = 0; c < kHeld; ++c) stage[lane * kHeld + c] = static_cast<Coordinate>(at[c]);
        }
        __syncwarp();
        Coordinate* const here = reinterpret_cast<Coordinate*>(out + begin * kRow);
        for (unsigned i = lane; i < chunk * kHeld; i += 32) here[i] = stage[i];
        __syncwarp();
      }
    }
  }
}

// The sum over the lanes before.
__device__ unsigned sum_before(unsigned value) {
  const unsigned lane = threadIdx.x & 31;
  unsigned sum = value;
#pragma unroll
  for (unsigned d = 1; d < 32; d *= 2) {
    const unsigned other = __shfl_up_sync(kAll, sum, d);
    if (lane >= d) sum += other;
  }
  return sum - value;
}

// Writes the places of a lane's bits to the list, from `index` on.
__device__ void list_bits(unsigned word, unsigned first, unsigned index, unsigned short* list) {
  for (; word != 0; word &= word - 1)
    list[index++] = static_cast<unsigned short>(first + __ffs(word) - 1);
}

// The same if many bits are set: visits every bit.
__device__ void list_dense_bits(unsigned word, unsigned first, unsigned index,
                                unsigned short* list) {
  unsigned short* at = list + index;
#pragma unroll
  for (unsigned bit = 0; bit < 32; ++bit)
    if ((word >> bit & 1) != 0) *at++ = static_cast<unsigned short>(first + bit);
}

}  // namespace

// A block writes the rows of 2^granules_log granules. The places of the bits go through a list, so
// that neighbouring lanes write neighbouring rows. Where few bits of a granule are set, a warp
// lists all of them; else the block takes the granule together, a slice a warp, so that what is
// written at a time lies close together.
extern "C" __global__ void __launch_bounds__(kNonzeroThreads, 5)
    nonzero_rows(const unsigned* bits, const Offset* starts, Offset granules, unsigned skip,
                 int granules_log, const __grid_constant__ Axes axes, char* rows, Offset max_rows,
                 Offset row_step, Offset column_step, int paired) {
  __shared__ unsigned short lists[kWarps][kSlice];
  __shared__ Coordinate stages[kWarps][kColumns > 2 ? 32 * kColumns : 1];
  __shared__ Offset positions[kWarps][kColumns == 0 ? kMaxDims : 1];
  __shared__ Offset first_rows[kWarps + 1];
  __shared__ unsigned totals[2][kWarps];
  static_assert(kWarps == kSlices);
  const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const Offset base = static_cast<Offset>(blockIdx.x) << granules_log;
  const unsigned count = static_cast<unsigned>(min(Offset{1} << granules_log, granules - base));
  const unsigned* const words = bits + base * kGranuleWords;
  // The lines of the warp's own granule, loaded before it is known whether they are needed.
  uint4 early[2] = {};
  if (warp < count) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      early[i] = reinterpret_cast<const uint4*>(words + warp * kGranuleWords)[lane * 2 + i];
  }
  if (threadIdx.x <= count) first_rows[threadIdx.x] = starts[base + threadIdx.x];
  __syncthreads();

  const Target target{rows, row_step, column_step, max_rows, paired != 0};
  unsigned short* const list = lists[warp];
  Stretch stretch{axes, positions[warp], {}, 0};
  // Moves to slices of a granule; returns where they begin in it.
  const auto start_at = [&](unsigned granule, unsigned slice, unsigned slices) {
    // The first places of the first granule are not elements.
    const unsigned skipped = base + granule == 0 ? skip : 0;
    const unsigned place = max(slice * kSlice, skipped);
    const Offset first = (base + granule) * kGranule + place - skip;
    stretch.length = (slice + slices) * kSlice - place;
    if constexpr (kColumns == 0) {
      __syncwarp();
      for (int c = static_cast<int>(lane); c < axes.count; c += 32)
        positions[warp][c] = position_of(axes.axes[c], axes.narrow, first);
      __syncwarp();
    } else {
      Offset mine = 0;
      if (static_cast<int>(lane) < kColumns)
        mine = position_of(axes.axes[lane], axes.narrow, first);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) stretch.held[c] = __shfl_sync(kAll, mine, c);
    }
    return place;
  };

  const unsigned warp_rows =
      warp < count ? static_cast<unsigned>(first_rows[warp + 1] - first_rows[warp]) : 0;
  if (warp_rows != 0 && warp_rows <= kSlice) {  // a lane takes 256 elements, one after the other
    const unsigned own[8] = {early[0].x, early[0].y, early[0].z, early[0].w,
                             early[1].x, early[1].y, early[1].z, early[1].w};
    unsigned set = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) set += __popc(own[i]);
    unsigned index = sum_before(set);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      list_bits(own[i], lane * 256 + i * 32, index, list);
      index += __popc(own[i]);
    }
    const unsigned place = start_at(warp, 0, kSlices);
    __syncwarp();
    write_rows(stretch, target, first_rows[warp], warp_rows, stages[warp],
               [&](unsigned i) -> unsigned { return list[i] - place; });
    __syncwarp();
  }

  unsigned turn = 0;
#pragma unroll 1
  for (unsigned granule = 0; granule < count; ++granule) {
    if (first_rows[granule + 1] - first_rows[granule] <= kSlice) continue;
    const unsigned word = words[granule * kGranuleWords + warp * 32 + lane];
    const unsigned index = sum_before(__popc(word));
    if (lane == 31) totals[turn][warp] = index + __popc(word);
    __syncthreads();
    Offset row = first_rows[granule];
    for (unsigned w = 0; w < warp; ++w) row += totals[turn][w];
    const unsigned total = totals[turn][warp];
    turn ^= 1;
    if (total == 0) continue;
    const unsigned place = start_at(granule, warp, 1);
    if (total == kSlice) {
      write_rows(stretch, target, row, total, stages[warp], [&](unsigned i) { return i; });
      continue;
    }
    if (total < kDense)
      list_bits(word, warp * kSlice + lane * 32, index, list);
    else
      list_dense_bits(word, warp * kSlice + lane * 32, index, list);
    __syncwarp();
    write_rows(stretch, target, row, total, stages[warp],
               [&](unsigned i) -> unsigned { return list[i] - place; });
    __syncwarp();
  }
}

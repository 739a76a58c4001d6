// SCATTER along an axis whose lines fit shared memory. A block takes some lines, and writes every
// element once. Of elements of ANYDML_SIZE bytes that are only moved (ANYDML_TYPE 0) it notes in a
// map which update is the last one, counted from 1 in 32 (ANYDML_WIDE) or 16 bits; numbers of type
// ANYDML_TYPE, whose updates may come in any order, it combines there (scatter_words.cuh).
#include "scatter/cuda/scatter_device.cuh"
#include "scatter/cuda/scatter_words.cuh"

namespace {

using namespace anydml::cuda;

#if ANYDML_TYPE == 0
using Element = Unit<ANYDML_SIZE>::Type;
#else
using Element = Number<ANYDML_TYPE>::Type;
#endif

#if ANYDML_WIDE || ANYDML_TYPE != 0
using Winner = unsigned;  // of a type: the element's word, so far
#else
using Winner = unsigned short;
#endif
constexpr unsigned kLinesPerThread = lines_per_thread(static_cast<int>(sizeof(Element)));

struct Strip {
  const char *input, *indices, *updates;
  char* output;
  Offset position;
  unsigned columns;
};

template <Combine kCombine, class Index>
__device__ void find_winners(const Lines& lines, const Strip& strip, Winner* winners,
                             Element* staged, FirstBad& bad) {
  const unsigned all = lines.length << lines.width_log, step = kLinesPerThread * blockDim.x;
  const unsigned steps = (all + step - 1) / step;
  // Starts with the last updates: an update that is not later than the recorded one changes
  // nothing.
  for (unsigned turn = steps; turn-- > 0;) {
    const unsigned begin = turn * step + threadIdx.x;
    Index value[kLinesPerThread] = {};
    Element update[kLinesPerThread];
#pragma unroll
    for (unsigned k = 0; k < kLinesPerThread; ++k) {
      const unsigned v = begin + k * blockDim.x;
      const unsigned row = v >> lines.width_log, column = v & (lines.width - 1);
      if (v >= all || column >= strip.columns) continue;
      value[k] = read_once<Index>(strip.indices + row * lines.indices.axis +
                                  column * lines.indices.column);
#if ANYDML_TYPE == 0
      if (staged == nullptr) continue;
#endif
      update[k] =
          read<Element>(strip.updates + row * lines.updates.axis + column * lines.updates.column);
    }
#if ANYDML_TYPE == 0
    // Of equal places of a warp the last row's count.
    bool same = __all_sync(kAllLanes, value[0] == __shfl_sync(kAllLanes, value[0], 0));
    if (same) {
      const unsigned last = begin + (kLinesPerThread - 1) * blockDim.x;
      same = last < all && (last & (lines.width - 1)) < strip.columns;
#pragma unroll
      for (unsigned k = 1; k < kLinesPerThread; ++k) same = same && value[k] == value[0];
      same = __all_sync(kAllLanes, same);
    }
#endif
#pragma unroll
    for (unsigned n = kLinesPerThread; n > 0; --n) {
      const unsigned k = n - 1, v = begin + k * blockDim.x;
      const unsigned row = v >> lines.width_log, column = v & (lines.width - 1);
      const bool is_valid = v < all && column < strip.columns;
      if (!is_valid) continue;
      const unsigned long long place = anydml::wrap_index(value[k], lines.size);
      if (place < lines.size) {
        Winner* const winner = winners + (static_cast<unsigned>(place) << lines.width_log) + column;
#if ANYDML_TYPE == 0
        if (!same || (n == kLinesPerThread && (threadIdx.x & 31) + lines.width >= 32))
          win(winner, row + 1);
#else
        take<kCombine, Element>(winner, word_of<kCombine>(update[k], row + 1));
#endif
      } else {
        bad.see(strip.position + row * lines.position.axis + column * lines.position.column,
                static_cast<Offset>(value[k]));
      }
      if (staged != nullptr) staged[row] = update[k];
    }
  }
}

template <Combine kCombine>
__device__ void write_lines(const Lines& lines, const Strip& strip, const Winner* winners,
                            const Element* staged) {
  const unsigned all = lines.size << lines.width_log;
  for (unsigned begin = threadIdx.x; begin < all; begin += kLinesPerThread * blockDim.x) {
    Element value[kLinesPerThread];
    bool is_valid[kLinesPerThread];
#pragma unroll
    for (unsigned k = 0; k < kLinesPerThread; ++k) {
      const unsigned v = begin + k * blockDim.x;
      [[maybe_unused]] const unsigned row = v >> lines.width_log;
      const unsigned column = v & (lines.width - 1);
      is_valid[k] = false;
      if (v >= all || column >= strip.columns) continue;
      const unsigned winner = winners[v];
#if ANYDML_TYPE != 0
      is_valid[k] = true;
      value[k] = element_of<kCombine, Element>(winner, [&](unsigned number) {
        return number == 0 ? read<Element>(strip.input + row * lines.input.axis +
                                           column * lines.input.column)
                           : read<Element>(strip.updates + (number - 1) * lines.updates.axis +
                                           column * lines.updates.column);
      });
#else
      is_valid[k] = winner != 0 || lines.copies;
      if (winner == 0) {
        if (lines.copies)
          value[k] =
              read<Element>(strip.input + row * lines.input.axis + column * lines.input.column);
      } else if (staged != nullptr) {
        value[k] = staged[winner - 1];
      } else {
        value[k] = read<Element>(strip.updates + (winner - 1) * lines.updates.axis +
                                 column * lines.updates.column);
      }
#endif
    }
#pragma unroll
    for (unsigned k = 0; k < kLinesPerThread; ++k) {
      const unsigned v = begin + k * blockDim.x;
      const unsigned row = v >> lines.width_log, column = v & (lines.width - 1);
      if (is_valid[k])
        write(strip.output + row * lines.output.axis + column * lines.output.column, value[k]);
    }
  }
}

#if ANYDML_TYPE != 0
template <Combine kCombine>
__device__ void read_lines(const Lines& lines, const Strip& strip, Winner* words) {
  const unsigned all = lines.size << lines.width_log;
#pragma unroll 4
  for (unsigned v = threadIdx.x; v < all; v += blockDim.x) {
    const unsigned row = v >> lines.width_log, column = v & (lines.width - 1);
    if (column < strip.columns)
      words[v] = word_of<kCombine>(
          read<Element>(strip.input + row * lines.input.axis + column * lines.input.column), 0);
  }
}
#endif

template <Combine kCombine>
__device__ void scatter_strip(const Lines& lines, const Strip& strip, char* memory,
                              const BadIndexReport& report) {
  Winner* const winners = reinterpret_cast<Winner*>(memory);
  Element* const staged =
      lines.staged != 0 ? reinterpret_cast<Element*>(memory + lines.staged) : nullptr;
#if ANYDML_TYPE != 0
  read_lines<kCombine>(lines, strip, winners);
#else
  unsigned* const words = reinterpret_cast<unsigned*>(memory);
  const unsigned count =
      ((lines.size << lines.width_log) * static_cast<unsigned>(sizeof(Winner)) + 3) / 4;
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) words[i] = 0;
#endif
  __syncthreads();
  FirstBad bad;
  with_index_type(lines.type, [&](auto index) {
    find_winners<kCombine, decltype(index)>(lines, strip, winners, staged, bad);
  });
  if (lines.reports_bad_indices) bad.publish(report);
  __syncthreads();
  write_lines<kCombine>(lines, strip, winners, staged);
}

#if ANYDML_WIDE || ANYDML_TYPE != 0
// ---- packed lines -------------------------------------------------------------------------------

struct alignas(sizeof(Element) < 4 ? 4 * sizeof(Element) : 16) Four {
  Element of[4];
};

// Each read once.
template <class Index>
__device__ void indices_at(const char* from, Index (&value)[4]) {
  if constexpr (sizeof(Index) == 8) {
    asm volatile("ld.global.v2.b64 {%0, %1}, [%2];" : "=l"(value[0]), "=l"(value[1]) : "l"(from));
    asm volatile("ld.global.v2.b64 {%0, %1}, [%2];"
                 : "=l"(value[2]), "=l"(value[3])
                 : "l"(from + 16));
  } else {
    asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                 : "l"(from));
  }
}

#if ANYDML_TYPE == 0
// 16 bytes to shared memory, which arrive later.
__device__ inline void fetch_line(uint4* to, const char* from) {
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from));
}
__device__ inline void wait_for_lines() { asm volatile("cp.async.wait_all;"); }
#endif

template <Combine kCombine, class Index>
__device__ void find_packed(const Lines& lines, const Strip& strip, Winner* winners,
                            FirstBad& bad) {
  constexpr unsigned kTurn = 2;
  const unsigned fours = lines.length / 4, step = kTurn * blockDim.x;
  [[maybe_unused]] bool crowded = false;
  for (unsigned turn = (fours + step - 1) / step; turn-- > 0;) {
    Index value[kTurn][4] = {};
#if ANYDML_TYPE != 0
    Four update[kTurn];
#endif
#pragma unroll
    for (unsigned k = 0; k < kTurn; ++k) {
      const unsigned f = turn * step + k * blockDim.x + threadIdx.x;
      if (f >= fours) continue;
      indices_at(strip.indices + f * static_cast<unsigned>(4 * sizeof(Index)), value[k]);
#if ANYDML_TYPE != 0
      update[k] = read<Four>(strip.updates + f * static_cast<unsigned>(sizeof(Four)));
#endif
    }
#pragma unroll
    for (unsigned n = kTurn; n > 0; --n) {
      const unsigned k = n - 1, f = turn * step + k * blockDim.x + threadIdx.x;
      const bool is_valid = f < fours;
      const Index(&own)[4] = value[k];
#if ANYDML_TYPE == 0
      // Of equal places of a warp the last one counts.
      const Index first = __shfl_sync(kAllLanes, own[0], 0);  // by all lanes, whatever they have
      bool same = is_valid && own[0] == own[1] && own[0] == own[2] && own[0] == own[3];
      same = __all_sync(kAllLanes, same && own[0] == first);
      unsigned known = 0;
#endif
#pragma unroll
      for (unsigned i = 4; i > 0; --i) {
        const unsigned long long place = anydml::wrap_index(own[i - 1], lines.size);
        if (!is_valid) continue;
        if (place >= lines.size) {
          bad.see(strip.position + (4 * f + i - 1) * lines.position.axis,
                  static_cast<Offset>(own[i - 1]));
          continue;
        }
        Winner* const winner = winners + place;
#if ANYDML_TYPE == 0
        const unsigned row = 4 * f + i;
        if (same) {
          if (i == 4 && (threadIdx.x & 31) == 31) atomicMax(winner, row);
        } else if (!crowded || *const_cast<volatile Winner*>(winner) < row) {
          known = atomicMax(winner, row);
        }
#else
        take<kCombine, Element>(winner, word_of<kCombine>(update[k].of[i - 1], 4 * f + i));
#endif
      }
#if ANYDML_TYPE == 0
      // Where later updates have been at most places, it is worth looking first.
      if (!crowded) crowded = __popc(__ballot_sync(kAllLanes, known != 0)) >= 16;
#endif
    }
  }
}

template <Combine kCombine>
__device__ void write_packed(const Lines& lines, const Strip& strip, const Winner* winners,
                             const Element* staged) {
  const unsigned fours = lines.size / 4;
#pragma unroll 2
  for (unsigned f = threadIdx.x; f < fours; f += blockDim.x) {
    const uint4 found = reinterpret_cast<const uint4*>(winners)[f];
    const unsigned winner[4] = {found.x, found.y, found.z, found.w};
    const unsigned at = f * static_cast<unsigned>(sizeof(Four));
    Four result;
#if ANYDML_TYPE != 0
#pragma unroll
    for (int i = 0; i < 4; ++i)
      result.of[i] = element_of<kCombine, Element>(winner[i], [&](unsigned number) {
        constexpr unsigned kSize = sizeof(Element);
        return read<Element>(number == 0 ? strip.input + at + i * kSize
                                         : strip.updates + (number - 1) * kSize);
      });
#else
    if (winner[0] == 0 || winner[1] == 0 || winner[2] == 0 || winner[3] == 0) {
      if (!lines.copies) {
        for (int i = 0; i < 4; ++i)
          if (winner[i] != 0) write(strip.output + at + i * sizeof(Element), staged[winner[i] - 1]);
        continue;
      }
      result = read<Four>(strip.input + at);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (winner[i] != 0) result.of[i] = staged[winner[i] - 1];
#endif
    write(strip.output + at, result);
  }
}

template <Combine kCombine>
__device__ void scatter_packed_line(const Lines& lines, const Strip& strip, char* memory,
                                    const BadIndexReport& report) {
  Winner* const winners = reinterpret_cast<Winner*>(memory);
  [[maybe_unused]] Element* const staged = reinterpret_cast<Element*>(memory + lines.staged);
  uint4* const words = reinterpret_cast<uint4*>(memory);
#if ANYDML_TYPE == 0
  uint4* const fetched = reinterpret_cast<uint4*>(staged);
  const unsigned all = lines.length * static_cast<unsigned>(sizeof(Element)) / 16;
  for (unsigned i = threadIdx.x; i < all; i += blockDim.x)
    fetch_line(fetched + i, strip.updates + i * 16);
  for (unsigned i = threadIdx.x; i < lines.size / 4; i += blockDim.x) words[i] = {0, 0, 0, 0};
#else
#pragma unroll 2
  for (unsigned f = threadIdx.x; f < lines.size / 4; f += blockDim.x) {
    const Four known = read<Four>(strip.input + f * static_cast<unsigned>(sizeof(Four)));
    words[f] = {word_of<kCombine>(known.of[0], 0), word_of<kCombine>(known.of[1], 0),
                word_of<kCombine>(known.of[2], 0), word_of<kCombine>(known.of[3], 0)};
  }
#endif
  __syncthreads();
  FirstBad bad;
  with_index_type(lines.type, [&](auto index) {
    find_packed<kCombine, decltype(index)>(lines, strip, winners, bad);
  });
  if (lines.reports_bad_indices) bad.publish(report);
#if ANYDML_TYPE == 0
  wait_for_lines();
#endif
  __syncthreads();
  write_packed<kCombine>(lines, strip, winners, staged);
}
#endif

struct Data {
  char* output;
  const char *input, *indices, *updates;
};

__device__ Strip strip_of(const Data& tensors, const Lines& lines, const Places& data,
                          const Places& lookup, const Places& position) {
  const Offset number = blockIdx.x / lines.strips.size;
  const unsigned first = (blockIdx.x - static_cast<unsigned>(number) * lines.strips.size)
                         << lines.width_log;
  const PlacePair data_at = places_of(data, number), lookup_at = places_of(lookup, number);
  Strip strip;
  strip.output = tensors.output + data_at.first + first * lines.output.column;
  strip.input = tensors.input + data_at.second + first * lines.input.column;
  strip.indices = tensors.indices + lookup_at.first + first * lines.indices.column;
  strip.updates = tensors.updates + lookup_at.second + first * lines.updates.column;
  strip.position = places_of(position, number).first + first * lines.position.column;
  strip.columns = lines.columns - first < lines.width ? lines.columns - first : lines.width;
  return strip;
}

// The work of a block: a strip of lines, or a packed one.
template <bool kPacked>
__device__ inline void scatter_block(const Data& tensors, const Lines& lines, const Places& data,
                                     const Places& lookup, const Places& position, int reduction,
                                     const BadIndexReport& report, Offset private_bytes) {
  extern __shared__ uint4 memory[];
  if (!lines.reports_bad_indices && bad_index_found(report)) return;
  const Strip strip = strip_of(tensors, lines, data, lookup, position);
  char* const shared = reinterpret_cast<char*>(memory);
  const auto scatter = [&](auto constant) {
    constexpr Combine combine = decltype(constant)::value;
#if ANYDML_WIDE || ANYDML_TYPE != 0
    if constexpr (kPacked) return scatter_packed_line<combine>(lines, strip, shared, report);
#endif
    scatter_strip<combine>(lines, strip, shared, report);
  };
#if ANYDML_TYPE == 0
  scatter(Constant<Combine::none>{});
#else
  with_any_order<Element>(reduction, scatter);
#endif
  if (private_bytes != 0) publish_report_by_last_block(report, tensors.output, private_bytes);
}

}  // namespace

// Places of what lies outside the lines and their columns: `data` in the output and in the input,
// `lookup` in the indices and in the updates, `position` of indices. `private_bytes`: bytes of a
// private output, if this kernel ends the call; else 0.
extern "C" __global__ void __launch_bounds__(1024)
    scatter_lines(char* output, const char* input, const char* indices, const char* updates,
                  const __grid_constant__ Lines lines, const __grid_constant__ Places data,
                  const __grid_constant__ Places lookup, const __grid_constant__ Places position,
                  int reduction, const __grid_constant__ BadIndexReport report,
                  Offset private_bytes) {
  scatter_block<false>({output, input, indices, updates}, lines, data, lookup, position, reduction,
                       report, private_bytes);
}

#if ANYDML_WIDE || ANYDML_TYPE != 0
// The same of packed lines.
extern "C" __global__ void __launch_bounds__(kPackedThreads, kPackedBlocks)
    scatter_packed(char* output, const char* input, const char* indices, const char* updates,
                   const __grid_constant__ Lines lines, const __grid_constant__ Places data,
                   const __grid_constant__ Places lookup, const __grid_constant__ Places position,
                   int reduction, const __grid_constant__ BadIndexReport report,
                   Offset private_bytes) {
  scatter_block<true>({output, input, indices, updates}, lines, data, lookup, position, reduction,
                      report, private_bytes);
}
#endif

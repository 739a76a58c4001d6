// SCATTER along an axis whose lines fit shared memory, for elements of ANYDML_SIZE bytes that are
// only moved. A block takes some lines: it notes in a map which update is the last one of every
// element, counted from 1 in 32 (ANYDML_WIDE) or 16 bits, and then writes every element once.
#include "scatter_device.cuh"

namespace {

using namespace anydml::cuda;

using Element = Unit<ANYDML_SIZE>::Type;

#if ANYDML_WIDE
using Winner = unsigned;
__device__ inline void win(Winner* winner, unsigned update) { atomicMax(winner, update); }
#else
using Winner = unsigned short;
__device__ inline void win(Winner* winner, unsigned update) {
  const auto mine = static_cast<unsigned short>(update);
  unsigned short known = *const_cast<volatile unsigned short*>(winner);
  while (known < mine) {
    const unsigned short found = atomicCAS(winner, known, mine);
    if (found == known) return;
    known = found;
  }
}
#endif

struct Strip {
  const char *input, *indices, *updates;
  char* output;
  Offset position;
  unsigned columns;
};

template <class Index>
__device__ void find_winners(const Lines& lines, const Strip& strip, Winner* winners,
                             Element* staged, FirstBad& bad) {
  const unsigned all = lines.length << lines.width_log;
  for (unsigned begin = threadIdx.x; begin < all; begin += kLinesEach * blockDim.x) {
    Index value[kLinesEach];
    Element update[kLinesEach];
#pragma unroll
    for (unsigned k = 0; k < kLinesEach; ++k) {
      const unsigned v = begin + k * blockDim.x;
      const unsigned row = v >> lines.width_log, column = v & (lines.width - 1);
      if (v >= all || column >= strip.columns) continue;
      value[k] = read_once<Index>(strip.indices + row * lines.indices.axis +
                                  column * lines.indices.column);
      if (staged != nullptr) update[k] = read<Element>(strip.updates + row * lines.updates.axis);
    }
#pragma unroll
    for (unsigned k = 0; k < kLinesEach; ++k) {
      const unsigned v = begin + k * blockDim.x;
      const unsigned row = v >> lines.width_log, column = v & (lines.width - 1);
      if (v >= all || column >= strip.columns) continue;
      const unsigned long long place = anydml::wrap_index(value[k], lines.size);
      if (place < lines.size)
        win(winners + (static_cast<unsigned>(place) << lines.width_log) + column, row + 1);
      else
        bad.see(strip.position + row * lines.position.axis + column * lines.position.column,
                static_cast<Offset>(value[k]));
      if (staged != nullptr) staged[row] = update[k];
    }
  }
}

__device__ void write_lines(const Lines& lines, const Strip& strip, const Winner* winners,
                            const Element* staged) {
  const unsigned all = lines.size << lines.width_log;
  for (unsigned begin = threadIdx.x; begin < all; begin += kLinesEach * blockDim.x) {
    Element value[kLinesEach];
    bool there[kLinesEach];
#pragma unroll
    for (unsigned k = 0; k < kLinesEach; ++k) {
      const unsigned v = begin + k * blockDim.x;
      const unsigned row = v >> lines.width_log, column = v & (lines.width - 1);
      there[k] = false;
      if (v >= all || column >= strip.columns) continue;
      const unsigned winner = winners[v];
      there[k] = winner != 0 || lines.copies;
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
    }
#pragma unroll
    for (unsigned k = 0; k < kLinesEach; ++k) {
      const unsigned v = begin + k * blockDim.x;
      const unsigned row = v >> lines.width_log, column = v & (lines.width - 1);
      if (there[k])
        write(strip.output + row * lines.output.axis + column * lines.output.column, value[k]);
    }
  }
}

__device__ void scatter_strip(const Lines& lines, const Strip& strip, char* memory,
                              const BadIndexReport& report) {
  Winner* const winners = reinterpret_cast<Winner*>(memory);
  Element* const staged =
      lines.staged != 0 ? reinterpret_cast<Element*>(memory + lines.staged) : nullptr;
  unsigned* const words = reinterpret_cast<unsigned*>(memory);
  const unsigned count =
      ((lines.size << lines.width_log) * static_cast<unsigned>(sizeof(Winner)) + 3) / 4;
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) words[i] = 0;
  __syncthreads();
  FirstBad bad;
  with_index_type(lines.type, [&](auto index) {
    find_winners<decltype(index)>(lines, strip, winners, staged, bad);
  });
  if (lines.tells) bad.tell(report);
  __syncthreads();
  write_lines(lines, strip, winners, staged);
}

}  // namespace

// Places of what lies outside the lines and their columns: `data` in the output and in the input,
// `lookup` in the indices and in the updates, `position` of indices.
extern "C" __global__ void __launch_bounds__(1024)
    scatter_lines(char* output, const char* input, const char* indices, const char* updates,
                  const __grid_constant__ Lines lines, const __grid_constant__ Places data,
                  const __grid_constant__ Places lookup, const __grid_constant__ Places position,
                  const __grid_constant__ BadIndexReport report) {
  extern __shared__ uint4 memory[];
  if (!lines.tells && bad_index_found(report)) return;
  const Offset number = blockIdx.x / lines.strips.size;
  const unsigned first = (blockIdx.x - static_cast<unsigned>(number) * lines.strips.size)
                         << lines.width_log;
  const PlacePair data_at = places_of(data, number), lookup_at = places_of(lookup, number);
  Strip strip;
  strip.output = output + data_at.first + first * lines.output.column;
  strip.input = input + data_at.second + first * lines.input.column;
  strip.indices = indices + lookup_at.first + first * lines.indices.column;
  strip.updates = updates + lookup_at.second + first * lines.updates.column;
  strip.position = places_of(position, number).first + first * lines.position.column;
  strip.columns = lines.columns - first < lines.width ? lines.columns - first : lines.width;
  scatter_strip(lines, strip, reinterpret_cast<char*>(memory), report);
}

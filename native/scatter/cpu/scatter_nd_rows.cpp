// SCATTER_ND of slices: the output is written once, in order.
//
// 1. Every tuple becomes the number of its slice; they are checked here, before any output.
// 2. A map gives each slice its last update, or, for a reduction, all of them in order (a counting
//    sort of the updates by slice, which is stable). Several threads share the map by ranges of
//    slices: each reads all numbers and keeps to its range, so that no order depends on them.
// 3. The output is written slice after slice, from an update or from the input, past the cache. A
//    slice that an update replaces is not read from the input.
//
// O(output + updates). Scratch: 4 bytes for each slice and update, 4 more for each update of a
// reduction; under a quarter of all operands, as slices of a few elements go elsewhere.

#include <algorithm>

#include "scatter/cpu/scatter_nd.hpp"

namespace anydml::scatter {
namespace {

constexpr Int kStage = Int{16} << 10;  // output gathered in the first cache
constexpr Int kPrefetchUpdates = 24;   // updates between the prefetch of a map entry and its use
constexpr Int kOwners = 8;             // with more, each would read all numbers too often

struct Map {
  Scratch<uint32_t> numbers;  // of each tuple's slice
  Scratch<uint32_t> slices;   // its last update plus one, or 0; for a reduction, where in `order`
                              // its updates end (and the next slice's begin)
  Scratch<uint32_t> order;    // for a reduction: the updates by slice
};

// The first bad index, or -1.
Int read_numbers(const NdProblem& problem, const char* indices, uint32_t* numbers, int threads) {
  std::atomic<Int> first_bad{kNoBadIndex};
  parallel_ranges(problem.tuples, kParallelElements / 2, threads, [&](Int begin, Int end) {
    Int offsets[kPiece];
    for (Int at = begin; at < end; at += kPiece) {
      const Int count = std::min(kPiece, end - at);
      const Int bad = problem.read(indices, at, count, problem.slice_scales, offsets);
      if (bad >= 0) {
        lower(first_bad, bad);
        return;
      }
      for (Int i = 0; i < count; ++i) numbers[at + i] = static_cast<uint32_t>(offsets[i]);
    }
  });
  return status_of(first_bad).bad_index;
}

// Selects by arithmetic: whether a number is in the range is as random as the indices are.
inline uint32_t* select(bool condition, uint32_t* yes, uint32_t* no) {
  const std::uintptr_t mask = std::uintptr_t{0} - static_cast<std::uintptr_t>(condition);
  return reinterpret_cast<uint32_t*>((reinterpret_cast<std::uintptr_t>(yes) & mask) |
                                     (reinterpret_cast<std::uintptr_t>(no) & ~mask));
}

struct Range {
  uint32_t low, width;
};

// Calls body(slices[number], i) for the tuples of a range, in order; others meet a dummy.
template <class Body>
void for_range(const NdProblem& problem, const Map& map, Range range, Body&& body) {
  const uint32_t* const numbers = map.numbers.get();
  uint32_t* const slices = map.slices.get();
  uint32_t nowhere = 0;
  for (Int i = 0; i < problem.tuples; ++i) {
    prefetch_write(slices + numbers[std::min(i + kPrefetchUpdates, problem.tuples - 1)]);
    const uint32_t number = numbers[i];
    const bool mine = number - range.low < range.width;
    body(*select(mine, slices + number, &nowhere), i, mine);
  }
}

void fill_map(const NdProblem& problem, const Map& map, int threads) {
  const Int owners = threads <= 1 || problem.tuples < kParallelElements
                         ? 1
                         : std::min<Int>({kOwners, Int{threads}, problem.slices});
  const auto range_of = [&](Int owner) -> Range {
    const Int slices_per_owner = problem.slices / owners;
    return {static_cast<uint32_t>(slices_per_owner * owner),
            static_cast<uint32_t>(owner + 1 == owners ? problem.slices - slices_per_owner * owner
                                                      : slices_per_owner)};
  };
  uint32_t* const slices = map.slices.get();
  const auto clear = [&](Range range) {
    std::memset(slices + range.low, 0, std::size_t{range.width} * sizeof(uint32_t));
  };
  if (problem.reduction == Reduction::none) {
    parallel_chunks(owners, threads, [&](Int owner) {
      const Range range = range_of(owner);
      clear(range);
      for_range(problem, map, range,
                [](uint32_t& last, Int i, bool) { last = static_cast<uint32_t>(i + 1); });
    });
    return;
  }
  uint32_t counts[kOwners];
  parallel_chunks(owners, threads, [&](Int owner) {
    const Range range = range_of(owner);
    clear(range);
    Int count = 0;
    for_range(problem, map, range, [&count](uint32_t& own, Int, bool mine) {
      ++own;
      count += mine;
    });
    counts[owner] = static_cast<uint32_t>(count);
  });
  parallel_chunks(owners, threads, [&](Int owner) {
    const Range range = range_of(owner);
    uint32_t sum = 0;
    for (Int n = 0; n < owner; ++n) sum += counts[n];
    for (uint32_t s = range.low; s < range.low + range.width; ++s) {
      const uint32_t own = slices[s];
      slices[s] = sum;  // where the next one goes: in the end, where the last one went
      sum += own;
    }
    uint32_t* const order = map.order.get();
    uint32_t nowhere = 0;
    for_range(problem, map, range, [&](uint32_t& end, Int i, bool mine) {
      *select(mine, order + end, &nowhere) = static_cast<uint32_t>(i);
      ++end;
    });
  });
}

// Output that is written in order, gathered until it is large enough to stream.
class Stage {
 public:
  Stage(char* target, bool streams) : target_(target), streams_(streams) {}

  // Reserves bytes <= kStage, which the caller writes now.
  char* take(Int bytes) {
    if (used_ + bytes > kStage) flush();
    char* const buffer = stage_ + used_;
    used_ += bytes;
    return buffer;
  }
  // Writes directly from the source.
  void copy(const char* source, Int bytes) {
    flush();
    write(source, bytes);
  }
  void flush() {
    if (used_ > 0) write(stage_, used_);
    used_ = 0;
  }

 private:
  void write(const char* source, Int bytes) {
    if (streams_)
      stream_copy(target_, source, static_cast<std::size_t>(bytes));
    else
      std::memcpy(target_, source, static_cast<std::size_t>(bytes));
    target_ += bytes;
  }

  char* target_;
  bool streams_;
  Int used_ = 0;
  alignas(64) char stage_[kStage];
};

// Part of every slice: where it begins in each tensor's slice, and how much of it is prefetched
// ahead.
struct SlicePart {
  Int in, out, update;
  Int in_prefetch_bytes, update_prefetch_bytes;
  Int elements, bytes;

  SlicePart(const NdProblem& problem, Int from, Int count)
      : in(from * problem.in_step),
        out(from * problem.out_step),
        update(from * problem.update_step),
        elements(count),
        bytes(count * problem.element_size) {
    const auto prefetch_bytes_of = [&](Int step) {
      return step > problem.element_size && step <= 64 ? std::min<Int>(count * step, 1024)
                                                       : std::min<Int>(bytes, 512);
    };
    in_prefetch_bytes = prefetch_bytes_of(problem.in_step);
    update_prefetch_bytes = prefetch_bytes_of(problem.update_step);
  }
};

struct SliceWriter {
  const NdProblem& problem;
  const Map& map;
  const char* input;
  const char* updates;
  char* output;
  bool streams;
  const Named* named = nullptr;  // the slices, if they are not all

  bool in_place() const { return input == output; }
  Int output_offset(Int slice) const {
    return named != nullptr ? named->place(slice) - output : problem.output_offset(slice);
  }
  Int input_offset(Int slice) const {
    return in_place() ? output_offset(slice) : problem.input_offset(slice);
  }

  bool moves() const { return problem.reduction == Reduction::none; }
  // Of a reduction: the first of a slice's updates in map.order; the end is the next slice's first.
  uint32_t first(Int slice) const { return slice == 0 ? 0 : map.slices[slice - 1]; }
  bool touched(Int slice) const {
    return moves() ? map.slices[slice] != 0 : first(slice) != map.slices[slice];
  }
  // Of a move: the last update.
  const char* winner(Int slice) const {
    return updates + problem.update_offset(Int{map.slices[slice]} - 1);
  }
  const char* ordered(Int i) const { return updates + problem.update_offset(map.order[i]); }

  // How many elements `combine` takes at a time.
  Int max_elements() const { return kStage / problem.writer->size_of(problem.element_size); }

  // Part of a row of a slice: `target` holds the input's, and takes all of the updates, which are
  // at `at` in theirs.
  void combine(char* target, Int step, Int slice, Int at, Int update_step, Int elements,
               Int prefetch_bytes) const {
    const Writer& writer = *problem.writer;
    Int i = first(slice);
    const Int end = map.slices[slice];
    if (end - i == 1)
      return writer.combine_once(target, step, ordered(i) + at, update_step, elements);
    alignas(64) char sums[kStage];
    char* const row = problem.widens() ? sums : target;
    const Int row_step = problem.widens() ? 4 : step;
    if (problem.widens()) writer.widen(sums, target, step, elements);
    for (; i < end; ++i) {
      if (i + 4 < end) prefetch_ahead(ordered(i + 4) + at, prefetch_bytes);
      problem.combine(row, row_step, ordered(i) + at, update_step, elements);
    }
    if (problem.widens()) writer.narrow(target, step, sums, elements);
  }

  ANYDML_INLINE static void prefetch_ahead(const char* from, Int bytes) {
    for (Int at = 0; at < bytes; at += 64) prefetch_read(from + at);
    prefetch_read(from + bytes - 1);
  }

  // Prefetches the beginning of the sources of a later slice, the input's part at `source`. Where
  // most slices come from updates, the input is not read in order either.
  ANYDML_INLINE void prefetch(Int slice, const char* source, const SlicePart& part) const {
    if (moves()) {
      if (map.slices[slice] == 0)
        prefetch_ahead(source, part.in_prefetch_bytes);
      else
        prefetch_ahead(winner(slice) + part.update, part.update_prefetch_bytes);
      return;
    }
    prefetch_ahead(source, part.in_prefetch_bytes);
    const Int begin = first(slice), end = std::min<Int>(map.slices[slice], begin + 4);
    for (Int i = begin; i < end; ++i)
      prefetch_ahead(ordered(i) + part.update, part.update_prefetch_bytes);
  }

  // Elements at a step to the stage; `straight`: contiguous ones are not gathered there.
  void append(Stage& stage, const char* source, Int step, Int elements, bool straight) const {
    const int size = problem.element_size;
    if (step == size && straight) return stage.copy(source, elements * size);
    const Int max_elements = kStage / size;
    for (Int done = 0; done < elements; done += max_elements) {
      const Int chunk = std::min(max_elements, elements - done);
      char* const buffer = stage.take(chunk * size);
      if (step == size)
        std::memcpy(buffer, source + done * size, static_cast<std::size_t>(chunk * size));
      else
        copy_steps(buffer, size, source + done * step, step, chunk, size);
    }
  }

  // Parts of slices [begin, end), packed out, `in_slice` bytes apart in the input.
  void packed(Int begin, Int end, const SlicePart& part, Int in_slice) const {
    const Int slice_bytes = problem.slice_bytes, bytes = part.bytes;
    // Slices that follow one another at the step of their elements.
    const bool follow =
        bytes == slice_bytes && in_slice == problem.slice_elements * problem.in_step;
    // Long slices, or ones of whole cache lines, need not be gathered first.
    const bool straight =
        bytes >= 1024 || (bytes >= 256 && bytes % 64 == 0 &&
                          reinterpret_cast<std::uintptr_t>(output + begin * slice_bytes) % 64 == 0);
    const char* const from = input + part.in;
    const Int distance = std::clamp<Int>(8192 / bytes, 2, 32);
    const auto prefetch_slice = [&](Int s) __attribute__((always_inline)) {
      if (s < end) prefetch(s, from + s * in_slice, part);
    };
    for (Int s = begin; s < begin + distance; ++s) prefetch_slice(s);
    Stage stage(output + begin * slice_bytes + part.out, streams);
    for (Int s = begin; s < end;) {
      if (!touched(s)) {
        // A run of unchanged slices.
        Int run = s;
        do {
          prefetch_slice(run + distance);
          ++run;
        } while (follow && run < end && !touched(run));
        const Int run_bytes = (run - s) * bytes;
        append(stage, from + s * in_slice, problem.in_step, (run - s) * part.elements,
               run_bytes >= 1024 || (straight && run_bytes >= 256));
        s = run;
        continue;
      }
      prefetch_slice(s + distance);
      if (moves()) {
        append(stage, winner(s) + part.update, problem.update_step, part.elements, straight);
      } else {
        const int size = problem.element_size;
        for (Int done = 0; done < part.elements; done += max_elements()) {
          const Int chunk = std::min(max_elements(), part.elements - done);
          char* const buffer = stage.take(chunk * size);
          copy_steps(buffer, size, from + s * in_slice + done * problem.in_step, problem.in_step,
                     chunk, size);
          combine(buffer, size, s, part.update + done * problem.update_step, problem.update_step,
                  chunk, part.update_prefetch_bytes);
        }
      }
      ++s;
    }
    stage.flush();
  }

  // Parts of slices, in place or not packed: each is written separately.
  void combine_each_slice(Int begin, Int end, const SlicePart& part, int threads) const {
    constexpr Int kActive = 1024;
    uint32_t active[kActive];
    const Int distance = std::clamp<Int>(8192 / part.bytes, 2, 32);
    for (; begin < end; begin += kActive) {
      // Only slices with work to do, so that the prefetch distance covers them even if they are
      // few.
      Int count = 0;
      for (Int s = begin; s < std::min(end, begin + kActive); ++s) {
        active[count] = static_cast<uint32_t>(s);
        count += touched(s) || !in_place();
      }
      for (Int i = 0; i < count + distance; ++i) {
        if (i < count) {
          const Int s = active[i];
          prefetch(s, input + input_offset(s) + part.in, part);
          if (in_place())
            prefetch_ahead(output + output_offset(s) + part.out, part.in_prefetch_bytes);
        }
        if (i >= distance) one(active[i - distance], part, threads);
      }
    }
  }

  void one(Int s, const SlicePart& part, int threads) const {
    const bool has = touched(s), move = moves() && has;
    char* const target = output + output_offset(s) + part.out;
    const char* const source = move ? winner(s) + part.update : input + input_offset(s) + part.in;
    const int size = problem.element_size;
    if (source != target) {
      if (!problem.stepped)
        copy_elements(problem.slice_out, target, move ? problem.slice_update : problem.slice_in,
                      source, size, threads);
      else if (problem.contiguous && streams && part.bytes >= 256 && (move || !has))
        stream_copy(target, source, static_cast<std::size_t>(part.bytes));
      else
        copy_steps(target, problem.out_step, source, move ? problem.update_step : problem.in_step,
                   part.elements, size);
    }
    if (move || !has) return;
    const Layout* const walked[] = {&problem.slice_out, &problem.slice_update};
    const int outer = problem.stepped ? 0 : problem.slice_out.rank - 1;
    const Int length = problem.stepped ? part.elements : problem.slice_out.sizes[outer];
    const Int step = problem.stepped ? problem.out_step : problem.slice_out.strides[outer];
    const Int update_step =
        problem.stepped ? problem.update_step : problem.slice_update.strides[outer];
    Walker<2> rows(walked, outer);
    rows.start(0);
    for (Int row = 0; row < part.elements; row += length, rows.next())
      for (Int done = 0; done < length; done += max_elements())
        combine(target + rows.offset[0] + done * step, step, s,
                part.update + rows.offset[1] + done * update_step, update_step,
                std::min(max_elements(), length - done), part.update_prefetch_bytes);
  }
};

// Writes the slices of a map.
void write_rows(const SliceWriter& rows, int threads, const NdTuning& tuning) {
  const NdProblem& problem = rows.problem;
  const bool packed =
      problem.stepped && problem.outer_in.rank <= 1 && problem.packed_out && !rows.in_place();
  const Int in_slice = problem.outer_in.rank == 1 ? problem.outer_in.strides[0] : 0;
  if (!problem.stepped && problem.slices < 2 * Int{threads})
    return rows.combine_each_slice(0, problem.slices, SlicePart(problem, 0, problem.slice_elements),
                                   threads);
  // Items of about piece_bytes: several slices, or a part of one.
  const Int unit = std::max<Int>(16, problem.element_size) * 4;
  Int pieces = 1, bytes = problem.slice_bytes, group = 1;
  if (problem.stepped && bytes > tuning.piece_bytes) {
    bytes = std::max<Int>(1, tuning.piece_bytes / unit) * unit;
    pieces = (problem.slice_bytes + bytes - 1) / bytes;
  } else {
    group = std::max<Int>(1, tuning.piece_bytes / bytes);
  }
  const Int groups = (problem.slices + group - 1) / group;
  const Int items = groups * pieces;
  const Int moved = (problem.slices + problem.tuples) * problem.slice_bytes;
  parallel_ranges(items, moved < (Int{1} << 20) ? items : 1, threads, [&](Int begin, Int end) {
    for (Int item = begin; item < end; ++item) {
      const Int first = item / pieces * group, from = item % pieces * bytes;
      const Int last = std::min(problem.slices, first + group);
      const SlicePart part(problem, from / problem.element_size,
                           std::min(bytes, problem.slice_bytes - from) / problem.element_size);
      if (packed)
        rows.packed(first, last, part, in_slice);
      else
        rows.combine_each_slice(first, last, part, 1);
    }
    if (rows.streams) stream_fence();
  });
}

}  // namespace

Status run_nd_rows(const NdProblem& problem, const char* input, const char* indices,
                   const char* updates, char* output, int threads, const NdTuning& tuning) {
  const Int out_bytes = problem.slices * problem.slice_bytes;
  const bool reduces = problem.reduction != Reduction::none;
  Map map;
  map.numbers.reset(problem.tuples);
  map.slices.reset(problem.slices);
  if (reduces) map.order.reset(problem.tuples);
  const Int bad = read_numbers(problem, indices, map.numbers.get(), threads);
  if (bad >= 0) return {bad};
  fill_map(problem, map, threads);

  const bool in_place = input == output;
  const Int written_bytes =
      in_place ? std::min(problem.tuples * problem.slice_bytes, out_bytes) : out_bytes;
  const bool streams = written_bytes >= tuning.stream_bytes && !(in_place && reduces);
  write_rows({problem, map, input, updates, output, streams}, threads, tuning);
  return {};
}

Status run_nd_few(const NdCall& call, Bad on_bad, int threads) {
  const NdProblem& problem = call.problem;
  Named named(problem.tuples, problem.slices);
  Map map;
  map.numbers.reset(problem.tuples);
  map.slices.reset(std::min(problem.tuples, problem.slices));
  map.order.reset(problem.tuples);
  std::fill_n(map.numbers.get(), problem.tuples, UINT32_MAX);  // those that are left out
  const Status status = for_pieces(call, on_bad, threads, [&](Int first, Int count, Int* offsets) {
    named.number(call.output, offsets, count);
    for (Int i = 0; i < count; ++i) map.numbers[first + i] = static_cast<uint32_t>(offsets[i]);
  });
  named.restore();
  if (!status.ok()) return status;
  NdProblem few = problem;
  if (named.count() == problem.tuples) {  // each takes its update at once
    const Writer once{nullptr, nullptr, problem.writer->combine_once, problem.writer->combine_once};
    few.writer = &once;
    parallel_ranges(problem.tuples, kCopyGrain / problem.slice_bytes, threads,
                    [&](Int begin, Int end) {
                      for (Int i = begin; i < end; ++i)
                        few.write_slice(named.place(i), call.updates + problem.update_offset(i));
                    });
    return {};
  }
  few.slices = named.count();
  fill_map(few, map, threads);
  write_rows({few, map, call.output, call.updates, call.output, false, &named}, threads,
             NdTuning{});
  return {};
}

}  // namespace anydml::scatter

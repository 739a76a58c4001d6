// PADDING: the output is written in order, each unit from where its position lies in the input.
//
// Dimensions that are not padded are fused with their neighbours; what is left of the innermost one
// moves in units as large as addresses and strides allow. An input that is dense along another
// dimension than the innermost is packed first. Rows that are contiguous on both sides move as
// lines.
#include <algorithm>
#include <cstring>

#include "moving/cuda/padding.cuh"
#include "runtime/cuda/plans.hpp"
#include "runtime/cuda/tables.hpp"

namespace anydml::cuda {
namespace {

// Rows of this many bytes are pieces with padding around them.
constexpr Int kPieces = 64;

struct Dimension {
  Int size, from_size, start, to, from;
  bool padded() const { return size != from_size; }
};

struct Job {
  Dimension dimensions[kMaxRank + 1];
  int rank = 0;
  char* target;
  const char* source;
  PaddingMode mode;
  char value[16];
  Int unit;

  Dimension& inner() { return dimensions[rank - 1]; }

  void add(const Dimension& next) {
    if (next.size == 1 && !next.padded()) return;
    if (rank > 0) {
      Dimension& last = inner();
      // Whole rows of the next dimension: with all of them, a row is a place of the last one.
      if (!next.padded() && !last.padded() && last.to == next.to * next.size &&
          last.from == next.from * next.size) {
        last = {last.size * next.size, last.size * next.size, 0, next.to, next.from};
        return;
      }
    }
    dimensions[rank++] = next;
  }

  // Larger units, where the innermost dimension is contiguous and not padded.
  void widen() {
    Dimension& row = inner();
    if (row.padded() || row.to != unit || row.from != unit) return;
    Int wide = std::min({unit_of(target), unit_of(source), unit_of(row.size * unit)});
    for (int i = 0; i < rank - 1; ++i)
      wide = std::min({wide, unit_of(dimensions[i].to), unit_of(dimensions[i].from)});
    if (wide <= unit) return;
    row.size = row.from_size = row.size * unit / wide;
    row.to = row.from = unit = wide;
    if (row.size == 1 && rank > 1) --rank;
  }
};

PadAxis axis_of(const Dimension& d) {
  return {divisor_of(d.size), d.from_size, d.start, d.to, d.from};
}

void run(const Job& job, Queue& queue) {
  Int units = 1;
  for (int i = 0; i < job.rank; ++i) units *= job.dimensions[i].size;
  if (units > kMaxUnits) {  // the outermost dimension that is left in two halves
    int split = 0;
    while (job.dimensions[split].size == 1) ++split;
    Job first = job, second = job;
    const Int half = job.dimensions[split].size / 2;
    first.dimensions[split].size = half;
    second.dimensions[split].size -= half;
    second.dimensions[split].start -= half;
    second.target += half * job.dimensions[split].to;
    run(first, queue);
    run(second, queue);
    return;
  }
  const Dimension& row = job.dimensions[job.rank - 1];
  Pad pad;
  pad.rank = job.rank - 1;
  pad.mode = static_cast<int>(job.mode);
  for (int i = 0; i < pad.rank; ++i) pad.axes[i] = axis_of(job.dimensions[i]);
  pad.inner = axis_of(row);
  std::memcpy(pad.value, job.value, sizeof pad.value);
  const bool contiguous = row.to == job.unit && row.from == job.unit;
  const bool pieces = contiguous && job.unit < 16 && row.size * job.unit >= kPieces;
  Int segment;
  if (pieces) {
    pad.lanes_log = std::clamp(log_above((row.size * job.unit + kLaneBytes - 1) / kLaneBytes),
                               kMinLanesLog, kPadThreadsLog);
    segment = (Int{kLaneBytes} << pad.lanes_log) / job.unit;
  } else {
    // Neighbouring threads on neighbouring units before several units a thread.
    const unsigned min_log = std::min(log_above(row.size), log_above(64 / job.unit));
    pad.lanes_log =
        std::clamp(log_above((row.size + kPadUnroll - 1) / kPadUnroll), min_log, kPadThreadsLog);
    segment = Int{kPadUnroll} << pad.lanes_log;
  }
  const Int segments = (row.size + segment - 1) / segment, items = units / row.size * segments;
  pad.segments = divisor_of(segments);
  pad.items = static_cast<unsigned>(items);
  queue.launch(queue.function("padding", pieces ? "pad_rows" : "pad_units", {{"SIZE", job.unit}}),
               {blocks_for(items << pad.lanes_log, kPadThreads)}, {kPadThreads}, 0, job.target,
               job.source, pad);
}

}  // namespace

void pad(const PaddingPlan& plan, const void* input, void* output, Queue& queue) {
  const Layout& to = plan.output.layout;
  if (to.count() == 0) return;
  const int size = plan.input.element_size;
  Layout from = plan.input.layout;
  if (from.count() > 0 && !reads_in_order(from, size)) {
    Layout packed = from;
    set_packed_strides(packed, size);
    void* const copy = queue.scratch(from.count() * size);
    copy_elements(packed, copy, from, input, size, queue);
    from = packed;
    input = copy;
  }
  Job job;
  job.target = static_cast<char*>(output);
  job.source = static_cast<const char*>(input);
  job.mode = plan.mode;
  job.unit = size;
  for (int i = 0; i < 16; i += size)
    std::memcpy(job.value + i, plan.value, static_cast<std::size_t>(size));
  for (int i = 0; i < to.rank; ++i)
    job.add({to.sizes[i], from.sizes[i], plan.starts[i], to.strides[i], from.strides[i]});
  if (job.rank == 0) job.dimensions[job.rank++] = {1, 1, 0, size, size};
  job.widen();
  run(job, queue);
}

}  // namespace anydml::cuda

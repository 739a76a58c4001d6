// GATHER, GATHER_ELEMENTS and GATHER_ND: one kernel family for all three.
//
// Every dimension of the output has a step in the output, in the input and in the indices, of which
// some are 0; so the three differ in tables only. Then:
//   rows:      what is contiguous on both sides behind the indices, a segment for some threads of a
//              warp: whole lines, or lines put together from two where addresses allow no others;
//   runs:      single elements that lie together in the output and have their indices together:
//              four at a time, with one address and one store;
//   units:     everything else, in units as large as addresses and strides allow.
//
// Single elements that lie far apart in a large input are taken in strips of the output as wide as
// a part of the input that the second-level cache holds: each line of the input then comes from
// memory once, whatever the order of the indices.
//
// An index that is bad: see gather.cu. Scratch: none.
#include <algorithm>

#include "gather/cuda/gather.cuh"
#include "runtime/cuda/plans.hpp"
#include "runtime/cuda/tables.hpp"

namespace anydml::cuda {
namespace {

struct Job {
  Layout to, from, index, flat;  // the same sizes, of the output
  Gather<kMaxDims> gather;
  Int unit, index_size;

  int inner() const { return to.rank - 1; }
  void push(Int size, Int to_step, Int from_step, Int index_step, Int flat_step) {
    to.push(size, to_step);
    from.push(size, from_step);
    index.push(size, index_step);
    flat.push(size, flat_step);
  }
  void drop_inner() { --to.rank, --from.rank, --index.rank, --flat.rank; }
  void resize(int dimension, Int size) {
    for (Layout* layout : {&to, &from, &index, &flat}) layout->sizes[dimension] = size;
  }
  // From this many steps along a dimension on.
  void skip(int dimension, Int steps) {
    GatherHead& head = gather.head;
    head.target += steps * to.strides[dimension];
    head.source += steps * from.strides[dimension];
    head.indices += steps * index.strides[dimension];
    head.first += steps * flat.strides[dimension];
  }
  void fuse() {
    Layout* all[4] = {&to, &from, &index, &flat};
    collapse(all);
  }
  bool is_block(int dimension) const {
    return to.strides[dimension] == unit && from.strides[dimension] == unit &&
           index.strides[dimension] == 0;
  }

  // The largest unit for all addresses, and for the strides of the first `dimensions`.
  Int common(int dimensions) const {
    Int unit_bytes = std::min(unit_of(gather.head.target), unit_of(gather.head.source));
    for (int i = 0; i < dimensions; ++i)
      unit_bytes = std::min({unit_bytes, unit_of(to.strides[i]), unit_of(from.strides[i])});
    for (int c = 0; c < gather.head.tuple; ++c)
      if (gather.axes[c].size > 1)
        unit_bytes = std::min(unit_bytes, unit_of(gather.axes[c].stride));
    return unit_bytes;
  }

  // Units of 1 to 16 bytes.
  void resolve(Int element_size) {
    fuse();
    unit = std::min(common(to.rank), unit_of(element_size));
    if (unit < element_size) {
      push(element_size / unit, unit, unit, 0, 0);
      fuse();
    }
    if (to.rank == 0 || !is_block(inner())) return;
    const Int row = to.sizes[inner()] * unit, wide = std::min(common(inner()), unit_of(row));
    if (wide <= unit) return;
    unit = wide;
    if (row == wide) return drop_inner();
    resize(inner(), row / wide);
    to.strides[inner()] = from.strides[inner()] = wide;
  }
};

Job job_of(const Tensor& input, const Tensor& indices, OutOfRange mode, bool output_is_private,
           const void* source, const void* lookup, void* target) {
  Job job;
  GatherHead& head = job.gather.head;
  head = {};
  head.target = static_cast<char*>(target);
  head.source = static_cast<const char*>(source);
  head.indices = static_cast<const char*>(lookup);
  head.tuple = 1;
  head.is_signed = is_signed_type(indices.type);
  head.mode = static_cast<int>(mode);
  head.output_is_private = output_is_private;
  job.unit = input.element_size;
  job.index_size = indices.element_size;
  return job;
}

template <int kDims>
Gather<kDims> table_of(const Job& job) {
  Gather<kDims> result;
  result.head = job.gather.head;
  result.head.rank = job.to.rank;
  for (int i = 0; i < job.to.rank; ++i)
    result.dims[i] = {divisor_of(job.to.sizes[i]), job.to.strides[i], job.from.strides[i],
                      job.index.strides[i], job.flat.strides[i]};
  for (int c = 0; c < result.head.tuple; ++c) result.axes[c] = job.gather.axes[c];
  return result;
}

using Way = GatherWay;

// Rows of at least this many bytes are faster than units.
constexpr Int min_row_bytes(Int unit) {
  return unit <= 2 ? 64 : unit == 4 ? 128 : unit == 8 ? 256 : 512;
}

Way way_of(const Job& job) {
  if (job.to.rank == 0) return Way::units;
  const int inner = job.inner();
  if (job.is_block(inner))
    return job.to.sizes[inner] * job.unit >= min_row_bytes(job.unit) ? Way::rows : Way::units;
  const GatherHead& head = job.gather.head;
  if (head.tuple != 1 || job.unit > 8 || job.to.strides[inner] != job.unit ||
      job.index.strides[inner] != job.index_size)
    return Way::units;
  const Int run = std::min<Int>(16, kRun * job.unit);
  Int to = unit_of(head.target), index = unit_of(head.indices);
  for (int i = 0; i < inner; ++i) {
    to = std::min(to, unit_of(job.to.strides[i]));
    index = std::min(index, unit_of(job.index.strides[i]));
  }
  return to >= run && index == 16 ? Way::runs : Way::units;
}

// Cuts the work into tiles, of which each block does one.
void cut(Job& job, Way way) {
  GatherHead& head = job.gather.head;
  const int inner = job.inner();
  head.flat_step = 1;  // of a tuple's coordinates
  Int per_tile = kGatherThreads * kGatherUnroll, items = job.to.count();
  if (way == Way::runs) {
    head.inner = job.to.sizes[inner];
    head.from_step = job.from.strides[inner];
    head.flat_step = job.flat.strides[inner];
    const Int runs = (head.inner + kRun - 1) / kRun;
    items = items / head.inner * runs;
    per_tile = kGatherThreads * kRunUnroll;
    job.resize(inner, runs);
    for (Layout* layout : {&job.to, &job.from, &job.index, &job.flat})
      layout->strides[inner] *= kRun;
  } else if (way == Way::rows) {
    head.bytes = job.to.sizes[inner] * job.unit;
    head.lanes_log =
        std::clamp(log_above((head.bytes + kLaneBytes - 1) / kLaneBytes), kMinLanesLog, 5u);
    const Int segment = Int{kLaneBytes} << head.lanes_log,
              segments = (head.bytes + segment - 1) / segment;
    items = segments * (items / job.to.sizes[inner]);
    head.segments = divisor_of(segments);
    per_tile = kGatherThreads >> head.lanes_log;
    job.drop_inner();
  }
  head.items = static_cast<unsigned>(items);
  head.tiles = blocks_for(items, per_tile);
}

// All units of a job that can be counted in 32 bits. `last`: this is the last launch of the call;
// it may then also end the call.
bool launch(Job job, bool last, const BadIndexReport& report, Queue& queue) {
  const Way way = way_of(job);
  const bool lines = job.unit == 16;
  cut(job, way);
  GatherHead& head = job.gather.head;
  // The end of a call costs each block some time: little if all blocks run at the same time, and
  // more than a separate kernel if many run one after the other.
  head.last = last && !head.alone && report.slot != nullptr &&
              head.tiles <= static_cast<unsigned>(queue.multiprocessors() * kGatherBlocks);
  const bool is_small_rank = job.to.rank <= kSmallDims && head.tuple <= kSmallDims;
  const char* const entry =
      way == Way::rows   ? (is_small_rank ? "gather_rows_few" : "gather_rows_many")
      : way == Way::runs ? (is_small_rank ? "gather_runs_few" : "gather_runs_many")
      : is_small_rank    ? "gather_units_few"
                         : "gather_units_many";
  Function& function = queue.function("gather", entry,
                                      {{"WAY", static_cast<Int>(way)},
                                       {"SIZE", way == Way::rows && !lines ? 1 : job.unit},
                                       {"INDEX", job.index_size}});
  if (is_small_rank)
    queue.launch(function, {head.tiles}, {kGatherThreads}, 0, report, table_of<kSmallDims>(job));
  else
    queue.launch(function, {head.tiles}, {kGatherThreads}, 0, report, table_of<kMaxDims>(job));
  return head.last;
}

bool is_alone(Job job) {
  if (job.to.count() > kMaxUnits) return false;
  cut(job, way_of(job));
  return job.gather.head.tiles == 1;
}

bool run(const Job& job, bool last, const BadIndexReport& report, Queue& queue) {
  if (job.to.count() <= kMaxUnits) return launch(job, last, report, queue);
  Job first = job, second = job;  // the outermost dimension in two halves
  const Int half = job.to.sizes[0] / 2;
  second.skip(0, half);
  second.resize(0, job.to.sizes[0] - half);
  first.resize(0, half);
  for (Job* part : {&first, &second}) {
    part->fuse();
    run(*part, false, report, queue);
  }
  return false;
}

// From an input larger than the second-level cache, this many bytes are read at a time; their
// lines.
constexpr Int kFarInput = Int{24} << 20, kStripBytes = Int{8} << 20, kLine = 128;

// Elements along the innermost dimension that each have an index and come from distant lines:
// strips of these lines, one after the other.
bool run_strips(const Job& job, bool last, const BadIndexReport& report, Queue& queue) {
  if (job.to.rank < 2 || job.gather.head.tuple != 1 || job.gather.head.alone)
    return run(job, last, report, queue);
  const int inner = job.inner();
  const GatherAxis& axis = job.gather.axes[0];
  const Int depth = axis.size, distance = axis.stride < 0 ? -axis.stride : axis.stride;
  if (job.index.strides[inner] == 0 || job.from.strides[inner] != job.unit ||
      job.to.strides[inner] != job.unit || distance < 2 * kLine || depth * distance < kFarInput)
    return run(job, last, report, queue);
  const Int all = job.to.sizes[inner];
  Int width = kLine / job.unit;
  while (2 * width * job.unit * depth <= kStripBytes) width *= 2;
  const Int strips = all / width;
  if (strips <= 1) return run(job, last, report, queue);
  // One dimension of strips before all others; the remainder is a job of its own.
  Job full = job, rest = job;
  full.to.rank = full.from.rank = full.index.rank = full.flat.rank = 0;
  full.push(strips, width * job.to.strides[inner], width * job.from.strides[inner],
            width * job.index.strides[inner], width * job.flat.strides[inner]);
  for (int i = 0; i <= inner; ++i)
    full.push(i == inner ? width : job.to.sizes[i], job.to.strides[i], job.from.strides[i],
              job.index.strides[i], job.flat.strides[i]);
  const bool even = strips * width == all;
  full.fuse();
  const bool published = run(full, last && even, report, queue);
  if (even) return published;
  rest.skip(inner, strips * width);
  rest.resize(inner, all - strips * width);
  rest.fuse();
  run(rest, false, report, queue);
  return false;
}

void check(const Tensor& indices, const void* data, const Job& job, const BadIndexReport& report,
           Queue& queue) {
  Layout layout = indices.layout;
  Layout* only[1] = {&layout};
  collapse(only);
  IndexCheck result;
  result.is_signed = job.gather.head.is_signed;
  result.tuple = static_cast<unsigned>(job.gather.head.tuple);
  for (int c = 0; c < job.gather.head.tuple; ++c) result.bounds[c] = job.gather.axes[c].size;
  // Complete runs of the outer dimensions, as many as 32-bit numbers can count.
  const auto launched = [&](const Layout& part, const char* from, Int first) {
    result.indices = from;
    result.first = first;
    result.coordinate = static_cast<unsigned>(first % job.gather.head.tuple);
    result.count = part.count();
    result.rank = part.rank;
    for (int i = 0; i < part.rank; ++i) {
      result.sizes[i] = divisor_of(part.sizes[i]);
      result.strides[i] = part.strides[i];
    }
    queue.launch(
        queue.function(
            "gather", "gather_check",
            {{"WAY", static_cast<Int>(Way::check)}, {"SIZE", 1}, {"INDEX", indices.element_size}}),
        {blocks_for(result.count, kGatherThreads * kGatherUnroll)}, {kGatherThreads}, 0, report,
        result);
  };
  const auto cut = [&](auto&& self, Layout part, const char* from, Int first) -> void {
    if (part.count() <= kMaxUnits) return launched(part, from, first);
    const Int half = part.sizes[0] / 2, size = part.sizes[0], inside = part.count() / size;
    Layout second = part;
    second.sizes[0] = size - half;
    part.sizes[0] = half;
    const char* const later = from + half * part.strides[0];
    for (Layout* one : {&part, &second}) {
      Layout* alone[1] = {one};
      collapse(alone);
    }
    self(self, part, from, first);
    self(self, second, later, first + half * inside);
  };
  cut(cut, layout, static_cast<const char*>(data), 0);
}

// `axis`: the first one of the input that indices point into.
void gather_all(Job& job, const Tensor& input, const Tensor& indices, const Tensor& output,
                int axis, Queue& queue) {
  GatherHead& head = job.gather.head;
  bool empty = false;  // an axis without a position
  for (int c = 0; c < head.tuple; ++c) {
    job.gather.axes[c] = {input.layout.sizes[axis + c], input.layout.strides[axis + c]};
    empty = empty || job.gather.axes[c].size == 0;
  }
  const Int results = output.layout.count();
  const bool looked_at = head.mode == static_cast<int>(OutOfRange::raise) && head.tuple > 0 &&
                         indices.layout.count() > 0;
  BadIndexReport report{};
  if (results == 0 || (looked_at && empty)) {
    if (!looked_at) return;
    report = queue.report(indices, input.layout, axis, head.tuple);
    check(indices, head.indices, job, report, queue);
    const bool cleared = head.output_is_private && results > 0;
    return queue.publish_report(report, cleared ? head.target : nullptr,
                                cleared ? results * output.element_size : 0);
  }
  head.output_is_private = head.output_is_private && output.layout.packed(output.element_size);
  head.result = head.output_is_private ? head.target : nullptr;
  head.result_bytes = head.output_is_private ? results * output.element_size : 0;
  const void* const lookup = head.indices;
  job.resolve(input.element_size);
  // A single block knows all indices before it writes.
  head.alone = is_alone(job);
  if (looked_at) {
    report = queue.report(indices, input.layout, axis, head.tuple);
    if (!head.alone && !head.output_is_private) check(indices, lookup, job, report, queue);
  }
  const bool published = run_strips(job, true, report, queue);
  if (looked_at && !head.alone && !published)
    queue.publish_report(report, head.result, head.result_bytes);
}

// Positions in the index tensor along its dimensions.
Layout flat_of(const Layout& indices) {
  Layout flat = indices;
  set_packed_strides(flat, 1);
  return flat;
}

}  // namespace

void gather(const GatherPlan& plan, const void* input, const void* indices, void* output,
            bool output_is_private, Queue& queue) {
  const Layout &in = plan.input.layout, &lookup = plan.indices.layout, &out = plan.output.layout;
  const Layout flat = flat_of(lookup);
  Job job = job_of(plan.input, plan.indices, plan.mode, output_is_private, input, indices, output);
  for (int i = 0; i < out.rank; ++i) {
    const int at = i - plan.axis, behind = at - lookup.rank;
    if (at < 0)
      job.push(out.sizes[i], out.strides[i], in.strides[i], 0, 0);
    else if (behind < 0)
      job.push(out.sizes[i], out.strides[i], 0, lookup.strides[at], flat.strides[at]);
    else
      job.push(out.sizes[i], out.strides[i], in.strides[plan.axis + 1 + behind], 0, 0);
  }
  gather_all(job, plan.input, plan.indices, plan.output, plan.axis, queue);
}

void gather_elements(const GatherElementsPlan& plan, const void* input, const void* indices,
                     void* output, bool output_is_private, Queue& queue) {
  const Layout &in = plan.input.layout, &lookup = plan.indices.layout, &out = plan.output.layout;
  const Layout flat = flat_of(lookup);
  Job job = job_of(plan.input, plan.indices, plan.mode, output_is_private, input, indices, output);
  for (int i = 0; i < out.rank; ++i)
    job.push(out.sizes[i], out.strides[i], i == plan.axis ? 0 : in.strides[i], lookup.strides[i],
             flat.strides[i]);
  gather_all(job, plan.input, plan.indices, plan.output, plan.axis, queue);
}

void gather_nd(const GatherNdPlan& plan, const void* input, const void* indices, void* output,
               bool output_is_private, Queue& queue) {
  const Layout &in = plan.input.layout, &lookup = plan.indices.layout, &out = plan.output.layout;
  const Layout flat = flat_of(lookup);
  const int outer = lookup.rank - 1, tuple = static_cast<int>(lookup.sizes[outer]);
  Job job = job_of(plan.input, plan.indices, plan.mode, output_is_private, input, indices, output);
  job.gather.head.tuple = tuple;
  job.gather.head.index_step = lookup.strides[outer];
  for (int i = 0; i < out.rank; ++i) {
    if (i < outer)
      job.push(out.sizes[i], out.strides[i], i < plan.batch_dims ? in.strides[i] : 0,
               lookup.strides[i], flat.strides[i]);
    else
      job.push(out.sizes[i], out.strides[i], in.strides[plan.batch_dims + tuple + i - outer], 0, 0);
  }
  gather_all(job, plan.input, plan.indices, plan.output, plan.batch_dims, queue);
}

std::vector<Variant> gather_variants() {
  std::vector<Variant> all{{"bad_index", {}}};
  for (Int index : {4, 8}) {
    const auto add = [&](Way way, Int size) {
      all.push_back({"gather", {{"WAY", static_cast<Int>(way)}, {"SIZE", size}, {"INDEX", index}}});
    };
    for (Int size : {1, 2, 4, 8, 16}) add(Way::units, size);
    for (Int size : {1, 2, 4, 8}) add(Way::runs, size);
    for (Int size : {1, 16}) add(Way::rows, size);
    add(Way::check, 1);
  }
  return all;
}

}  // namespace anydml::cuda

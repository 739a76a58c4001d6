// CAST, ELEMENT_WISE_IDENTITY and FILL_VALUE_SEQUENCE.
//
// The dimensions are brought into the order of the output's memory. Where both sides are contiguous
// a thread takes lines, else elements; an input that is dense along another dimension than the
// output is packed first. A sequence is made in the order of its elements, in scratch where the
// output's memory has gaps or another order.
#include <algorithm>

#include "elements/cpu/segments.hpp"
#include "elements/cuda/data_movement.cuh"
#include "runtime/cpu/copy.hpp"
#include "runtime/cuda/plans.hpp"
#include "runtime/cuda/tables.hpp"

namespace anydml::cuda {
namespace {

struct Job {
  Layout to, from;
  char* target;
  const char* source;
  DataType to_type, from_type;
  int to_size, from_size;
  double scale = 1, bias = 0;

  int inner() const { return to.rank - 1; }

  // Whether rows are lines of `elements` elements on both sides, at addresses of lines.
  bool in_lines(Int elements) const {
    if (to.rank == 0 || to.strides[inner()] != to_size || from.strides[inner()] != from_size)
      return false;
    const Int to_unit = elements * to_size, from_unit = elements * from_size;
    bool is_aligned = unit_of(target) >= to_unit && unit_of(source) >= from_unit &&
                      (to.rank == 1 || to.sizes[inner()] % elements == 0);
    for (int i = 0; i < inner(); ++i)
      is_aligned =
          is_aligned && unit_of(to.strides[i]) >= to_unit && unit_of(from.strides[i]) >= from_unit;
    return is_aligned;
  }
};

void run(const Job& job, Queue& queue) {
  const Int count = job.to.count();
  if (count > kMaxUnits) {  // the outermost dimension in two parts, the first one of whole lines
    Job first = job, second = job;
    Int half = job.to.sizes[0] / 2;
    if (job.to.rank == 1) half = half / 16 * 16;
    first.to.sizes[0] = first.from.sizes[0] = half;
    second.to.sizes[0] = second.from.sizes[0] = job.to.sizes[0] - half;
    second.target += half * job.to.strides[0];
    second.source += half * job.from.strides[0];
    for (Job* part : {&first, &second}) {
      Layout* both[2] = {&part->to, &part->from};
      collapse(both);
      run(*part, queue);
    }
    return;
  }
  const Define from{"FROM", static_cast<Int>(job.from_type)};
  const Define to{"TO", static_cast<Int>(job.to_type)};
  const Int line_elements = map_elements_at_once(job.from_size, job.to_size);
  if (!job.in_lines(line_elements)) {
    queue.launch(queue.function("data_movement", "map_elements", {from, to}),
                 {blocks_for(count, kMapThreads * kMapUnroll)}, {kMapThreads}, 0, job.target,
                 job.source, walk_of(job.to, job.from, 0, job.to.rank),
                 static_cast<unsigned>(count), job.scale, job.bias);
    return;
  }
  Layout to_lines = job.to, from_lines = job.from;
  const int inner = job.inner();
  const Int row = job.to.sizes[inner], lines = (row + line_elements - 1) / line_elements;
  to_lines.sizes[inner] = from_lines.sizes[inner] = lines;
  to_lines.strides[inner] = line_elements * job.to_size;
  from_lines.strides[inner] = line_elements * job.from_size;
  const Int all = to_lines.count();
  queue.launch(queue.function("data_movement", "map_lines", {from, to}),
               {blocks_for(all, kMapThreads * kMapUnroll)}, {kMapThreads}, 0, job.target,
               job.source, walk_of(to_lines, from_lines, 0, to_lines.rank),
               static_cast<unsigned>(all), static_cast<unsigned>(row - (lines - 1) * line_elements),
               job.scale, job.bias);
}

void map(const Tensor& output, void* target, const Tensor& input, const void* source, double scale,
         double bias, Queue& queue) {
  if (output.layout.count() == 0) return;
  Job job{output.layout, input.layout, static_cast<char*>(target), static_cast<const char*>(source),
          output.type,   input.type,   output.element_size,        input.element_size,
          scale,         bias};
  Int to_shift = 0, from_shift = 0;
  order_by_target(job.to, to_shift, job.from, from_shift);
  job.target += to_shift;
  job.source += from_shift;
  if (!reads_in_order(job.from, job.from_size)) {
    Layout packed = job.from;
    set_packed_strides(packed, job.from_size);
    void* const copy = queue.scratch(packed.count() * job.from_size);
    copy_elements(packed, copy, job.from, job.source, job.from_size, queue);
    job.from = packed;
    job.source = static_cast<const char*>(copy);
    Layout* both[2] = {&job.to, &job.from};
    collapse(both);
  }
  run(job, queue);
}

// `count` consecutive elements.
void fill(const SequencePlan& plan, char* target, Int count, Queue& queue) {
  const Int size = plan.output.element_size;
  const Int lead = static_cast<Int>(reinterpret_cast<unsigned long long>(target) & 15);
  const unsigned skip = static_cast<unsigned>(lead / size);
  const Int end = skip + count, lines = (end * size + 15) / 16;
  const Dim grid{blocks_for(lines, kSequenceThreads * kSequenceUnroll)}, block{kSequenceThreads};
  if (is_integer_type(plan.output.type)) {
    queue.launch(queue.function("sequence", "sequence_integers", {{"SIZE", size}}), grid, block, 0,
                 target - lead, skip, end, static_cast<unsigned long long>(plan.start),
                 static_cast<unsigned long long>(plan.delta));
    return;
  }
  std::vector<Segment> segments(static_cast<std::size_t>(segment_capacity(count)));
  const Int segment_count = cut_sequence(plan.output.type == DataType::float16, plan.float_start,
                                         plan.float_delta, count, segments.data());
  std::vector<SequenceSegment> table;
  table.reserve(static_cast<std::size_t>(segment_count));
  for (Int i = 0; i < segment_count; ++i) {
    const Segment& segment = segments[static_cast<std::size_t>(i)];
    table.push_back({segment.begin, segment.bits, segment.step});
  }
  const SequenceSegment* const on_device = table_on_device(table.data(), segment_count, queue);
  queue.launch(queue.function("sequence", "sequence_floats", {{"SIZE", size}}), grid, block, 0,
               target - lead, skip, end, on_device, static_cast<int>(segment_count));
}

}  // namespace

void cast(const CastPlan& plan, const void* input, void* output, Queue& queue) {
  // Integers of one size have the same bits.
  const bool both_integers = is_integer_type(plan.input.type) &&
                             is_integer_type(plan.output.type) &&
                             plan.input.element_size == plan.output.element_size;
  if (both_integers || plan.input.type == plan.output.type)
    return copy_elements(plan.output.layout, output, plan.input.layout, input,
                         plan.input.element_size, queue);
  map(plan.output, output, plan.input, input, 1, 0, queue);
}

void identity(const IdentityPlan& plan, const void* input, void* output, Queue& queue) {
  if (plan.scaled) return map(plan.output, output, plan.input, input, plan.scale, plan.bias, queue);
  if (input == output) return;  // in place
  copy_elements(plan.output.layout, output, plan.input.layout, input, plan.input.element_size,
                queue);
}

void sequence(const SequencePlan& plan, void* output, Queue& queue) {
  const Layout& layout = plan.output.layout;
  const int size = plan.output.element_size;
  const Int count = layout.count();
  if (count == 0) return;
  if (layout.packed(size)) return fill(plan, static_cast<char*>(output), count, queue);
  Layout packed = layout;
  set_packed_strides(packed, size);
  char* const buffer = static_cast<char*>(queue.scratch(count * size));
  fill(plan, buffer, count, queue);
  copy_elements(layout, output, packed, buffer, size, queue);
}

std::vector<Variant> data_movement_variants() {
  std::vector<Variant> all;
  for (const TypeFacts& from : kElementTypes)
    for (const TypeFacts& to : kElementTypes) {
      const bool numbers =
          from.operand_type() != DataType::unknown && to.operand_type() != DataType::unknown;
      const bool copied = from.size == to.size && is_integer_type(from.type) &&
                          is_integer_type(to.type);  // integers of one size
      const bool same_bfloat = from.type == DataType::bfloat16 && to.type == from.type;
      if (numbers && !same_bfloat && (from.type == to.type || !copied))
        all.push_back({"data_movement",
                       {{"FROM", static_cast<Int>(from.type)}, {"TO", static_cast<Int>(to.type)}}});
    }
  for (Int size : {1, 2, 4, 8}) all.push_back({"sequence", {{"SIZE", size}}});
  for (Int size : {1, 2, 4, 8, 16}) all.push_back({"padding", {{"SIZE", size}}});
  return all;
}

}  // namespace anydml::cuda

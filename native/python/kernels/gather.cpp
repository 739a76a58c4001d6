#include "../fit.hpp"

namespace anydml::python {
namespace {

const Words kModes{"raise", "clamp"};

// All three take a number (an axis, or how many dimensions are batches) and what becomes of an
// index that is out of range.
template <class Plan>
Plan plan_of(const Call& call) {
  const Operand* const o = call.operands;
  return {o[0].tensor, o[1].tensor, o[2].tensor, small(call.numbers[0]),
          static_cast<OutOfRange>(small(call.numbers[1]))};
}

template <class Plan>
Int run(const Call& call) {
  Plan plan = plan_of<Plan>(call);
  if (plan.mode != OutOfRange::clamp) plan.mode = OutOfRange::raise;
  const Operand* const o = call.operands;
  Status status;
  without_gil(plan.output.layout.count() + plan.indices.layout.count(), [&] {
    status = plan.run(o[0].data, o[1].data, o[2].data, call.output_is_private, call.threads);
  });
  return status.bad_index;
}

void enqueue(const GatherPlan& plan, const Call& call, cuda::Queue& queue) {
  const Operand* const o = call.operands;
  cuda::gather(plan, o[0].data, o[1].data, o[2].data, call.output_is_private, queue);
}
void enqueue(const GatherElementsPlan& plan, const Call& call, cuda::Queue& queue) {
  const Operand* const o = call.operands;
  cuda::gather_elements(plan, o[0].data, o[1].data, o[2].data, call.output_is_private, queue);
}
void enqueue(const GatherNdPlan& plan, const Call& call, cuda::Queue& queue) {
  const Operand* const o = call.operands;
  cuda::gather_nd(plan, o[0].data, o[1].data, o[2].data, call.output_is_private, queue);
}

template <class Plan>
void enqueue(const Call& call, cuda::Queue& queue) {
  enqueue(plan_of<Plan>(call), call, queue);
}

const char* misfit(const GatherPlan& plan);
const char* misfit(const GatherElementsPlan& plan);
const char* misfit(const GatherNdPlan& plan);

template <class Plan>
const char* misfit(const Call& call) {
  if (call.number_count != 2) return kNumbers;
  const Plan plan = plan_of<Plan>(call);
  if (call.numbers[1] < 0 || call.numbers[1] > static_cast<Int>(OutOfRange::clip)) return kNumbers;
  if (!same_element(plan.input, plan.output)) return kElements;
  if (!is_index(plan.indices.type)) return kIndices;
  return misfit(plan);
}

void begin(const Quick& quick, Int first, Int* numbers, Results& results) {
  begin(results.one[0], "the result", quick.inputs[0]);
  numbers[0] = first;
  numbers[1] = quick.arguments[1];
}

bool has_none(const Layout& layout) {
  for (int i = 0; i < layout.rank; ++i)
    if (layout.sizes[i] == 0) return true;
  return false;
}

// ---- gather
// --------------------------------------------------------------------------------------

const char* misfit(const GatherPlan& plan) {
  const Layout &input = plan.input.layout, &lookup = plan.indices.layout,
               &output = plan.output.layout;
  if (!has(plan.axis, input)) return kAxis;
  if (output.rank != input.rank - 1 + lookup.rank) return kRank;
  if (!begins_with(output, 0, input, plan.axis) ||
      !begins_with(output, plan.axis, lookup, lookup.rank) ||
      !ends_with(output, plan.axis + lookup.rank, input, plan.axis + 1))
    return kSizes;
  if (plan.mode != OutOfRange::raise && input.sizes[plan.axis] == 0 && lookup.count() != 0)
    return kClamp;
  return nullptr;
}

// arguments: axis, mode.
bool shape(const Quick& quick, Int* numbers, Results& results) {
  const Layout &data = quick.inputs[0].tensor.layout, &lookup = quick.inputs[1].tensor.layout;
  int axis = 0;
  if (!axis_in(quick.arguments[0], data, axis) || !is_index(quick.inputs[1].tensor.type) ||
      data.rank - 1 + lookup.rank > kMaxRank || data.sizes[axis] == 0)
    return false;
  begin(quick, axis, numbers, results);
  push(results.one[0], data, 0, axis);
  push(results.one[0], lookup, 0, lookup.rank);
  push(results.one[0], data, axis + 1, data.rank);
  return true;
}

const Registration gather{{
    .name = "gather",
    .inputs = 2,
    .outputs = 1,
    .attributes = {{"axis"}, {"clamp"}},
    .misfit = misfit<GatherPlan>,
    .run = run<GatherPlan>,
    .arguments = {{Argument::integer}, {Argument::word, &kModes}},
    .shape = shape,
    .enqueue = enqueue<GatherPlan>,
}};

// ---- gather_elements
// -----------------------------------------------------------------------------

const char* misfit(const GatherElementsPlan& plan) {
  const Layout &input = plan.input.layout, &lookup = plan.indices.layout;
  if (!has(plan.axis, input)) return kAxis;
  if (lookup.rank != input.rank) return kRank;
  if (!same_sizes(plan.output.layout, lookup) || !at_most_but(lookup, input, plan.axis))
    return kSizes;
  if (plan.mode != OutOfRange::raise && input.sizes[plan.axis] == 0 && lookup.count() != 0)
    return kClamp;
  return nullptr;
}

// arguments: axis, mode.
bool elements_shape(const Quick& quick, Int* numbers, Results& results) {
  const Layout &data = quick.inputs[0].tensor.layout, &lookup = quick.inputs[1].tensor.layout;
  int axis = 0;
  if (!axis_in(quick.arguments[0], data, axis) || lookup.rank != data.rank ||
      !is_index(quick.inputs[1].tensor.type) || data.sizes[axis] == 0 ||
      !at_most_but(lookup, data, axis))
    return false;
  begin(quick, axis, numbers, results);
  push(results.one[0], lookup, 0, lookup.rank);
  return true;
}

const Registration gather_elements{{
    .name = "gather_elements",
    .inputs = 2,
    .outputs = 1,
    .attributes = {{"axis"}, {"clamp"}},
    .misfit = misfit<GatherElementsPlan>,
    .run = run<GatherElementsPlan>,
    .arguments = {{Argument::integer}, {Argument::word, &kModes}},
    .shape = elements_shape,
    .enqueue = enqueue<GatherElementsPlan>,
}};

// ---- gather_nd
// -----------------------------------------------------------------------------------

// The last size of the indices is a tuple's, behind batches that input and indices share.
bool tuples(Int batch, const Layout& input, const Layout& lookup) {
  return batch >= 0 && batch < lookup.rank && batch <= input.rank &&
         lookup.sizes[lookup.rank - 1] <= input.rank - batch;
}

const char* misfit(const GatherNdPlan& plan) {
  const Layout &input = plan.input.layout, &lookup = plan.indices.layout,
               &output = plan.output.layout;
  const int batch = plan.batch_dims;
  if (!tuples(batch, input, lookup)) return kRank;
  const int outer = lookup.rank - 1, tuple = static_cast<int>(lookup.sizes[outer]);
  if (!begins_with(lookup, 0, input, batch) || !begins_with(output, 0, lookup, outer) ||
      !ends_with(output, outer, input, batch + tuple))
    return kSizes;
  if (plan.mode != OutOfRange::raise && lookup.count() != 0)
    for (int k = 0; k < tuple; ++k)
      if (input.sizes[batch + k] == 0) return kClamp;
  return nullptr;
}

// arguments: batch_dims, mode.
bool nd_shape(const Quick& quick, Int* numbers, Results& results) {
  const Layout &data = quick.inputs[0].tensor.layout, &lookup = quick.inputs[1].tensor.layout;
  if (!tuples(quick.arguments[0], data, lookup) || !is_index(quick.inputs[1].tensor.type) ||
      has_none(data))
    return false;
  const int batch = static_cast<int>(quick.arguments[0]);
  const int first = batch + static_cast<int>(lookup.sizes[lookup.rank - 1]);
  if (!begins_with(lookup, 0, data, batch) || lookup.rank - 1 + data.rank - first > kMaxRank)
    return false;
  begin(quick, batch, numbers, results);
  push(results.one[0], lookup, 0, lookup.rank - 1);
  push(results.one[0], data, first, data.rank);
  return true;
}

const Registration gather_nd{{
    .name = "gather_nd",
    .inputs = 2,
    .outputs = 1,
    .attributes = {{"batch_dims"}, {"clamp"}},
    .misfit = misfit<GatherNdPlan>,
    .run = run<GatherNdPlan>,
    .arguments = {{Argument::integer}, {Argument::word, &kModes}},
    .shape = nd_shape,
    .enqueue = enqueue<GatherNdPlan>,
}};

}  // namespace
}  // namespace anydml::python

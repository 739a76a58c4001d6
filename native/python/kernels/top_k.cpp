#include "../fit.hpp"

namespace anydml::python {
namespace {

TopKPlan plan_of(const Call& call) {
  const Operand* const o = call.operands;
  return {o[0].tensor,     o[1].tensor,         o[2].tensor, small(call.numbers[0]),
          call.numbers[1], call.numbers[2] != 0};
}

const char* misfit(const Call& call) {
  if (call.number_count != 3) return kNumbers;
  const TopKPlan plan = plan_of(call);
  const Layout& input = plan.input.layout;
  if (!has(plan.axis, input)) return kAxis;
  if (plan.k < 0 || plan.k > input.sizes[plan.axis]) return "k: outside 0..n";
  if (plan.values.layout.rank != input.rank || plan.indices.layout.rank != input.rank) return kRank;
  if (plan.input.type == DataType::unknown || !same_element(plan.input, plan.values))
    return kElements;
  if (!same_sizes(plan.values.layout, input, plan.axis) ||
      !same_sizes(plan.indices.layout, plan.values.layout) ||
      plan.values.layout.sizes[plan.axis] != plan.k)
    return kSizes;
  if (!is_index(plan.indices.type)) return kIndices;
  if (!holds(plan.indices.type, input.sizes[plan.axis]))
    return "indices of 32 bits for a longer axis";
  return nullptr;
}

Int run(const Call& call) {
  const TopKPlan plan = plan_of(call);
  const Operand* const o = call.operands;
  without_gil(plan.input.layout.count(),
              [&] { plan.run(o[0].data, o[1].data, o[2].data, call.threads); });
  return -1;
}

void enqueue(const Call& call, cuda::Queue& queue) {
  const Operand* const o = call.operands;
  cuda::top_k(plan_of(call), o[0].data, o[1].data, o[2].data, queue);
}

// arguments: axis, k, largest, type of the indices.
bool shape(const Quick& quick, Int* numbers, Results& results) {
  const Operand& in = quick.inputs[0];
  const Layout& layout = in.tensor.layout;
  int axis = 0;
  const Int k = quick.arguments[1];
  if (in.tensor.type == DataType::unknown || !axis_in(quick.arguments[0], layout, axis))
    return false;
  const IndexType& index = index_type(quick.arguments[3]);
  if (k < 0 || k > layout.sizes[axis] || !holds(index.type, layout.sizes[axis])) return false;
  begin(results.one[0], "the values", in);
  push(results.one[0], layout, 0, layout.rank);
  results.one[0].dims[axis] = k;
  begin(results.one[1], "the indices", in);
  push(results.one[1], layout, 0, layout.rank);
  results.one[1].dims[axis] = k;
  results.one[1].descr = index.descr;
  numbers[0] = axis;
  numbers[1] = k;
  numbers[2] = quick.arguments[2];
  return true;
}

const Registration top_k{{
    .name = "top_k",
    .inputs = 1,
    .outputs = 2,
    .attributes = {{"axis"}, {"k"}, {"largest"}},
    .misfit = misfit,
    .run = run,
    .arguments = {{Argument::integer},
                  {Argument::integer},
                  {Argument::boolean},
                  {Argument::index_type_or_none}},
    .shape = shape,
    .enqueue = enqueue,
}};

}  // namespace
}  // namespace anydml::python

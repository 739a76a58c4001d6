#include "../../cuda/plans.hpp"
#include "../shape_rules.hpp"

namespace anydml::python {
namespace {

TopKPlan plan_of(const Call& call) {
  const Operand* const o = call.operands;
  return {o[0].tensor,     o[1].tensor,         o[2].tensor, to_axis(call.numbers[0]),
          call.numbers[1], call.numbers[2] != 0};
}

const char* shape(const Call& call, Results& results) {
  const Operand& in = call.operands[0];
  const Layout& layout = in.tensor.layout;
  const int axis = to_axis(call.numbers[0]);
  const Int k = call.numbers[1];
  if (in.tensor.type == DataType::unknown) return kElements;
  if (!has(axis, layout)) return kAxis;
  if (k < 0 || k > layout.sizes[axis]) return "k: expected 0 to the size of the axis";
  begin(results.one[0], "the values", in);
  begin(results.one[1], "the indices", Results::index, layout.sizes[axis]);
  for (Results::One& one : results.one) {
    push(one, layout, 0, layout.rank);
    one.dims[axis] = k;
  }
  return nullptr;
}

Int run(const Call& call) {
  const TopKPlan plan = plan_of(call);
  const Operand* const o = call.operands;
  without_gil(plan.input.layout.count(),
              [&] { run_plan(plan, o[0].data, o[1].data, o[2].data, call.threads); });
  return -1;
}

void enqueue(const Call& call, cuda::Queue& queue) {
  const Operand* const o = call.operands;
  cuda::top_k(plan_of(call), o[0].data, o[1].data, o[2].data, queue);
}

const Registration top_k{{
    .name = "top_k",
    .inputs = 1,
    .outputs = 2,
    .attributes = {{"axis"}, {"k"}, {"largest"}},
    .shape = shape,
    .run = run,
    .arguments = {{Argument::integer},
                  {Argument::integer},
                  {Argument::boolean},
                  {Argument::index_type_or_none}},
    .attribute_numbers = axis_numbers<3>,
    .enqueue = enqueue,
    .variants = cuda::top_k_variants,
}};

}  // namespace
}  // namespace anydml::python

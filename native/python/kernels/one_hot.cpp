#include "python/shape_rules.hpp"
#include "runtime/cuda/plans.hpp"

namespace anydml::python {
namespace {

// numbers: the axis, its size, whether the indices lack the axis.
const char* shape(const Call& call, Results& results) {
  const Operand &indices = call.operands[0], &values = call.operands[1];
  const Layout& lookup = indices.tensor.layout;
  const int inserts = call.numbers[2] != 0, rank = lookup.rank + inserts;
  const int axis = to_axis(call.numbers[0]);
  if (axis < 0 || axis >= rank) return kAxis;
  if (rank > kMaxRank) return kRank;
  if (!is_index_type(indices.tensor.type)) return kIndices;
  if (call.numbers[1] < 0) return "depth: expected 0 or more";
  if (inserts == 0 && lookup.sizes[axis] != 1) return kSizes;
  if (values.tensor.layout.count() < 2) return "values: expected two elements";
  Results::One& one = results.one[0];
  begin(one, "the result", values);
  push(one, lookup, 0, axis);
  one.dims[one.rank++] = call.numbers[1];
  push(one, lookup, axis + 1 - inserts, lookup.rank);
  return nullptr;
}

// Arguments: the depth, the axis of the result.
bool attribute_numbers(const FunctionCall& call, Int* numbers, Results&) {
  const int rank = call.inputs[0].tensor.layout.rank + 1;
  const Int axis = call.arguments[1];
  numbers[0] = axis < 0 ? axis + rank : axis;
  numbers[1] = call.arguments[0];
  numbers[2] = 1;
  return true;
}

OneHotPlan plan_of(const Call& call) {
  return {call.operands[0].tensor, call.operands[1].tensor, call.operands[2].tensor,
          to_axis(call.numbers[0]), call.numbers[2] != 0};
}

const Registration one_hot{{
    .name = "one_hot",
    .inputs = 2,
    .outputs = 1,
    .attributes = {{"axis"}, {"depth"}, {"inserts"}},
    .shape = shape,
    .runs = planned<plan_of, cuda::one_hot>(),
    .arguments = {{Argument::integer}, {Argument::integer}},
    .attribute_numbers = attribute_numbers,
    .variants = cuda::one_hot_variants,
}};

}  // namespace
}  // namespace anydml::python

#include "python/shape_rules.hpp"
#include "runtime/cuda/plans.hpp"

namespace anydml::python {
namespace {

const Words kModes{
#define ANYDML_INDEX_MODE(name) #name,
#include "common/modes.def"
};

// All three take a number (an axis, or the number of batch dimensions) and the mode for indices out
// of range.
template <class Plan>
Plan plan_of(const Call& call) {
  const Operand* const o = call.operands;
  return {o[0].tensor, o[1].tensor, o[2].tensor, static_cast<int>(call.numbers[0]),
          static_cast<OutOfRange>(call.numbers[1])};
}

// Unless a bad index is an error, an index needs at least one element on its axis.
bool lacks_elements(const Call& call, const Layout& lookup, Int size) {
  return call.numbers[1] != static_cast<Int>(OutOfRange::raise) && size == 0 && lookup.count() != 0;
}

// All three take the data, the indices, a number and the mode.
template <class Plan, auto launch>
Kernel gather_kernel(const char* name, const char* number,
                     const char* (*shape)(const Call&, Results&),
                     bool (*attribute_numbers)(const FunctionCall&, Int*, Results&)) {
  return {
      .name = name,
      .inputs = 2,
      .outputs = 1,
      .attributes = {{number}, {"clamp", &kModes}},
      .shape = shape,
      .runs = planned<plan_of<Plan>, launch>(),
      .arguments = {{Argument::integer}, {Argument::word, &kModes}},
      .attribute_numbers = attribute_numbers,
      .variants = cuda::gather_variants,
      .checks_indices = true,
  };
}

// ---- gather -------------------------------------------------------------------------------------

const char* shape(const Call& call, Results& results) {
  const Operand &in = call.operands[0], &indices = call.operands[1];
  const Layout &data = in.tensor.layout, &lookup = indices.tensor.layout;
  const int axis = to_axis(call.numbers[0]);
  if (!has(axis, data)) return kAxis;
  if (!is_index_type(indices.tensor.type)) return kIndices;
  if (data.rank - 1 + lookup.rank > kMaxRank) return kRank;
  if (lacks_elements(call, lookup, data.sizes[axis])) return kClamp;
  Results::One& one = results.one[0];
  begin(one, "the result", in);
  push(one, data, 0, axis);
  push(one, lookup, 0, lookup.rank);
  push(one, data, axis + 1, data.rank);
  return nullptr;
}

const Registration gather{
    gather_kernel<GatherPlan, cuda::gather>("gather", "axis", shape, axis_numbers<2>)};

// ---- gather_elements ----------------------------------------------------------------------------

const char* elements_shape(const Call& call, Results& results) {
  const Operand &in = call.operands[0], &indices = call.operands[1];
  const Layout &data = in.tensor.layout, &lookup = indices.tensor.layout;
  const int axis = to_axis(call.numbers[0]);
  if (!has(axis, data)) return kAxis;
  if (!is_index_type(indices.tensor.type)) return kIndices;
  if (lookup.rank != data.rank) return kRank;
  if (!fits_except(lookup, data, axis)) return kSizes;
  if (lacks_elements(call, lookup, data.sizes[axis])) return kClamp;
  begin(results.one[0], "the result", in);
  push(results.one[0], lookup, 0, lookup.rank);
  return nullptr;
}

const Registration gather_elements{gather_kernel<GatherElementsPlan, cuda::gather_elements>(
    "gather_elements", "axis", elements_shape, axis_numbers<2>)};

// ---- gather_nd ----------------------------------------------------------------------------------

// The last size of the indices is that of a tuple. Batch dimensions, shared by input and indices,
// come first.
const char* nd_shape(const Call& call, Results& results) {
  const Operand &in = call.operands[0], &indices = call.operands[1];
  const Layout &data = in.tensor.layout, &lookup = indices.tensor.layout;
  const Int batch = call.numbers[0];
  if (!is_index_type(indices.tensor.type)) return kIndices;
  if (batch < 0 || batch >= lookup.rank || batch > data.rank) return kRank;
  const int outer = lookup.rank - 1, first = static_cast<int>(batch);
  if (lookup.sizes[outer] > data.rank - batch) return kRank;
  const int rest = first + static_cast<int>(lookup.sizes[outer]);
  if (outer + data.rank - rest > kMaxRank) return kRank;
  if (!begins_with(lookup, 0, data, first)) return kSizes;
  for (int i = first; i < rest; ++i)
    if (lacks_elements(call, lookup, data.sizes[i])) return kClamp;
  begin(results.one[0], "the result", in);
  push(results.one[0], lookup, 0, outer);
  push(results.one[0], data, rest, data.rank);
  return nullptr;
}

bool nd_numbers(const FunctionCall& call, Int* numbers, Results&) {
  numbers[0] = call.arguments[0];
  numbers[1] = call.arguments[1];
  return true;
}

const Registration gather_nd{
    gather_kernel<GatherNdPlan, cuda::gather_nd>("gather_nd", "batch_dims", nd_shape, nd_numbers)};

}  // namespace
}  // namespace anydml::python

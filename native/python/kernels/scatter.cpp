#include "python/shape_rules.hpp"
#include "runtime/cuda/plans.hpp"

namespace anydml::python {
namespace {

// The users' words: the kernels' own, then PyTorch's in the same order.
const Words kWords{
#define ANYDML_REDUCTION(name, synonym) #name,
#include "common/modes.def"
#define ANYDML_REDUCTION(name, synonym) #synonym,
#include "common/modes.def"
};
// Reductions combine complex numbers as such; everything else only moves them.
DataType combined_type(const Operand& operand, Reduction reduction) {
  const DataType type = operand.tensor.type;
  if (reduction == Reduction::none || type != DataType::unknown || operand.descr == nullptr ||
      operand.descr->kind != 'c')
    return type;
  return numpy_facts('c', operand.tensor.element_size)->type;
}
Tensor combined(const Operand& operand, Reduction reduction) {
  Tensor tensor = operand.tensor;
  tensor.type = combined_type(operand, reduction);
  return tensor;
}

// The reductions of calls: the kernels' own, and the mean.
const Words kCalled{
#define ANYDML_REDUCTION(name, synonym) #name,
#include "common/modes.def"
    "mean"};
const Int kMean = static_cast<Int>(kCalled.size()) - 1;

Int canonical_reduction(Int word) { return word < kMean ? word : word - kMean; }

// The last two numbers: the reduction, and whether the element itself is included.
Reduction reduction_of(const Int* numbers) {
  return numbers[0] == kMean ? Reduction::add : static_cast<Reduction>(numbers[0]);
}
Mean mean_of(const Int* numbers) {
  if (numbers[0] != kMean) return Mean::no;
  return numbers[1] != 0 ? Mean::with_element : Mean::of_updates;
}

// A mean sums up in the elements' own type, which must be wide enough.
bool can_average(DataType type) {
  return is_complex_type(type) || type == DataType::float32 || type == DataType::float64 ||
         type == DataType::int64 || type == DataType::uint64;
}

// Checks that both scatters share on input, indices and updates.
const char* elements_of(const Call& call, const Int* numbers) {
  const Operand* const in = call.operands;
  if (!same_element(in[0], in[2])) return kElements;
  if (!is_index_type(in[1].tensor.type)) return kIndices;
  const Reduction reduction = reduction_of(numbers);
  if (reduction == Reduction::none) return nullptr;
  const DataType type = combined_type(in[0], reduction);
  const bool mean = numbers[0] == kMean;
  if (type == DataType::unknown || (is_complex_type(type) && reduction >= Reduction::min) ||
      (mean && !can_average(type)))
    return "reduction: not one that the element type has";
  return mean || numbers[1] != 0 ? nullptr : "include_self: only a mean leaves out the element";
}

// ---- scatter_elements ---------------------------------------------------------------------------

ScatterPlan elements_plan(const Call& call) {
  const Operand* const o = call.operands;
  const Reduction reduction = reduction_of(call.numbers + 1);
  return {
      combined(o[0], reduction), o[1].tensor, combined(o[2], reduction), combined(o[3], reduction),
      to_axis(call.numbers[0]),  reduction,   mean_of(call.numbers + 1)};
}

const char* elements_shape(const Call& call, Results& results) {
  const Operand* const in = call.operands;
  const Layout &data = in[0].tensor.layout, &lookup = in[1].tensor.layout;
  const int axis = to_axis(call.numbers[0]);
  if (!has(axis, data) && !(data.rank == 0 && axis == 0)) return kAxis;
  if (lookup.rank != data.rank) return kRank;
  if (!same_sizes(in[2].tensor.layout, lookup) || !fits_except(lookup, data, axis)) return kSizes;
  same_as(results, in[0]);
  return elements_of(call, call.numbers + 1);
}

// arguments: axis, reduction.
bool elements_numbers(const FunctionCall& call, Int* numbers, Results& results) {
  if (!axis_numbers<1>(call, numbers, results)) return false;
  numbers[1] = canonical_reduction(call.arguments[1]);
  numbers[2] = 1;
  return numbers[1] == 0 || call.inputs[0].tensor.type != DataType::unknown;
}

const Registration scatter_elements{{
    .name = "scatter_elements",
    .inputs = 3,
    .outputs = 1,
    .attributes = {{"axis"}, {"reduction", &kCalled}, {"include_self"}},
    .shape = elements_shape,
    .runs = planned<elements_plan, cuda::scatter_elements>(),
    .arguments = {{Argument::integer}, {Argument::word_or_none, &kWords}},
    .attribute_numbers = elements_numbers,
    .variants = cuda::scatter_variants,
    .checks_indices = true,
    .writes_over = true,
}};

// ---- scatter_nd ---------------------------------------------------------------------------------

ScatterNdPlan nd_plan(const Call& call) {
  const Operand* const o = call.operands;
  const Reduction reduction = reduction_of(call.numbers);
  return {combined(o[0], reduction), o[1].tensor, combined(o[2], reduction),
          combined(o[3], reduction), reduction,   mean_of(call.numbers)};
}

// Updates have the indices' sizes without the last, then the input's sizes without the first t.
bool slices(const Layout& input, const Layout& lookup, const Layout& updates) {
  const int outer = lookup.rank - 1, tuple = static_cast<int>(lookup.sizes[outer]);
  return begins_with(updates, 0, lookup, outer) && ends_with(updates, outer, input, tuple);
}

const char* nd_shape(const Call& call, Results& results) {
  const Operand* const in = call.operands;
  const Layout &data = in[0].tensor.layout, &lookup = in[1].tensor.layout;
  if (lookup.rank < 1 || lookup.sizes[lookup.rank - 1] > data.rank) return kRank;
  if (!slices(data, lookup, in[2].tensor.layout)) return kSizes;
  same_as(results, in[0]);
  return elements_of(call, call.numbers);
}

// arguments: reduction.
bool nd_numbers(const FunctionCall& call, Int* numbers, Results&) {
  numbers[0] = canonical_reduction(call.arguments[0]);
  numbers[1] = 1;
  return numbers[0] == 0 || call.inputs[0].tensor.type != DataType::unknown;
}

const Registration scatter_nd{{
    .name = "scatter_nd",
    .inputs = 3,
    .outputs = 1,
    .attributes = {{"reduction", &kCalled}, {"include_self"}},
    .shape = nd_shape,
    .runs = planned<nd_plan, cuda::scatter_nd>(),
    .arguments = {{Argument::word_or_none, &kWords}},
    .attribute_numbers = nd_numbers,
    .variants = cuda::scatter_variants,
    .checks_indices = true,
    .writes_over = true,
}};

}  // namespace
}  // namespace anydml::python

#include "../fit.hpp"

namespace anydml::python {
namespace {

// As users say it: the kernels' own words, then PyTorch's in the same order.
const Words kWords{"none", "add", "mul", "min", "max", "none", "sum", "prod", "amin", "amax"};
Int said(Int word) {
  const Int own = static_cast<Int>(kReductions.size());
  return word < own ? word : word - own;
}

Reduction reduction_of(Int number) {
  return number < 0 || number > static_cast<Int>(Reduction::max) ? Reduction{-1}
                                                                 : static_cast<Reduction>(number);
}

// What combines complex numbers takes them for such; elsewhere they are only moved.
Tensor combined(const Operand& operand, Reduction reduction) {
  Tensor tensor = operand.tensor;
  if (reduction == Reduction::none || tensor.type != DataType::unknown ||
      operand.descr == nullptr || operand.descr->kind != 'c')
    return tensor;
  if (tensor.element_size == 8) tensor.type = DataType::complex64;
  if (tensor.element_size == 16) tensor.type = DataType::complex128;
  return tensor;
}

// `mean`: of kernels on a GPU; the CPU's sums are divided behind them (functions/_combining.py).
const char* reduced(Reduction reduction, Int mean, const Tensor& output) {
  const bool known = reduction >= Reduction::none && reduction <= Reduction::max;
  const bool typed = reduction == Reduction::none || output.type != DataType::unknown;
  const bool ordered = !is_complex_type(output.type) || reduction < Reduction::min;
  const bool divided = mean == 0 || (reduction == Reduction::add && (mean == 1 || mean == 2));
  return known && typed && ordered && divided ? nullptr
                                              : "a reduction that the elements do not have";
}

template <class Plan>
Int run(const Plan& plan, const Call& call, Int mean, Int elements) {
  if (mean != 0) raise_argument("mean: expected 0 on the CPU, got " + std::to_string(mean));
  const Operand* const o = call.operands;
  Status status;
  without_gil(elements, [&] {
    status =
        plan.run(o[0].data, o[1].data, o[2].data, o[3].data, call.output_is_private, call.threads);
  });
  return status.bad_index;
}

// Whether the operands' types let a quick call begin.
bool typed(const Quick& quick, Int reduction) {
  const Operand* const in = quick.inputs;
  return is_index(in[1].tensor.type) && same_element(in[0], in[2]) &&
         (reduction == 0 || in[0].tensor.type != DataType::unknown);
}

void like_input(const Quick& quick, Results& results) {
  const Layout& data = quick.inputs[0].tensor.layout;
  begin(results.one[0], "the result", quick.inputs[0]);
  push(results.one[0], data, 0, data.rank);
}

// ---- scatter_elements
// ----------------------------------------------------------------------------

ScatterPlan elements_plan(const Call& call) {
  const Operand* const o = call.operands;
  const Reduction reduction = reduction_of(call.numbers[1]);
  return {combined(o[0], reduction), o[1].tensor,
          combined(o[2], reduction), combined(o[3], reduction),
          small(call.numbers[0]),    reduction};
}

const char* elements_misfit(const Call& call) {
  if (call.number_count != 3) return kNumbers;
  const ScatterPlan plan = elements_plan(call);
  const Layout &input = plan.input.layout, &lookup = plan.indices.layout;
  if (!has(plan.axis, input) && !(input.rank == 0 && plan.axis == 0)) return kAxis;
  if (lookup.rank != input.rank) return kRank;
  if (!same_element(plan.input, plan.updates) || !same_element(plan.input, plan.output))
    return kElements;
  if (!same_sizes(plan.output.layout, input) || !same_sizes(plan.updates.layout, lookup) ||
      !at_most_but(lookup, input, plan.axis))
    return kSizes;
  if (!is_index(plan.indices.type)) return kIndices;
  return reduced(plan.reduction, call.numbers[2], plan.output);
}

Int elements_run(const Call& call) {
  const ScatterPlan plan = elements_plan(call);
  const Int elements = plan.output.layout.count() + plan.indices.layout.count();
  return run(plan, call, call.numbers[2], elements);
}

void elements_enqueue(const Call& call, cuda::Queue& queue) {
  const Operand* const o = call.operands;
  cuda::scatter_elements(elements_plan(call), o[0].data, o[1].data, o[2].data, o[3].data,
                         call.output_is_private, queue, static_cast<cuda::Mean>(call.numbers[2]));
}

// arguments: axis, reduction.
bool elements_shape(const Quick& quick, Int* numbers, Results& results) {
  const Layout &data = quick.inputs[0].tensor.layout, &lookup = quick.inputs[1].tensor.layout,
               &updates = quick.inputs[2].tensor.layout;
  const Int reduction = said(quick.arguments[1]);
  int axis = 0;
  if (!axis_in(quick.arguments[0], data, axis) || lookup.rank != data.rank ||
      !typed(quick, reduction) || !same_sizes(lookup, updates) || !at_most_but(lookup, data, axis))
    return false;
  like_input(quick, results);
  numbers[0] = axis;
  numbers[1] = reduction;
  numbers[2] = 0;
  return true;
}

const Registration scatter_elements{{
    .name = "scatter_elements",
    .inputs = 3,
    .outputs = 1,
    .attributes = {{"axis"}, {"reduction", &kReductions}, {"mean"}},
    .misfit = elements_misfit,
    .run = elements_run,
    .arguments = {{Argument::integer}, {Argument::word_or_none, &kWords}},
    .shape = elements_shape,
    .enqueue = elements_enqueue,
}};

// ---- scatter_nd
// ----------------------------------------------------------------------------------

ScatterNdPlan nd_plan(const Call& call) {
  const Operand* const o = call.operands;
  const Reduction reduction = reduction_of(call.numbers[0]);
  return {combined(o[0], reduction), o[1].tensor, combined(o[2], reduction),
          combined(o[3], reduction), reduction};
}

// Updates have the indices' sizes without the last, then the input's without the first t.
bool slices(const Layout& input, const Layout& lookup, const Layout& updates) {
  const int outer = lookup.rank - 1, tuple = static_cast<int>(lookup.sizes[outer]);
  return begins_with(updates, 0, lookup, outer) && ends_with(updates, outer, input, tuple);
}

bool tuples(const Layout& input, const Layout& lookup) {
  return lookup.rank >= 1 && lookup.sizes[lookup.rank - 1] <= input.rank;
}

const char* nd_misfit(const Call& call) {
  if (call.number_count != 2) return kNumbers;
  const ScatterNdPlan plan = nd_plan(call);
  const Layout &input = plan.input.layout, &lookup = plan.indices.layout;
  if (!tuples(input, lookup)) return kRank;
  if (!same_element(plan.input, plan.updates) || !same_element(plan.input, plan.output))
    return kElements;
  if (!same_sizes(plan.output.layout, input) || !slices(input, lookup, plan.updates.layout))
    return kSizes;
  if (!is_index(plan.indices.type)) return kIndices;
  return reduced(plan.reduction, call.numbers[1], plan.output);
}

Int nd_run(const Call& call) {
  const ScatterNdPlan plan = nd_plan(call);
  const Int elements = plan.output.layout.count() + plan.updates.layout.count();
  return run(plan, call, call.numbers[1], elements);
}

void nd_enqueue(const Call& call, cuda::Queue& queue) {
  const Operand* const o = call.operands;
  cuda::scatter_nd(nd_plan(call), o[0].data, o[1].data, o[2].data, o[3].data,
                   call.output_is_private, queue, static_cast<cuda::Mean>(call.numbers[1]));
}

// arguments: reduction.
bool nd_shape(const Quick& quick, Int* numbers, Results& results) {
  const Layout &data = quick.inputs[0].tensor.layout, &lookup = quick.inputs[1].tensor.layout;
  const Int reduction = said(quick.arguments[0]);
  if (!tuples(data, lookup) || !typed(quick, reduction) ||
      !slices(data, lookup, quick.inputs[2].tensor.layout))
    return false;
  like_input(quick, results);
  numbers[0] = reduction;
  numbers[1] = 0;
  return true;
}

const Registration scatter_nd{{
    .name = "scatter_nd",
    .inputs = 3,
    .outputs = 1,
    .attributes = {{"reduction", &kReductions}, {"mean"}},
    .misfit = nd_misfit,
    .run = nd_run,
    .arguments = {{Argument::word_or_none, &kWords}},
    .shape = nd_shape,
    .enqueue = nd_enqueue,
}};

}  // namespace
}  // namespace anydml::python

#include "python/shape_rules.hpp"
#include "runtime/cuda/plans.hpp"

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
              [&] { run_plan(plan, o[0].data, o[1].data, o[2].data, call.threads, nullptr); });
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
    .runs = {run, enqueue},
    .arguments = {{Argument::integer},
                  {Argument::integer},
                  {Argument::boolean},
                  {Argument::index_type_or_none}},
    .attribute_numbers = axis_numbers<3>,
    .variants = cuda::top_k_variants,
}};

// ---- with the options of the array function

TopKPlan rows_plan_of(const Call& call) {
  const Operand* const o = call.operands;
  const Int* const numbers = call.numbers;
  return {o[0].tensor,
          o[2].tensor,
          o[3].tensor,
          to_axis(numbers[0]),
          numbers[1],
          numbers[2] != 0,
          numbers[3] != 0,
          numbers[4] != 0,
          numbers[5] != 0,
          o[1].tensor,
          static_cast<uint64_t>(numbers[6])};
}

// The lengths; null if all rows are whole.
const void* lengths_of(const Call& call) {
  return call.operands[1].tensor.layout.count() == 0 ? nullptr : call.operands[1].data;
}

const char* rows_shape(const Call& call, Results& results) {
  const char* const wrong = shape(call, results);
  if (wrong != nullptr) return wrong;
  const Tensor& lengths = call.operands[1].tensor;
  if (!is_index_type(lengths.type)) return "lengths of another type than indices have";
  if (lengths.layout.rank == 1 && lengths.layout.sizes[0] == 0) return nullptr;
  Layout rows = call.operands[0].tensor.layout;
  const int axis = to_axis(call.numbers[0]);
  for (int i = axis + 1; i < rows.rank; ++i) rows.sizes[i - 1] = rows.sizes[i];
  --rows.rank;
  return lengths.layout.rank == rows.rank && same_sizes(lengths.layout, rows) ? nullptr : kSizes;
}

// Array functions reject lengths outside the axis, which the kernel limits to it.
Int rows_run(const Call& call) {
  const Operand* const o = call.operands;
  const TopKPlan plan = rows_plan_of(call);
  const void* const lengths = lengths_of(call);
  const Int longest = plan.input.layout.sizes[plan.axis];
  if (call.may_decline && lengths != nullptr && !all_within(o[1], longest)) return kDeclined;
  without_gil(plan.input.layout.count(),
              [&] { run_plan(plan, o[0].data, o[2].data, o[3].data, call.threads, lengths); });
  return -1;
}

void rows_enqueue(const Call& call, cuda::Queue& queue) {
  const Operand* const o = call.operands;
  cuda::top_k(rows_plan_of(call), o[0].data, o[2].data, o[3].data, queue, lengths_of(call));
}

bool rows_numbers(const FunctionCall& call, Int* numbers, Results& results) {
  numbers[7] = 0;
  return axis_numbers<7>(call, numbers, results);
}

const Registration top_k_rows{{
    .name = "top_k_rows",
    .inputs = 2,
    .outputs = 2,
    .attributes = {{"axis"},
                   {"k"},
                   {"largest"},
                   {"sorted"},
                   {"nan_last"},
                   {"last_first"},
                   {"fill", nullptr, Attribute::two}},
    .shape = rows_shape,
    .runs = {rows_run, rows_enqueue},
    .arguments = {{Argument::integer},
                  {Argument::integer},
                  {Argument::boolean},
                  {Argument::boolean},
                  {Argument::boolean},
                  {Argument::boolean},
                  {Argument::constant},
                  {Argument::index_type_or_none}},
    .attribute_numbers = rows_numbers,
    .variants = cuda::top_k_variants,
}};

}  // namespace
}  // namespace anydml::python

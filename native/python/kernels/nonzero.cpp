#include <algorithm>

#include "common/order.hpp"
#include "python/shape_rules.hpp"
#include "runtime/cuda/plans.hpp"

namespace anydml::python {
namespace {

NonzeroPlan plan_of(const Call& call) {
  return {call.operands[0].tensor, to_axis(call.numbers[0])};
}

// The count, where it is an output, and the rows.
const char* shape(const Call& call, Results& results) {
  const Operand& in = call.operands[0];
  const Layout& layout = in.tensor.layout;
  const int columns = to_axis(call.numbers[0]);
  if (columns < 0 || columns > layout.rank) return "columns: expected 0 to the rank";
  // Bools have no numbers, but zeros; dispatches give no descriptors.
  if (in.tensor.type == DataType::unknown &&
      (in.descr == nullptr ? in.tensor.element_size != 1 : in.descr->kind != 'b'))
    return kElements;
  Int longest = 0;
  for (int i = layout.rank - columns; i < layout.rank; ++i)
    longest = std::max(longest, layout.sizes[i]);
  begin(results.one[0], "the count", Results::count);
  results.one[0].rank = kAnyRank;
  Results::One& rows = results.one[1];
  begin(rows, "the coordinates", Results::index, longest);
  rows.dims[rows.rank++] = kMeasured;
  rows.dims[rows.rank++] = columns;
  return nullptr;
}

Int run(const Call& call) {
  const NonzeroPlan plan = plan_of(call);
  const Operand* const o = call.operands;
  without_gil(plan.input.layout.count(), [&] {
    const NonzeroPlan::Found found = call_kernel<&NonzeroPlan::scan>(plan, o[0].data, call.threads);
    store(o[1].data, static_cast<uint32_t>(found.count));
    call_kernel<&NonzeroPlan::write>(plan, found, o[2].tensor, o[2].data, call.threads);
  });
  return -1;
}

void run_measured(const Call& call, const MakeOutput& make) {
  const NonzeroPlan plan = plan_of(call);
  const NonzeroPlan::Found found = without_gil(plan.input.layout.count(), [&] {
    return call_kernel<&NonzeroPlan::scan>(plan, call.operands[0].data, call.threads);
  });
  const Operand* const rows = make(found.count);
  if (rows == nullptr) return;
  without_gil(found.count, [&] {
    call_kernel<&NonzeroPlan::write>(plan, found, rows->tensor, rows->data, call.threads);
  });
}

void enqueue(const Call& call, cuda::Queue& queue) {
  const NonzeroPlan plan = plan_of(call);
  const Operand* const o = call.operands;
  const cuda::NonzeroFound found = cuda::nonzero_scan(plan, o[0].data, queue);
  cuda::nonzero_count(found, o[1].tensor, o[1].data, queue);
  cuda::nonzero_write(plan, found, o[2].tensor.layout.sizes[0], o[2].tensor, o[2].data, queue);
}

void enqueue_measured(const Call& call, cuda::Queue& queue, const MakeOutput& make) {
  const NonzeroPlan plan = plan_of(call);
  const cuda::NonzeroFound found = cuda::nonzero_scan(plan, call.operands[0].data, queue, true);
  const Int count = queue.counter_value(found.count);
  const Operand* const rows = make(count);
  if (rows != nullptr) cuda::nonzero_write(plan, found, count, rows->tensor, rows->data, queue);
}

bool attribute_numbers(const FunctionCall& call, Int* numbers, Results&) {
  numbers[0] = call.inputs[0].tensor.layout.rank;
  return true;
}

const Registration nonzero{{
    .name = "nonzero_coordinates",
    .inputs = 1,
    .outputs = 2,
    .attributes = {{"columns"}},
    .shape = shape,
    .runs = {run, enqueue},
    .arguments = {{Argument::index_type_or_none}},
    .attribute_numbers = attribute_numbers,
    .variants = cuda::nonzero_variants,
    .measured = Measured{run_measured, enqueue_measured},
}};

}  // namespace
}  // namespace anydml::python

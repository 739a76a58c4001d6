#include "../../common/order.hpp"
#include "../fit.hpp"

namespace anydml::python {
namespace {

NonzeroPlan plan_of(const Call& call) { return {call.operands[0].tensor, small(call.numbers[0])}; }

const char* unscanned(const Call& call) {
  if (call.number_count != 1) return kNumbers;
  const NonzeroPlan plan = plan_of(call);
  if (plan.columns < 0 || plan.columns > plan.input.layout.rank) return "columns: outside 0..rank";
  if (plan.input.type == DataType::unknown && plan.input.element_size != 1) return kElements;
  return nullptr;
}

const char* unfilled(const NonzeroPlan& plan, Int count, const Tensor& rows) {
  const Layout& layout = rows.layout;
  if (layout.rank != 2) return "rows: not of rank 2";
  if (layout.sizes[0] < count || layout.sizes[1] != plan.columns)
    return "rows: fewer than there are non-zero elements, or not one coordinate for each axis";
  if (!is_index(rows.type)) return "rows: of a type that is none for indices";
  const Layout& input = plan.input.layout;
  for (int i = input.rank - plan.columns; i < input.rank; ++i)
    if (!holds(rows.type, input.sizes[i])) return "rows: of 32 bits for a longer axis";
  return nullptr;
}

const char* misfit(const Call& call) {
  if (const char* const first = unscanned(call)) return first;
  const Operand* const o = call.operands;
  if (o[1].tensor.type != DataType::uint32 || o[1].tensor.layout.count() != 1)
    return "a count that is not one uint32";
  return unfilled(plan_of(call), o[0].tensor.layout.count(), o[2].tensor);
}

Int run(const Call& call) {
  const NonzeroPlan plan = plan_of(call);
  const Operand* const o = call.operands;
  without_gil(plan.input.layout.count(), [&] {
    const Found found = plan.scan(o[0].data, call.threads);
    store(o[1].data, static_cast<uint32_t>(found.count));
    plan.write(found, o[2].tensor, o[2].data, call.threads);
  });
  return -1;
}

Found measure(const Call& call) {
  if (const char* const wrong = unscanned(call))
    raise_argument(std::string("nonzero_coordinates: ") + wrong);
  const NonzeroPlan plan = plan_of(call);
  const Int count = plan.input.layout.count();
  if (count < kUnlockElements) return plan.scan(call.operands[0].data, call.threads);
  Found found;
  without_gil(count, [&] { found = plan.scan(call.operands[0].data, call.threads); });
  return found;
}

// operands: the input, the rows.
const char* rows_misfit(const Call& call, const Found& found) {
  return unfilled(plan_of(call), found.count, call.operands[1].tensor);
}

void fill(const Call& call, const Found& found) {
  const NonzeroPlan plan = plan_of(call);
  const Operand& rows = call.operands[1];
  without_gil(found.count, [&] { plan.write(found, rows.tensor, rows.data, call.threads); });
}

void enqueue(const Call& call, cuda::Queue& queue) {
  const NonzeroPlan plan = plan_of(call);
  const Operand* const o = call.operands;
  const cuda::NonzeroFound found = cuda::nonzero_scan(plan, o[0].data, queue);
  cuda::nonzero_count(found, o[1].tensor, o[1].data, queue);
  cuda::nonzero_write(plan, found, o[2].tensor.layout.sizes[0], o[2].tensor, o[2].data, queue);
}

cuda::NonzeroFound measure_on_device(const Call& call, cuda::Queue& queue) {
  if (const char* const wrong = unscanned(call))
    throw cuda::DeviceFailed(std::string("nonzero_coordinates: ") + wrong);
  return cuda::nonzero_scan(plan_of(call), call.operands[0].data, queue, true);
}

void fill_on_device(const Call& call, const cuda::NonzeroFound& found, Int count,
                    cuda::Queue& queue) {
  const Operand& rows = call.operands[1];
  cuda::nonzero_write(plan_of(call), found, count, rows.tensor, rows.data, queue);
}

// arguments: type of the coordinates.
bool shape(const Quick& quick, Int* numbers, Results& results) {
  const Operand& in = quick.inputs[0];
  const Layout& layout = in.tensor.layout;
  if (in.tensor.type == DataType::unknown && in.descr->kind != 'b') return false;
  const IndexType& index = index_type(quick.arguments[0]);
  for (int i = 0; i < layout.rank; ++i)
    if (!holds(index.type, layout.sizes[i])) return false;
  results.one[0].purpose = "the coordinates";
  results.one[0].descr = index.descr;
  results.one[0].rank = 2;
  results.one[0].dims[0] = kMeasured;
  results.one[0].dims[1] = layout.rank;
  numbers[0] = layout.rank;
  return true;
}

const Registration nonzero{{
    .name = "nonzero_coordinates",
    .inputs = 1,
    .outputs = 2,
    .attributes = {{"columns"}},
    .misfit = misfit,
    .run = run,
    .arguments = {{Argument::index_type_or_none}},
    .shape = shape,
    .measure = measure,
    .unfilled = rows_misfit,
    .fill = fill,
    .enqueue = enqueue,
    .measure_on_device = measure_on_device,
    .fill_on_device = fill_on_device,
}};

}  // namespace
}  // namespace anydml::python

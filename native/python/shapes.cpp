#include "shapes.hpp"

namespace anydml::python {
namespace {

const char* const kAxis = "axis: none of the input's";
const char* const kRank = "operands of other ranks than the input's";
const char* const kSizes = "operands of other sizes than the input's";
const char* const kElements = "operands of other elements than the input's";
const char* const kIndices = "indices of a type that is none for indices";
const char* const kClamp = "no element to clamp an index to";

bool same_element(const Tensor& a, const Tensor& b) {
  return a.element_size == b.element_size && a.type == b.type;
}

// But for one axis; -1 for none.
bool same_sizes(const Layout& a, const Layout& b, int but = -1) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i)
    if (i != but && a.sizes[i] != b.sizes[i]) return false;
  return true;
}

bool at_most_but(const Layout& a, const Layout& most, int axis) {
  for (int i = 0; i < a.rank; ++i)
    if (i != axis && a.sizes[i] > most.sizes[i]) return false;
  return true;
}

bool has(int axis, const Layout& layout) { return axis >= 0 && axis < layout.rank; }

// `to` continues with the sizes of `from` from dimension `first` on, and ends there.
bool ends_with(const Layout& to, int at, const Layout& from, int first) {
  if (to.rank - at != from.rank - first) return false;
  for (int i = first; i < from.rank; ++i)
    if (to.sizes[at + i - first] != from.sizes[i]) return false;
  return true;
}

bool begins_with(const Layout& to, int at, const Layout& from, int count) {
  if (to.rank < at + count) return false;
  for (int i = 0; i < count; ++i)
    if (to.sizes[at + i] != from.sizes[i]) return false;
  return true;
}

const char* reduced(Reduction reduction, const Tensor& output) {
  const bool known = reduction >= Reduction::none && reduction <= Reduction::max;
  const bool typed = reduction == Reduction::none || output.type != DataType::unknown;
  return known && typed ? nullptr : "a reduction that the elements do not have";
}

}  // namespace

bool is_index(DataType type) {
  return type == DataType::int64 || type == DataType::int32 || type == DataType::uint64 ||
         type == DataType::uint32;
}

const char* misfit(const TopKPlan& plan) {
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
  if (!is_index(plan.indices.type) || plan.indices.type == DataType::int32) return kIndices;
  if (plan.indices.element_size == 4 && input.sizes[plan.axis] > (Int{1} << 32))
    return "indices of 32 bits for a longer axis";
  return nullptr;
}

const char* misfit(const NonzeroPlan& plan) {
  if (plan.columns < 0 || plan.columns > plan.input.layout.rank) return "columns: outside 0..rank";
  if (plan.input.type == DataType::unknown && plan.input.element_size != 1) return kElements;
  return nullptr;
}

const char* misfit(const NonzeroPlan& plan, Int count, const Tensor& rows) {
  const Layout& layout = rows.layout;
  if (layout.rank != 2) return "rows: not of rank 2";
  if (layout.sizes[0] < count || layout.sizes[1] != plan.columns)
    return "rows: fewer than there are non-zero elements, or not one coordinate for each axis";
  return rows.type == DataType::uint32 || rows.type == DataType::uint64
             ? nullptr
             : "rows: neither uint32 nor uint64";
}

const char* misfit(const ScatterPlan& plan) {
  const Layout &input = plan.input.layout, &lookup = plan.indices.layout;
  if (!has(plan.axis, input) && !(input.rank == 0 && plan.axis == 0)) return kAxis;
  if (lookup.rank != input.rank) return kRank;
  if (!same_element(plan.input, plan.updates) || !same_element(plan.input, plan.output))
    return kElements;
  if (!same_sizes(plan.output.layout, input) || !same_sizes(plan.updates.layout, lookup) ||
      !at_most_but(lookup, input, plan.axis))
    return kSizes;
  if (!is_index(plan.indices.type)) return kIndices;
  return reduced(plan.reduction, plan.output);
}

const char* misfit(const ScatterNdPlan& plan) {
  const Layout &input = plan.input.layout, &lookup = plan.indices.layout,
               &updates = plan.updates.layout;
  if (lookup.rank < 1 || lookup.sizes[lookup.rank - 1] > input.rank) return kRank;
  const int outer = lookup.rank - 1, tuple = static_cast<int>(lookup.sizes[outer]);
  if (!same_element(plan.input, plan.updates) || !same_element(plan.input, plan.output))
    return kElements;
  if (!same_sizes(plan.output.layout, input) || !begins_with(updates, 0, lookup, outer) ||
      !ends_with(updates, outer, input, tuple))
    return kSizes;
  if (!is_index(plan.indices.type)) return kIndices;
  return reduced(plan.reduction, plan.output);
}

const char* misfit(const GatherPlan& plan) {
  const Layout &input = plan.input.layout, &lookup = plan.indices.layout,
               &output = plan.output.layout;
  if (!has(plan.axis, input)) return kAxis;
  if (output.rank != input.rank - 1 + lookup.rank) return kRank;
  if (!same_element(plan.input, plan.output)) return kElements;
  if (!begins_with(output, 0, input, plan.axis) ||
      !begins_with(output, plan.axis, lookup, lookup.rank) ||
      !ends_with(output, plan.axis + lookup.rank, input, plan.axis + 1))
    return kSizes;
  if (!is_index(plan.indices.type)) return kIndices;
  if (plan.mode == OutOfRange::clamp && input.sizes[plan.axis] == 0 && lookup.count() != 0)
    return kClamp;
  return nullptr;
}

const char* misfit(const GatherElementsPlan& plan) {
  const Layout &input = plan.input.layout, &lookup = plan.indices.layout;
  if (!has(plan.axis, input)) return kAxis;
  if (lookup.rank != input.rank) return kRank;
  if (!same_element(plan.input, plan.output)) return kElements;
  if (!same_sizes(plan.output.layout, lookup) || !at_most_but(lookup, input, plan.axis))
    return kSizes;
  if (!is_index(plan.indices.type)) return kIndices;
  if (plan.mode == OutOfRange::clamp && input.sizes[plan.axis] == 0 && lookup.count() != 0)
    return kClamp;
  return nullptr;
}

const char* misfit(const GatherNdPlan& plan) {
  const Layout &input = plan.input.layout, &lookup = plan.indices.layout,
               &output = plan.output.layout;
  const int batch = plan.batch_dims;
  if (batch < 0 || lookup.rank < 1 || batch >= lookup.rank || batch > input.rank ||
      lookup.sizes[lookup.rank - 1] > input.rank - batch)
    return kRank;
  const int outer = lookup.rank - 1, tuple = static_cast<int>(lookup.sizes[outer]);
  if (!same_element(plan.input, plan.output)) return kElements;
  if (!begins_with(lookup, 0, input, batch) || !begins_with(output, 0, lookup, outer) ||
      !ends_with(output, outer, input, batch + tuple))
    return kSizes;
  if (!is_index(plan.indices.type)) return kIndices;
  if (plan.mode == OutOfRange::clamp && lookup.count() != 0)
    for (int k = 0; k < tuple; ++k)
      if (input.sizes[batch + k] == 0) return kClamp;
  return nullptr;
}

const char* misfit(const SlabsPlan& plan, const Tensor& part) {
  if (!has(plan.axis, plan.whole.layout)) return kAxis;
  if (part.layout.rank != plan.whole.layout.rank) return kRank;
  if (part.element_size != plan.whole.element_size) return kElements;
  if (!same_sizes(part.layout, plan.whole.layout, plan.axis)) return kSizes;
  Int total;
  return __builtin_add_overflow(plan.total(), part.layout.sizes[plan.axis], &total)
             ? "parts that are longer than any array"
             : nullptr;
}

const char* misfit(const SlabsPlan& plan) {
  if (!has(plan.axis, plan.whole.layout)) return kAxis;
  if (plan.count() == 0 || plan.total() != plan.whole.layout.sizes[plan.axis])
    return "parts that do not make up the whole";
  return nullptr;
}

const char* misfit_of_copy(const Tensor& target, const Tensor& source) {
  if (target.element_size != source.element_size) return kElements;
  return same_sizes(target.layout, source.layout) ? nullptr : kSizes;
}

}  // namespace anydml::python

#include <limits>

#include "python/shape_rules.hpp"
#include "runtime/cuda/plans.hpp"

namespace anydml::python {
namespace {

constexpr Int kLongest = std::numeric_limits<Int>::max();  // of an axis

// Adds the next part; returns null, or what is wrong with it.
const char* add(SlabsPlan& plan, const Tensor& part) {
  if (part.layout.rank != plan.joined.layout.rank) return kRank;
  if (!same_element(part, plan.joined)) return kElements;
  if (!same_sizes(part.layout, plan.joined.layout, plan.axis)) return kSizes;
  Int total;
  if (__builtin_add_overflow(plan.total(), part.layout.sizes[plan.axis], &total))
    return "parts: together longer than any array";
  plan.add(part.layout);
  return nullptr;
}

// The plan of a call whose operand is the whole, with the parts' data; returns null, or what is
// wrong.
const char* lay_out(const Call& call, SlabsPlan& plan, std::vector<void*>& data) {
  plan.joined = call.operands[0].tensor;
  plan.axis = to_axis(call.numbers[0]);
  if (!has(plan.axis, plan.joined.layout)) return kAxis;
  if (call.list.count == 0) return "parts: expected at least one";
  plan.reserve(static_cast<Int>(call.list.count), plan.joined.layout.rank);
  data.reserve(call.list.count);
  Operand operand;
  void* at = nullptr;
  for (std::size_t i = 0; i < call.list.count; ++i) {
    const Tensor* const part = call.list.get(i, operand, at);
    if (part == nullptr) return "parts: expected arrays of a supported type";
    if (const char* const wrong = add(plan, *part)) return wrong;
    data.push_back(at);
  }
  return plan.total() == plan.joined.layout.sizes[plan.axis]
             ? nullptr
             : "parts: their sizes do not add up to the size of the whole";
}

template <bool kSplit>
Int run(const Call& call) {
  SlabsPlan plan;
  std::vector<void*> data;
  const char* const wrong = lay_out(call, plan, data);
  if (wrong != nullptr && call.may_decline) return kDeclined;
  if (wrong != nullptr) raise_argument(std::string(kSplit ? "split" : "join") + ": " + wrong);
  without_gil(plan.joined.layout.count(), [&] {
    if constexpr (kSplit)
      call_kernel<&SlabsPlan::split>(plan, call.operands[0].data, data.data(), call.threads);
    else
      call_kernel<&SlabsPlan::join>(plan, data.data(), call.operands[0].data, call.threads);
  });
  return -1;
}

template <bool kSplit>
void enqueue(const Call& call, cuda::Queue& queue) {
  SlabsPlan plan;
  std::vector<void*> data;
  if (const char* const wrong = lay_out(call, plan, data)) throw cuda::DeviceFailed(wrong);
  if constexpr (kSplit)
    cuda::split(plan, call.operands[0].data, data.data(), queue);
  else
    cuda::join(plan, data.data(), call.operands[0].data, queue);
}

// The members add up to the whole on the axis.
const char* split_shape(const Call& call, Results& results) {
  const Operand& in = call.operands[0];
  results.axis = to_axis(call.numbers[0]);
  if (!has(results.axis, in.tensor.layout)) return kAxis;
  same_as(results, in);
  results.one[0].purpose = results.sizes == nullptr ? "a slab" : "slab";  // of a number
  return nullptr;
}

// arguments: the number of sections or their sizes, axis.
bool split_numbers(const FunctionCall& call, Int* numbers, Results& results) {
  const Layout& layout = call.inputs[0].tensor.layout;
  const Integers& parts = call.integers[0];
  int axis = 0;
  if (!axis_in(call.arguments[1], layout, axis)) return false;
  const Int axis_size = layout.sizes[axis];
  numbers[0] = axis;
  if (parts.depth == Integers::number)
    return parts.get(0, results.equal) && results.equal >= 1 && axis_size % results.equal == 0;
  Int rest = axis_size;
  Int* const sizes = numbers + 1;
  for (int i = 0; i < parts.count; ++i) {
    if (!parts.get(i, sizes[i]) || sizes[i] < 0 || sizes[i] > rest) return false;
    rest -= sizes[i];
  }
  results.equal = parts.count;
  results.sizes = sizes;
  return parts.depth == Integers::list && parts.count > 0 && rest == 0;
}

// Whether an array's sizes equal those of the layout except on an axis, and its size there. Checks
// nothing else.
bool continues(PyObject* object, const Operand& first, int axis, Int& size) {
  if (!PyArray_CheckExact(object)) return false;
  auto* const array = reinterpret_cast<PyArrayObject*>(object);
  const Layout& layout = first.tensor.layout;
  if (PyArray_NDIM(array) != layout.rank || !same_type(PyArray_DESCR(array), first)) return false;
  for (int i = 0; i < layout.rank; ++i)
    if (i != axis && PyArray_DIMS(array)[i] != layout.sizes[i]) return false;
  size = PyArray_DIMS(array)[axis];
  return true;
}
bool continues(const Operand& part, const Operand& first, int axis, Int& size) {
  if (!same_element(part, first) || !same_sizes(part.tensor.layout, first.tensor.layout, axis))
    return false;
  size = part.tensor.layout.sizes[axis];
  return true;
}

// The parts become operands only when the kernel runs.
const char* join_shape(const Call& call, Results& results) {
  const List& parts = call.list;
  if (parts.count == 0) return "parts: expected at least one";
  Operand operand;
  if (parts.operands == nullptr && !operand_of(parts.arrays[0], operand))
    return "parts: expected arrays of a supported type";
  const Operand& first = parts.operands == nullptr ? operand : parts.operands[0];
  const Layout& layout = first.tensor.layout;
  const int axis = to_axis(call.numbers[0]);
  if (!has(axis, layout)) return kAxis;
  Int total = layout.sizes[axis];
  for (std::size_t i = 1; i < parts.count; ++i) {
    Int size = 0;
    if (!(parts.operands == nullptr ? continues(parts.arrays[i], first, axis, size)
                                    : continues(parts.operands[i], first, axis, size)))
      return kSizes;
    if (size > kLongest - total) return "parts: together longer than any array";
    total += size;
  }
  same_as(results, first);
  results.one[0].dims[axis] = total;
  return nullptr;
}

// arguments: axis, counted from either end of the first part.
bool join_numbers(const FunctionCall& call, Int* numbers, Results&) {
  const List& parts = call.list;
  if (parts.count == 0) return false;
  Layout shape;
  if (parts.operands != nullptr) {
    shape.rank = parts.operands[0].tensor.layout.rank;
  } else {
    if (!PyArray_CheckExact(parts.arrays[0])) return false;
    shape.rank = PyArray_NDIM(reinterpret_cast<PyArrayObject*>(parts.arrays[0]));
  }
  int axis = 0;
  if (!axis_in(call.arguments[0], shape, axis)) return false;
  numbers[0] = axis;
  return true;
}

const Registration split{{
    .name = "split",
    .inputs = 1,
    .outputs = 0,
    .list = Lists::outputs,
    .attributes = {{"axis"}},
    .shape = split_shape,
    .runs = {run<true>, enqueue<true>},
    .arguments = {{Argument::integers}, {Argument::integer}},
    .attribute_numbers = split_numbers,
    .variants = cuda::copy_variants,
}};

const Registration join{{
    .name = "join",
    .inputs = 0,
    .outputs = 1,
    .list = Lists::inputs,
    .attributes = {{"axis"}},
    .shape = join_shape,
    .runs = {run<false>, enqueue<false>},
    .arguments = {{Argument::integer}},
    .attribute_numbers = join_numbers,
    .variants = cuda::copy_variants,
}};

}  // namespace
}  // namespace anydml::python

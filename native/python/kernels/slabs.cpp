#include <limits>

#include "../fit.hpp"

namespace anydml::python {
namespace {

constexpr Int kLongest = std::numeric_limits<Int>::max();  // of an axis

// The next part; null, or what is wrong with it.
const char* add(SlabsPlan& plan, const Tensor& part) {
  if (part.layout.rank != plan.whole.layout.rank) return kRank;
  if (!same_element(part, plan.whole)) return kElements;
  if (!same_sizes(part.layout, plan.whole.layout, plan.axis)) return kSizes;
  Int total;
  if (__builtin_add_overflow(plan.total(), part.layout.sizes[plan.axis], &total))
    return "parts that are longer than any array";
  plan.add(part.layout);
  return nullptr;
}

// The plan of a call whose operand is the whole, with the parts' data; null, or what is wrong.
const char* lay_out(const Call& call, SlabsPlan& plan, std::vector<void*>& data) {
  if (call.number_count != 1) return kNumbers;
  plan.whole = call.operands[0].tensor;
  plan.axis = small(call.numbers[0]);
  if (!has(plan.axis, plan.whole.layout)) return kAxis;
  if (call.list.count == 0) return "no parts";
  plan.reserve(static_cast<Int>(call.list.count), plan.whole.layout.rank);
  data.reserve(call.list.count);
  Operand made;
  void* at = nullptr;
  for (std::size_t i = 0; i < call.list.count; ++i) {
    const Tensor* const part = call.list.get(i, made, at);
    if (part == nullptr) return "a part that no kernel takes";
    if (const char* const wrong = add(plan, *part)) return wrong;
    data.push_back(at);
  }
  return plan.total() == plan.whole.layout.sizes[plan.axis] ? nullptr
                                                            : "parts that do not make up the whole";
}

const char* misfit(const Call& call) {
  SlabsPlan plan;
  std::vector<void*> data;
  return lay_out(call, plan, data);
}

template <bool kSplit>
Int run(const Call& call) {
  SlabsPlan plan;
  std::vector<void*> data;
  const char* const wrong = lay_out(call, plan, data);
  if (wrong != nullptr && call.output_is_private) return kDeclined;
  if (wrong != nullptr) raise_argument(std::string(kSplit ? "split" : "join") + ": " + wrong);
  without_gil(plan.whole.layout.count(), [&] {
    if constexpr (kSplit)
      plan.split(call.operands[0].data, data.data(), call.threads);
    else
      plan.join(data.data(), call.operands[0].data, call.threads);
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

// arguments: how many sections or their sizes, axis.
bool split_shape(const Quick& quick, Int* numbers, Results& results) {
  const Operand& in = quick.inputs[0];
  const Layout& layout = in.tensor.layout;
  const Integers& parts = quick.integers[0];
  int axis = 0;
  if (!axis_in(quick.arguments[1], layout, axis)) return false;
  const Int whole = layout.sizes[axis];
  begin(results.one[0], "a slab", in);
  push(results.one[0], layout, 0, layout.rank);
  numbers[0] = results.axis = axis;
  if (parts.depth == Integers::number) {
    Int sections = 0;
    if (!parts.get(0, sections) || sections < 1 || whole % sections != 0) return false;
    results.one[0].dims[axis] = whole / sections;
    results.equal = sections;
    return true;
  }
  Int rest = whole;
  Int* const sizes = numbers + 1;
  for (int i = 0; i < parts.count; ++i) {
    if (!parts.get(i, sizes[i]) || sizes[i] < 0 || sizes[i] > rest) return false;
    rest -= sizes[i];
  }
  results.one[0].purpose = "slab";  // of a number
  results.equal = parts.count;
  results.sizes = sizes;
  return parts.depth == Integers::list && parts.count > 0 && rest == 0;
}

// Whether an array's sizes are those of the layout but for an axis, and its size there; nothing
// else is looked at.
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
  if (!same_type(part.descr, first) || !same_sizes(part.tensor.layout, first.tensor.layout, axis))
    return false;
  size = part.tensor.layout.sizes[axis];
  return true;
}

// arguments: axis. The parts become operands once, when the kernel runs.
bool join_shape(const Quick& quick, Int* numbers, Results& results) {
  const List& parts = quick.list;
  Operand made;
  int axis = 0;
  if (parts.count == 0 || (parts.operands == nullptr && !operand_of(parts.arrays[0], made)))
    return false;
  const Operand& first = parts.operands == nullptr ? made : parts.operands[0];
  const Layout& layout = first.tensor.layout;
  if (!axis_in(quick.arguments[0], layout, axis)) return false;
  Int total = layout.sizes[axis];
  for (std::size_t i = 1; i < parts.count; ++i) {
    Int size = 0;
    if (!(parts.operands == nullptr ? continues(parts.arrays[i], first, axis, size)
                                    : continues(parts.operands[i], first, axis, size)) ||
        size > kLongest - total)
      return false;
    total += size;
  }
  begin(results.one[0], "the result", first);
  push(results.one[0], layout, 0, layout.rank);
  results.one[0].dims[axis] = total;
  numbers[0] = axis;
  return true;
}

const Registration split{{
    .name = "split",
    .inputs = 1,
    .outputs = 0,
    .list = Lists::outputs,
    .attributes = {{"axis"}},
    .misfit = misfit,
    .run = run<true>,
    .arguments = {{Argument::integers}, {Argument::integer}},
    .shape = split_shape,
    .enqueue = enqueue<true>,
}};

const Registration join{{
    .name = "join",
    .inputs = 0,
    .outputs = 1,
    .list = Lists::inputs,
    .attributes = {{"axis"}},
    .misfit = misfit,
    .run = run<false>,
    .arguments = {{Argument::integer}},
    .shape = join_shape,
    .enqueue = enqueue<false>,
}};

}  // namespace
}  // namespace anydml::python

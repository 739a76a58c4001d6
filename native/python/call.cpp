// Calls of kernels, in one way for all libraries (library.hpp): operands are read, attributes
// become numbers, the kernel's shape rule is applied, results are allocated or outputs validated,
// and the kernel runs on the processor or is put into a stream.
//
// - function_call(name): call(out, inputs.., arguments..), the quick way of the array functions,
//   with NumPy's arrays and arguments exactly as the user passed them.
// - memory_call(name): call(out, place, make, inputs.., attributes..), on any library's memory.
//   `place` is None for host memory, else the pair (device, stream); without `make`, operands and
//   results are tensors of PyTorch in host memory. The attributes are the kernel's in its own
//   order, with a number in place of an attribute of two; then the sizes of a list of results, and
//   the type of a result or its code.
// - run and run_measured: by name, on operands that Python has checked, into outputs of the caller.
//   They are validated again, because they can have changed since. Without `place` they are NumPy's
//   arrays; with it, memory of a GPU that Python describes.
//
// `out` is None if the call allocates its results; otherwise it is the array to write to, or a list
// of arrays. The class of several results may be named beside the kernel. The first two return None
// where anything is unusual, a shape rule declines or an index is bad: no memory that a caller sees
// has been written then. The general path finds out why.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>

#include "arguments.hpp"
#include "runtime/cuda/compiler.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

bool place_of(PyObject* object, Place& place) {
  if (object == Py_None) return true;
  Int device;
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != 2 ||
      !integer_of(PyTuple_GET_ITEM(object, 0), device) || device < 0 ||
      !address_of(PyTuple_GET_ITEM(object, 1), place.stream))
    return false;
  place.device = static_cast<int>(device);
  return true;
}

// References to the members of a list: another thread or a finalizer may remove them meanwhile.
class Members {
 public:
  Members() = default;
  ~Members() {
    for (Py_ssize_t i = 0; i < few_count_; ++i) Py_DECREF(few_[i]);
  }
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  PyObject* const* hold(const char* call, PyObject* sequence, std::size_t& count) {
    if (is_list(sequence) && PySequence_Fast_GET_SIZE(sequence) <= kFew) {
      for (; few_count_ < PySequence_Fast_GET_SIZE(sequence); ++few_count_)
        few_[few_count_] = Py_NewRef(PySequence_Fast_ITEMS(sequence)[few_count_]);
      count = static_cast<std::size_t>(few_count_);
      return few_;
    }
    many_ = nb::steal(PySequence_Tuple(sequence));
    if (!many_.is_valid()) raise_set(call, kUncounted, "the list of arrays");
    count = static_cast<std::size_t>(PyTuple_GET_SIZE(many_.ptr()));
    return PySequence_Fast_ITEMS(many_.ptr());
  }

 private:
  static constexpr Py_ssize_t kFew = 16;
  Py_ssize_t few_count_ = 0;
  PyObject* few_[kFew];
  nb::object many_;
};

// The inputs of a function call; advances `values` past them.
template <class AnyLibrary>
inline bool take_inputs(const Kernel& kernel, AnyLibrary& library, Arguments& arguments,
                        Members& members, PyObject* const*& values) {
  for (int i = 0; i < kernel.inputs; ++i)
    if (library.read(*values++, arguments.operands[i]) != nullptr) return false;
  if (kernel.list != Lists::inputs) return true;
  PyObject* const list = *values++;
  if (!is_list(list)) return false;
  std::size_t count = 0;
  PyObject* const* const items = members.hold(kernel.name, list, count);
  return library.read_list(items, count, arguments.list) == nullptr;
}

// ---- running ------------------------------------------------------------------------------------

// Whether a call on a GPU waits for its end, which finds the call that fails.
bool blocks() {
  const char* const value = std::getenv("ANYDML_BLOCKING");
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

// Passes a queue of the place to the body, without the interpreter lock.
template <class Body>
void in_queue(const Place& place, Body&& body) {
  without_gil(kDriver, [&] {
    cuda::Device& device = cuda::device_at(place.device);
    device.refuse_bad_indices();
    cuda::Queue queue(device, place.stream);
    body(queue);
    if (!blocks()) return;
    queue.wait(false);
    device.raise_bad_indices(cuda::BadIndices::latest_of_thread());
  });
}

cuda::CallName name_of(const Kernel& kernel) { return {std::string(kernel.name) + ": indices"}; }

// Returns what the kernel does; -1 on a GPU, which reports bad indices later.
[[gnu::noinline]] Int enqueue(const Kernel& kernel, const Call& call, const Place& place,
                              const cuda::CallName* name) {
  in_queue(place, [&](cuda::Queue& queue) {
    if (kernel.checks_indices) queue.name_call(name == nullptr ? name_of(kernel) : *name);
    kernel.runs.enqueue(call, queue);
  });
  return -1;
}
Int run(const Kernel& kernel, const Call& call, const Place& place,
        const cuda::CallName* name = nullptr) {
  return place.on_device() ? enqueue(kernel, call, place, name) : kernel.runs.run(call);
}

template <class Make>
void run_measured(const Kernel& kernel, const Call& call, const Place& place, const Make& make) {
  if (!place.on_device()) return kernel.measured->run(call, std::ref(make));
  in_queue(place, [&](cuda::Queue& queue) {
    kernel.measured->enqueue(call, queue,
                             [&](Int size) { return make_outside(queue, make, size); });
  });
}

// ---- results ------------------------------------------------------------------------------------

// Several results as a named tuple. Calls its class's __new__ directly, which avoids the keyword
// handling of a call.
nb::object named_tuple(PyObject* kind, nb::handle first, nb::handle second) {
  const nb::object pair = nb::make_tuple(first, second);
  if (kind == Py_None) return pair;
  const nb::object arguments = nb::steal(PyTuple_Pack(1, pair.ptr()));
  if (!arguments.is_valid()) throw nb::python_error();
  nb::object result = nb::steal(
      PyTuple_Type.tp_new(reinterpret_cast<PyTypeObject*>(kind), arguments.ptr(), nullptr));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

// A result and its operand; null if the library or the kernel takes no such array.
template <class AnyLibrary>
nb::object result_of(const Kernel& kernel, AnyLibrary& library, const Results::One& one,
                     Operand& operand) {
  void* data = nullptr;
  nb::object result = library.allocate(kernel.name, one, -1, data);
  if (result.is_valid() && !library.describe(result.ptr(), one, data, operand)) result = {};
  return result;
}

// A list of results. Members of one layout share one operand, because an operand takes a kilobyte.
[[gnu::noinline]] nb::object list_results(const Kernel& kernel, Library& library, Results& results,
                                          Call& call) {
  Results::One& one = results.one[0];
  const auto count = static_cast<std::size_t>(results.equal);
  const bool equal = results.sizes == nullptr;
  nb::object tuple = nb::steal(PyTuple_New(results.equal));
  if (!tuple.is_valid()) raise_set(kernel.name, kUncounted, "the list of arrays");
  constexpr std::size_t kFew = 16;  // which need no allocation
  const std::size_t layouts = equal ? 1 : count;
  Operand few_members[kFew];
  void* few_addresses[kFew];
  std::vector<Operand> many_members(layouts > kFew ? layouts : 0);
  std::vector<void*> many_addresses(count > kFew ? count : 0);
  Operand* const members = layouts > kFew ? many_members.data() : few_members;
  void** const addresses = count > kFew ? many_addresses.data() : few_addresses;
  if (equal) library.expect(one, results.equal);
  for (std::size_t i = 0; i < count; ++i) {
    if (!equal) one.dims[results.axis] = results.sizes[i];
    const auto number = static_cast<Py_ssize_t>(i);
    nb::object output = library.allocate(kernel.name, one, equal ? -1 : number, addresses[i]);
    if (!output.is_valid()) return nb::none();
    PyTuple_SET_ITEM(tuple.ptr(), number, output.release().ptr());
    if ((!equal || i == 0) && !set_result(one, addresses[i], members[i])) return nb::none();
  }
  if (equal)
    call.list = {nullptr, nullptr, count, members, addresses};
  else
    call.list = {members, nullptr, count};
  return run(kernel, call, library.place) == -1 ? tuple : nb::none();
}

[[gnu::noinline]] nb::object measured_result(const Kernel& kernel, Library& library,
                                             Operand& operand, Results::One& one, Call& call) {
  nb::object result = nb::none();
  run_measured(kernel, call, library.place, [&](Int size) -> const Operand* {
    one.set_measured(size);
    nb::object output = result_of(kernel, library, one, operand);
    if (!output.is_valid()) return nullptr;
    result = std::move(output);
    return &operand;
  });
  return result;
}

// Whether no element shares memory with another, by a sufficient test: every axis steps over all
// that lies behind it.
bool is_spread(const Operand& operand) {
  const Layout& layout = operand.tensor.layout;
  if (layout.count() == 0) return true;
  Int reach = operand.tensor.element_size;
  for (int i = layout.rank - 1; i >= 0; --i) {
    if (layout.sizes[i] == 1) continue;
    const Int step = std::abs(layout.strides[i]);
    if (step < reach) return false;
    reach += (layout.sizes[i] - 1) * step;
  }
  return true;
}

bool same_memory(const Operand& a, const Operand& b) {
  const Layout &x = a.tensor.layout, &y = b.tensor.layout;
  return a.data == b.data && x.rank == y.rank &&
         std::equal(x.strides, x.strides + x.rank, y.strides);
}

// Whether a result may be written to an output: it has its type and sizes, and shares memory with
// none of the first operands; but with the first one, all of it, if the kernel writes over it.
bool fits(const Kernel& kernel, const Call& call, const Operand& out, int before,
          const Results::One& one) {
  const Layout& layout = out.tensor.layout;
  if (out.array != nullptr && !PyArray_ISWRITEABLE(out.array)) return false;
  if (layout.rank != one.rank || !PyArray_EquivTypes(out.descr, one.descr) || !is_spread(out))
    return false;
  for (int i = 0; i < one.rank; ++i)
    if (layout.sizes[i] != one.dims[i]) return false;
  const Extent extent = extent_of(out);
  const auto is_apart = [&](const Operand& other) { return !overlap(extent, extent_of(other)); };
  for (int i = 0; i < before; ++i) {
    const Operand& other = call.operands[i];
    if (!is_apart(other) && !(i == 0 && kernel.writes_over && same_memory(out, other)))
      return false;
  }
  Operand member;
  void* data = nullptr;
  for (std::size_t i = 0; i < call.list.count; ++i) {
    if (call.list.get(i, member, data) == nullptr) return false;
    if (!is_apart(call.list.operands == nullptr ? member : call.list.operands[i])) return false;
  }
  return true;
}

// Writes a result whose size the data decide.
bool write_measured(const Kernel& kernel, Library& library, const Operand& output,
                    Results::One& one, Call& call) {
  bool is_written = false;
  run_measured(kernel, call, library.place, [&](Int size) -> const Operand* {
    one.set_measured(size);
    is_written = fits(kernel, call, output, kernel.inputs, one);
    return is_written ? &output : nullptr;
  });
  return is_written;
}

// Writes a list of results, of which there are few: each is compared with those before it.
nb::object write_list(const Kernel& kernel, Library& library, Results& results, Call& call,
                      PyObject* const* outs, std::size_t count) {
  constexpr std::size_t kFew = 16;
  Operand parts[kFew];
  Results::One& one = results.one[0];
  if (count > kFew || count != static_cast<std::size_t>(results.equal)) return nb::none();
  for (std::size_t i = 0; i < count; ++i) {
    if (results.sizes != nullptr) one.dims[results.axis] = results.sizes[i];
    if (library.read(outs[i], parts[i]) != nullptr ||
        !fits(kernel, call, parts[i], kernel.inputs, one))
      return nb::none();
    for (std::size_t j = 0; j < i; ++j)
      if (overlap(extent_of(parts[i]), extent_of(parts[j]))) return nb::none();
  }
  call.list = {parts, nullptr, count};
  nb::object written = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
  if (!written.is_valid()) throw nb::python_error();
  for (std::size_t i = 0; i < count; ++i)
    PyTuple_SET_ITEM(written.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(outs[i]));
  return run(kernel, call, library.place) == -1 ? written : nb::none();
}

// Runs a call into the arrays of the caller, which are returned; None where it declines.
[[gnu::noinline]] nb::object write_to(const Kernel& kernel, Library& library, Operand* next,
                                      Results& results, Call& call, PyObject* out, PyObject* kind) {
  const bool lists = kernel.list == Lists::outputs;
  const bool single = kernel.measured || (kernel.outputs == 1 && !lists);
  const bool has_members =
      is_list(out) || reinterpret_cast<PyObject*>(Py_TYPE(out)) == kind;  // without own code
  if (!single && !has_members) return nb::none();
  Members members;
  std::size_t count = 1;
  PyObject* const* const outs = single ? &out : members.hold(kernel.name, out, count);
  call.output_is_private = false;
  if (lists) return write_list(kernel, library, results, call, outs, count);
  if (kernel.measured) {
    Results::One& one = results.one[kernel.outputs - 1];
    const bool is_written =
        library.read(out, *next) == nullptr && write_measured(kernel, library, *next, one, call);
    return is_written ? nb::borrow(out) : nb::none();
  }
  if (count != static_cast<std::size_t>(kernel.outputs)) return nb::none();
  for (int i = 0; i < kernel.outputs; ++i)
    if (library.read(outs[i], next[i]) != nullptr ||
        !fits(kernel, call, next[i], kernel.inputs + i, results.one[i]))
      return nb::none();
  if (run(kernel, call, library.place) != -1) return nb::none();
  return single ? nb::borrow(out) : named_tuple(kind, outs[0], outs[1]);
}

// Runs a call whose inputs and attributes are known; None where it declines.
template <class AnyLibrary>
nb::object results_of(const Kernel& kernel, AnyLibrary& library, Arguments& arguments,
                      Results& results, Call& call, PyObject* out, PyObject* kind) {
  Operand* const next = arguments.operands + kernel.inputs;
  if (out != Py_None) return write_to(kernel, library, next, results, call, out, kind);
  if (kernel.measured)
    return measured_result(kernel, library, *next, results.one[kernel.outputs - 1], call);
  if (kernel.list == Lists::outputs) return list_results(kernel, library, results, call);
  nb::object outputs[kMaxResults];
  for (int i = 0; i < kernel.outputs; ++i) {
    outputs[i] = result_of(kernel, library, results.one[i], next[i]);
    if (!outputs[i].is_valid()) return nb::none();
  }
  if (run(kernel, call, library.place) != -1) return nb::none();
  return kernel.outputs > 1 ? named_tuple(kind, outputs[0], outputs[1]) : outputs[0];
}

Call call_with(int threads) {
  Call call;
  call.output_is_private = call.may_decline = true;
  call.threads = threads;
  return call;
}

// ---- function calls -----------------------------------------------------------------------------

// values: the outputs, inputs, arguments.
nb::object call_function(const Kernel& kernel, PyObject* kind, PyObject* const* values,
                         int threads) {
  Arrays library;
  Arguments arguments;
  Members members;
  Results results;
  Int numbers[kMaxValues];
  Call call = call_with(threads);
  PyObject* const out = *values++;
  if (!take_inputs(kernel, library, arguments, members, values) ||
      !arguments.take_arguments(kernel, values) || !arguments.shape(kernel, numbers, call, results))
    return nb::none();
  return results_of(kernel, library, arguments, results, call, out, kind);
}

// The number of values that a function call takes as operands and arguments.
Py_ssize_t taken(const Kernel& kernel) {
  return kernel.inputs + (kernel.list == Lists::inputs ? 1 : 0) +
         static_cast<Py_ssize_t>(kernel.arguments.size());
}

// The kernel of a name, which must have a function call; ArgumentError otherwise.
const Kernel& kernel_with_function(const std::string& name) {
  const Kernel& kernel = find_kernel(name);
  const bool fits = static_cast<std::size_t>(kernel.inputs + kernel.outputs) <= kFunctionOperands &&
                    kernel.arguments.size() <= kMaxNumbers &&
                    kernel.attributes.size() <= kMaxNumbers;
  if (kernel.attribute_numbers == nullptr || !fits)
    raise_argument(name + ": this kernel has no function call");
  return kernel;
}

// shapes(name, inputs.., arguments..): the results that the function call would make, as pairs of
// shape and type; None where it declines.
nb::object shapes(const std::string& name, const nb::args& values) {
  const Kernel& kernel = kernel_with_function(name);
  Arrays library;
  Arguments arguments;
  Members members;
  Results results;
  Int numbers[kMaxValues];
  Call call;
  PyObject* const* next = PySequence_Fast_ITEMS(values.ptr());
  if (static_cast<Py_ssize_t>(values.size()) != taken(kernel) ||
      !take_inputs(kernel, library, arguments, members, next) ||
      !arguments.take_arguments(kernel, next) || !arguments.shape(kernel, numbers, call, results))
    return nb::none();
  const Int count = kernel.list == Lists::outputs ? results.equal
                    : kernel.measured             ? 1
                                                  : kernel.outputs;
  nb::list pairs;
  for (Int i = 0; i < count; ++i) {
    Results::One& one = results.one[kernel.list == Lists::outputs ? 0
                                    : kernel.measured             ? kernel.outputs - 1
                                                                  : i];
    if (results.sizes != nullptr) one.dims[results.axis] = results.sizes[i];
    nb::list sizes;
    for (int d = 0; d < one.rank; ++d) sizes.append(static_cast<Int>(one.dims[d]));
    pairs.append(
        nb::make_tuple(nb::tuple(sizes), nb::borrow(reinterpret_cast<PyObject*>(one.descr))));
  }
  return pairs;
}

// ---- memory calls -------------------------------------------------------------------------------

// Whether an attribute of the call chooses the type of a result.
bool chooses_type(const Kernel& kernel) {
  return std::ranges::any_of(kernel.arguments, [](const Argument& argument) {
    return argument.kind == Argument::type || argument.kind == Argument::index_type_or_none;
  });
}

// The attributes that a call takes: the kernel's, the sizes of a list of results, a type.
Py_ssize_t taken_attributes(const Kernel& kernel) {
  return static_cast<Py_ssize_t>(kernel.attributes.size()) +
         (kernel.list == Lists::outputs ? 1 : 0) + (chooses_type(kernel) ? 1 : 0);
}

// The attributes of a memory call, as numbers and results.
struct MemoryArguments : Arguments {
  Int numbers[kMaxValues];
  Results results;

  bool take_attributes(const Kernel& kernel, PyObject* const* values, Call& call) {
    const PyArray_Descr* const constants = operands[0].descr;
    Int* next = numbers;
    for (const Attribute& attribute : kernel.attributes)
      if (!take_attribute(attribute, *values++, constants, next, std::end(numbers))) return false;
    call.operands = operands;
    call.numbers = numbers;
    call.number_count = static_cast<std::size_t>(next - numbers);
    if (validate_numbers(kernel, call) != nullptr) return false;
    if (kernel.list == Lists::outputs && !take_sizes(*values++, next)) return false;
    if (!chooses_type(kernel)) return true;
    Integers* none = nullptr;
    Int unused;
    return take_argument({kernel.arguments.back().kind}, *values, unused, none);
  }

 private:
  // The sizes of a list of results on an axis, which is the kernel's first attribute.
  bool take_sizes(PyObject* value, Int* sizes) {
    if (!is_list(value)) return false;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
    const Layout& layout = operands[0].tensor.layout;
    const int axis =
        numbers[0] < 0 || numbers[0] >= layout.rank ? -1 : static_cast<int>(numbers[0]);
    if (axis < 0 || count == 0) return false;
    Int rest = layout.sizes[axis], first = 0;
    bool equal = true;
    for (Py_ssize_t i = 0; i < count; ++i) {
      Int size;
      if (!integer_of(PySequence_Fast_GET_ITEM(value, i), size) || size < 0 || size > rest)
        return false;
      if (i == 0) first = size;
      equal = equal && size == first;
      if (i < 2 * kMaxRank) sizes[i] = size;
      rest -= size;
    }
    if (rest != 0 || (!equal && count > 2 * kMaxRank)) return false;
    results.equal = count;
    results.sizes = equal ? nullptr : sizes;
    return true;
  }
};

// values: the outputs, the place, the allocator of results, inputs, attributes.
nb::object call_on_memory(const Kernel& kernel, PyObject* kind, PyObject* const* values,
                          int threads) {
  Tensors tensors;
  DescribedMemory described(values[2]);
  Library& library = values[2] == Py_None ? static_cast<Library&>(tensors) : described;
  MemoryArguments arguments;
  Members members;
  Call call = call_with(threads);
  PyObject* const out = values[0];
  if (!place_of(values[1], library.place)) return nb::none();
  if (library.place.on_device() &&
      (&library == &tensors || cuda::compiler_places().version.empty()))
    return nb::none();
  values += 3;
  if (!take_inputs(kernel, library, arguments, members, values) ||
      !arguments.take_attributes(kernel, values, call) ||
      !arguments.shape_of_numbers(kernel, arguments.numbers, call, arguments.results))
    return nb::none();
  return results_of(kernel, library, arguments, arguments.results, call, out, kind);
}

// ---- calls by name ------------------------------------------------------------------------------

[[noreturn]] void refuse(const Kernel& kernel, const std::string& what) {
  raise_argument(std::string(kernel.name) + ": " + what);
}

void raise_if_invalid(const Kernel& kernel, const char* wrong) {
  if (wrong != nullptr) refuse(kernel, wrong);
}

// Operands and list of a call, and what keeps the arrays alive while the lock is given up.
class Operands {
 public:
  Operands(const Kernel& kernel, Library& library) : kernel_(kernel), library_(library) {}

  void add(nb::handle arrays, int expected, bool is_list, bool outputs) {
    std::size_t count = 0;
    PyObject* const* const items = held_[outputs ? 1 : 0].hold(kernel_.name, arrays.ptr(), count);
    if (!is_list && count != static_cast<std::size_t>(expected))
      refuse(kernel_, "expected " + std::to_string(expected) +
                          (outputs ? " outputs, got " : " inputs, got ") + std::to_string(count));
    Operand member;
    for (std::size_t i = 0; i < count; ++i)
      take(items[i], i, outputs, is_list ? member : operands_[count_++]);
    if (is_list) raise_if_invalid(kernel_, library_.read_list(items, count, list_));
  }

  Call call(const std::vector<Int>& numbers, int threads, bool output_is_private) const {
    return {operands_, list_, numbers.data(), numbers.size(), output_is_private, threads};
  }

 private:
  void take(PyObject* array, std::size_t i, bool output, Operand& operand) const {
    const char* wrong = library_.read(array, operand);
    if (wrong == nullptr && output && operand.array != nullptr &&
        !PyArray_ISWRITEABLE(operand.array))
      wrong = "expected a writable array, got a read-only one";
    if (wrong != nullptr)
      refuse(kernel_, (output ? "output " : "input ") + std::to_string(i) + ": " + wrong);
  }

  const Kernel& kernel_;
  Library& library_;
  Operand operands_[kMaxOperands];
  std::size_t count_ = 0;
  List list_;
  Members held_[2];
};

// Calls the body with a reader of operands. Without a place they are NumPy arrays; with one, Python
// describes their memory on a GPU.
template <class Body>
auto at_place(nb::handle place, Body&& body) {
  Arrays arrays;
  DescribedMemory described;
  Library& library = place.is_none() ? static_cast<Library&>(arrays) : described;
  if (!place_of(place.ptr(), library.place)) raise_argument("place: expected (device, stream)");
  return body(library);
}

// `indices`, for messages of a GPU: the name of the index operand, and the number of leading sizes
// of 1 that it and the data have and the kernel does not see; None for the name that array
// functions use.
Int run_by_name(const std::string& name, nb::handle inputs, nb::handle outputs,
                const nb::dict& attributes, bool output_is_private, int threads, nb::handle place,
                nb::handle indices) {
  const Kernel& kernel = find_kernel(name);
  cuda::CallName call_name;
  if (!indices.is_none()) {
    const auto parts = nb::cast<nb::tuple>(indices);
    call_name = {nb::cast<std::string>(parts[0]), nb::cast<int>(parts[1]), nb::cast<int>(parts[2])};
  }
  const auto run_at = [&](Library& library) {
    Operands operands(kernel, library);
    operands.add(inputs, kernel.inputs, kernel.list == Lists::inputs, false);
    operands.add(outputs, kernel.outputs, kernel.list == Lists::outputs, true);
    const std::vector<Int> numbers = numbers_of(kernel, attributes);
    const Call call = operands.call(numbers, threads, output_is_private);
    raise_if_invalid(kernel, validate(kernel, call));
    return run(kernel, call, library.place, indices.is_none() ? nullptr : &call_name);
  };
  const Int bad = translate_exceptions(kernel.name, [&] { return at_place(place, run_at); });
  if (bad == kDeclined) refuse(kernel, "expected operands that do not change during the call");
  return bad;
}

// Calls a kernel whose output size depends on the data. `make` allocates an array of a given size,
// which is returned.
nb::object measure_by_name(const std::string& name, nb::handle input, const nb::dict& attributes,
                           const nb::object& make, int threads, nb::handle place) {
  const Kernel& kernel = find_kernel(name);
  if (!kernel.measured) refuse(kernel, "the size of this kernel's output is known before it runs");
  const auto measure_at = [&](Library& library) {
    Operands operands(kernel, library);
    operands.add(nb::make_tuple(input), kernel.inputs, false, false);
    const std::vector<Int> numbers = numbers_of(kernel, attributes);
    const Call call = operands.call(numbers, threads, false);
    Results results;
    raise_if_invalid(kernel, validate_input(kernel, call, results));
    nb::object output;
    run_measured(kernel, call, library.place, [&](Int size) {
      output = make(size);
      operands.add(nb::make_tuple(output), 1, false, true);
      raise_if_invalid(kernel, validate_measured(kernel, call, size));
      return call.operands + kernel.inputs;
    });
    return output;
  };
  return translate_exceptions(kernel.name, [&] { return at_place(place, measure_at); });
}

// ---- Python -------------------------------------------------------------------------------------

// The number of threads that a call may use (threads.py): of the enclosing block in the context,
// otherwise of the process. Looked up here, because a Python call for it costs a tenth of a small
// function call.
PyObject* in_context = nullptr;  // a ContextVar; 0 outside every block
std::atomic<int> in_process{1};

void use_threads(nb::handle context, int process) {
  in_context = context.inc_ref().ptr();
  in_process = process;
}

// The number of threads that a call may use; -1 with an exception set.
int threads_now() {
  if (in_context == nullptr) return in_process.load();
  PyObject* value = nullptr;
  if (PyContextVar_Get(in_context, nullptr, &value) < 0) return -1;
  const long count = PyLong_AsLong(value);
  Py_DECREF(value);
  return count > 0 ? static_cast<int>(count) : count == 0 ? in_process.load() : -1;
}

// The `self` of a call.
struct Bound {
  const Kernel& kernel;
  nb::object kind;  // of several results, or None
};
void release(PyObject* capsule) {
  delete static_cast<Bound*>(PyCapsule_GetPointer(capsule, nullptr));
}

// A call of the interpreter's own convention: nanobind's costs as much as a kernel does on 16
// elements.
template <nb::object (*kCall)(const Kernel&, PyObject*, PyObject* const*, int),
          Py_ssize_t (*kCount)(const Kernel&)>
PyObject* fast_call(PyObject* self, PyObject* const* values, Py_ssize_t count) {
  const auto& [kernel, kind] = *static_cast<const Bound*>(PyCapsule_GetPointer(self, nullptr));
  if (count != kCount(kernel)) {
    PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments, got %zd", kernel.name, kCount(kernel),
                 count);
    return nullptr;
  }
  const int threads = threads_now();
  if (threads < 1) return nullptr;
  try {
    const auto call = [&] { return kCall(kernel, kind.ptr(), values, threads); };
    return translate_exceptions(kernel.name, call).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  }
}

Py_ssize_t count_of_function(const Kernel& kernel) { return 1 + taken(kernel); }
Py_ssize_t count_on_memory(const Kernel& kernel) {
  return 3 + kernel.inputs + (kernel.list == Lists::inputs ? 1 : 0) + taken_attributes(kernel);
}

template <nb::object (*kCall)(const Kernel&, PyObject*, PyObject* const*, int),
          Py_ssize_t (*kCount)(const Kernel&)>
nb::object make_call(const std::string& name, nb::object kind) {
  static PyMethodDef definition = {
      "call", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(fast_call<kCall, kCount>)),
      METH_FASTCALL, nullptr};
  auto bound = std::make_unique<Bound>(Bound{kernel_with_function(name), std::move(kind)});
  const nb::object self = nb::steal(PyCapsule_New(bound.get(), nullptr, release));
  if (!self.is_valid()) throw nb::python_error();
  bound.release();
  nb::object call = nb::steal(PyCFunction_NewEx(&definition, self.ptr(), nullptr));
  if (!call.is_valid()) throw nb::python_error();
  return call;
}

}  // namespace

int threads_of_process() { return in_process.load(); }

void bind_call(nb::module_& module) {
  module.def("function_call", &make_call<call_function, count_of_function>, nb::arg(),
             nb::arg("kind").none() = nb::none());
  module.def("memory_call", &make_call<call_on_memory, count_on_memory>, nb::arg(),
             nb::arg("kind").none() = nb::none());
  module.def("shapes", &shapes);
  module.def("use_threads", &use_threads);
  module.def("run", &run_by_name, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg("place").none() = nb::none(), nb::arg("indices").none() = nb::none());
  module.def("run_measured", &measure_by_name, nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg("place").none() = nb::none());
  module.def("kernels", [] {
    nb::list names;
    for (const Kernel& kernel : all_kernels()) names.append(kernel.name);
    return names;
  });
  module.def("checks_indices",
             [](const std::string& name) { return find_kernel(name).checks_indices; });
  module.def("type_code", [](nb::handle dtype) -> nb::object {
    if (PyArray_DescrCheck(dtype.ptr()) == 0) return nb::none();
    const Int code = code_of_descr(reinterpret_cast<PyArray_Descr*>(dtype.ptr()));
    return code < 0 ? nb::none() : nb::object(nb::int_(code));
  });
}

}  // namespace anydml::python

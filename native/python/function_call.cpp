// Function calls: the fast path of the array functions, for NumPy arrays and arguments exactly as
// the user passed them. It does the whole job if nothing about them is unusual, and returns None
// otherwise; the general path then finds out why.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "../cuda/host/compiler.hpp"
#include "../cuda/host/device.hpp"
#include "arguments.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

// The members of a list or tuple, with references held: another thread or a finalizer may remove
// arrays from the list meanwhile.
class Held {
 public:
  Held() = default;
  ~Held() {
    for (Py_ssize_t i = 0; i < inline_count_; ++i) Py_DECREF(inline_[i]);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  bool hold(const char* call, PyObject* list, List& members) {
    if (!PyList_CheckExact(list) && !PyTuple_CheckExact(list)) return false;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
    members.count = static_cast<std::size_t>(count);
    if (count <= kInlineCount) {
      PyObject** const items = PySequence_Fast_ITEMS(list);
      for (Py_ssize_t i = 0; i < count; ++i) inline_[i] = Py_NewRef(items[i]);
      inline_count_ = count;
      members.arrays = inline_;
      return true;
    }
    many_ = nanobind::steal(PySequence_Tuple(list));
    if (!many_.is_valid()) raise_set(call, kUncounted, "the list of arrays");
    members.count = static_cast<std::size_t>(PyTuple_GET_SIZE(many_.ptr()));
    members.arrays = PySequence_Fast_ITEMS(many_.ptr());
    return true;
  }

 private:
  static constexpr Py_ssize_t kInlineCount = 16;
  Py_ssize_t inline_count_ = 0;
  PyObject* inline_[kInlineCount];
  nanobind::object many_;
};

// The inputs and arguments of a function call, taken from Python objects.
struct ArrayArguments : Arguments {
  Held held;

  bool take(const Kernel& kernel, PyObject* const* values) {
    for (int i = 0; i < kernel.inputs; ++i)
      if (!operand_of(*values++, operands[i])) return false;
    if (kernel.list == Lists::inputs && !held.hold(kernel.name, *values++, list)) return false;
    return take_arguments(kernel, values);
  }
};

// NumPy's limit of axes, which was lower before NumPy 2.
int max_axes() {
  static const int limit =
      PyArray_GetNDArrayCFeatureVersion() >= NPY_2_0_API_VERSION ? kMaxRank : 32;
  return limit;
}

nb::object result_of(const Kernel& kernel, const Results::One& one, Operand& operand) {
  nb::object array = allocated(kernel.name, one.purpose, one.rank, one.dims, one.descr);
  // No product here overflows in a kernel; what limits the sizes is memory.
  if (!operand_of(array.ptr(), operand)) throw AllocationFailed(kUncounted, one.purpose);
  return array;
}

// Members of equal layout in a list of results, as a tuple; `list` describes the first one.
nb::object equal_results(const Kernel& kernel, const Results& results, Operand& first, List& list) {
  const Results::One& one = results.one[0];
  nb::object tuple = nb::steal(PyTuple_New(results.equal));
  if (!tuple.is_valid()) raise_set(kernel.name, kUncounted, "the list of arrays");
  ArrayMaker maker(one.rank, one.dims, one.descr, results.equal);
  for (Int i = 0; i < results.equal; ++i) {
    PyArrayObject* const array = maker.make();
    if (array == nullptr)
      raise_set(kernel.name,
                static_cast<unsigned long long>(bytes_of(one.rank, one.dims, one.descr)),
                one.purpose);
    PyTuple_SET_ITEM(tuple.ptr(), i, reinterpret_cast<PyObject*>(array));
  }
  PyObject** const items = PySequence_Fast_ITEMS(tuple.ptr());
  if (!operand_of(items[0], first)) throw AllocationFailed(kUncounted, one.purpose);
  list = {nullptr, items, static_cast<std::size_t>(results.equal), &first};
  return tuple;
}

// Members of different sizes on an axis.
[[gnu::noinline]] nb::object unequal_results(const Kernel& kernel, Results& results, List& list) {
  Results::One& one = results.one[0];
  nb::object tuple = nb::steal(PyTuple_New(results.equal));
  if (!tuple.is_valid()) raise_set(kernel.name, kUncounted, "the list of arrays");
  for (Int i = 0; i < results.equal; ++i) {
    one.dims[results.axis] = results.sizes[i];
    PyTuple_SET_ITEM(
        tuple.ptr(), i,
        allocated(kernel.name, one.purpose, one.rank, one.dims, one.descr, i).release().ptr());
  }
  list = {nullptr, PySequence_Fast_ITEMS(tuple.ptr()), static_cast<std::size_t>(results.equal)};
  return tuple;
}

// Several results as a named tuple. Calls its class's __new__ directly, which avoids the keyword
// handling of a call.
nb::object named_tuple(PyObject* kind, const nb::object& first, const nb::object& second) {
  const nb::object pair = nb::make_tuple(first, second);
  const nb::object arguments = nb::steal(PyTuple_Pack(1, pair.ptr()));
  if (!arguments.is_valid()) throw nb::python_error();
  nb::object result = nb::steal(
      PyTuple_Type.tp_new(reinterpret_cast<PyTypeObject*>(kind), arguments.ptr(), nullptr));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

[[gnu::noinline]] nb::object measured(const Kernel& kernel, ArrayArguments& arguments,
                                      Results& results, Call& call) {
  Results::One& rows = results.one[kernel.outputs - 1];
  Operand& operand = arguments.operands[kernel.inputs];
  nb::object array;
  const auto make = [&](Int size) {
    rows.set_measured(size);
    array = result_of(kernel, rows, operand);
    return &operand;
  };
  kernel.measured->run(call, std::ref(make));
  return array;
}

// values: the class of several results or None, inputs, arguments.
nb::object called(const Kernel& kernel, PyObject* const* values, int threads) {
  ArrayArguments arguments;
  Results results;
  Int numbers[kMaxValues];
  Call call;
  call.output_is_private = true;
  call.threads = threads;
  if (!arguments.take(kernel, values + 1) || !arguments.shape(kernel, numbers, call, results) ||
      results.one[0].rank > max_axes())
    return nb::none();
  if (kernel.measured) return measured(kernel, arguments, results, call);
  nb::object outputs[kMaxResults];
  Operand* const next = arguments.operands + kernel.inputs;
  if (kernel.list == Lists::outputs)
    outputs[0] = results.sizes != nullptr ? unequal_results(kernel, results, call.list)
                                          : equal_results(kernel, results, *next, call.list);
  else
    for (int i = 0; i < kernel.outputs; ++i)
      outputs[i] = result_of(kernel, results.one[i], next[i]);
  if (kernel.run(call) != -1) return nb::none();
  return kernel.outputs > 1 ? named_tuple(values[0], outputs[0], outputs[1]) : outputs[0];
}

// The number of threads that a call may use (threads.py): of the enclosing block in the context,
// otherwise of the process. Looked up here, because a Python call for it costs a tenth of a small
// function call.
PyObject* in_context = nullptr;  // a ContextVar; 0 outside every block
std::atomic<int> in_process{1};

void use_threads(nb::handle context, int process) {
  in_context = context.inc_ref().ptr();
  in_process = process;
}

PyObject* fast_call(PyObject* self, PyObject* const* values, Py_ssize_t count) {
  const Kernel& kernel = *static_cast<const Kernel*>(PyCapsule_GetPointer(self, nullptr));
  if (count != taken(kernel) + 1) {
    PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments, got %zd", kernel.name,
                 taken(kernel) + 1, count);
    return nullptr;
  }
  const int threads = threads_now();
  if (threads < 1) return nullptr;
  try {
    return translate_exceptions(kernel.name, [&] { return called(kernel, values, threads); })
        .release()
        .ptr();
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  }
}

// function_call(name): the function call of a kernel.
nb::object make_function_call(const std::string& name) {
  static PyMethodDef definition = {
      "function_call", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(fast_call)),
      METH_FASTCALL, nullptr};
  return bound_to(kernel_with_function(name), definition);
}

// shapes(name, inputs.., arguments..): the results that the function call would make, as pairs of
// shape and type; None where it declines.
nb::object shapes(const std::string& name, const nb::args& values) {
  const Kernel& kernel = kernel_with_function(name);
  ArrayArguments arguments;
  Results results;
  Int numbers[kMaxValues];
  Call call;
  if (static_cast<Py_ssize_t>(values.size()) != taken(kernel) ||
      !arguments.take(kernel, PySequence_Fast_ITEMS(values.ptr())) ||
      !arguments.shape(kernel, numbers, call, results))
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

}  // namespace

int threads_of_process() { return in_process.load(); }

int threads_now() {
  if (in_context == nullptr) return in_process.load();
  PyObject* value = nullptr;
  if (PyContextVar_Get(in_context, nullptr, &value) < 0) return -1;
  const long count = PyLong_AsLong(value);
  Py_DECREF(value);
  return count > 0 ? static_cast<int>(count) : count == 0 ? in_process.load() : -1;
}

const Kernel& kernel_with_function(const std::string& name) {
  const Kernel& kernel = find_kernel(name);
  const bool fits = static_cast<std::size_t>(kernel.inputs + kernel.outputs) <= kFunctionOperands &&
                    kernel.arguments.size() <= kMaxNumbers &&
                    kernel.attributes.size() <= kMaxNumbers;
  if (kernel.attribute_numbers == nullptr || !fits)
    raise_argument(name + ": a kernel without a quick way");
  return kernel;
}

nb::object bound_to(const Kernel& kernel, PyMethodDef& definition) {
  const nb::object self = nb::steal(PyCapsule_New(const_cast<Kernel*>(&kernel), nullptr, nullptr));
  nb::object call = nb::steal(PyCFunction_NewEx(&definition, self.ptr(), nullptr));
  if (!call.is_valid()) throw nb::python_error();
  return call;
}

void bind_function_call(nb::module_& module) {
  module.def("function_call", &make_function_call);
  module.def("use_threads", &use_threads);
  module.def("shapes", &shapes);
}

}  // namespace anydml::python

// The array functions' quick way: a user's arguments as they are, NumPy arrays, plain tensors of a
// library with an exchange table, on the CPU or on a GPU, or arrays of JAX. It does the
// whole job when nothing is unusual about them, and returns None otherwise: the general path then
// finds out why.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "../cuda/host/compiler.hpp"
#include "../cuda/host/device.hpp"
#include "given.hpp"
#include "jax_split.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

// NumPy's limit of axes, which was lower before NumPy 2.
int most_axes() {
  static const int most =
      PyArray_GetNDArrayCFeatureVersion() >= NPY_2_0_API_VERSION ? kMaxRank : 32;
  return most;
}

nb::object result_of(const Kernel& kernel, const Results::One& one, Operand& operand) {
  nb::object array = allocated(kernel.name, one.purpose, one.rank, one.dims, one.descr);
  // None is larger than what a kernel multiplies: memory is not.
  if (!operand_of(array.ptr(), operand)) throw AllocationFailed(kUncounted, one.purpose);
  return array;
}

// Equal members of a list of results, in a tuple; the first of them as an operand.
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

// Several results, as a named tuple: made by its own class's __new__, without the keyword handling
// of a call.
nb::object named_tuple(PyObject* kind, const nb::object& first, const nb::object& second) {
  const nb::object pair = nb::make_tuple(first, second);
  const nb::object arguments = nb::steal(PyTuple_Pack(1, pair.ptr()));
  if (!arguments.is_valid()) throw nb::python_error();
  nb::object named = nb::steal(
      PyTuple_Type.tp_new(reinterpret_cast<PyTypeObject*>(kind), arguments.ptr(), nullptr));
  if (!named.is_valid()) throw nb::python_error();
  return named;
}

// ---- results of other libraries
// -------------------------------------------------------------------------------------------------

void run_on_device(const Kernel& kernel, const Call& call, const Given& given) {
  void* const stream = nullptr;  // JAX tells nobody its streams, and cannot be told to wait
  without_gil(kDriver, [&] {
    cuda::Device& there = cuda::device_at(given.device);
    there.refuse_bad_indices();
    cuda::Queue queue(there, stream);
    queue.name_call({std::string(kernel.name) + ": indices"});
    kernel.enqueue(call, queue);
    queue.wait(false);
    there.raise_bad_indices(cuda::BadIndices::latest_of_thread());
  });
}

// Runs the kernel where the tensors are; false where it turns out to be an unusual call.
bool run_there(const Kernel& kernel, const Call& call, const Given& given) {
  if (given.device == kHost) return kernel.run(call) == -1;
  run_on_device(kernel, call, given);
  return true;
}

void set_measured(Results::One& one, Int count) {
  for (int i = 0; i < one.rank; ++i)
    if (one.dims[i] == kMeasured) one.dims[i] = count;
}

nb::object measured_on_device(const Kernel& kernel, Given& given, Results::One& one, Call& call) {
  void* const stream = nullptr;  // JAX tells nobody its streams, and cannot be told to wait
  Int count = 0;
  std::unique_ptr<cuda::Queue> queue;
  cuda::NonzeroFound found;
  without_gil(kDriver, [&] {
    cuda::Device& there = cuda::device_at(given.device);
    there.refuse_bad_indices();
    queue = std::make_unique<cuda::Queue>(there, stream);
    found = kernel.measure_on_device(call, *queue);
    count = queue->told_number(found.count);
    queue->leave();
  });
  set_measured(one, count);
  jax::NewArray made;
  if (!made.make(one, given.device, given.operands[kernel.inputs])) return nb::none();
  without_gil(kDriver, [&] {
    queue->enter();
    kernel.fill_on_device(call, found, count, *queue);
    queue->wait(false);
    queue->leave();
  });
  return made.object();
}

[[gnu::noinline]] nb::object measured_elsewhere(const Kernel& kernel, Given& given,
                                                Results::One& one, Call& call) {
  if (given.device != kHost) return measured_on_device(kernel, given, one, call);
  const Found found = kernel.measure(call);
  set_measured(one, found.count);
  jax::NewArray made;
  if (!made.make(one, given.device, given.operands[kernel.inputs])) return nb::none();
  kernel.fill(call, found);
  return made.object();
}

// The places of compiler and cache are told by the general path's first call.
bool ready_on_device(const Kernel& kernel) {
  return kernel.enqueue != nullptr && !cuda::compiler_places().version.empty();
}

// values: as of `called`.
[[gnu::noinline]] nb::object called_elsewhere(const Kernel& kernel, PyObject* const* values,
                                              Given& given, Results& results, Call& call) {
  const bool listed = kernel.list == Lists::outputs;
  if (!jax::keeps(results.one, listed || kernel.measure != nullptr ? 1 : kernel.outputs))
    return nb::none();
  if (listed && given.device == kHost) {  // a split
    nb::object parts = jax::kept_split(values[1], given.operands[0], results);
    if (parts.is_valid()) return parts;
  }
  if (given.device != kHost && !ready_on_device(kernel)) return nb::none();
  if (kernel.measure != nullptr) return measured_elsewhere(kernel, given, results.one[0], call);
  const Int count = listed ? results.equal : kernel.outputs;
  if (count > static_cast<Int>(kMostMembers)) return nb::none();
  Several<jax::NewArray, 8> several;
  jax::NewArray* const made = several.make(static_cast<std::size_t>(count));
  Operand* const outputs = listed ? given.there().members.make(static_cast<std::size_t>(count))
                                  : given.operands + kernel.inputs;
  for (Int i = 0; i < count; ++i) {
    Results::One& one = results.one[listed ? 0 : i];
    if (results.sizes != nullptr) one.dims[results.axis] = results.sizes[i];
    if (!made[i].make(one, given.device, outputs[i])) return nb::none();
  }
  if (listed) call.list = {outputs, nullptr, static_cast<std::size_t>(count)};
  if (!run_there(kernel, call, given)) return nb::none();
  if (!listed) {
    nb::object first = made[0].object();
    return count == 1 ? first : named_tuple(values[0], first, made[1].object());
  }
  nb::object tuple = nb::steal(PyTuple_New(count));
  if (!tuple.is_valid()) throw nb::python_error();
  for (Int i = 0; i < count; ++i)
    PyTuple_SET_ITEM(tuple.ptr(), i, made[i].object().release().ptr());
  return tuple;
}

nb::object measured(const Kernel& kernel, Given& given, Results& results, Call& call) {
  const Found found = kernel.measure(call);
  set_measured(results.one[0], found.count);
  nb::object array = result_of(kernel, results.one[0], given.operands[kernel.inputs]);
  kernel.fill(call, found);
  return array;
}

// values: the class of several results or None, inputs, arguments.
nb::object called(const Kernel& kernel, PyObject* const* values, int threads) {
  Given given;
  Results results;
  Int numbers[kMostValues];
  if (!given.take(kernel, values + 1) || !kernel.shape(given.quick(), numbers, results) ||
      results.one[0].rank > most_axes())
    return nb::none();
  Call call{given.operands, given.list, numbers, kernel.attributes.size(), true, threads};
  if (given.kind != Given::numpy && given.kind != Given::unknown)
    return called_elsewhere(kernel, values, given, results, call);
  if (kernel.measure != nullptr) return measured(kernel, given, results, call);
  nb::object outputs[kMostResults];
  Operand* const next = given.operands + kernel.inputs;
  if (kernel.list == Lists::outputs)
    outputs[0] = results.sizes != nullptr ? unequal_results(kernel, results, call.list)
                                          : equal_results(kernel, results, *next, call.list);
  else
    for (int i = 0; i < kernel.outputs; ++i)
      outputs[i] = result_of(kernel, results.one[i], next[i]);
  if (kernel.run(call) != -1) return nb::none();
  return kernel.outputs > 1 ? named_tuple(values[0], outputs[0], outputs[1]) : outputs[0];
}

// What decides how many threads a call may use (threads.py): a block in the context, else the
// process. Asked for here: a call of Python's for it costs a tenth of a small quick call.
PyObject* in_context = nullptr;  // a ContextVar; 0 outside of every block
std::atomic<int> in_process{1};

void use_threads(nb::handle context, int process) {
  in_context = context.inc_ref().ptr();
  in_process = process;
}

PyObject* fast_call(PyObject* self, PyObject* const* values, Py_ssize_t count) {
  const Kernel& kernel = *static_cast<const Kernel*>(PyCapsule_GetPointer(self, nullptr));
  if (count != taken(kernel) + 1) {
    PyErr_Format(PyExc_TypeError, "%s: other arguments than it takes", kernel.name);
    return nullptr;
  }
  const int threads = threads_now();
  if (threads < 1) return nullptr;
  try {
    return told(kernel.name, [&] { return called(kernel, values, threads); }).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  }
}

// quick(name): the quick call of a kernel.
nb::object quick(const std::string& name) {
  static PyMethodDef definition = {
      "quick", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(fast_call)), METH_FASTCALL,
      nullptr};
  return bound_to(quick_kernel(name), definition);
}

// shapes(name, inputs.., arguments..): what the quick call's results would be, as pairs of shape
// and type; None where it declines.
nb::object shapes(const std::string& name, const nb::args& values) {
  const Kernel& kernel = quick_kernel(name);
  Given given;
  Results results;
  Int numbers[kMostValues];
  if (static_cast<Py_ssize_t>(values.size()) != taken(kernel) ||
      !given.take(kernel, PySequence_Fast_ITEMS(values.ptr())) ||
      !kernel.shape(given.quick(), numbers, results))
    return nb::none();
  const Int count = kernel.list == Lists::outputs ? results.equal
                    : kernel.measure != nullptr   ? 1
                                                  : kernel.outputs;
  nb::list pairs;
  for (Int i = 0; i < count; ++i) {
    Results::One& one = results.one[kernel.list == Lists::outputs ? 0 : i];
    if (results.sizes != nullptr) one.dims[results.axis] = results.sizes[i];
    nb::list sizes;
    for (int d = 0; d < one.rank; ++d) sizes.append(static_cast<Int>(one.dims[d]));
    pairs.append(
        nb::make_tuple(nb::tuple(sizes), nb::borrow(reinterpret_cast<PyObject*>(one.descr))));
  }
  return pairs;
}

}  // namespace

int threads_now() {
  if (in_context == nullptr) return in_process.load();
  PyObject* value = nullptr;
  if (PyContextVar_Get(in_context, nullptr, &value) < 0) return -1;
  const long count = PyLong_AsLong(value);
  Py_DECREF(value);
  return count > 0 ? static_cast<int>(count) : count == 0 ? in_process.load() : -1;
}

const Kernel& quick_kernel(const std::string& name) {
  const Kernel& kernel = kernel_named(name);
  const bool fits = static_cast<std::size_t>(kernel.inputs + kernel.outputs) <= kQuickOperands &&
                    kernel.arguments.size() <= kMostNumbers &&
                    kernel.attributes.size() <= kMostNumbers;
  if (kernel.shape == nullptr || !fits) raise_argument(name + ": a kernel without a quick way");
  return kernel;
}

nb::object bound_to(const Kernel& kernel, PyMethodDef& definition) {
  const nb::object self = nb::steal(PyCapsule_New(const_cast<Kernel*>(&kernel), nullptr, nullptr));
  nb::object call = nb::steal(PyCFunction_NewEx(&definition, self.ptr(), nullptr));
  if (!call.is_valid()) throw nb::python_error();
  return call;
}

void bind_quick(nb::module_& module) {
  module.def("take_jax", &jax::take);
  module.def("take_jax_split", &jax::take_split_maker);
  module.def("take_jax_gpu", &jax::take_gpu);
  module.def("quick", &quick);
  module.def("use_threads", &use_threads);
  module.def("shapes", &shapes);
}

}  // namespace anydml::python

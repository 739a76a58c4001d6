// Calls any kernel by name on operands that Python has checked. The kernel's `validate` checks them
// again, because they can have changed since.
#include <nanobind/stl/string.h>

#include "kernel.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

[[noreturn]] void refuse(const Kernel& kernel, const std::string& what) {
  raise_argument(std::string(kernel.name) + ": " + what);
}

// Operands and list of a call, and what keeps the arrays alive while the lock is given up.
class Operands {
 public:
  explicit Operands(const Kernel& kernel) : kernel_(kernel) {}

  void add(nb::handle arrays, int expected, bool is_list, bool outputs) {
    nb::object held = nb::steal(PySequence_Tuple(arrays.ptr()));
    if (!held.is_valid()) raise_set(kernel_.name, kUncounted, "the list of arrays");
    PyObject** const items = PySequence_Fast_ITEMS(held.ptr());
    const std::size_t count = static_cast<std::size_t>(PyTuple_GET_SIZE(held.ptr()));
    held_[outputs ? 1 : 0] = std::move(held);
    if (is_list) {
      Operand operand;
      for (std::size_t i = 0; i < count; ++i) take(items[i], i, outputs, operand);
      list_ = {nullptr, items, count};
      return;
    }
    if (count != static_cast<std::size_t>(expected) || count_ + count > kMaxOperands)
      refuse(kernel_, "other operands than it takes");
    for (std::size_t i = 0; i < count; ++i) take(items[i], i, outputs, operands_[count_++]);
  }

  Call call(const std::vector<Int>& numbers, int threads) const {
    return {operands_, list_, numbers.data(), numbers.size(), false, threads};
  }

 private:
  void take(PyObject* array, std::size_t i, bool output, Operand& operand) const {
    const char* const side = output ? "output " : "input ";
    if (!operand_of(array, operand)) {
      DataType type;
      int size;
      const bool large =
          PyArray_CheckExact(array) &&
          element_of(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(array)), type, size);
      refuse(kernel_, side + std::to_string(i) +
                          (large ? ": expected at most 2^48 elements, within the address space"
                                 : ": expected an ndarray of a supported type"));
    }
    if (output && !PyArray_ISWRITEABLE(operand.array))
      refuse(kernel_,
             side + std::to_string(i) + ": expected a writable array, got a read-only one");
  }

  const Kernel& kernel_;
  Operand operands_[kMaxOperands];
  std::size_t count_ = 0;
  List list_;
  nb::object held_[2];
};

void raise_if_invalid(const Kernel& kernel, const char* wrong) {
  if (wrong != nullptr) refuse(kernel, wrong);
}

// The first bad index, or -1. `output_is_private`: the outputs are discarded if there is one.
Int run(const std::string& name, nb::handle inputs, nb::handle outputs, const nb::dict& attributes,
        bool output_is_private, int threads) {
  const Kernel& kernel = find_kernel(name);
  return translate_exceptions(kernel.name, [&] {
    Operands operands(kernel);
    operands.add(inputs, kernel.inputs, kernel.list == Lists::inputs, false);
    operands.add(outputs, kernel.outputs, kernel.list == Lists::outputs, true);
    const std::vector<Int> numbers = numbers_of(kernel, attributes);
    Call call = operands.call(numbers, threads);
    call.output_is_private = output_is_private;
    raise_if_invalid(kernel, validate(kernel, call));
    const Int bad = kernel.run(call);
    if (bad == kDeclined) refuse(kernel, "operands that were changed during the call");
    return bad;
  });
}

// Calls a kernel whose output size depends on the data. `make` allocates an array of a given size,
// which is returned.
nb::object run_measured(const std::string& name, nb::handle input, const nb::dict& attributes,
                        const nb::object& make, int threads) {
  const Kernel& kernel = find_kernel(name);
  return translate_exceptions(kernel.name, [&] {
    if (!kernel.measured) refuse(kernel, "no kernel whose output's size the data decide");
    Operands operands(kernel);
    operands.add(nb::make_tuple(input), kernel.inputs, false, false);
    const std::vector<Int> numbers = numbers_of(kernel, attributes);
    const Call call = operands.call(numbers, threads);
    Results results;
    raise_if_invalid(kernel, validate_input(kernel, call, results));
    nb::object output;
    const auto make_result = [&](Int size) {
      output = make(size);
      operands.add(nb::make_tuple(output), 1, false, true);
      raise_if_invalid(kernel, validate_measured(kernel, call, size));
      return call.operands + kernel.inputs;
    };
    kernel.measured->run(call, std::ref(make_result));
    return output;
  });
}

// The array of a result. `call` and `purpose` appear in the message if the allocation fails.
nb::object empty(nb::tuple shape, nb::handle dtype, const char* call, const char* purpose) {
  PyArray_Descr* descr = nullptr;
  if (PyArray_DescrConverter(dtype.ptr(), &descr) == NPY_FAIL) throw nb::python_error();
  const nb::object owner = nb::steal(reinterpret_cast<PyObject*>(descr));
  if (shape.size() > static_cast<std::size_t>(kMaxRank))
    raise_argument(std::string(call) + ": expected at most 64 axes of " + purpose + ", got " +
                   std::to_string(shape.size()));
  npy_intp dims[kMaxRank];
  int rank = 0;
  for (nb::handle size : shape) {
    const Py_ssize_t number = PyLong_AsSsize_t(size.ptr());
    if (number < 0) {
      if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_OverflowError) == 0)
        throw nb::python_error();
      PyErr_Clear();
      raise_allocation(call, shape, descr, purpose);
    }
    dims[rank++] = number;
  }
  return allocated(call, purpose, rank, dims, descr);
}

// Returns the array itself, or a row-major copy at an address that is a multiple of 64. XLA reads
// such an array in place. It copies any other array on its own thread, which for a small call takes
// longer than the call. `copy` forces a copy; `call` names the call in messages.
nb::object aligned(nb::handle array, bool copy, const char* call) {
  if (!PyArray_CheckExact(array.ptr()))
    raise_argument(std::string(call) + ": expected an array of NumPy");
  auto* const source = reinterpret_cast<PyArrayObject*>(array.ptr());
  const bool in_place = PyArray_IS_C_CONTIGUOUS(source) &&
                        reinterpret_cast<std::uintptr_t>(PyArray_DATA(source)) % 64 == 0;
  if (PyArray_SIZE(source) == 0 || (in_place && !copy)) return nb::borrow(array);
  nb::object copied = nb::steal(reinterpret_cast<PyObject*>(new_aligned_copy(source)));
  if (!copied.is_valid())
    raise_set(call, static_cast<unsigned long long>(PyArray_NBYTES(source)),
              "a copy of an operand");
  return copied;
}

nb::list kernels() {
  nb::list names;
  for (const Kernel& kernel : all_kernels()) names.append(kernel.name);
  return names;
}

bool checks_indices(const std::string& name) {
  return find_kernel(name).checks_indices.has_value();
}

}  // namespace

void bind_call_by_name(nb::module_& module) {
  module.def("run", &run);
  module.def("run_measured", &run_measured);
  module.def("kernels", &kernels);
  module.def("checks_indices", &checks_indices);
  module.def("empty", &empty);
  module.def("aligned", &aligned);
}

}  // namespace anydml::python

#include "cupy_arrays.hpp"

#include <algorithm>
#include <cstdint>

#include "tensors.hpp"

namespace nb = nanobind;

namespace anydml::python::cupy {
namespace {

struct Library {
  PyTypeObject* type = nullptr;  // kept for the life of the process, like all that is below
  std::intptr_t (*stream)() = nullptr;
  int (*device)(int skip_dispatch) = nullptr;
  PyObject *data = nullptr, *ptr = nullptr, *device_id = nullptr, *dtype = nullptr,
           *shape = nullptr, *strides = nullptr;
};
Library library;

// As Cython writes the types of what a module exports.
constexpr const char *kStream = "intptr_t (void)", *kDevice = "int (int __pyx_skip_dispatch)";

nb::object attribute(PyObject* object, PyObject* name) {
  return nb::steal(PyObject_GetAttr(object, name));
}

// False, with or without an exception, where there is no such number.
bool number_of(PyObject* object, Int& number) {
  if (object == nullptr || !PyLong_Check(object)) return false;
  number = PyLong_AsLongLong(object);
  return number != -1 || PyErr_Occurred() == nullptr;
}

// Where the elements begin, and on which device.
bool place_of(PyObject* array, Int& address, Int* device) {
  const nb::object data = attribute(array, library.data);
  return data.is_valid() && number_of(attribute(data.ptr(), library.ptr).ptr(), address) &&
         (device == nullptr || number_of(attribute(data.ptr(), library.device_id).ptr(), *device));
}

bool layout_of(PyObject* array, Operand& operand) {
  const nb::object sizes = attribute(array, library.shape);
  if (!sizes.is_valid()) return false;
  const nb::object strides = attribute(array, library.strides);
  if (!strides.is_valid() || !PyTuple_Check(sizes.ptr()) || !PyTuple_Check(strides.ptr()))
    return false;
  const Py_ssize_t rank = PyTuple_GET_SIZE(sizes.ptr());
  if (rank > kMaxRank || PyTuple_GET_SIZE(strides.ptr()) != rank) return false;
  Layout& layout = operand.tensor.layout;
  layout.rank = 0;
  for (Py_ssize_t i = 0; i < rank; ++i) {
    Int size, stride;
    if (!number_of(PyTuple_GET_ITEM(sizes.ptr(), i), size) ||
        !number_of(PyTuple_GET_ITEM(strides.ptr(), i), stride))
      return false;
    layout.push(size, stride);
  }
  return layout.settle(operand.tensor.element_size);
}

// A GPU faults where a processor takes a little longer.
bool aligned(const Operand& operand) {
  const Layout& layout = operand.tensor.layout;
  auto low_bits = reinterpret_cast<std::uintptr_t>(operand.data);
  for (int i = 0; i < layout.rank; ++i)
    if (layout.sizes[i] > 1) low_bits |= static_cast<std::uintptr_t>(layout.strides[i]);
  const auto size = static_cast<std::uintptr_t>(std::min(operand.tensor.element_size, 8));
  return layout.count() == 0 || low_bits % size == 0;
}

bool read(PyObject* array, Operand& operand, Int& device) {
  const nb::object dtype = attribute(array, library.dtype);
  if (!dtype.is_valid() || !PyArray_DescrCheck(dtype.ptr())) return false;
  operand.descr = reinterpret_cast<PyArray_Descr*>(dtype.ptr());  // the array keeps it
  operand.array = nullptr;
  Int address = 0;
  if (!element_of(operand.descr, operand.tensor.type, operand.tensor.element_size) ||
      !place_of(array, address, &device) || !layout_of(array, operand))
    return false;
  operand.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  return aligned(operand);
}

}  // namespace

void take(nb::object type, nb::object stream, nb::object device) {
  if (library.type != nullptr || PyType_Check(type.ptr()) == 0 ||
      PyCapsule_IsValid(stream.ptr(), kStream) == 0 ||
      PyCapsule_IsValid(device.ptr(), kDevice) == 0)
    return;
  const auto function = [](nb::object& capsule, const char* name) {
    return PyCapsule_GetPointer(capsule.release().ptr(), name);
  };
  library.stream = reinterpret_cast<std::intptr_t (*)()>(function(stream, kStream));
  library.device = reinterpret_cast<int (*)(int)>(function(device, kDevice));
  library.data = PyUnicode_InternFromString("data");
  library.ptr = PyUnicode_InternFromString("ptr");
  library.device_id = PyUnicode_InternFromString("device_id");
  library.dtype = PyUnicode_InternFromString("dtype");
  library.shape = PyUnicode_InternFromString("shape");
  library.strides = PyUnicode_InternFromString("strides");
  library.type = reinterpret_cast<PyTypeObject*>(type.release().ptr());
}

bool is_array(PyObject* object) {
  return library.type != nullptr && Py_TYPE(object) == library.type;
}

bool operand_of(PyObject* array, Operand& operand, int& device) {
  Int there = 0;
  const bool here = read(array, operand, there) && there == library.device(0);
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  device = static_cast<int>(there);
  return here;
}

bool NewArray::make(const Results::One& one, Operand& operand) {
  const nb::object shape = nb::steal(PyTuple_New(one.rank));
  if (!shape.is_valid()) throw nb::python_error();
  for (int i = 0; i < one.rank; ++i) {
    PyObject* const size = PyLong_FromSsize_t(one.dims[i]);
    if (size == nullptr) throw nb::python_error();
    PyTuple_SET_ITEM(shape.ptr(), i, size);
  }
  PyObject* const arguments[] = {nullptr, shape.ptr(), reinterpret_cast<PyObject*>(one.descr)};
  array_ = nb::steal(PyObject_Vectorcall(reinterpret_cast<PyObject*>(library.type), arguments + 1,
                                         2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
  Int address = 0;
  if (array_.is_valid() && place_of(array_.ptr(), address, nullptr))
    return new_operand(one.rank, one.dims, one.descr,
                       reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), operand);
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  return false;
}

void* stream() {
  const std::intptr_t now = library.stream();
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return reinterpret_cast<void*>(now);
}

}  // namespace anydml::python::cupy

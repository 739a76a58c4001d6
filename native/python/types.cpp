#include "types.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace nb = nanobind;

namespace anydml::python {
namespace {

PyObject* known = nullptr;  // descriptors by what stands for them
constexpr Py_ssize_t kMost = 256;

// Whether hashing and comparing it runs no code of a user's, and it always means the same.
bool is_fixed(PyObject* object) {
  return PyUnicode_CheckExact(object) || PyArray_DescrCheck(object) ||
         std::strcmp(Py_TYPE(object)->tp_name, "torch.dtype") == 0 ||
         (Py_TYPE(object) == &PyType_Type &&
          PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(object), &PyGenericArrType_Type) != 0 &&
          (reinterpret_cast<PyTypeObject*>(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0);
}

}  // namespace

void know_type(nb::handle object, nb::handle dtype) {
  if (!is_fixed(object.ptr()) || PyArray_DescrCheck(dtype.ptr()) == 0) return;
  // Results of added types are given back as another one by each library: the general path's work.
  if (reinterpret_cast<PyArray_Descr*>(dtype.ptr())->type_num >= NPY_USERDEF) return;
  if (known == nullptr) known = PyDict_New();
  if (known == nullptr) throw nb::python_error();
  if (PyDict_Size(known) < kMost && PyDict_SetItem(known, object.ptr(), dtype.ptr()) != 0)
    throw nb::python_error();
}

PyArray_Descr* known_type(PyObject* object) {
  if (known == nullptr || !is_fixed(object)) return nullptr;
  PyObject* const found = PyDict_GetItemWithError(known, object);
  if (found == nullptr) PyErr_Clear();
  return reinterpret_cast<PyArray_Descr*>(found);
}

bool constant_of(PyObject* object, const PyArray_Descr* descr, Int& bits) {
  const int size = static_cast<int>(PyDataType_ELSIZE(descr));
  const char kind = descr->kind;
  double number;
  if (PyLong_CheckExact(object)) {
    int overflow = 0;
    bits = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0) return false;
    if (bits == 0) return kind == 'f' || kind == 'i' || kind == 'u' || kind == 'b' || kind == 'c';
    if (size > 8) return false;
    if (kind == 'i') return size == 8 || bits >> (8 * size - 1) == (bits < 0 ? -1 : 0);
    if (kind == 'u') return bits > 0 && (size == 8 || bits >> (8 * size) == 0);
    number = static_cast<double>(bits);
    if (bits > Int{1} << 24 || bits < -(Int{1} << 24)) return false;  // may be rounded twice
  } else if (PyFloat_CheckExact(object)) {
    number = PyFloat_AS_DOUBLE(object);
  } else {
    return false;
  }
  if (kind != 'f' || !std::isfinite(number) || (size != 4 && size != 8)) return false;
  if (size == 8) {
    bits = std::bit_cast<Int>(number);
    return true;
  }
  if (std::abs(number) > static_cast<double>(std::numeric_limits<float>::max())) return false;
  bits = static_cast<Int>(std::bit_cast<std::uint32_t>(static_cast<float>(number)));
  return true;
}

}  // namespace anydml::python

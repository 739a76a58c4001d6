// The kernels on NumPy operands.
//
// Two doors. The checked calls take operands that Python has already checked (shapes, types, axes)
// and any strides. The quick calls take a user's arguments as they are, do the whole job when
// nothing is unusual about them, and return None otherwise: the general path then finds out why.
#pragma once

#include <nanobind/nanobind.h>

#include "failures.hpp"
#include "numpy.hpp"
#include "shapes.hpp"

namespace anydml::python {

void bind_checked_calls(nanobind::module_& module);
void bind_quick_calls(nanobind::module_& module);
void bind_binder(nanobind::module_& module);
void bind_movers(nanobind::module_& module);

// A new array, or an AllocationError of the call that says how much for what.
inline nanobind::object allocated(const char* call, const char* purpose, int rank,
                                  const npy_intp* dims, PyArray_Descr* descr) {
  PyArrayObject* const array = new_array(rank, dims, descr);
  if (array == nullptr) {
    if (PyErr_ExceptionMatches(PyExc_MemoryError) == 0) throw nanobind::python_error();
    PyErr_Clear();
    nanobind::list sizes;
    for (int i = 0; i < rank; ++i) sizes.append(static_cast<Int>(dims[i]));
    raise_allocation(call, nanobind::tuple(sizes), descr, purpose);
  }
  return nanobind::steal(reinterpret_cast<PyObject*>(array));
}

}  // namespace anydml::python

// The kernels on NumPy operands.
//
// Two doors. The checked calls take operands that Python has already checked (shapes, types, axes)
// and any strides. The quick calls take a user's arguments as they are, do the whole job when
// nothing is unusual about them, and return None otherwise: the general path then finds out why.
#pragma once

#include <nanobind/nanobind.h>

#include "numpy.hpp"

namespace anydml::python {

void bind_checked_calls(nanobind::module_& module);
void bind_quick_calls(nanobind::module_& module);
void bind_binder(nanobind::module_& module);

// The operand, or a TypeError that names it: a checked call got something unchecked.
Operand checked(nanobind::handle object, const char* name, int skip = 0);

// Owns a new array; throws the exception that is set where there is none.
inline nanobind::object steal(PyArrayObject* array) {
  if (array == nullptr) throw nanobind::python_error();
  return nanobind::steal(reinterpret_cast<PyObject*>(array));
}

}  // namespace anydml::python

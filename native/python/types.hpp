// What users write for a type: quick calls know what the general path has understood once.
#pragma once

#include "failures.hpp"

namespace anydml::python {

// From now on this stands for the type: a string, a dtype, NumPy's class of a scalar or PyTorch's
// type. What may mean something else the next time is not kept.
void know_type(nanobind::handle object, nanobind::handle dtype);

// The type that an object stands for, borrowed for ever; null where it is not known.
PyArray_Descr* known_type(PyObject* object);

// An exact int or float as a value of the type, in its first eight bytes. False for what a type has
// not, or rounds to infinity, and for types whose numbers are more than that.
bool constant_of(PyObject* object, const PyArray_Descr* descr, Int& bits);

}  // namespace anydml::python

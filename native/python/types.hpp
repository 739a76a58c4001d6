// Element types: those that NumPy lacks, and the objects by which users name a type.
#pragma once

#include "failures.hpp"

namespace anydml::python {

// An element type that NumPy lacks: bfloat16, or a float of 8 bits, which is only moved.
//
// An array of such a type is seen here as records of one unsigned integer, whichever library it
// comes from: `descr` is this library's name for the element type, and nothing is registered with
// NumPy.
struct AddedType {
  const TypeFacts* facts = nullptr;
  PyArray_Descr* descr = nullptr;  // never released
  int user_number = -1;            // NumPy's number of ml_dtypes' type, once it is known
};

// By a descriptor, this library's or ml_dtypes'. Null for any other.
const AddedType* added_type(const PyArray_Descr* descr);

// By DLPack's code and number of bits.
const AddedType* added_type_of_dlpack(std::uint8_t code, std::uint8_t bits);

void bind_types(nanobind::module_& module);

// Caches an object that stands for a type: a string, a dtype, NumPy's scalar class or PyTorch's
// type. An object whose meaning may change is not cached.
void know_type(nanobind::handle object, nanobind::handle dtype);

// The descriptor of the type that an object stands for, or null if it is unknown. Borrowed:
// descriptors live as long as the process.
PyArray_Descr* known_type(PyObject* object);

// An exact int or float as a value of the type, in its first eight bytes. Returns false if the type
// cannot represent it or rounds it to infinity, and for types that are not plain numbers.
bool constant_of(PyObject* object, const PyArray_Descr* descr, Int& bits);

}  // namespace anydml::python

// Types of elements that NumPy lacks: bfloat16, and floats of 8 bits, which are only moved.
//
// NumPy gets a type of ours for each. All arrays of these types are seen under them, whichever
// library they come from: PyTorch's have no other NumPy type, and ml_dtypes' (which JAX has too)
// are views of the same memory. The one list of them is in added_types.cpp.
#pragma once

#include "failures.hpp"
#include "numpy.hpp"

namespace anydml::python {

struct AddedType {
  const char* name;  // as PyTorch, JAX and ml_dtypes call it
  int size;
  std::uint8_t dlpack_code;
  DataType type;
  PyArray_Descr* descr;  // kept for ever
};

// By the number of NumPy's type: ours, or another library's that was made known. Null: none.
const AddedType* added_type(int type_num);

// By DLPack's code and number of bits.
const AddedType* added_type_of_dlpack(std::uint8_t code, std::uint8_t bits);

void bind_added_types(nanobind::module_& module);

}  // namespace anydml::python

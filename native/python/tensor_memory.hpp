// PyTorch's tensors in host memory as operands and results of memory calls, by the tensors' own
// public methods: what Python would ask for at twice the cost of a small kernel.
#pragma once

#include "kernel.hpp"

namespace anydml::python::tensors {

// `torch.empty_strided`, the code of each type that kernels take, and the capsule of DLPack's
// exchange table, or None where PyTorch has none. The table checks nothing: what it says of a
// tensor is compared with the storage.
void use(nanobind::object empty_strided, nanobind::dict codes, nanobind::object table);

// The code of a PyTorch type; -1 for types that kernels do not take.
Int code_of(PyObject* dtype);

// A tensor's elements; `storage` keeps their memory, whatever another thread gives the tensor.
// False for what has no such memory or does not lie within it, without an exception.
bool operand_of(PyObject* tensor, Operand& operand, nanobind::object& storage);

// Whether all tensors have a storage; what a transformation passes around has none.
bool have_storage(nanobind::handle tensors);

// The address of the stream that PyTorch works on, of a GPU; None where there is no table.
nanobind::object stream_of(int device);

// A packed tensor, and the address of its elements; null where PyTorch has no such type.
nanobind::object make(const Results::One& one, void*& data);

}  // namespace anydml::python::tensors

// PyTorch tensors in host memory as operands and results of memory calls, by the tensors' own
// public methods. Calling these from Python would cost twice the time of a small kernel.
#pragma once

#include "kernel.hpp"

namespace anydml::python::tensors {

// `torch.empty_strided`, the code of each type that kernels take, and the capsule of DLPack's
// exchange table, or None if PyTorch has none. The table checks nothing, so its answer about a
// tensor is compared with the storage.
void use(nanobind::object empty_strided, nanobind::dict codes, nanobind::object table);

// The code of a PyTorch type; -1 for types that kernels do not take.
Int code_of(PyObject* dtype);

// A tensor's elements. `storage` keeps their memory alive, even if another thread replaces the
// tensor's memory. Returns false, without an exception, for a tensor that has no such memory or
// does not lie within it.
bool operand_of(PyObject* tensor, Operand& operand, nanobind::object& storage);

// Whether all tensors have a storage; tensors that a transformation traces have none.
bool have_storage(nanobind::handle tensors);

// The address of PyTorch's current stream of a GPU; None if there is no table.
nanobind::object stream_of(int device);

// A packed tensor, and the address of its elements; null if PyTorch has no such type.
nanobind::object make(const Results::One& one, void*& data);

}  // namespace anydml::python::tensors

// What PyTorch's own libraries answer without Python: the checks that DLPack's exchange table lacks
// cost four times the kernel where they are made by calls of methods.
//
// Storage and new tensors are asked for by libtorch's stable C interface (its functions are called
// aoti_torch_*). Where a tensor's dispatch keys stand no interface says, so it is learnt: a place
// is taken only where it holds what PyTorch itself gives for every one of several tensors of
// different kinds. Where anything is missing or differs, nothing of this is used.
#pragma once

#include <cstdint>

#include "failures.hpp"

namespace anydml::python::libtorch {

// Finds the functions, and the places by samples: tuples of a tensor, the address of its
// implementation, its dispatch keys and the bytes of its storage (-1 where it has none).
// `requires_grad` is the class's own attribute of that name. False where nothing is to be used;
// what was learnt before is forgotten.
bool learn(nanobind::handle samples, nanobind::handle requires_grad);

// Whether all that follows may be called; for objects of the exact class only.
bool known();

std::uint64_t keys_of(PyObject* tensor);
bool requires_grad(PyObject* tensor);
// Bytes of the storage, and where in it the tensor begins, in elements.
bool storage_of(PyObject* tensor, Int& bytes, Int& offset);

// What a tensor with plain memory on the CPU is; all borrowed. False where it does not say.
struct View {
  std::int64_t rank;
  std::int64_t *sizes, *strides;  // in elements
  std::int32_t type;
  void* data;
};
bool view_of(PyObject* tensor, View& view);

using Handle = void*;  // owned

// The number of a type by its name; -1 where there is none.
std::int32_t type_named(const char* name);

// A new tensor of packed strides and where its elements are; null where there is none.
Handle make(int rank, const std::int64_t* sizes, std::int32_t type, int device, void*& data);
void release(Handle handle);
// A tensor as a Python object; the handle is released in any case.
nanobind::object object_of(Handle handle);

}  // namespace anydml::python::libtorch

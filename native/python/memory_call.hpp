// Calls of the kernels on memory that Python describes: any library's, on the host or on a GPU.
//
// An operand is a tuple (type, sizes, strides, unit, address, offset, bytes, ..): `type` is
// DLPack's code and bits as code << 8 | bits; `strides` and `offset` count units of `unit` bytes;
// `address` and `bytes` are the block that all elements must lie in (bytes of -1: unknown). Further
// members are ignored, and may keep the block alive.
#pragma once

#include "kernel.hpp"

namespace anydml::python {

// The descriptor of a type by its code, or null. Borrowed: descriptors live as long as the process.
PyArray_Descr* descr_of_code(Int code);
// -1 if DLPack has no code for it.
Int code_of_descr(const PyArray_Descr* descr);

// The members of an operand; a unit of 0 is the element size.
struct Block {
  Int code;
  PyObject *sizes, *strides;  // tuples
  Int unit;
  void* address;
  Int offset, bytes;
};

// Returns false, without an exception, for operands that no kernel takes.
bool set_operand(const Block& block, Operand& operand);

// Whether all elements lie in a block of this many bytes (-1: unknown), in which the operand's
// first element is at byte `offset`.
bool lies_within(const Operand& operand, Int offset, Int bytes);

// memory_call(name): the call of a kernel, call(kind, place, make, inputs.., attributes..).
//
// `kind` is the class of several results, or None. `place` is None for host memory, else the pair
// (device, stream). `make(type, shape)` allocates a packed result and returns it with its address;
// without it, operands and results are tensors in host memory (tensor_memory.hpp). The attributes
// are the kernel's in its own order, with a number in place of an attribute of two; then the sizes
// of a list of results, and the type of a result or its code. Returns None where the shape rule
// declines or an index is bad: no caller-visible memory has been written then.
void bind_memory_call(nanobind::module_& module);

}  // namespace anydml::python

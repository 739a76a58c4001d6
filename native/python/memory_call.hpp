// Calls of the kernels on memory that Python describes: any library's, on the host or on a GPU.
//
// An operand is a tuple (type, sizes, strides, unit, address, offset, bytes, ..): `type` is
// DLPack's code and bits as code << 8 | bits; `strides` and `offset` count units of `unit` bytes;
// `address` and `bytes` are the block that all elements must lie in (bytes of -1: not known). What
// follows is ignored, and may be what keeps the block alive.
#pragma once

#include "kernel.hpp"

namespace anydml::python {

// The descriptor of a type by its code, borrowed for ever; null if there is none.
PyArray_Descr* descr_of_code(Int code);
// -1 where DLPack has none.
Int code_of_descr(const PyArray_Descr* descr);

// An operand's parts; a unit of 0 is an element.
struct Block {
  Int code;
  PyObject *sizes, *strides;  // tuples
  Int unit;
  void* address;
  Int offset, bytes;
};

// False, without an exception, for what no kernel takes.
bool set_operand(const Block& block, Operand& operand);

// Whether all elements lie in a block of this many bytes (-1: unknown), in which the operand's
// first one is `offset` bytes from the begin.
bool lies_within(const Operand& operand, Int offset, Int bytes);

// memory_call(name): the call of a kernel, call(kind, place, make, inputs.., arguments..).
//
// `kind` is the class of several results, or None. `place` is None for host memory, else the pair
// (device, stream). `make(type, shape)` makes a packed result and gives it with its address; where
// it is None, operands and results are tensors in host memory (tensor_memory.hpp).
// Arguments are a quick call's; a type may be a code. None where the shape rule declines or an
// index is bad: nothing that a caller sees has been done then.
void bind_memory_call(nanobind::module_& module);

}  // namespace anydml::python

// Tensors of a library that offers DLPack's exchange table (PyTorch), for quick calls.
//
// The table checks nothing: it hands out the address of whatever it is given. So it is used for the
// exact class only, and only for a tensor that the library itself calls plain: its dispatch keys
// are those of an ordinary tensor on its device, it asks for no gradient, and its storage holds its
// elements; PyTorch's libraries tell this where they can (libtorch.hpp), else methods do. While a
// mode of the library's is on, which may stand in for its functions, nothing is taken. Whatever is
// not taken goes the general way (src/anydml/arrays/_torch.py), which says why.
#pragma once

#include <utility>

#include "dlpack.hpp"
#include "failures.hpp"

namespace anydml::python {

constexpr int kHost = -1;  // as the number of a device

// What a library registers, once.
void take_tensors(nanobind::object type, nanobind::object capsule, nanobind::object keys_of,
                  nanobind::object modes, nanobind::dict forward, unsigned long long cpu_keys,
                  unsigned long long cuda_keys);

// Whether it is a tensor of the registered class; nothing else is looked at.
bool is_tensor(PyObject* object);

// Whether no mode is on that changes what the library's functions do, and no tensor has a gradient
// that goes forward.
bool tensors_are_themselves();

// A plain tensor of the registered class as an operand, and its device. False otherwise, without an
// exception.
bool tensor_of(PyObject* object, Operand& operand, int& device);

// DLPack's name of a type; false where it has none.
bool type_of(const PyArray_Descr* descr, dlpack::Type& type);

// New memory of packed strides as an operand.
bool new_operand(int rank, const npy_intp* dims, PyArray_Descr* descr, void* data,
                 Operand& operand);

// A new tensor on a device, until it is given away as an object.
class NewTensor {
 public:
  NewTensor() = default;
  ~NewTensor();
  NewTensor(NewTensor&& other) noexcept
      : managed_(std::exchange(other.managed_, nullptr)),
        handle_(std::exchange(other.handle_, nullptr)) {}
  NewTensor& operator=(NewTensor&&) = delete;

  // False where the library makes no such tensor; an exception where it has no memory.
  bool make(int rank, const npy_intp* dims, PyArray_Descr* descr, int device, Operand& operand);
  nanobind::object object();

 private:
  dlpack::ManagedVersioned* managed_ = nullptr;  // one of the two
  void* handle_ = nullptr;
};

// The stream that the library works on now.
void* stream_of(int device);

}  // namespace anydml::python

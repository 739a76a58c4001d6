// JAX's arrays, for quick calls. On the CPU they are read by the buffer protocol, which waits for
// what is being computed and refuses what is deleted, sharded or elsewhere; on a GPU by methods
// that do the same. They are made by handing over memory of this library's by DLPack.
#pragma once

#include <utility>
#include <vector>

#include "dlpack.hpp"
#include "failures.hpp"
#include "kernel.hpp"

namespace anydml::python {

constexpr int kHost = -1;  // as the number of a device

}  // namespace anydml::python

namespace anydml::python::jax {

// The class of JAX's arrays, its function that makes one of a capsule, the device for it, and where
// the attribute jax_enable_x64 is.
void take(nanobind::object type, nanobind::object import, nanobind::object device,
          nanobind::object config);

// JAX's device for a GPU, by its number.
void take_gpu(int number, nanobind::object device);

bool is_array(PyObject* object);  // of exactly that class

// The number of the type that users index with; false where it cannot be told.
bool own_index_type(Int& number);

// Whether results of these types stay what they are: without jax_enable_x64 there are no 64 bits.
bool keeps(const Results::One* results, int count);

// The memory of arrays, held.
class Views {
 public:
  Views() = default;
  ~Views();
  Views(const Views&) = delete;
  Views& operator=(const Views&) = delete;

  // False without an exception where there is no such memory. `device`: kHost, or the GPU's number.
  bool take(PyObject* array, Operand& operand, int& device);

 private:
  static constexpr int kFew = 4;
  int count_ = 0;
  Py_buffer few_[kFew];
  std::vector<Py_buffer> more_;
};

// A new array, until it is given away as an object.
class NewArray {
 public:
  NewArray() = default;
  ~NewArray();
  NewArray(NewArray&& other) noexcept : managed_(std::exchange(other.managed_, nullptr)) {}
  NewArray& operator=(NewArray&&) = delete;

  bool make(const Results::One& one, int device, Operand& operand);
  nanobind::object object();

 private:
  dlpack::Managed* managed_ = nullptr;
};

}  // namespace anydml::python::jax

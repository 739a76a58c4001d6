// The arrays of a call: how its operands are read, and its results allocated. There are three
// readers: of NumPy's arrays, of PyTorch's tensors in host memory (tensors.cpp), and of memory that
// Python describes. XLA's buffers (xla_ffi.cpp) are packed and need none.
#pragma once

#include "kernel.hpp"

namespace anydml::python {

// Where a call runs: on the host, or in a stream of a GPU.
struct Place {
  int device = -1;
  void* stream = nullptr;

  bool on_device() const { return device >= 0; }
};

// An operand of a packed result; false if no kernel takes it.
bool set_result(const Results::One& one, void* data, Operand& operand);

class Library {
 public:
  virtual ~Library() = default;

  // Reads an operand. Returns what is wrong with it, without an exception, or null.
  virtual const char* read(PyObject* object, Operand& operand) = 0;
  // Reads the members of a list, which the caller holds. Not all need be operands by then.
  virtual const char* read_list(PyObject* const* members, std::size_t count, List& list) = 0;
  // Announces results of one shape and type.
  virtual void expect(const Results::One&, Int) {}
  // A packed result, and the address of its elements. Null without an exception if the library has
  // no such arrays. `number`: of a result in a list, for messages; otherwise -1.
  virtual nanobind::object allocate(const char* call, const Results::One& one, Int number,
                                    void*& data) = 0;
  // The operand of a result; false if kernels do not take it.
  virtual bool describe(PyObject*, const Results::One& one, void* data, Operand& operand) {
    return set_result(one, data, operand);
  }

  Place place;
};

class Arrays final : public Library {
 public:
  const char* read(PyObject* object, Operand& operand) override {
    return operand_of(object, operand) ? nullptr : refusal(object);
  }
  const char* read_list(PyObject* const* members, std::size_t count, List& list) override;
  void expect(const Results::One& one, Int count) override;
  nanobind::object allocate(const char* call, const Results::One& one, Int number,
                            void*& data) override;
  bool describe(PyObject* result, const Results::One&, void*, Operand& operand) override {
    return operand_of(result, operand);
  }

 private:
  static const char* refusal(PyObject* object);

  std::optional<ArrayMaker> maker_;
};

// A library whose lists are read member by member.
class Memory : public Library {
 public:
  const char* read_list(PyObject* const* members, std::size_t count, List& list) override;

 private:
  std::vector<Operand> members_;
};

// Memory that Python describes, on the host or on a GPU. An operand is a tuple (type, sizes,
// strides, unit, address, offset, bytes, ..): `type` is a dtype, or DLPack's code and bits as
// code << 8 | bits; `strides` and `offset` count units of `unit` bytes; `address` and `bytes` are
// the block that all elements must lie in (bytes of -1: unknown). Further members are ignored, and
// may keep the block alive. `make(type, shape)` allocates a packed result and returns it with its
// address.
class DescribedMemory final : public Memory {
 public:
  explicit DescribedMemory(PyObject* make = nullptr) : make_(make) {}
  const char* read(PyObject* object, Operand& operand) override;
  nanobind::object allocate(const char* call, const Results::One& one, Int number,
                            void*& data) override;

 private:
  PyObject* make_;
};

// PyTorch's tensors in host memory, by their own public methods: calling these from Python would
// cost twice the time of a small kernel.
class Tensors final : public Memory {
 public:
  const char* read(PyObject* object, Operand& operand) override;
  nanobind::object allocate(const char* call, const Results::One& one, Int number,
                            void*& data) override;

 private:
  std::vector<nanobind::object> storages_;  // keep the memory, even if a tensor is given other one
};

// The descriptor of a type by its code, or null. Borrowed: descriptors live as long as the process.
PyArray_Descr* descr_of_code(Int code);
// -1 if DLPack has no code for it.
Int code_of_descr(const PyArray_Descr* descr);
// The code of a PyTorch type; -1 for types that kernels do not take.
Int code_of_tensors(PyObject* dtype);

// Returns false, without an exception, for anything but a 64-bit integer or an address.
bool integer_of(PyObject* object, Int& number);
bool address_of(PyObject* object, void*& address);
// A tuple of integers, at most kMaxRank; its length, or -1.
int integers_of_tuple(PyObject* object, Int* integers);

// The parts of an operand, from members that have not been checked. Each returns what is wrong.
const char* set_type(PyArray_Descr* descr, Operand& operand);
// Whether the elements lie in a block of this many bytes (-1: unknown), the first at `offset`.
const char* set_address(void* address, Int offset, Int bytes, Operand& operand);
inline constexpr const char* kTooLarge = "expected at most 2^48 elements, within the address space";
// `strides` count units of `unit` bytes; null: all are 0.
template <class Size, class Stride>
const char* set_layout(Int rank, const Size* sizes, const Stride* strides, Int unit,
                       Operand& operand) {
  if (rank > kMaxRank) return "expected at most 64 axes";
  Layout& layout = operand.tensor.layout;
  layout.rank = 0;
  for (Int i = 0; i < rank; ++i) {
    Int stride = 0;
    if (strides != nullptr && __builtin_mul_overflow(Int{strides[i]}, unit, &stride))
      return kTooLarge;
    layout.push(sizes[i], stride);
  }
  return layout.normalize_checked(operand.tensor.element_size) ? nullptr : kTooLarge;
}
// In row-major order, without gaps.
template <class Size>
const char* set_packed_layout(Int rank, const Size* sizes, Operand& operand) {
  const Int* const no_strides = nullptr;
  const char* const wrong = set_layout(rank, sizes, no_strides, 0, operand);
  if (wrong == nullptr && operand.tensor.layout.count() > 0)
    set_packed_strides(operand.tensor.layout, operand.tensor.element_size);
  return wrong;
}

}  // namespace anydml::python

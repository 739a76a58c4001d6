// NumPy arrays as tensors, and new arrays on pooled memory. The only header that knows NumPy's API.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL anydml_numpy_api
#ifndef ANYDML_IMPORT_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <unistd.h>

#include <array>
#include <cstddef>

#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#include "runtime/plans.hpp"

namespace anydml::python {

// An array as an operand of a call. The constructor leaves its layout uninitialized.
struct Operand {
  Operand() {}
  Tensor tensor;
  void* data = nullptr;
  PyArray_Descr* descr = nullptr;  // borrowed
  PyArrayObject* array = nullptr;  // null if it is not a NumPy array
};

// NumPy's own types as kernels see them, by type number. A size of 0 means that no kernel takes it
// (objects, strings, records, elements of 32 bytes).
struct Element {
  DataType type = DataType::unknown;
  int size = 0;
};
inline std::array<Element, NPY_HALF + 1> numpy_types;  // filled by bind_numpy

// A type that NumPy has; null for dates and for what kernels do not know.
const TypeFacts* numpy_facts(char kind, Int size);

// An element of a type that NumPy lacks (types.hpp).
bool added_element_of(const PyArray_Descr* descr, DataType& type, int& size);

// DataType and element size of a type; false for types that no kernel takes, foreign byte order
// included.
inline bool element_of(const PyArray_Descr* descr, DataType& type, int& size) {
  const auto number = static_cast<std::size_t>(descr->type_num);
  if (number >= numpy_types.size() || numpy_types[number].size == 0)
    return added_element_of(descr, type, size);
  type = numpy_types[number].type;
  size = numpy_types[number].size;
  return PyArray_ISNBO(descr->byteorder);
}

// NumPy's descriptor of a type, borrowed: NumPy keeps its own types for the life of the process.
PyArray_Descr* numpy_descr(const char* name);

// An exact ndarray (no subclass) of such a type, without its `skip` leading dimensions, whose
// layout is valid (layout.hpp). Returns false otherwise, without an exception.
bool operand_of(PyObject* object, Operand& operand, int skip = 0);

// Bytes of an array of these sizes, or -1 if no array can have them.
Int bytes_of(int rank, const npy_intp* dims, const PyArray_Descr* descr);

// A new array of undefined contents; on pooled memory when large. Null with an exception set. Takes
// the descriptor, not only its number: the descriptor of dates holds their unit.
PyArrayObject* new_array(int rank, const npy_intp* dims, PyArray_Descr* descr);

// A copy of an array in row-major order, at an address that is a multiple of 64. Null with an
// exception set.
PyArrayObject* new_aligned_copy(PyArrayObject* array);

// Allocates many new arrays of one shape. Small ones share blocks: for a thousand arrays of a few
// kilobytes, fresh pages cost more than writing the data. An array that is kept alive keeps its
// block, so the size of a block is limited.
constexpr Int kSharedBytes = Int{1} << 20;
class ArrayMaker {
 public:
  ArrayMaker(int rank, const npy_intp* dims, PyArray_Descr* descr, Int count);
  ~ArrayMaker();
  ArrayMaker(const ArrayMaker&) = delete;
  ArrayMaker& operator=(const ArrayMaker&) = delete;
  PyArrayObject* make();  // at most `count` times; null with an exception set

 private:
  int rank_;
  const npy_intp* dims_;
  PyArray_Descr* descr_;
  Int rest_, stride_ = 0, left_ = 0;
  bool shared_ = false;
  PyObject* block_ = nullptr;
  char* next_ = nullptr;
};

// Lowest and highest byte of an operand's elements (both 0 when it has none).
struct Extent {
  std::uintptr_t begin, end;
};
Extent extent_of(const Operand& operand);
inline bool overlap(const Extent& a, const Extent& b) { return a.begin < b.end && b.begin < a.end; }

// Reacquires the interpreter lock. While the interpreter shuts down, CPython before 3.14 ends a
// thread that acquires the lock by unwinding its stack, which C++ code takes for an exception. Such
// a thread instead waits for the end of the process, as it does from 3.14 on.
inline void lock_again(PyThreadState* state) {
#if defined(__GLIBCXX__)
  try {
    PyEval_RestoreThread(state);
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
#else
  PyEval_RestoreThread(state);
#endif
}

// Runs the body without the interpreter lock if the work is large enough: below this many elements
// releasing the lock costs more than the kernel. A thread of another library (xla_ffi.cpp) does not
// hold it.
constexpr Int kUnlockElements = 8192;
constexpr Int kDriver = kUnlockElements;  // a GPU driver call, however small the work
template <class Body>
auto without_gil(Int elements, Body&& body) {
  if (elements < kUnlockElements || PyGILState_Check() == 0) return body();
  struct Unlocked {
    PyThreadState* const state = PyEval_SaveThread();
    ~Unlocked() { lock_again(state); }
  } const unlocked;
  return body();
}

}  // namespace anydml::python

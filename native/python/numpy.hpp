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

#include "../cpu/plans.hpp"

namespace anydml::python {

// What an operand is to a call. Its layout is left as it is when one is made.
struct Operand {
  Operand() {}
  Tensor tensor;
  void* data = nullptr;
  PyArray_Descr* descr = nullptr;  // borrowed
  PyArrayObject* array = nullptr;  // null where it is no NumPy array
};

// What NumPy's own types are to kernels, by their numbers; a size of 0: no kernel takes it
// (objects, strings, records, elements of 32 bytes).
struct Element {
  DataType type = DataType::unknown;
  int size = 0;
};
inline constexpr std::array<Element, NPY_HALF + 1> kElementTypes = [] {
  std::array<Element, NPY_HALF + 1> all{};
  const auto set = [&](int number, std::size_t size, DataType type = DataType::unknown) {
    if (size <= 16) all[static_cast<std::size_t>(number)] = {type, static_cast<int>(size)};
  };
  const auto integers = [&](int number, int unsigned_number, std::size_t size) {
    const auto of = [&](DataType a, DataType b, DataType c, DataType d) {
      return size == 1 ? a : size == 2 ? b : size == 4 ? c : d;
    };
    set(number, size, of(DataType::int8, DataType::int16, DataType::int32, DataType::int64));
    set(unsigned_number, size,
        of(DataType::uint8, DataType::uint16, DataType::uint32, DataType::uint64));
  };
  set(NPY_BOOL, sizeof(npy_bool));
  integers(NPY_BYTE, NPY_UBYTE, sizeof(npy_byte));
  integers(NPY_SHORT, NPY_USHORT, sizeof(npy_short));
  integers(NPY_INT, NPY_UINT, sizeof(npy_int));
  integers(NPY_LONG, NPY_ULONG, sizeof(npy_long));
  integers(NPY_LONGLONG, NPY_ULONGLONG, sizeof(npy_longlong));
  set(NPY_HALF, sizeof(npy_half), DataType::float16);
  set(NPY_FLOAT, sizeof(npy_float), DataType::float32);
  set(NPY_DOUBLE, sizeof(npy_double), DataType::float64);
  const bool same = sizeof(npy_longdouble) == sizeof(npy_double);
  set(NPY_LONGDOUBLE, sizeof(npy_longdouble), same ? DataType::float64 : DataType::unknown);
  set(NPY_CFLOAT, 2 * sizeof(npy_float));
  set(NPY_CDOUBLE, 2 * sizeof(npy_double));
  set(NPY_CLONGDOUBLE, 2 * sizeof(npy_longdouble));
  set(NPY_DATETIME, sizeof(npy_datetime));
  set(NPY_TIMEDELTA, sizeof(npy_timedelta));
  return all;
}();

// The same of a type that NumPy lacks (types.hpp).
bool added_element_of(const PyArray_Descr* descr, DataType& type, int& size);

// DataType and element size of a type; false for what no kernel takes, foreign byte order included.
inline bool element_of(const PyArray_Descr* descr, DataType& type, int& size) {
  const auto number = static_cast<std::size_t>(descr->type_num);
  if (number >= kElementTypes.size() || kElementTypes[number].size == 0)
    return added_element_of(descr, type, size);
  type = kElementTypes[number].type;
  size = kElementTypes[number].size;
  return PyArray_ISNBO(descr->byteorder);
}

// An exact ndarray (no subclass) of such a type, its leading `skip` dimensions left out, whose
// layout settles (layout.hpp). False otherwise, without an exception.
bool operand_of(PyObject* object, Operand& operand, int skip = 0);

// Bytes of an array of these sizes, or -1 when no array can have them.
Int bytes_of(int rank, const npy_intp* dims, const PyArray_Descr* descr);

// A new array of undefined contents; on pooled memory when large. Null with an exception set. The
// descriptor, not only its number: dates carry their unit in it.
PyArrayObject* new_array(int rank, const npy_intp* dims, PyArray_Descr* descr);

// Many new arrays of one shape. Small ones share blocks: a thousand arrays of a few kilobytes cost
// more in fresh pages than what is written to them. One that is kept keeps its block, so blocks are
// no larger than this.
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

// Takes the interpreter lock back. While the interpreter shuts down, CPython before 3.14 ends a
// thread that asks for the lock by unwinding its stack, through C++ that takes the unwinding for an
// exception; such a thread waits for the end of the process instead, as it does from 3.14 on.
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

// Runs the body without the interpreter lock when the work is worth it: below this many elements
// giving the lock up costs more than the kernel. A thread of another library (xla_ffi.cpp) does not
// hold it.
constexpr Int kUnlockElements = 8192;
constexpr Int kDriver = kUnlockElements;  // a call of a GPU's driver, however little the work
template <class Body>
void without_gil(Int elements, Body&& body) {
  if (elements < kUnlockElements || PyGILState_Check() == 0) {
    body();
    return;
  }
  PyThreadState* const state = PyEval_SaveThread();
  try {
    body();
  } catch (...) {
    lock_again(state);
    throw;
  }
  lock_again(state);
}

}  // namespace anydml::python

#include "numpy.hpp"

namespace anydml::python {
namespace {

// Below this many bytes NumPy's own allocator is as good and its arrays are cheaper to make.
constexpr Int kPooledBytes = Int{64} << 10;

const char* const kBlockName = "anydml.block";

void release_block(PyObject* capsule) { pool_release(PyCapsule_GetPointer(capsule, kBlockName)); }

}  // namespace

bool element_of(const PyArray_Descr* descr, DataType& type, int& size) {
  size = static_cast<int>(PyDataType_ELSIZE(descr));
  if (!PyArray_ISNBO(descr->byteorder)) return false;
  type = DataType::unknown;
  switch (descr->kind) {
    case 'f':
      if (size == 4) type = DataType::float32;
      if (size == 2) type = DataType::float16;
      if (size == 8) type = DataType::float64;
      break;
    case 'i':
      if (size == 8) type = DataType::int64;
      if (size == 4) type = DataType::int32;
      if (size == 2) type = DataType::int16;
      if (size == 1) type = DataType::int8;
      break;
    case 'u':
      if (size == 8) type = DataType::uint64;
      if (size == 4) type = DataType::uint32;
      if (size == 2) type = DataType::uint16;
      if (size == 1) type = DataType::uint8;
      break;
    case 'b':
    case 'c':
    case 'm':
    case 'M':
      break;
    default:
      return false;
  }
  return size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
}

bool operand_of(PyObject* object, Operand& operand, int skip) {
  if (!PyArray_CheckExact(object)) return false;
  auto* const array = reinterpret_cast<PyArrayObject*>(object);
  if (!element_of(PyArray_DESCR(array), operand.tensor.type, operand.tensor.element_size))
    return false;
  const int rank = PyArray_NDIM(array);
  const npy_intp* const dims = PyArray_DIMS(array);
  const npy_intp* const strides = PyArray_STRIDES(array);
  operand.tensor.layout.rank = 0;
  for (int i = skip; i < rank; ++i) operand.tensor.layout.push(dims[i], strides[i]);
  operand.data = PyArray_DATA(array);
  operand.array = array;
  return true;
}

PyArrayObject* new_array(int rank, const npy_intp* dims, PyArray_Descr* descr) {
  Py_INCREF(descr);  // PyArray_NewFromDescr takes a reference
  Int bytes = PyDataType_ELSIZE(descr);
  for (int i = 0; i < rank; ++i) {
    if (__builtin_mul_overflow(bytes, static_cast<Int>(dims[i]), &bytes)) {
      Py_DECREF(descr);
      PyErr_NoMemory();
      return nullptr;
    }
  }
  if (bytes < kPooledBytes)
    return reinterpret_cast<PyArrayObject*>(
        PyArray_NewFromDescr(&PyArray_Type, descr, rank, dims, nullptr, nullptr, 0, nullptr));
  void* const block = pool_acquire(static_cast<std::size_t>(bytes));
  if (block == nullptr) {
    Py_DECREF(descr);
    PyErr_NoMemory();
    return nullptr;
  }
  PyObject* const capsule = PyCapsule_New(block, kBlockName, release_block);
  if (capsule == nullptr) {
    Py_DECREF(descr);
    pool_release(block);
    return nullptr;
  }
  PyObject* const array = PyArray_NewFromDescr(&PyArray_Type, descr, rank, dims, nullptr, block,
                                               NPY_ARRAY_CARRAY, nullptr);
  if (array == nullptr) {
    Py_DECREF(capsule);
    return nullptr;
  }
  // Takes the reference to the capsule, also when it fails.
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), capsule) < 0) {
    Py_DECREF(array);
    return nullptr;
  }
  return reinterpret_cast<PyArrayObject*>(array);
}

Extent extent_of(const Operand& operand) {
  Int low = 0, high = operand.tensor.element_size;
  const Layout& layout = operand.tensor.layout;
  for (int i = 0; i < layout.rank; ++i) {
    if (layout.sizes[i] == 0) return {0, 0};
    const Int reach = (layout.sizes[i] - 1) * layout.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const auto base = reinterpret_cast<std::uintptr_t>(operand.data);
  return {base + static_cast<std::uintptr_t>(low), base + static_cast<std::uintptr_t>(high)};
}

}  // namespace anydml::python

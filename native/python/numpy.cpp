#include "numpy.hpp"

#include <nanobind/stl/string.h>

#include <bit>
#include <cstring>

#include "kernel.hpp"
#include "types.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

// Below this size NumPy's own allocator is as good, and its arrays are cheaper to create.
constexpr Int kPooledBytes = Int{64} << 10;

const char* const kBlockName = "anydml.block";

void release_block(PyObject* capsule) { pool_release(PyCapsule_GetPointer(capsule, kBlockName)); }

}  // namespace

const TypeFacts* numpy_facts(char kind, Int size) {
  for (const TypeFacts& facts : kElementTypes)
    if (facts.in_numpy && facts.kind == kind && facts.size == size) return &facts;
  return nullptr;
}

bool added_element_of(const PyArray_Descr* descr, DataType& type, int& size) {
  const AddedType* const added = added_type(descr);
  if (added == nullptr || !PyArray_ISNBO(descr->byteorder)) return false;
  type = added->facts->type;
  size = added->facts->size;
  return true;
}

PyArray_Descr* numpy_descr(const char* name) {
  PyArray_Descr* descr = nullptr;
  PyObject* const text = PyUnicode_FromString(name);
  if (text == nullptr || PyArray_DescrConverter(text, &descr) == NPY_FAIL)
    Py_FatalError("anydml: NumPy lacks one of its types");
  Py_DECREF(text);
  return descr;
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
  operand.data = PyArray_DATA(array);
  operand.descr = PyArray_DESCR(array);
  operand.array = array;
  unsigned long long sizes = 0, far = 0;  // the bits set in any of them
  bool empty = false;
  for (int i = skip; i < rank; i = after(i)) {
    const Int size = dims[i], stride = strides[i];
    operand.tensor.layout.push(size, stride);
    sizes |= static_cast<unsigned long long>(size);
    far |= static_cast<unsigned long long>(stride ^ (stride >> 63));
    empty |= size == 0;
  }
  // The common case: so small that no product can overflow.
  const int bits = 64 - std::countl_zero(sizes), reach = bits + 64 - std::countl_zero(far);
  static_assert((Int{1} << 48) <= kMaxElements && (Int{kMaxRank} << 51) <= kMaxReach);
  if (!empty && bits * rank <= 48 && reach <= 51) return true;
  return operand.tensor.layout.normalize_checked(operand.tensor.element_size);
}

namespace {

// A new array over a block, kept alive by `owner` (whose reference it takes, also when it fails).
PyArrayObject* array_over(void* data, int rank, const npy_intp* dims, PyArray_Descr* descr,
                          PyObject* owner) {
  Py_INCREF(descr);  // PyArray_NewFromDescr takes a reference
  PyObject* const array = PyArray_NewFromDescr(&PyArray_Type, descr, rank, dims, nullptr, data,
                                               NPY_ARRAY_CARRAY, nullptr);
  if (array == nullptr) {
    Py_DECREF(owner);
    return nullptr;
  }
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), owner) < 0) {
    Py_DECREF(array);
    return nullptr;
  }
  return reinterpret_cast<PyArrayObject*>(array);
}

// A pool block as a Python object that releases it when it is destroyed.
PyObject* new_block(Int bytes, void*& data) {
  data = pool_acquire(static_cast<std::size_t>(bytes));
  if (data == nullptr) return PyErr_NoMemory();
  PyObject* const capsule = PyCapsule_New(data, kBlockName, release_block);
  if (capsule == nullptr) pool_release(data);
  return capsule;
}

}  // namespace

Int bytes_of(int rank, const npy_intp* dims, const PyArray_Descr* descr) {
  Int bytes = PyDataType_ELSIZE(descr);
  bool empty = false, overflow = false;
  for (int i = 0; i < rank; ++i) {
    const Int size = dims[i];
    if (size == 0)
      empty = true;
    else
      overflow = size < 0 || __builtin_mul_overflow(bytes, size, &bytes) || overflow;
  }
  // NumPy multiplies the other sizes of an empty array as well.
  return overflow ? -1 : empty ? 0 : bytes;
}

PyArrayObject* new_array(int rank, const npy_intp* dims, PyArray_Descr* descr) {
  const Int bytes = bytes_of(rank, dims, descr);
  if (bytes < 0) {
    PyErr_NoMemory();
    return nullptr;
  }
  if (bytes < kPooledBytes) {
    Py_INCREF(descr);
    return reinterpret_cast<PyArrayObject*>(
        PyArray_NewFromDescr(&PyArray_Type, descr, rank, dims, nullptr, nullptr, 0, nullptr));
  }
  void* data = nullptr;
  PyObject* const block = new_block(bytes, data);
  return block == nullptr ? nullptr : array_over(data, rank, dims, descr, block);
}

PyArrayObject* new_aligned_copy(PyArrayObject* array) {
  PyArray_Descr* const descr = PyArray_DESCR(array);
  const int rank = PyArray_NDIM(array);
  const npy_intp* const dims = PyArray_DIMS(array);
  void* data = nullptr;
  PyObject* const block = new_block(bytes_of(rank, dims, descr), data);
  if (block == nullptr) return nullptr;
  PyArrayObject* const copy = array_over(data, rank, dims, descr, block);
  if (copy != nullptr && PyArray_CopyInto(copy, array) < 0) {
    Py_DECREF(copy);
    return nullptr;
  }
  return copy;
}

PyArrayObject* ArrayMaker::make() {
  if (left_ == 0) {
    const Int count = rest_ < kSharedBytes / stride_ ? rest_ : kSharedBytes / stride_;
    Py_CLEAR(block_);
    if (!shared_ || count < 2) return new_array(rank_, dims_, descr_);
    void* data = nullptr;
    block_ = new_block(count * stride_, data);
    if (block_ == nullptr) return nullptr;
    next_ = static_cast<char*>(data);
    left_ = count;
  }
  void* const data = next_;
  next_ += stride_;
  --left_;
  --rest_;
  Py_INCREF(block_);
  return array_over(data, rank_, dims_, descr_, block_);
}

ArrayMaker::ArrayMaker(int rank, const npy_intp* dims, PyArray_Descr* descr, Int count)
    : rank_(rank), dims_(dims), descr_(descr), rest_(count) {
  const Int bytes = bytes_of(rank, dims, descr);
  const bool small = bytes > 0 && bytes < kPooledBytes;
  stride_ = small ? (bytes + 63) / 64 * 64 : 64;
  shared_ = small && count >= 4 * kPooledBytes / stride_;
}

ArrayMaker::~ArrayMaker() { Py_XDECREF(block_); }

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

namespace {

// The array of a result. `call` and `purpose` appear in the message if the allocation fails.
nb::object empty(nb::tuple shape, nb::handle dtype, const char* call, const char* purpose) {
  PyArray_Descr* descr = nullptr;
  if (PyArray_DescrConverter(dtype.ptr(), &descr) == NPY_FAIL) throw nb::python_error();
  const nb::object owner = nb::steal(reinterpret_cast<PyObject*>(descr));
  if (shape.size() > static_cast<std::size_t>(kMaxRank))
    raise_argument(std::string(call) + ": expected at most 64 axes of " + purpose + ", got " +
                   std::to_string(shape.size()));
  npy_intp dims[kMaxRank];
  int rank = 0;
  for (nb::handle size : shape) {
    const Py_ssize_t number = PyLong_AsSsize_t(size.ptr());
    if (number < 0) {
      if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_OverflowError) == 0)
        throw nb::python_error();
      PyErr_Clear();
      raise_allocation(call, shape, descr, purpose);
    }
    dims[rank++] = number;
  }
  return allocated(call, purpose, rank, dims, descr);
}

// Returns the array itself, or a row-major copy at an address that is a multiple of 64. XLA reads
// such an array in place. It copies any other array on its own thread, which for a small call takes
// longer than the call. `copy` forces a copy; `call` names the call in messages.
nb::object aligned(nb::handle array, bool copy, const char* call) {
  if (!PyArray_CheckExact(array.ptr()))
    raise_argument(std::string(call) + ": expected an array of NumPy");
  auto* const source = reinterpret_cast<PyArrayObject*>(array.ptr());
  const bool in_place = PyArray_IS_C_CONTIGUOUS(source) &&
                        reinterpret_cast<std::uintptr_t>(PyArray_DATA(source)) % 64 == 0;
  if (PyArray_SIZE(source) == 0 || (in_place && !copy)) return nb::borrow(array);
  nb::object copied = nb::steal(reinterpret_cast<PyObject*>(new_aligned_copy(source)));
  if (!copied.is_valid())
    raise_set(call, static_cast<unsigned long long>(PyArray_NBYTES(source)),
              "a copy of an operand");
  return copied;
}

}  // namespace

void bind_numpy(nb::module_& module) {
  for (std::size_t number = 0; number < numpy_types.size(); ++number) {
    const PyArray_Descr* const descr = PyArray_DescrFromType(static_cast<int>(number));
    const int size = static_cast<int>(PyDataType_ELSIZE(descr));
    if (std::strchr("biufcmM", descr->kind) == nullptr || size > 16) continue;
    const TypeFacts* const facts = numpy_facts(descr->kind, size);
    numpy_types[number] = {facts == nullptr ? DataType::unknown : facts->operand_type(), size};
  }
  module.def("empty", &empty);
  module.def("aligned", &aligned);
}

}  // namespace anydml::python

#include "jax_arrays.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>

#include "../cuda/host/device.hpp"
#include "memory_call.hpp"

namespace nb = nanobind;

namespace anydml::python::jax {
namespace {

// DLPack's name of a type; false where it has none.
bool type_of(const PyArray_Descr* descr, dlpack::Type& type) {
  const Int code = code_of_descr(descr);
  if (code < 0) return false;
  type = {static_cast<std::uint8_t>(code >> 8), static_cast<std::uint8_t>(code), 1};
  return true;
}

// New memory of packed strides as an operand.
bool new_operand(int rank, const npy_intp* dims, PyArray_Descr* descr, void* data,
                 Operand& operand) {
  operand.data = data;
  operand.descr = descr;
  operand.array = nullptr;
  Layout& layout = operand.tensor.layout;
  layout.rank = 0;
  if (rank > kMaxRank || !element_of(descr, operand.tensor.type, operand.tensor.element_size))
    return false;
  for (int i = 0; i < rank; ++i) layout.push(dims[i], 0);
  set_packed_strides(layout, operand.tensor.element_size);
  return layout.settle(operand.tensor.element_size);
}

struct Library {
  PyTypeObject* type = nullptr;  // kept for the life of the process, like all that is below
  PyObject *import = nullptr, *device = nullptr, *config = nullptr, *has_64_bits = nullptr;
  PyObject *dlpack_device = nullptr, *ready = nullptr, *pointer = nullptr, *dtype = nullptr,
           *shape = nullptr;
  PyObject* gpus[16] = {};
};
Library library;

PyObject* gpu(Int number) {
  return number >= 0 && number < static_cast<Int>(std::size(library.gpus)) ? library.gpus[number]
                                                                           : nullptr;
}

// -1 where it cannot be told; no exception is set.
int has_64_bits() {
  const nb::object told = nb::steal(PyObject_GetAttr(library.config, library.has_64_bits));
  if (!told.is_valid()) PyErr_Clear();
  return told.ptr() == Py_True ? 1 : told.ptr() == Py_False ? 0 : -1;
}

// The types of the buffer protocol, as JAX spells them; the descriptors are NumPy's own.
PyArray_Descr* descr_of(const char* format) {
  struct Known {
    const char* format;
    int number;
    PyArray_Descr* descr;
  };
  static Known known[] = {
      {"f", NPY_FLOAT32, nullptr},    {"i", NPY_INT32, nullptr},      {"q", NPY_INT64, nullptr},
      {"d", NPY_FLOAT64, nullptr},    {"I", NPY_UINT32, nullptr},     {"e", NPY_FLOAT16, nullptr},
      {"b", NPY_INT8, nullptr},       {"B", NPY_UINT8, nullptr},      {"h", NPY_INT16, nullptr},
      {"H", NPY_UINT16, nullptr},     {"Q", NPY_UINT64, nullptr},     {"?", NPY_BOOL, nullptr},
      {"Zf", NPY_COMPLEX64, nullptr}, {"Zd", NPY_COMPLEX128, nullptr}};
  if (format == nullptr) return nullptr;
  if (*format == '=') ++format;
  for (Known& one : known) {
    if (std::strcmp(one.format, format) != 0) continue;
    if (one.descr == nullptr) one.descr = PyArray_DescrFromType(one.number);
    return one.descr;
  }
  return nullptr;
}

bool operand_of_view(const Py_buffer& view, Operand& operand) {
  operand.descr = descr_of(view.format);
  operand.array = nullptr;
  operand.data = view.buf;
  if (operand.descr == nullptr || view.ndim > kMaxRank || view.suboffsets != nullptr ||
      !element_of(operand.descr, operand.tensor.type, operand.tensor.element_size) ||
      view.itemsize != operand.tensor.element_size)
    return false;
  Layout& layout = operand.tensor.layout;
  layout.rank = 0;
  for (int i = 0; i < view.ndim; ++i) layout.push(view.shape[i], view.strides[i]);
  return layout.settle(operand.tensor.element_size);
}

// An array on a GPU that JAX's device is known of, its value waited for. False with or without an
// exception for any other.
bool operand_of_gpu(PyObject* array, Operand& operand, int& device) {
  const nb::object place = nb::steal(PyObject_CallMethodNoArgs(array, library.dlpack_device));
  if (!place.is_valid() || !PyTuple_Check(place.ptr()) || PyTuple_GET_SIZE(place.ptr()) != 2 ||
      PyLong_AsLong(PyTuple_GET_ITEM(place.ptr(), 0)) != dlpack::kCuda)
    return false;
  const Int number = PyLong_AsLongLong(PyTuple_GET_ITEM(place.ptr(), 1));
  if (gpu(number) == nullptr) return false;
  device = static_cast<int>(number);
  if (!nb::steal(PyObject_CallMethodNoArgs(array, library.ready)).is_valid()) return false;
  const nb::object pointer = nb::steal(PyObject_CallMethodNoArgs(array, library.pointer));
  if (!pointer.is_valid()) return false;
  const auto address = static_cast<std::uintptr_t>(PyLong_AsUnsignedLongLongMask(pointer.ptr()));
  const nb::object dtype = nb::steal(PyObject_GetAttr(array, library.dtype));
  if (!dtype.is_valid() || PyErr_Occurred() != nullptr || !PyArray_DescrCheck(dtype.ptr()))
    return false;
  const nb::object shape = nb::steal(PyObject_GetAttr(array, library.shape));
  if (!shape.is_valid() || !PyTuple_Check(shape.ptr()) || PyTuple_GET_SIZE(shape.ptr()) > kMaxRank)
    return false;
  npy_intp dims[kMaxRank];
  const auto rank = static_cast<int>(PyTuple_GET_SIZE(shape.ptr()));
  for (int i = 0; i < rank; ++i) {
    dims[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape.ptr(), i));
    if (dims[i] < 0) return false;
  }
  const int type = reinterpret_cast<PyArray_Descr*>(dtype.ptr())->type_num;
  if (type >= NPY_NTYPES_LEGACY) return false;
  PyArray_Descr* const descr = PyArray_DescrFromType(type);  // NumPy keeps it for ever
  Py_DECREF(descr);
  return new_operand(rank, dims, descr, reinterpret_cast<void*>(address), operand);
}

// Any thread gives it back, with or without the interpreter's lock.
void release(dlpack::Managed* managed) { pool_release(managed); }

// The same of memory on a GPU, which the queue holds.
struct OnGpu {
  explicit OnGpu(int device) : queue(cuda::device_at(device), nullptr) {}
  dlpack::Managed managed{};
  cuda::Queue queue;
  std::int64_t sizes[kMaxRank];
};
void release_on_gpu(dlpack::Managed* managed) { delete static_cast<OnGpu*>(managed->context); }

void drop(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor") == 0) return;  // consumed
  auto* const managed = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule, "dltensor"));
  managed->deleter(managed);
}

constexpr std::size_t kLine = 64;  // JAX copies what does not begin at one

}  // namespace

void take(nb::object type, nb::object import, nb::object device, nb::object config) {
  if (library.type != nullptr || PyType_Check(type.ptr()) == 0) return;
  library.has_64_bits = PyUnicode_InternFromString("jax_enable_x64");
  library.dlpack_device = PyUnicode_InternFromString("__dlpack_device__");
  library.ready = PyUnicode_InternFromString("block_until_ready");
  library.pointer = PyUnicode_InternFromString("unsafe_buffer_pointer");
  library.dtype = PyUnicode_InternFromString("dtype");
  library.shape = PyUnicode_InternFromString("shape");
  library.config = config.release().ptr();
  library.device = device.release().ptr();
  library.import = import.release().ptr();
  library.type = reinterpret_cast<PyTypeObject*>(type.release().ptr());
}

void take_gpu(int number, nb::object device) {
  if (library.type == nullptr || number < 0 ||
      number >= static_cast<int>(std::size(library.gpus)) || library.gpus[number] != nullptr)
    return;
  library.gpus[number] = device.release().ptr();
}

bool is_array(PyObject* object) {
  return library.type != nullptr && Py_TYPE(object) == library.type;
}

bool own_index_type(Int& number) {
  const int wide = has_64_bits();
  for (number = 0; wide >= 0; ++number)
    if (index_type(number).type == (wide != 0 ? DataType::int64 : DataType::int32)) return true;
  return false;
}

bool keeps(const Results::One* results, int count) {
  for (int i = 0; i < count; ++i) {
    const PyArray_Descr* const descr = results[i].descr;
    const bool wide = PyDataType_ELSIZE(descr) == (descr->kind == 'c' ? 16 : 8);
    if (wide && has_64_bits() != 1) return false;
  }
  return true;
}

Views::~Views() {
  for (int i = 0; i < count_; ++i) PyBuffer_Release(few_ + i);
  for (Py_buffer& view : more_) PyBuffer_Release(&view);
}

bool Views::take(PyObject* array, Operand& operand, int& device) {
  device = kHost;
  Py_buffer view;
  if (PyObject_GetBuffer(array, &view, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    const bool any = std::any_of(std::begin(library.gpus), std::end(library.gpus),
                                 [](PyObject* one) { return one != nullptr; });
    const bool taken = any && operand_of_gpu(array, operand, device);
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
    return taken;
  }
  if (count_ < kFew) {
    few_[count_++] = view;
    return operand_of_view(view, operand);
  }
  try {
    more_.push_back(view);
  } catch (...) {
    PyBuffer_Release(&view);
    throw;
  }
  return operand_of_view(view, operand);
}

NewArray::~NewArray() {
  if (managed_ != nullptr) managed_->deleter(managed_);
}

bool NewArray::make(const Results::One& one, int device, Operand& operand) {
  dlpack::Type type;
  const Int bytes = bytes_of(one.rank, one.dims, one.descr);
  if (bytes < 0 || one.rank > kMaxRank || !type_of(one.descr, type)) return false;
  if (device != kHost) {
    auto block = std::make_unique<OnGpu>(device);
    void* const data = block->queue.scratch(bytes);
    block->queue.leave();
    std::copy(one.dims, one.dims + one.rank, block->sizes);
    block->managed = {{data, dlpack::kCuda, device, one.rank, type, block->sizes, nullptr, 0},
                      block.get(),
                      release_on_gpu};
    managed_ = &block.release()->managed;
    return new_operand(one.rank, one.dims, one.descr, data, operand);
  }
  const std::size_t sizes = sizeof(std::int64_t) * static_cast<std::size_t>(one.rank);
  const std::size_t head = (sizeof(dlpack::Managed) + sizes + kLine - 1) / kLine * kLine;
  auto* const block = static_cast<char*>(pool_acquire(head + static_cast<std::size_t>(bytes)));
  if (block == nullptr) return false;  // the general way says how much for what
  managed_ = new (block) dlpack::Managed{};
  auto* const shape = new (block + sizeof(dlpack::Managed)) std::int64_t[one.rank];
  for (int i = 0; i < one.rank; ++i) shape[i] = one.dims[i];
  managed_->tensor = {block + head, dlpack::kCpu, 0, one.rank, type, shape, nullptr, 0};
  managed_->deleter = release;
  return new_operand(one.rank, one.dims, one.descr, block + head, operand);
}

nb::object NewArray::object() {
  const dlpack::Tensor& tensor = managed_->tensor;
  PyObject* const device =
      tensor.device_type == dlpack::kCuda ? library.gpus[tensor.device] : library.device;
  const nb::object capsule = nb::steal(PyCapsule_New(managed_, "dltensor", drop));
  if (!capsule.is_valid()) throw nb::python_error();
  managed_ = nullptr;
  PyObject* const arguments[] = {capsule.ptr(), device, Py_None};
  nb::object made = nb::steal(PyObject_Vectorcall(library.import, arguments, 3, nullptr));
  if (!made.is_valid()) throw nb::python_error();
  return made;
}

}  // namespace anydml::python::jax

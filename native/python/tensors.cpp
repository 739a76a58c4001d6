#include "tensors.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include "libtorch.hpp"
#include "types.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

struct Library {
  PyTypeObject* type = nullptr;  // kept for the life of the process, like all that is below
  const dlpack::Exchange* exchange = nullptr;
  PyObject *keys_of = nullptr, *modes = nullptr, *forward = nullptr, *level = nullptr;
  unsigned long long cpu_keys = 0, cuda_keys = 0;
  PyObject *raw_repr = nullptr, *requires_grad = nullptr, *untyped_storage = nullptr,
           *nbytes = nullptr, *storage_offset = nullptr;
};
Library library;

constexpr std::uint32_t kMajor = 1, kLeastMinor = 3;

// The types that kernels and NumPy have, beside the added ones; the descriptors are NumPy's own,
// kept for ever.
struct Known {
  std::uint8_t code, bits;
  int number;
};
constexpr Known kKnown[] = {{0, 8, NPY_INT8},         {0, 16, NPY_INT16},   {0, 32, NPY_INT32},
                            {0, 64, NPY_INT64},       {1, 8, NPY_UINT8},    {1, 16, NPY_UINT16},
                            {1, 32, NPY_UINT32},      {1, 64, NPY_UINT64},  {2, 16, NPY_FLOAT16},
                            {2, 32, NPY_FLOAT32},     {2, 64, NPY_FLOAT64}, {5, 64, NPY_COMPLEX64},
                            {5, 128, NPY_COMPLEX128}, {6, 8, NPY_BOOL}};

PyArray_Descr* descr_of(dlpack::Type type) {
  static PyArray_Descr* found[std::size(kKnown)] = {};
  if (type.lanes != 1) return nullptr;
  for (std::size_t i = 0; i < std::size(kKnown); ++i)
    if (kKnown[i].code == type.code && kKnown[i].bits == type.bits) {
      if (found[i] == nullptr) found[i] = PyArray_DescrFromType(kKnown[i].number);
      return found[i];
    }
  const AddedType* const added = added_type_of_dlpack(type.code, type.bits);
  return added == nullptr ? nullptr : added->descr;
}

// The library's own number of a type; -1 where it has none.
std::int32_t library_type(const PyArray_Descr* descr) {
  static std::int32_t found[std::size(kKnown)] = {};
  static constexpr const char* kFamilies[] = {"int", "uint", "float", "", "bfloat", "complex"};
  constexpr std::int32_t kUnasked = 0, kNone = -1, kFirst = 1;
  for (std::size_t i = 0; i < std::size(kKnown); ++i) {
    if (kKnown[i].number != descr->type_num) continue;
    if (found[i] == kUnasked) {
      const std::size_t code = kKnown[i].code;
      const std::string name =
          code < std::size(kFamilies) ? kFamilies[code] + std::to_string(kKnown[i].bits) : "bool";
      const std::int32_t number = libtorch::type_named(name.c_str());
      found[i] = number < 0 ? kNone : number + kFirst;
    }
    return found[i] == kNone ? -1 : found[i] - kFirst;
  }
  const AddedType* const added = added_type(descr);
  static const AddedType* latest = nullptr;
  static std::int32_t number = -1;
  if (added != latest) {
    latest = added;
    number = added == nullptr ? -1 : libtorch::type_named(added->name);
  }
  return number;
}

// What the exchange table gives, of a tensor on the CPU and of a type that NumPy has: the same, in
// half the time. False for any other.
bool tensor_by_library(PyObject* object, dlpack::Tensor& tensor) {
  constexpr std::int32_t kMostTypes = 64;
  const auto types = [] {
    std::array<dlpack::Type, kMostTypes> found{};
    for (const Known& known : kKnown) {
      PyArray_Descr* const descr = descr_of({known.code, known.bits, 1});
      const std::int32_t number = descr != nullptr ? library_type(descr) : -1;
      if (number >= 0 && number < kMostTypes)
        found[static_cast<std::size_t>(number)] = {known.code, known.bits, 1};
    }
    return found;
  };
  if (!libtorch::known()) return false;
  static const std::array<dlpack::Type, kMostTypes> known = types();
  const std::uint64_t keys = libtorch::keys_of(object), own = library.cpu_keys;
  libtorch::View view;
  if ((keys & ~own) != 0 || (keys & own & ~library.cuda_keys) == 0 ||
      !libtorch::view_of(object, view) || view.rank > kMaxRank || view.type < 0 ||
      view.type >= kMostTypes || known[static_cast<std::size_t>(view.type)].lanes == 0)
    return false;
  tensor = {view.data,
            dlpack::kCpu,
            0,
            static_cast<std::int32_t>(view.rank),
            known[static_cast<std::size_t>(view.type)],
            view.sizes,
            view.strides,
            0};
  return true;
}

// A number that a method without arguments gives; false with no exception where it fails.
template <class Number>
bool ask(PyObject* object, PyObject* method, Number& number) {
  const nb::object given = nb::steal(PyObject_CallMethodNoArgs(object, method));
  if (given.is_valid()) {
    const unsigned long long value = PyLong_AsUnsignedLongLong(given.ptr());
    if (value != ~0ull || PyErr_Occurred() == nullptr) {
      number = static_cast<Number>(value);
      return true;
    }
  }
  PyErr_Clear();
  return false;
}

// What the exchange table does not tell of a tensor. Its storage is not asked for where its keys
// are not among `plain`: what is none on its own has no storage to ask.
struct Facts {
  bool is_plain = false;
  Int storage = 0, offset = 0;
};

bool ask_methods(PyObject* object, unsigned long long plain, Facts& facts) {
  const nb::object keys = nb::steal(PyObject_CallOneArg(library.keys_of, object));
  unsigned long long bits = 0;
  if (!keys.is_valid() || !ask(keys.ptr(), library.raw_repr, bits)) return false;
  if ((bits & ~plain) != 0) return true;
  const nb::object grad = nb::steal(PyObject_GetAttr(object, library.requires_grad));
  if (grad.ptr() != Py_False) return grad.is_valid();
  const nb::object storage = nb::steal(PyObject_CallMethodNoArgs(object, library.untyped_storage));
  if (!storage.is_valid() || !ask(storage.ptr(), library.nbytes, facts.storage) ||
      !ask(object, library.storage_offset, facts.offset))
    return false;
  facts.is_plain = true;
  return true;
}

bool ask_library(PyObject* object, unsigned long long plain, Facts& facts) {
  if ((libtorch::keys_of(object) & ~plain) != 0 || libtorch::requires_grad(object)) return true;
  facts.is_plain = true;
  return libtorch::storage_of(object, facts.storage, facts.offset);
}

// Plain memory, and elements that lie within it.
bool plain(PyObject* object, const dlpack::Tensor& tensor, Int element_size) {
  Facts facts;
  const bool cuda = tensor.device_type == dlpack::kCuda;
  const unsigned long long keys = cuda ? library.cuda_keys : library.cpu_keys;
  if (!(libtorch::known() ? ask_library : ask_methods)(object, keys, facts)) {
    PyErr_Clear();
    return false;
  }
  if (!facts.is_plain) return false;
  Int last = facts.offset;
  for (int i = 0; i < tensor.rank; ++i) {
    if (tensor.sizes[i] == 0) return true;
    Int far;
    if (__builtin_mul_overflow(tensor.sizes[i] - 1, tensor.strides[i], &far) ||
        __builtin_add_overflow(last, far, &last))
      return false;
  }
  Int end;
  return !__builtin_mul_overflow(last + 1, element_size, &end) && end <= facts.storage;
}

bool operand_of_dlpack(const dlpack::Tensor& tensor, Operand& operand, int& device) {
  if (tensor.device_type == dlpack::kCpu)
    device = kHost;
  else if (tensor.device_type == dlpack::kCuda)
    device = tensor.device;
  else
    return false;
  operand.descr = descr_of(tensor.type);
  operand.array = nullptr;
  if (operand.descr == nullptr || tensor.rank > kMaxRank || tensor.strides == nullptr ||
      !element_of(operand.descr, operand.tensor.type, operand.tensor.element_size))
    return false;
  Layout& layout = operand.tensor.layout;
  layout.rank = 0;
  for (int i = 0; i < tensor.rank; ++i) {
    Int stride;
    if (__builtin_mul_overflow(Int{tensor.strides[i]}, Int{operand.tensor.element_size}, &stride))
      return false;
    layout.push(tensor.sizes[i], stride);
  }
  operand.data = static_cast<char*>(tensor.data) + tensor.offset;
  if (!layout.settle(operand.tensor.element_size)) return false;
  if (layout.count() == 0) return true;
  if (tensor.data == nullptr) return false;
  // Kernels on a GPU read elements where they are aligned.
  const auto size = static_cast<std::uintptr_t>(std::min(operand.tensor.element_size, 8));
  return device == kHost || reinterpret_cast<std::uintptr_t>(operand.data) % size == 0;
}

}  // namespace

bool type_of(const PyArray_Descr* descr, dlpack::Type& type) {
  for (const Known& known : kKnown)
    if (known.number == descr->type_num) {
      type = {known.code, known.bits, 1};
      return true;
    }
  const AddedType* const added = added_type(descr);
  if (added == nullptr) return false;
  type = {added->dlpack_code, static_cast<std::uint8_t>(8 * added->size), 1};
  return true;
}

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

void take_tensors(nb::object type, nb::object capsule, nb::object keys_of, nb::object modes,
                  nb::dict forward, unsigned long long cpu_keys, unsigned long long cuda_keys) {
  if (library.exchange != nullptr || PyType_Check(type.ptr()) == 0) return;
  auto* exchange = static_cast<const dlpack::Exchange*>(
      PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (exchange == nullptr) throw nb::python_error();
  if (exchange->version.major != kMajor || exchange->version.minor < kLeastMinor ||
      exchange->allocate == nullptr || exchange->object_of == nullptr ||
      exchange->tensor_of == nullptr || exchange->current_stream == nullptr)
    return;
  library.raw_repr = PyUnicode_InternFromString("raw_repr");
  library.requires_grad = PyUnicode_InternFromString("requires_grad");
  library.untyped_storage = PyUnicode_InternFromString("untyped_storage");
  library.nbytes = PyUnicode_InternFromString("nbytes");
  library.storage_offset = PyUnicode_InternFromString("storage_offset");
  library.cpu_keys = cpu_keys;
  library.cuda_keys = cuda_keys;
  library.keys_of = keys_of.release().ptr();
  library.modes = modes.release().ptr();
  library.forward = forward.release().ptr();
  library.level = PyUnicode_InternFromString("_current_level");
  library.type = reinterpret_cast<PyTypeObject*>(type.release().ptr());
  library.exchange = exchange;
}

bool is_tensor(PyObject* object) {
  return library.type != nullptr && Py_TYPE(object) == library.type;
}

bool tensors_are_themselves() {
  // Below 0 no tensor has a gradient that goes forward.
  PyObject* const level = PyDict_GetItemWithError(library.forward, library.level);
  if (level == nullptr) PyErr_Clear();
  if (level == nullptr || !PyLong_CheckExact(level) || PyLong_AsLong(level) >= 0) return false;
  const nb::object count = nb::steal(PyObject_CallNoArgs(library.modes));
  if (!count.is_valid()) PyErr_Clear();
  return count.is_valid() && PyLong_CheckExact(count.ptr()) && PyLong_AsLong(count.ptr()) == 0;
}

bool tensor_of(PyObject* object, Operand& operand, int& device) {
  if (!is_tensor(object)) return false;
  // The table fails slowly for what has no memory.
  if (libtorch::known() &&
      (libtorch::keys_of(object) & ~(library.cpu_keys | library.cuda_keys)) != 0)
    return false;
  dlpack::Tensor tensor{};
  if (!tensor_by_library(object, tensor) && library.exchange->tensor_of(object, &tensor) != 0) {
    PyErr_Clear();
    return false;
  }
  return operand_of_dlpack(tensor, operand, device) &&
         plain(object, tensor, operand.tensor.element_size);
}

NewTensor::~NewTensor() {
  if (handle_ != nullptr) libtorch::release(handle_);
  if (managed_ != nullptr && managed_->deleter != nullptr) managed_->deleter(managed_);
}

bool NewTensor::make(int rank, const npy_intp* dims, PyArray_Descr* descr, int device,
                     Operand& operand) {
  std::int64_t sizes[2 * kMaxRank];
  for (int i = 0; i < rank; ++i) sizes[i] = dims[i];
  const std::int32_t type = libtorch::known() ? library_type(descr) : -1;
  if (type >= 0) {
    void* data = nullptr;
    handle_ = libtorch::make(rank, sizes, type, device, data);
    return handle_ != nullptr && new_operand(rank, dims, descr, data, operand);
  }
  dlpack::Tensor like{};
  like.device_type = device == kHost ? dlpack::kCpu : dlpack::kCuda;
  like.device = device == kHost ? 0 : device;
  like.rank = rank;
  like.sizes = sizes;
  if (!type_of(descr, like.type)) return false;
  const auto ignore = [](void*, const char*, const char*) {};
  if (library.exchange->allocate(&like, &managed_, nullptr, ignore) != 0 || managed_ == nullptr) {
    PyErr_Clear();
    managed_ = nullptr;
    return false;  // the general way says how much for what
  }
  int there = kHost;
  return operand_of_dlpack(managed_->tensor, operand, there) && there == device;
}

nb::object NewTensor::object() {
  if (handle_ != nullptr) return libtorch::object_of(std::exchange(handle_, nullptr));
  void* object = nullptr;
  if (library.exchange->object_of(std::exchange(managed_, nullptr), &object) != 0)
    throw nb::python_error();
  return nb::steal(static_cast<PyObject*>(object));
}

void* stream_of(int device) {
  void* stream = nullptr;
  if (library.exchange->current_stream(dlpack::kCuda, device, &stream) != 0)
    throw nb::python_error();
  return stream;
}

}  // namespace anydml::python

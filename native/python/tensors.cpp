// Tensors of PyTorch: operands and results of calls (library.hpp).
#include <vector>

#include "dlpack.hpp"
#include "library.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

constexpr std::uint32_t kMajor = 1;  // of the exchange table

// What is known of PyTorch, kept for the life of the process.
struct PyTorch {
  const dlpack::Exchange* exchange = nullptr;
  PyObject *empty_strided = nullptr, *keywords = nullptr;
  std::vector<std::pair<Int, PyObject*>> types;
  PyObject *untyped_storage, *nbytes, *data_ptr;
};
PyTorch pytorch;

nb::object call(PyObject* object, PyObject* method) {
  return nb::steal(PyObject_CallMethodNoArgs(object, method));
}

// By DLPack's exchange table. The table checks nothing, and another thread may have set other
// memory than the storage's, so its answer is compared with the storage.
bool read_by_table(PyObject* tensor, void* address, Int bytes, Operand& operand) {
  dlpack::Tensor found{};
  if (pytorch.exchange->tensor_of(tensor, &found) != 0 || found.device_type != dlpack::kCpu ||
      found.type.lanes != 1 || found.rank > kMaxRank || found.strides == nullptr)
    return false;
  const Int code = Int{found.type.code} << 8 | found.type.bits;
  Int offset;
  if (set_type(descr_of_code(code), operand) != nullptr ||
      set_layout(found.rank, found.sizes, found.strides, operand.tensor.element_size, operand) !=
          nullptr)
    return false;
  void* const data = static_cast<char*>(found.data) + found.offset;
  return !__builtin_sub_overflow(reinterpret_cast<Int>(data), reinterpret_cast<Int>(address),
                                 &offset) &&
         set_address(address, offset, bytes, operand) == nullptr;
}

bool read_tensor(PyObject* tensor, Operand& operand, nb::object& storage) {
  if (pytorch.exchange == nullptr) return false;
  storage = call(tensor, pytorch.untyped_storage);
  if (!storage.is_valid()) return false;
  Int size;
  void* address;
  const nb::object bytes = call(storage.ptr(), pytorch.nbytes);
  const nb::object pointer = call(storage.ptr(), pytorch.data_ptr);
  return bytes.is_valid() && integer_of(bytes.ptr(), size) && pointer.is_valid() &&
         address_of(pointer.ptr(), address) && read_by_table(tensor, address, size, operand);
}

// use_tensors(empty_strided, codes, table): `torch.empty_strided`, the code of each type that
// kernels take, and the capsule of DLPack's exchange table, or None if PyTorch has none.
void use_tensors(nb::object empty_strided, nb::dict codes, nb::object table) {
  pytorch.exchange = nullptr;
  if (!table.is_none()) {
    auto* const exchange = static_cast<const dlpack::Exchange*>(
        PyCapsule_GetPointer(table.ptr(), "dlpack_exchange_api"));
    if (exchange == nullptr) throw nb::python_error();
    if (exchange->version.major == kMajor) pytorch.exchange = exchange;
  }
  if (pytorch.empty_strided != nullptr) return;
  const auto name = [](const char* text) { return PyUnicode_InternFromString(text); };
  pytorch.untyped_storage = name("untyped_storage");
  pytorch.nbytes = name("nbytes");
  pytorch.data_ptr = name("data_ptr");
  pytorch.keywords = PyTuple_Pack(1, name("dtype"));
  if (pytorch.keywords == nullptr) throw nb::python_error();
  for (auto [dtype, code] : codes)
    pytorch.types.emplace_back(nb::cast<Int>(code), nb::borrow(dtype).release().ptr());
  pytorch.empty_strided = empty_strided.release().ptr();
}

// Whether all tensors have a storage; tensors that a transformation traces have none.
bool have_storage(nb::handle tensors) {
  const nb::object held = nb::steal(PySequence_Fast(tensors.ptr(), "expected a sequence"));
  if (!held.is_valid()) throw nb::python_error();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(held.ptr()); ++i) {
    PyObject* const tensor = PySequence_Fast_GET_ITEM(held.ptr(), i);
    if (call(tensor, pytorch.untyped_storage).is_valid()) continue;
    PyErr_Clear();
    return false;
  }
  return true;
}

// The address of PyTorch's current stream of a GPU; None if there is no table.
nb::object stream_of(int device) {
  void* stream = nullptr;
  if (pytorch.exchange != nullptr &&
      pytorch.exchange->current_stream(dlpack::kCuda, device, &stream) == 0)
    return nb::int_(reinterpret_cast<std::uintptr_t>(stream));
  PyErr_Clear();
  return nb::none();
}

}  // namespace

Int code_of_tensors(PyObject* dtype) {
  for (const auto& [code, type] : pytorch.types)
    if (type == dtype) return code;
  return -1;
}

const char* Tensors::read(PyObject* tensor, Operand& operand) {
  if (read_tensor(tensor, operand, storages_.emplace_back())) return nullptr;
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  return "expected a tensor in host memory";
}

nb::object Tensors::allocate(const char*, const Results::One& one, Int, void*& data) {
  const Int code = code_of_descr(one.descr);
  PyObject* dtype = nullptr;
  for (const auto& [known, type] : pytorch.types)
    if (known == code) dtype = type;
  if (dtype == nullptr) return {};
  const nb::object sizes = nb::steal(PyTuple_New(one.rank));
  const nb::object strides = nb::steal(PyTuple_New(one.rank));
  if (!sizes.is_valid() || !strides.is_valid()) throw nb::python_error();
  Py_ssize_t step = 1;
  for (int i = one.rank - 1; i >= 0; --i) {
    PyObject *const size = PyLong_FromSsize_t(one.dims[i]), *const stride =
                                                                PyLong_FromSsize_t(step);
    if (size == nullptr || stride == nullptr) throw nb::python_error();
    PyTuple_SET_ITEM(sizes.ptr(), i, size);
    PyTuple_SET_ITEM(strides.ptr(), i, stride);
    if (one.dims[i] > 1 && __builtin_mul_overflow(step, one.dims[i], &step)) return {};
  }
  PyObject* const arguments[] = {nullptr, sizes.ptr(), strides.ptr(), dtype};
  nb::object result = nb::steal(PyObject_Vectorcall(
      pytorch.empty_strided, arguments + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, pytorch.keywords));
  if (!result.is_valid()) throw nb::python_error();
  const nb::object pointer = call(result.ptr(), pytorch.data_ptr);
  if (!pointer.is_valid() || !address_of(pointer.ptr(), data)) throw nb::python_error();
  return result;
}

void bind_tensors(nb::module_& module) {
  module.def("use_tensors", &use_tensors, nb::arg(), nb::arg(), nb::arg().none());
  module.def("have_storage", &have_storage);
  module.def("stream_of", &stream_of);
}

}  // namespace anydml::python

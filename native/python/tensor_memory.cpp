#include "tensor_memory.hpp"

#include <vector>

#include "dlpack.hpp"
#include "memory_call.hpp"

namespace nb = nanobind;

namespace anydml::python::tensors {
namespace {

constexpr std::uint32_t kMajor = 1;  // of the exchange table

struct Library {  // kept for the life of the process
  const dlpack::Exchange* exchange = nullptr;
  PyObject *empty_strided = nullptr, *keywords = nullptr;
  std::vector<std::pair<Int, PyObject*>> types;
  PyObject *untyped_storage, *nbytes, *data_ptr, *storage_offset, *stride, *shape, *dtype;
};
Library library;

nb::object call(PyObject* object, PyObject* method) {
  return nb::steal(PyObject_CallMethodNoArgs(object, method));
}

bool number(const nb::object& value, Int& result) {
  if (!value.is_valid() || !PyLong_CheckExact(value.ptr())) return false;
  int overflow = 0;
  result = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  return overflow == 0;
}

// Layout and type as the tensor's own methods return them.
bool read_by_methods(PyObject* tensor, Block& block, nb::object (&held)[2]) {
  const nb::object dtype = nb::steal(PyObject_GetAttr(tensor, library.dtype));
  held[0] = nb::steal(PyObject_GetAttr(tensor, library.shape));
  held[1] = call(tensor, library.stride);
  if (!dtype.is_valid() || !held[0].is_valid() || !held[1].is_valid() ||
      !number(call(tensor, library.storage_offset), block.offset))
    return false;
  block.code = code_of(dtype.ptr());
  block.sizes = held[0].ptr();
  block.strides = held[1].ptr();
  return true;
}

// The same by DLPack's exchange table, in a fifth of the time.
bool read_by_table(PyObject* tensor, Operand& operand, char* address, Int bytes) {
  dlpack::Tensor found{};
  if (library.exchange->tensor_of(tensor, &found) != 0 || found.device_type != dlpack::kCpu ||
      found.type.lanes != 1 || found.rank > kMaxRank || found.strides == nullptr)
    return false;
  operand.array = nullptr;
  operand.descr = descr_of_code(Int{found.type.code} << 8 | found.type.bits);
  Tensor& own = operand.tensor;
  if (operand.descr == nullptr || !element_of(operand.descr, own.type, own.element_size))
    return false;
  own.layout.rank = 0;
  for (int i = 0; i < found.rank; ++i) {
    Int stride;
    if (__builtin_mul_overflow(Int{found.strides[i]}, Int{own.element_size}, &stride)) return false;
    own.layout.push(found.sizes[i], stride);
  }
  operand.data = static_cast<char*>(found.data) + found.offset;
  if (!own.layout.normalize_checked(own.element_size)) return false;
  if (own.layout.count() == 0) return true;
  Int offset;  // another thread may have set other memory than the storage's
  return !__builtin_sub_overflow(reinterpret_cast<Int>(operand.data),
                                 reinterpret_cast<Int>(address), &offset) &&
         address != nullptr && lies_within(operand, offset, bytes);
}

bool read(PyObject* tensor, Operand& operand, nb::object& storage) {
  storage = call(tensor, library.untyped_storage);
  Int bytes = 0, address = 0;
  if (!storage.is_valid() || !number(call(storage.ptr(), library.nbytes), bytes) ||
      !number(call(storage.ptr(), library.data_ptr), address))
    return false;
  if (library.exchange != nullptr)
    return read_by_table(tensor, operand, reinterpret_cast<char*>(address), bytes);
  nb::object held[2];
  Block block{0, nullptr, nullptr, 0, reinterpret_cast<void*>(address), 0, bytes};
  return read_by_methods(tensor, block, held) && set_operand(block, operand);
}

}  // namespace

void use(nb::object empty_strided, nb::dict codes, nb::object table) {
  library.exchange = nullptr;
  if (!table.is_none()) {
    auto* const exchange = static_cast<const dlpack::Exchange*>(
        PyCapsule_GetPointer(table.ptr(), "dlpack_exchange_api"));
    if (exchange == nullptr) throw nb::python_error();
    if (exchange->version.major == kMajor) library.exchange = exchange;
  }
  if (library.empty_strided != nullptr) return;
  const auto name = [](const char* text) { return PyUnicode_InternFromString(text); };
  library.untyped_storage = name("untyped_storage");
  library.nbytes = name("nbytes");
  library.data_ptr = name("data_ptr");
  library.storage_offset = name("storage_offset");
  library.stride = name("stride");
  library.shape = name("shape");
  library.dtype = name("dtype");
  library.keywords = PyTuple_Pack(1, library.dtype);
  if (library.keywords == nullptr) throw nb::python_error();
  for (auto [dtype, code] : codes)
    library.types.emplace_back(nb::cast<Int>(code), nb::borrow(dtype).release().ptr());
  library.empty_strided = empty_strided.release().ptr();
}

Int code_of(PyObject* dtype) {
  for (const auto& [code, type] : library.types)
    if (type == dtype) return code;
  return -1;
}

bool operand_of(PyObject* tensor, Operand& operand, nb::object& storage) {
  if (library.empty_strided != nullptr && read(tensor, operand, storage)) return true;
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  return false;
}

bool have_storage(nb::handle tensors) {
  const nb::object held = nb::steal(PySequence_Fast(tensors.ptr(), "expected a sequence"));
  if (!held.is_valid()) throw nb::python_error();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(held.ptr()); ++i) {
    PyObject* const tensor = PySequence_Fast_GET_ITEM(held.ptr(), i);
    if (call(tensor, library.untyped_storage).is_valid()) continue;
    PyErr_Clear();
    return false;
  }
  return true;
}

nb::object stream_of(int device) {
  void* stream = nullptr;
  if (library.exchange != nullptr &&
      library.exchange->current_stream(dlpack::kCuda, device, &stream) == 0)
    return nb::int_(reinterpret_cast<std::uintptr_t>(stream));
  PyErr_Clear();
  return nb::none();
}

nb::object make(const Results::One& one, void*& data) {
  const Int code = code_of_descr(one.descr);
  PyObject* dtype = nullptr;
  for (const auto& [known, type] : library.types)
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
      library.empty_strided, arguments + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, library.keywords));
  if (!result.is_valid()) throw nb::python_error();
  Int address;
  if (!number(call(result.ptr(), library.data_ptr), address)) throw nb::python_error();
  data = reinterpret_cast<void*>(address);
  return result;
}

}  // namespace anydml::python::tensors

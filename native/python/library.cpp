#include "library.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <iterator>

#include "types.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

constexpr Py_ssize_t kOperandParts = 7;
constexpr const char* kType = "expected an element type that kernels take";

Int code_of(const TypeFacts& facts) { return Int{facts.dlpack_code} << 8 | 8 * facts.size; }

// A GPU faults on misaligned elements, where a processor only takes a little longer.
bool is_aligned(const Operand& operand) {
  const Layout& layout = operand.tensor.layout;
  auto low_bits = reinterpret_cast<std::uintptr_t>(operand.data);
  for (int i = 0; i < layout.rank; ++i)
    if (layout.sizes[i] > 1) low_bits |= static_cast<std::uintptr_t>(layout.strides[i]);
  const auto size = static_cast<std::uintptr_t>(std::min(operand.tensor.element_size, 8));
  return layout.count() == 0 || low_bits % size == 0;
}

PyArray_Descr* descr_of(PyObject* type) {
  Int code;
  if (PyArray_DescrCheck(type)) return reinterpret_cast<PyArray_Descr*>(type);
  return integer_of(type, code) ? descr_of_code(code) : nullptr;
}

// NumPy's limit of axes, which was lower before NumPy 2.
constexpr int kLeastMaxAxes = 32;
int max_axes() {
  return PyArray_GetNDArrayCFeatureVersion() >= NPY_2_0_API_VERSION ? kMaxRank : kLeastMaxAxes;
}

}  // namespace

// ---- NumPy's arrays -----------------------------------------------------------------------------

const char* Arrays::refusal(PyObject* object) {
  DataType type;
  int size;
  const bool large =
      PyArray_CheckExact(object) &&
      element_of(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(object)), type, size);
  return large ? kTooLarge : "expected an ndarray of a supported type";
}

const char* Arrays::read_list(PyObject* const* members, std::size_t count, List& list) {
  list = {nullptr, members, count};
  return nullptr;
}

void Arrays::expect(const Results::One& one, Int count) {
  maker_.emplace(one.rank, one.dims, one.descr, count);
}

nb::object Arrays::allocate(const char* call, const Results::One& one, Int number, void*& data) {
  if (one.rank > kLeastMaxAxes && one.rank > max_axes()) return {};
  if (!maker_) {
    nb::object array = allocated(call, one.purpose, one.rank, one.dims, one.descr, number);
    data = PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr()));
    return array;
  }
  PyArrayObject* const array = maker_->make();
  if (array == nullptr)
    raise_set(call, static_cast<unsigned long long>(bytes_of(one.rank, one.dims, one.descr)),
              one.purpose);
  data = PyArray_DATA(array);
  return nb::steal(reinterpret_cast<PyObject*>(array));
}

// ---- memory -------------------------------------------------------------------------------------

const char* Memory::read_list(PyObject* const* members, std::size_t count, List& list) {
  members_ = std::vector<Operand>(count);
  for (std::size_t i = 0; i < count; ++i)
    if (const char* const wrong = read(members[i], members_[i])) return wrong;
  list = {members_.data(), nullptr, count};
  return nullptr;
}

const char* DescribedMemory::read(PyObject* object, Operand& operand) {
  constexpr const char* kParts = "expected a tuple that describes memory";
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) < kOperandParts) return kParts;
  const auto part = [&](int i) { return PyTuple_GET_ITEM(object, i); };
  Int sizes[kMaxRank], strides[kMaxRank], unit, offset, bytes;
  void* address = nullptr;
  const int rank = integers_of_tuple(part(1), sizes);
  if (rank < 0 || integers_of_tuple(part(2), strides) != rank || !integer_of(part(3), unit) ||
      !address_of(part(4), address) || !integer_of(part(5), offset) || !integer_of(part(6), bytes))
    return kParts;
  PyArray_Descr* const descr = descr_of(part(0));
  if (const char* const wrong = set_type(descr, operand)) return wrong;
  if (const char* const wrong = set_layout(rank, sizes, strides, unit, operand)) return wrong;
  if (__builtin_mul_overflow(offset, unit, &offset)) return kTooLarge;
  if (const char* const wrong = set_address(address, offset, bytes, operand)) return wrong;
  return place.on_device() && !is_aligned(operand) ? "expected aligned elements" : nullptr;
}

nb::object DescribedMemory::allocate(const char*, const Results::One& one, Int, void*& data) {
  const Int code = code_of_descr(one.descr);
  if (code < 0) return {};
  const nb::object shape = nb::steal(PyTuple_New(one.rank));
  const nb::object type = nb::steal(PyLong_FromLongLong(code));
  if (!shape.is_valid() || !type.is_valid()) throw nb::python_error();
  for (int i = 0; i < one.rank; ++i) {
    PyObject* const size = PyLong_FromSsize_t(one.dims[i]);
    if (size == nullptr) throw nb::python_error();
    PyTuple_SET_ITEM(shape.ptr(), i, size);
  }
  PyObject* const arguments[] = {nullptr, type.ptr(), shape.ptr()};
  const nb::object pair = nb::steal(
      PyObject_Vectorcall(make_, arguments + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
  if (!pair.is_valid()) throw nb::python_error();
  if (!PyTuple_Check(pair.ptr()) || PyTuple_GET_SIZE(pair.ptr()) != 2 ||
      !address_of(PyTuple_GET_ITEM(pair.ptr(), 1), data))
    raise_argument("make: expected a pair of a result and its address");
  return nb::borrow(PyTuple_GET_ITEM(pair.ptr(), 0));
}

// ---- parts of operands --------------------------------------------------------------------------

bool integer_of(PyObject* object, Int& number) {
  if (!PyLong_CheckExact(object)) return false;
  int overflow = 0;
  number = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}

bool address_of(PyObject* object, void*& address) {
  if (!PyLong_CheckExact(object)) return false;
  const unsigned long long number = PyLong_AsUnsignedLongLong(object);
  if (number == ~0ull && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return false;
  }
  address = reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
  return true;
}

int integers_of_tuple(PyObject* object, Int* integers) {
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) > kMaxRank) return -1;
  const int count = static_cast<int>(PyTuple_GET_SIZE(object));
  for (int i = 0; i < count; ++i)
    if (!integer_of(PyTuple_GET_ITEM(object, i), integers[i])) return -1;
  return count;
}

const char* set_type(PyArray_Descr* descr, Operand& operand) {
  operand.array = nullptr;
  operand.descr = descr;
  return descr != nullptr && element_of(descr, operand.tensor.type, operand.tensor.element_size)
             ? nullptr
             : kType;
}

const char* set_address(void* address, Int offset, Int bytes, Operand& operand) {
  constexpr const char* kOutside = "expected elements within their memory";
  operand.data = static_cast<char*>(address) + offset;
  const Layout& layout = operand.tensor.layout;
  if (layout.count() == 0) return nullptr;
  if (address == nullptr) return kOutside;
  if (bytes < 0) return nullptr;
  Int low = offset, high = offset;  // normalized: only sums with the offset can overflow
  for (int i = 0; i < layout.rank; ++i) {
    const Int reach = (layout.sizes[i] - 1) * layout.strides[i];
    if (__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
      return kOutside;
  }
  return low >= 0 && high <= bytes - operand.tensor.element_size ? nullptr : kOutside;
}

bool set_result(const Results::One& one, void* data, Operand& operand) {
  if (set_type(one.descr, operand) != nullptr ||
      set_packed_layout(one.rank, one.dims, operand) != nullptr)
    return false;
  operand.data = data;
  return true;
}

PyArray_Descr* descr_of_code(Int code) {
  static PyArray_Descr* found[std::size(kElementTypes)] = {};
  for (std::size_t i = 0; i < std::size(kElementTypes); ++i) {
    const TypeFacts& facts = kElementTypes[i];
    if (code != code_of(facts) || !facts.in_numpy) continue;
    if (found[i] == nullptr) found[i] = numpy_descr(facts.name);
    return found[i];
  }
  if (code < 0 || code >= Int{1} << 16) return nullptr;
  const AddedType* const added =
      added_type_of_dlpack(static_cast<std::uint8_t>(code >> 8), static_cast<std::uint8_t>(code));
  return added == nullptr ? nullptr : added->descr;
}

Int code_of_descr(const PyArray_Descr* descr) {
  if (const TypeFacts* const facts = numpy_facts(descr->kind, PyDataType_ELSIZE(descr)))
    return code_of(*facts);
  const AddedType* const added = added_type(descr);
  return added == nullptr ? -1 : code_of(*added->facts);
}

}  // namespace anydml::python

#include "added_types.hpp"

#include <nanobind/stl/string.h>

#include <bit>
#include <cstring>
#include <iterator>
#include <string>

namespace nb = nanobind;

namespace anydml::python {
namespace {

// Codes of DLPack 1.1.
AddedType added[] = {
    {"bfloat16", 2, 4, DataType::bfloat16, nullptr},
    {"float8_e3m4", 1, 7, DataType::unknown, nullptr},
    {"float8_e4m3", 1, 8, DataType::unknown, nullptr},
    {"float8_e4m3b11fnuz", 1, 9, DataType::unknown, nullptr},
    {"float8_e4m3fn", 1, 10, DataType::unknown, nullptr},
    {"float8_e4m3fnuz", 1, 11, DataType::unknown, nullptr},
    {"float8_e5m2", 1, 12, DataType::unknown, nullptr},
    {"float8_e5m2fnuz", 1, 13, DataType::unknown, nullptr},
    {"float8_e8m0fnu", 1, 14, DataType::unknown, nullptr},
};
constexpr std::size_t kAdded = std::size(added);

// Numbers of NumPy's types that stand for them: ours, then other libraries'.
struct Number {
  int type_num;
  const AddedType* type;
};
constexpr std::size_t kMostNumbers = 4 * kAdded;
Number numbers[kMostNumbers];
std::size_t number_count = 0;

// ---- what NumPy asks of a type: little, as arrays of these are only passed on -------------------

struct Scalar {
  PyObject_HEAD std::uint64_t bits;
};

template <class Bits>
PyObject* get(void* data, void*) {
  const Bits bits = load<Bits>(static_cast<const char*>(data));
  if constexpr (sizeof(Bits) == 2)
    return PyFloat_FromDouble(std::bit_cast<float>(std::uint32_t{bits} << 16));
  else
    return PyLong_FromLong(bits);
}

int set(PyObject*, void*, void*) {
  PyErr_SetString(PyExc_TypeError, "elements of this type are only copied");
  return -1;
}

// No memory of another byte order has these types: to swap it in place (from null) is nothing.
template <class Bits>
void copy_all(void* to, npy_intp to_stride, void* from, npy_intp from_stride, npy_intp count, int,
              void*) {
  if (from == nullptr) return;
  for (npy_intp i = 0; i < count; ++i)
    std::memcpy(static_cast<char*>(to) + i * to_stride,
                static_cast<const char*>(from) + i * from_stride, sizeof(Bits));
}

template <class Bits>
void copy(void* to, void* from, int swap, void* array) {
  copy_all<Bits>(to, 0, from, 0, 1, swap, array);
}

template <class Bits>
npy_bool nonzero(void* data, void*) {
  const Bits bits = load<Bits>(static_cast<const char*>(data));
  return static_cast<Bits>(sizeof(Bits) == 2 ? bits << 1 : bits) != 0 ? NPY_TRUE : NPY_FALSE;
}

template <class Bits>
PyArray_ArrFuncs* functions() {
  static PyArray_ArrFuncs made;
  PyArray_InitArrFuncs(&made);
  made.getitem = get<Bits>;
  made.setitem = set;
  made.copyswap = copy<Bits>;
  made.copyswapn = copy_all<Bits>;
  made.nonzero = nonzero<Bits>;
  return &made;
}

PyTypeObject* scalar_type(const char* name) {
  PyType_Slot slots[] = {{0, nullptr}};
  PyType_Spec spec = {name, sizeof(Scalar), 0, Py_TPFLAGS_DEFAULT, slots};
  const nb::object bases =
      nb::steal(PyTuple_Pack(1, reinterpret_cast<PyObject*>(&PyGenericArrType_Type)));
  PyObject* const type = PyType_FromSpecWithBases(&spec, bases.ptr());
  if (type == nullptr) throw nb::python_error();
  return reinterpret_cast<PyTypeObject*>(type);
}

// NumPy keeps the prototype, or a copy of it, for the life of the process.
void make(AddedType& type) {
  // A heap type keeps its name's memory on some versions of CPython only.
  auto* const name = new std::string(std::string("anydml.") + type.name);
  auto* const prototype = new PyArray_DescrProto{};
  Py_SET_REFCNT(reinterpret_cast<PyObject*>(prototype), 1);
  Py_SET_TYPE(reinterpret_cast<PyObject*>(prototype), &PyArrayDescr_Type);
  prototype->typeobj = scalar_type(name->c_str());
  // Of the kind of records: NumPy takes types of one kind and size for the same.
  prototype->kind = 'V';
  prototype->type = 'V';
  prototype->byteorder = '=';
  prototype->flags = NPY_NEEDS_PYAPI | NPY_USE_GETITEM | NPY_USE_SETITEM;
  prototype->elsize = type.size;
  prototype->alignment = type.size;
  prototype->f = type.size == 2 ? functions<std::uint16_t>() : functions<std::uint8_t>();
  prototype->hash = -1;
  const int number = PyArray_RegisterDataType(prototype);
  if (number < 0) throw nb::python_error();
  type.descr = PyArray_DescrFromType(number);
  if (type.descr == nullptr ||
      PyObject_SetAttrString(reinterpret_cast<PyObject*>(type.descr->typeobj), "dtype",
                             reinterpret_cast<PyObject*>(type.descr)) != 0)
    throw nb::python_error();
  numbers[number_count++] = {number, &type};
}

// added_types(): (NumPy's type, DLPack's code) by name.
nb::dict added_types() {
  nb::dict found;
  for (const AddedType& type : added)
    found[type.name] =
        nb::make_tuple(nb::borrow(reinterpret_cast<PyObject*>(type.descr)), type.dlpack_code);
  return found;
}

// Another library's type of the same meaning: quick calls take arrays of it from now on.
void know_added_type(nb::handle dtype, const std::string& name) {
  if (PyArray_DescrCheck(dtype.ptr()) == 0 || number_count == kMostNumbers) return;
  const auto* const descr = reinterpret_cast<const PyArray_Descr*>(dtype.ptr());
  if (added_type(descr->type_num) != nullptr) return;
  for (const AddedType& type : added)
    if (name == type.name && PyDataType_ELSIZE(descr) == type.size)
      numbers[number_count++] = {descr->type_num, &type};
}

}  // namespace

const AddedType* added_type(int type_num) {
  for (std::size_t i = 0; i < number_count; ++i)
    if (numbers[i].type_num == type_num) return numbers[i].type;
  return nullptr;
}

const AddedType* added_type_of_dlpack(std::uint8_t code, std::uint8_t bits) {
  for (const AddedType& type : added)
    if (type.dlpack_code == code && 8 * type.size == bits) return &type;
  return nullptr;
}

void bind_added_types(nb::module_& module) {
  for (AddedType& type : added) make(type);
  module.def("added_types", &added_types);
  module.def("know_added_type", &know_added_type);
}

}  // namespace anydml::python

#include "types.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "dlpack.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

constexpr std::size_t kAdded =
    std::size(kElementTypes) - static_cast<std::size_t>(std::ranges::count_if(
                                   kElementTypes, [](const TypeFacts& f) { return f.in_numpy; }));
AddedType added[kAdded];

// Records of one field, with a name that user records do not have by accident.
PyArray_Descr* record_of(const AddedType& type) {
  const nb::tuple field = nb::make_tuple(std::string("anydml.") + type.facts->name,
                                         type.facts->size == 2 ? "u2" : "u1");
  PyArray_Descr* descr = nullptr;
  nb::list fields;
  fields.append(field);
  if (PyArray_DescrAlignConverter(fields.ptr(), &descr) == NPY_FAIL) throw nb::python_error();
  return descr;
}

// added_types(): (this library's dtype, DLPack's code) by name.
nb::dict added_types() {
  nb::dict found;
  for (const AddedType& type : added)
    found[type.facts->name] = nb::make_tuple(nb::borrow(reinterpret_cast<PyObject*>(type.descr)),
                                             type.facts->dlpack_code);
  return found;
}

// tables(): the tables of native/common, for Python.
nb::dict tables() {
  nb::list types, index_types, padding_modes, interpolations, index_modes, reductions;
  for (const TypeFacts& facts : kElementTypes)
    types.append(nb::make_tuple(facts.name, static_cast<int>(facts.type), facts.size,
                                std::string(1, facts.kind), facts.in_numpy));
#define ANYDML_INDEX_TYPE(name) index_types.append(#name);
#include "common/types.def"
#define ANYDML_PADDING_MODE(name) padding_modes.append(#name);
#define ANYDML_INTERPOLATION(name) interpolations.append(#name);
#define ANYDML_INDEX_MODE(name) index_modes.append(#name);
#define ANYDML_REDUCTION(name, synonym) reductions.append(nb::make_tuple(#name, #synonym));
#include "common/modes.def"
  nb::dict all;
  all["types"] = types;
  all["index_types"] = index_types;
  all["padding_modes"] = padding_modes;
  all["interpolations"] = interpolations;
  all["index_modes"] = index_modes;
  all["reductions"] = reductions;
  all["most_elements"] = kMaxElements;
  return all;
}

// Registers ml_dtypes' equivalent of a type: function calls take its arrays from then on.
void know_added_type(nb::handle dtype, const std::string& name) {
  if (PyArray_DescrCheck(dtype.ptr()) == 0) return;
  const auto* const descr = reinterpret_cast<const PyArray_Descr*>(dtype.ptr());
  for (AddedType& type : added)
    if (name == type.facts->name && PyDataType_ELSIZE(descr) == type.facts->size &&
        descr->type_num >= NPY_USERDEF)
      type.user_number = descr->type_num;
}

// The tensor of a DLPack capsule; null for any other object, and for unknown versions.
dlpack::Tensor* tensor_in(PyObject* capsule) {
  constexpr const char *kPlain = "dltensor", *kVersioned = "dltensor_versioned";
  if (PyCapsule_IsValid(capsule, kPlain) != 0)
    return &static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule, kPlain))->tensor;
  if (PyCapsule_IsValid(capsule, kVersioned) == 0) return nullptr;
  auto* const managed =
      static_cast<dlpack::ManagedVersioned*>(PyCapsule_GetPointer(capsule, kVersioned));
  return managed->version.major == 1 ? &managed->tensor : nullptr;
}

// as_integers(capsule): retypes a capsule of an added type as unsigned integers, which NumPy can
// import, and returns the type's name. For any other type it returns None and changes nothing.
nb::object as_integers(nb::handle capsule) {
  dlpack::Tensor* const tensor = tensor_in(capsule.ptr());
  if (tensor == nullptr || tensor->type.lanes != 1) return nb::none();
  const AddedType* const type = added_type_of_dlpack(tensor->type.code, tensor->type.bits);
  if (type == nullptr) return nb::none();
  tensor->type.code = 1;
  return nb::str(type->facts->name);
}

PyObject* known = nullptr;  // descriptors by the objects that stand for them
constexpr Py_ssize_t kMaxEntries = 256;

// Whether the object can be cached: hashing and comparing it runs no user code, and its meaning
// never changes.
bool is_fixed(PyObject* object) {
  return PyUnicode_CheckExact(object) || PyArray_DescrCheck(object) ||
         std::strcmp(Py_TYPE(object)->tp_name, "torch.dtype") == 0 ||
         (Py_TYPE(object) == &PyType_Type &&
          PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(object), &PyGenericArrType_Type) != 0 &&
          (reinterpret_cast<PyTypeObject*>(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0);
}

// Whether an integer type can represent a number.
bool can_index(char kind, int size, Int number) {
  if (kind == 'i') return size == 8 || number >> (8 * size - 1) == (number < 0 ? -1 : 0);
  return number >= 0 && (size == 8 || number >> (8 * size) == 0);
}

}  // namespace

const AddedType* added_type(const PyArray_Descr* descr) {
  if (descr->type_num != NPY_VOID && descr->type_num < NPY_USERDEF) return nullptr;
  for (const AddedType& type : added)
    if (descr == type.descr || descr->type_num == type.user_number) return &type;
  if (descr->type_num != NPY_VOID) return nullptr;
  for (const AddedType& type : added)
    if (PyDataType_ELSIZE(descr) == type.facts->size &&
        PyArray_EquivTypes(const_cast<PyArray_Descr*>(descr), type.descr) != 0)
      return &type;
  return nullptr;
}

const AddedType* added_type_of_dlpack(std::uint8_t code, std::uint8_t bits) {
  for (const AddedType& type : added)
    if (type.facts->dlpack_code == code && 8 * type.facts->size == bits) return &type;
  return nullptr;
}

void bind_types(nb::module_& module) {
  AddedType* next = added;
  for (const TypeFacts& facts : kElementTypes) {
    if (facts.in_numpy) continue;
    next->facts = &facts;
    next->descr = record_of(*next);
    ++next;
  }
  module.def("added_types", &added_types);
  module.def("tables", &tables);
  module.def("know_added_type", &know_added_type);
  module.def("know_type", &know_type);
  module.def("as_integers", &as_integers);
}

void know_type(nb::handle object, nb::handle dtype) {
  if (!is_fixed(object.ptr()) || PyArray_DescrCheck(dtype.ptr()) == 0) return;
  // Each library has its own type for an added one: the general path returns it.
  if (added_type(reinterpret_cast<PyArray_Descr*>(dtype.ptr())) != nullptr) return;
  if (known == nullptr) known = PyDict_New();
  if (known == nullptr) throw nb::python_error();
  if (PyDict_Size(known) < kMaxEntries && PyDict_SetItem(known, object.ptr(), dtype.ptr()) != 0)
    throw nb::python_error();
}

PyArray_Descr* known_type(PyObject* object) {
  if (known == nullptr || !is_fixed(object)) return nullptr;
  PyObject* const found = PyDict_GetItemWithError(known, object);
  if (found == nullptr) PyErr_Clear();
  return reinterpret_cast<PyArray_Descr*>(found);
}

bool constant_of(PyObject* object, const PyArray_Descr* descr, Int& bits) {
  const int size = static_cast<int>(PyDataType_ELSIZE(descr));
  const char kind = descr->kind;
  double number;
  if (PyLong_CheckExact(object)) {
    int overflow = 0;
    bits = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0) return false;
    if (bits == 0) {  // not every type of 8 bits has a zero
      const AddedType* const added = added_type(descr);
      return std::strchr("fiubc", kind) != nullptr ||
             (added != nullptr && added->facts->type == DataType::bfloat16);
    }
    if (size > 8) return false;
    if (kind == 'i' || kind == 'u') return can_index(kind, size, bits);
    number = static_cast<double>(bits);
    if (bits > Int{1} << 24 || bits < -(Int{1} << 24)) return false;  // may be rounded twice
  } else if (PyFloat_CheckExact(object)) {
    number = PyFloat_AS_DOUBLE(object);
    if (kind == 'i' || kind == 'u') {  // an integer, of those that are far from the limits
      if (std::trunc(number) != number || std::abs(number) >= 0x1p62) return false;
      bits = static_cast<Int>(number);
      return can_index(kind, size, bits);
    }
  } else {
    return false;
  }
  if (kind != 'f' || !std::isfinite(number) || (size != 4 && size != 8)) return false;
  if (size == 8) {
    bits = std::bit_cast<Int>(number);
    return true;
  }
  if (std::abs(number) > static_cast<double>(std::numeric_limits<float>::max())) return false;
  bits = static_cast<Int>(std::bit_cast<std::uint32_t>(static_cast<float>(number)));
  return true;
}

}  // namespace anydml::python

// What a quick call is given: a user's values, as operands and numbers, or not at all.
#pragma once

#include <vector>

#include "jax_arrays.hpp"
#include "kernel.hpp"
#include "tensors.hpp"

namespace anydml::python {

// The position of a type of indices; -1 for what is none.
inline Int index_type_of(PyObject* object) {
  if (object == Py_None) return 0;
  if (PyUnicode_CheckExact(object)) return code_of(object, kIndexTypes);
  for (Int i = 0; i < static_cast<Int>(kIndexTypes.size()); ++i) {
    PyArray_Descr* const descr = index_type(i).descr;
    if (object == reinterpret_cast<PyObject*>(descr) ||
        object == reinterpret_cast<PyObject*>(descr->typeobj))
      return i;
  }
  return -1;
}

inline bool number_of(const Argument& argument, PyObject* object, Int& number) {
  switch (argument.kind) {
    case Argument::integer: {
      if (!PyLong_CheckExact(object)) return false;  // a bool is none
      int overflow = 0;
      number = PyLong_AsLongLongAndOverflow(object, &overflow);
      return overflow == 0;
    }
    case Argument::boolean:
      number = object == Py_True;
      return PyBool_Check(object);
    case Argument::index_type_or_none:
      number = index_type_of(object);
      return number >= 0;
    case Argument::word_or_none:
      if (object == Py_None) {
        number = 0;
        return true;
      }
      [[fallthrough]];
    case Argument::word:
      number = PyUnicode_CheckExact(object) ? code_of(object, *argument.words) : -1;
      return number >= 0;
  }
  return false;
}

// The members of a list or tuple, held: another thread, or a finalizer that runs in between, may
// take arrays out of the list.
class Held {
 public:
  Held() = default;
  ~Held() {
    for (Py_ssize_t i = 0; i < few_count_; ++i) Py_DECREF(few_[i]);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  bool hold(const char* call, PyObject* list, List& members) {
    if (!PyList_CheckExact(list) && !PyTuple_CheckExact(list)) return false;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
    members.count = static_cast<std::size_t>(count);
    if (count <= kFew) {
      PyObject** const items = PySequence_Fast_ITEMS(list);
      for (Py_ssize_t i = 0; i < count; ++i) few_[i] = Py_NewRef(items[i]);
      few_count_ = count;
      members.arrays = few_;
      return true;
    }
    many_ = nanobind::steal(PySequence_Tuple(list));
    if (!many_.is_valid()) raise_set(call, kUncounted, "the list of arrays");
    members.count = static_cast<std::size_t>(PyTuple_GET_SIZE(many_.ptr()));
    members.arrays = PySequence_Fast_ITEMS(many_.ptr());
    return true;
  }

 private:
  static constexpr Py_ssize_t kFew = 16;
  Py_ssize_t few_count_ = 0;
  PyObject* few_[kFew];
  nanobind::object many_;
};

// Tensors of a list that are taken the quick way: an operand is a kilobyte.
constexpr std::size_t kMostMembers = 1024;

// So many of a kind, a few of them without asking for memory: a small call would notice.
template <class Kind, std::size_t kFew>
class Several {
 public:
  Kind* make(std::size_t count) {
    if (count <= kFew) return few_;
    many_ = std::vector<Kind>(count);
    return many_.data();
  }

 private:
  Kind few_[kFew];
  std::vector<Kind> many_;
};

// A quick call's inputs and arguments, taken from what Python gives.
struct Given {
  Operand operands[kQuickOperands];
  List list;
  Held held;
  Int arguments[kMostNumbers];

  // Of what kind all arrays are: NumPy's, tensors on one device, or JAX's.
  enum { unknown, numpy, tensors, jax_arrays } kind = unknown;
  int device = kHost;
  Several<Operand, 8> members;  // of a list of tensors, or of JAX's arrays
  jax::Views views;

  bool take_array(PyObject* value, Operand& operand) {
    if (kind == unknown || kind == numpy) {
      if (operand_of(value, operand)) {
        kind = numpy;
        return true;
      }
      if (kind == numpy) return false;
    }
    return kind != tensors && jax::is_array(value) ? take_jax(value, operand)
                                                   : take_tensor(value, operand);
  }

  bool take_jax(PyObject* value, Operand& operand) {
    kind = jax_arrays;
    return views.take(value, operand);
  }

  bool take_tensor(PyObject* value, Operand& operand) {
    if (kind == jax_arrays || (kind == unknown && (!is_tensor(value) || !tensors_are_themselves())))
      return false;
    int there = kHost;
    if (!tensor_of(value, operand, there) || (kind == tensors && there != device)) return false;
    kind = tensors;
    device = there;
    return true;
  }

  bool take_list(const Kernel& kernel, PyObject* value) {
    if (!held.hold(kernel.name, value, list)) return false;
    if (list.count == 0 || list.count > kMostMembers ||
        !(is_tensor(list.arrays[0]) || jax::is_array(list.arrays[0])))
      return true;
    Operand* const taken = members.make(list.count);
    for (std::size_t i = 0; i < list.count; ++i)
      if (!take_array(list.arrays[i], taken[i])) return false;
    list = {taken, nullptr, list.count};
    return true;
  }

  bool take(const Kernel& kernel, PyObject* const* values) {
    for (int i = 0; i < kernel.inputs; ++i)
      if (!take_array(*values++, operands[i])) return false;
    if (kernel.list == Lists::inputs && !take_list(kernel, *values++)) return false;
    Int* next = arguments;
    for (const Argument& argument : kernel.arguments) {
      if (kind == jax_arrays && argument.kind == Argument::index_type_or_none &&
          *values == Py_None) {
        if (!jax::own_index_type(*next)) return false;
      } else if (!number_of(argument, *values, *next)) {
        return false;
      }
      ++values;
      ++next;
    }
    return true;
  }
};

}  // namespace anydml::python

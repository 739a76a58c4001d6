// What a quick call is given: a user's values, as operands and numbers, or not at all.
#pragma once

#include <new>
#include <optional>
#include <vector>

#include "cupy_arrays.hpp"
#include "jax_arrays.hpp"
#include "kernel.hpp"
#include "tensors.hpp"
#include "types.hpp"

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
    default:  // Given::take_other
      return false;
  }
}

// Exact ints, alone, in a list or tuple, or in pairs.
[[gnu::noinline]] inline bool integers_of(PyObject* const& object, Integers& integers) {
  const auto is_list = [](PyObject* o) { return PyList_CheckExact(o) || PyTuple_CheckExact(o); };
  if (!is_list(object)) {
    integers = {object == Py_None ? Integers::none : Integers::number, object != Py_None, &object};
    return object == Py_None || PyLong_CheckExact(object);
  }
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
  PyObject* const* const items = PySequence_Fast_ITEMS(object);
  const bool pairs = count > 0 && is_list(items[0]);
  if (count > (pairs ? kMaxRank : 2 * kMaxRank)) return false;
  const int numbers = static_cast<int>(pairs ? 2 * count : count);
  integers = {pairs ? Integers::pairs : Integers::list, numbers, items};
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!pairs && !PyLong_CheckExact(items[i])) return false;
    if (!pairs) continue;
    if (!is_list(items[i]) || PySequence_Fast_GET_SIZE(items[i]) != 2) return false;
    PyObject* const* const pair = PySequence_Fast_ITEMS(items[i]);
    if (!PyLong_CheckExact(pair[0]) || !PyLong_CheckExact(pair[1])) return false;
  }
  return true;
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

// So many of a kind, a few of them without asking for memory: a small call would notice. Nothing is
// made, or even touched, before it is asked for.
template <class Kind, std::size_t kFew>
class Several {
 public:
  Several() {}
  ~Several() {
    for (std::size_t i = 0; i < few_count_; ++i) few()[i].~Kind();
  }
  Several(const Several&) = delete;
  Several& operator=(const Several&) = delete;

  Kind* make(std::size_t count) {
    if (count > kFew) {
      many_ = std::vector<Kind>(count);
      return many_.data();
    }
    for (; few_count_ < count; ++few_count_) new (few() + few_count_) Kind;
    return few();
  }

 private:
  Kind* few() { return reinterpret_cast<Kind*>(few_); }

  alignas(Kind) unsigned char few_[kFew * sizeof(Kind)];
  std::size_t few_count_ = 0;
  std::vector<Kind> many_;
};

// A quick call's inputs and arguments, taken from what Python gives.
struct Given {
  Operand operands[kQuickOperands];
  List list;
  Held held;
  Int arguments[kMostNumbers];
  Integers integers[kMostIntegers];

  // Of what kind all arrays are, all on one device.
  enum { unknown, numpy, tensors, jax_arrays, cupy_arrays } kind = unknown;
  int device = kHost;

  // What only other libraries' arrays need.
  struct Elsewhere {
    Several<Operand, 8> members;  // of a list
    jax::Views views;
  };
  std::optional<Elsewhere> elsewhere;
  Elsewhere& there() { return elsewhere ? *elsewhere : elsewhere.emplace(); }

  Quick quick() const { return {operands, list, arguments, integers}; }

  bool take_array(PyObject* value, Operand& operand) {
    if (kind == unknown || kind == numpy) {
      if (operand_of(value, operand)) {
        kind = numpy;
        return true;
      }
      if (kind == numpy) return false;
    }
    if (kind != tensors && kind != cupy_arrays && jax::is_array(value))
      return take_jax(value, operand);
    return kind != tensors && cupy::is_array(value) ? take_cupy(value, operand)
                                                    : take_tensor(value, operand);
  }

  [[gnu::noinline]] bool take_cupy(PyObject* value, Operand& operand) {
    int place = kHost;
    if (kind == jax_arrays || !cupy::operand_of(value, operand, place)) return false;
    kind = cupy_arrays;  // all on the device that CuPy works on
    device = place;
    return true;
  }

  [[gnu::noinline]] bool take_jax(PyObject* value, Operand& operand) {
    int place = kHost;
    if (!there().views.take(value, operand, place) || (kind == jax_arrays && place != device))
      return false;
    kind = jax_arrays;
    device = place;
    return true;
  }

  [[gnu::noinline]] bool take_tensor(PyObject* value, Operand& operand) {
    if (kind == jax_arrays || kind == cupy_arrays ||
        (kind == unknown && (!is_tensor(value) || !tensors_are_themselves())))
      return false;
    int place = kHost;
    if (!tensor_of(value, operand, place) || (kind == tensors && place != device)) return false;
    kind = tensors;
    device = place;
    return true;
  }

  bool take_list(const Kernel& kernel, PyObject* value) {
    if (!held.hold(kernel.name, value, list)) return false;
    const auto is_elsewhere = [](PyObject* one) {
      return is_tensor(one) || jax::is_array(one) || cupy::is_array(one);
    };
    if (list.count == 0 || list.count > kMostMembers || !is_elsewhere(list.arrays[0])) return true;
    Operand* const taken = there().members.make(list.count);
    for (std::size_t i = 0; i < list.count; ++i)
      if (!take_array(list.arrays[i], taken[i])) return false;
    list = {taken, nullptr, list.count};
    return true;
  }

  // Most arguments are numbers of their own.
  bool take_argument(const Argument& argument, PyObject* const& value, Int& number,
                     Integers*& several) {
    if (argument.kind >= Argument::integers) return take_other(argument, value, number, several);
    if (kind == jax_arrays && argument.kind == Argument::index_type_or_none && value == Py_None)
      return jax::own_index_type(number);
    return number_of(argument, value, number);
  }

  [[gnu::noinline]] bool take_other(const Argument& argument, PyObject* const& value, Int& number,
                                    Integers*& several) {
    switch (argument.kind) {
      case Argument::integers:
        number = several - integers;
        return integers_of(value, *several++);
      case Argument::type:
        number = reinterpret_cast<Int>(known_type(value));
        return number != 0;
      case Argument::constant:
        return constant_of(value, operands[0].descr, number);
      default:
        return false;
    }
  }

  bool take(const Kernel& kernel, PyObject* const* values) {
    for (int i = 0; i < kernel.inputs; ++i)
      if (!take_array(*values++, operands[i])) return false;
    if (kernel.list == Lists::inputs && !take_list(kernel, *values++)) return false;
    Int* next = arguments;
    Integers* several = integers;
    for (const Argument& argument : kernel.arguments)
      if (!take_argument(argument, *values++, *next++, several)) return false;
    return true;
  }
};

}  // namespace anydml::python

// What a quick call is given: a user's values, as operands and numbers, or not at all.
#pragma once

#include <optional>

#include "arguments.hpp"
#include "jax_arrays.hpp"

namespace anydml::python {

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

// Arrays of a list that are taken the quick way: an operand is a kilobyte.
constexpr std::size_t kMostMembers = 1024;

// A quick call's inputs and arguments, taken from what Python gives.
struct Given : Arguments {
  Held held;

  // Of what kind all arrays are, all on one device.
  enum { unknown, numpy, jax_arrays } kind = unknown;
  int device = kHost;

  // What only other libraries' arrays need.
  struct Elsewhere {
    Several<Operand, 8> members;  // of a list
    jax::Views views;
  };
  std::optional<Elsewhere> elsewhere;
  Elsewhere& there() { return elsewhere ? *elsewhere : elsewhere.emplace(); }

  bool take_array(PyObject* value, Operand& operand) {
    if (kind == unknown || kind == numpy) {
      if (operand_of(value, operand)) {
        kind = numpy;
        return true;
      }
      if (kind == numpy) return false;
    }
    return jax::is_array(value) && take_jax(value, operand);
  }

  [[gnu::noinline]] bool take_jax(PyObject* value, Operand& operand) {
    int place = kHost;
    if (!there().views.take(value, operand, place) || (kind == jax_arrays && place != device))
      return false;
    kind = jax_arrays;
    device = place;
    return true;
  }

  bool take_list(const Kernel& kernel, PyObject* value) {
    if (!held.hold(kernel.name, value, list)) return false;
    if (list.count == 0 || list.count > kMostMembers || !jax::is_array(list.arrays[0])) return true;
    Operand* const taken = there().members.make(list.count);
    for (std::size_t i = 0; i < list.count; ++i)
      if (!take_array(list.arrays[i], taken[i])) return false;
    list = {taken, nullptr, list.count};
    return true;
  }

  bool take_own_argument(const Argument& argument, PyObject* const& value, Int& number,
                         Integers*& several) {
    if (kind == jax_arrays && argument.kind == Argument::index_type_or_none && value == Py_None)
      return jax::own_index_type(number);
    return take_argument(argument, value, number, several);
  }

  bool take(const Kernel& kernel, PyObject* const* values) {
    for (int i = 0; i < kernel.inputs; ++i)
      if (!take_array(*values++, operands[i])) return false;
    if (kernel.list == Lists::inputs && !take_list(kernel, *values++)) return false;
    Int* next = arguments;
    Integers* several = integers;
    for (const Argument& argument : kernel.arguments)
      if (!take_own_argument(argument, *values++, *next++, several)) return false;
    return true;
  }
};

}  // namespace anydml::python

// What a quick call is given: a user's values, as operands and numbers, or not at all.
#pragma once

#include <optional>

#include "arguments.hpp"

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

  bool take(const Kernel& kernel, PyObject* const* values) {
    for (int i = 0; i < kernel.inputs; ++i)
      if (!operand_of(*values++, operands[i])) return false;
    if (kernel.list == Lists::inputs && !held.hold(kernel.name, *values++, list)) return false;
    return take_arguments(kernel, values);
  }
};

}  // namespace anydml::python

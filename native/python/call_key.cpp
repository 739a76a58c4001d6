// Keys of calls, by which an integration finds the program that it has compiled for a call.
// Building a key in Python takes longer than a kernel takes on 16 elements.
#include "kernel.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

nb::object checked(PyObject* object) {
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

// A tuple of a known length, filled from the front.
class TupleBuilder {
 public:
  explicit TupleBuilder(Py_ssize_t count) : tuple_(checked(PyTuple_New(count))) {}

  void add(nb::object item) { PyTuple_SET_ITEM(tuple_.ptr(), next_++, item.release().ptr()); }
  void add_type_of(PyObject* value) {
    add(nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(value))));
  }

  nb::object finish() { return std::move(tuple_); }

 private:
  nb::object tuple_;
  Py_ssize_t next_ = 0;
};

class RecursionGuard {
 public:
  RecursionGuard() {
    if (Py_EnterRecursiveCall(" in the key of a call") != 0) throw nb::python_error();
  }
  ~RecursionGuard() { Py_LeaveRecursiveCall(); }
  RecursionGuard(const RecursionGuard&) = delete;
  RecursionGuard& operator=(const RecursionGuard&) = delete;
};

// The members of a list, with references held: `freeze` may run code that changes the list.
nb::object members_of(PyObject* list) { return checked(PySequence_Tuple(list)); }

nb::object frozen(PyObject* value, PyObject* freeze);

// The type comes before the value, because 1, 1.0 and True compare equal.
void add_frozen(TupleBuilder& key, PyObject* value, PyObject* freeze) {
  key.add_type_of(value);
  key.add(frozen(value, freeze));
}

// An immutable object that compares equal exactly for equal values of one type.
nb::object frozen(PyObject* value, PyObject* freeze) {
  if (value == Py_None || PyUnicode_CheckExact(value) || PyLong_CheckExact(value) ||
      PyBool_Check(value))
    return nb::borrow(value);
  if (PyFloat_CheckExact(value)) {  // the bits: -0.0 differs from 0.0, and a NaN equals itself
    const double number = PyFloat_AS_DOUBLE(value);
    return checked(
        PyBytes_FromStringAndSize(reinterpret_cast<const char*>(&number), sizeof number));
  }
  if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value))
    return checked(PyObject_CallOneArg(freeze, value));
  const RecursionGuard guard;
  const nb::object members = members_of(value);
  const Py_ssize_t count = PyTuple_GET_SIZE(members.ptr());
  TupleBuilder key(2 * count);
  for (Py_ssize_t i = 0; i < count; ++i)
    add_frozen(key, PyTuple_GET_ITEM(members.ptr(), i), freeze);
  return key.finish();
}

nb::object member_types(PyObject* list) {
  const nb::object members = members_of(list);
  const Py_ssize_t count = PyTuple_GET_SIZE(members.ptr());
  TupleBuilder types(count);
  for (Py_ssize_t i = 0; i < count; ++i) types.add_type_of(PyTuple_GET_ITEM(members.ptr(), i));
  return types.finish();
}

nb::object key_of(PyObject* arguments, Py_ssize_t operands, bool is_list, PyObject* threads,
                  PyObject* freeze) {
  const Py_ssize_t count = PyTuple_GET_SIZE(arguments);
  TupleBuilder key(1 + operands + 2 * (count - operands));
  key.add(nb::borrow(threads));
  for (Py_ssize_t i = 0; i < operands; ++i) {
    PyObject* const operand = PyTuple_GET_ITEM(arguments, i);
    if (is_list)
      key.add(member_types(operand));
    else
      key.add_type_of(operand);
  }
  for (Py_ssize_t i = operands; i < count; ++i)
    add_frozen(key, PyTuple_GET_ITEM(arguments, i), freeze);
  return key.finish();
}

// call_key(arguments, operands, listed, threads, freeze): the key of a call's arguments, a tuple.
// The first `operands` count by their types alone, or by the types of their members where
// `is_list`; the others by type and value. `freeze` takes a value of an unusual type and returns a
// hashable one, or raises a TypeError.
PyObject* call_key(PyObject*, PyObject* const* values, Py_ssize_t count) {
  if (count != 5 || !PyTuple_CheckExact(values[0])) {
    PyErr_SetString(PyExc_TypeError, "call_key() takes a tuple and 4 other arguments");
    return nullptr;
  }
  const Py_ssize_t operands = PyLong_AsSsize_t(values[1]);
  if (operands < 0 || operands > PyTuple_GET_SIZE(values[0])) {
    if (PyErr_Occurred() == nullptr)
      PyErr_SetString(PyExc_ValueError, "call_key(): more operands than arguments");
    return nullptr;
  }
  try {
    return key_of(values[0], operands, values[2] == Py_True, values[3], values[4]).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  }
}

PyMethodDef definition = {"call_key",
                          reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call_key)),
                          METH_FASTCALL, nullptr};

}  // namespace

// Uses the interpreter's own calling convention: nanobind's costs as much again.
void bind_call_key(nb::module_& module) {
  module.attr("call_key") = checked(PyCFunction_NewEx(&definition, nullptr, nullptr));
}

}  // namespace anydml::python

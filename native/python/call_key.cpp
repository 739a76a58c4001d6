// Keys of calls, by which an integration finds the program that it has compiled for a call.
// Building a key in Python takes a tenth to a third of such a call.
#include "kernel.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

nb::object checked(PyObject* object) {
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

// A tuple of a known length, filled from the front.
struct TupleBuilder {
  nb::object tuple;
  Py_ssize_t next = 0;

  explicit TupleBuilder(Py_ssize_t count) : tuple(checked(PyTuple_New(count))) {}
  void add(nb::object item) { PyTuple_SET_ITEM(tuple.ptr(), next++, item.release().ptr()); }
  void add_type_of(PyObject* value) {
    add(nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(value))));
  }
};

struct RecursionGuard {
  RecursionGuard() {
    if (Py_EnterRecursiveCall(" in the key of a call") != 0) throw nb::python_error();
  }
  ~RecursionGuard() { Py_LeaveRecursiveCall(); }
};

// The members of a list, with references held: `freeze` may run code that changes the list.
nb::object members_of(PyObject* list) { return checked(PySequence_Tuple(list)); }

nb::object frozen(PyObject* value, PyObject* freeze);

// Adds members of a tuple, each by its type and value: 1, 1.0 and True compare equal.
void add_frozen(TupleBuilder& key, PyObject* members, Py_ssize_t first, PyObject* freeze) {
  for (Py_ssize_t i = first; i < PyTuple_GET_SIZE(members); ++i) {
    PyObject* const value = PyTuple_GET_ITEM(members, i);
    key.add_type_of(value);
    key.add(frozen(value, freeze));
  }
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
  TupleBuilder key(2 * PyTuple_GET_SIZE(members.ptr()));
  add_frozen(key, members.ptr(), 0, freeze);
  return key.tuple;
}

nb::object member_types(PyObject* list) {
  const nb::object members = members_of(list);
  TupleBuilder types(PyTuple_GET_SIZE(members.ptr()));
  for (nb::handle member : nb::borrow<nb::tuple>(members)) types.add_type_of(member.ptr());
  return types.tuple;
}

// call_key(arguments, operands, is_list, threads, freeze): the key of a call's arguments, a tuple.
// The first `operands` count by their types alone, or by the types of their members where
// `is_list`; the others by type and value. `freeze` takes a value of an unusual type and returns a
// hashable one, or raises a TypeError.
nb::object call_key(nb::tuple arguments, Py_ssize_t operands, bool is_list, nb::object threads,
                    nb::handle freeze) {
  const auto count = static_cast<Py_ssize_t>(arguments.size());
  if (operands < 0 || operands > count)
    throw nb::value_error("call_key(): more operands than arguments");
  TupleBuilder key(1 + operands + 2 * (count - operands));
  key.add(std::move(threads));
  for (Py_ssize_t i = 0; i < operands; ++i) {
    PyObject* const operand = PyTuple_GET_ITEM(arguments.ptr(), i);
    if (is_list)
      key.add(member_types(operand));
    else
      key.add_type_of(operand);
  }
  add_frozen(key, arguments.ptr(), operands, freeze.ptr());
  return key.tuple;
}

}  // namespace

void bind_call_key(nb::module_& module) { module.def("call_key", &call_key); }

}  // namespace anydml::python

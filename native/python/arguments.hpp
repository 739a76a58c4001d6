// The arguments of a function call, for arrays of any library: exact ints, bools, words and types
// become numbers.
#pragma once

#include "library.hpp"
#include "shape_rules.hpp"
#include "types.hpp"

namespace anydml::python {

// A type by its code, or PyTorch's type; null for any other object.
inline PyArray_Descr* descr_of_type(PyObject* object) {
  int overflow = 0;  // then -1, which is never a code
  return descr_of_code(PyLong_CheckExact(object) ? PyLong_AsLongLongAndOverflow(object, &overflow)
                                                 : code_of_tensors(object));
}

// The position of an index type; -1 for other types.
inline Int index_type_of(PyObject* object) {
  if (object == Py_None) return 0;
  if (PyUnicode_CheckExact(object)) return code_of(object, kIndexWords);
  if (PyArray_Descr* const descr = descr_of_type(object))
    object = reinterpret_cast<PyObject*>(descr);
  for (Int i = 0; i < static_cast<Int>(kIndexWords.size()); ++i) {
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
      if (!PyLong_CheckExact(object)) return false;  // not a bool
      int overflow = 0;
      number = PyLong_AsLongLongAndOverflow(object, &overflow);
      return overflow == 0;
    }
    case Argument::boolean:
      number = object == Py_True;
      return PyBool_Check(object);
    case Argument::word_or_none:
      if (object == Py_None) {
        number = 0;
        return true;
      }
      [[fallthrough]];
    case Argument::word:
      number = PyUnicode_CheckExact(object) ? code_of(object, *argument.words) : -1;
      return number >= 0;
    default:  // as Arguments::take_other
      return false;
  }
}

inline bool is_list(PyObject* object) {
  return PyList_CheckExact(object) || PyTuple_CheckExact(object);
}

// Exact ints, alone, in a list or tuple, or in pairs.
[[gnu::noinline]] inline bool integers_of(PyObject* const& object, Integers& integers) {
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

// The operands and arguments of a function call.
struct Arguments {
  Operand operands[kFunctionOperands];
  List list;
  Int arguments[kMaxNumbers];
  Integers integers[kMaxIntegers];
  PyArray_Descr* type = nullptr;  // of a result, if an argument determines it

  FunctionCall function_call() const { return {operands, list, arguments, integers}; }

  // Most arguments are numbers of their own.
  bool take_argument(const Argument& argument, PyObject* const& value, Int& number,
                     Integers*& next_integers) {
    if (argument.kind == Argument::index_type_or_none) {
      const Int position = index_type_of(value);
      if (position >= 0) type = index_type(position).descr;
      return position >= 0;
    }
    return argument.kind >= Argument::integers ? take_other(argument, value, number, next_integers)
                                               : number_of(argument, value, number);
  }

  // The attributes of the call and its results, once the operand types are known.
  bool shape(const Kernel& kernel, Int* numbers, Call& call, Results& results) const {
    return kernel.attribute_numbers(function_call(), numbers, results) &&
           shape_of_numbers(kernel, numbers, call, results);
  }

  // The results of a call whose attributes are known.
  bool shape_of_numbers(const Kernel& kernel, const Int* numbers, Call& call,
                        Results& results) const {
    call.operands = operands;
    call.list = list;
    call.numbers = numbers;
    if (kernel.shape(call, results) != nullptr) return false;
    for (Results::One& one : results.one) {
      if (one.type == Results::like) continue;
      one.descr = type;
      if (one.type != Results::count && !takes(one)) return false;
    }
    if (results.equal > 0 && results.sizes == nullptr)
      results.one[0].dims[results.axis] /= results.equal;
    return true;
  }

  bool take_arguments(const Kernel& kernel, PyObject* const* values) {
    Int* next = arguments;
    Integers* next_integers = integers;
    for (const Argument& argument : kernel.arguments)
      if (!take_argument(argument, *values++, *next++, next_integers)) return false;
    return true;
  }

 private:
  // Whether the requested type is valid for a result.
  bool takes(const Results::One& one) const {
    DataType known;
    int size;
    if (type == nullptr || !element_of(type, known, size)) return false;
    return one.type == Results::index ? can_index(known, one.limit) : known != DataType::unknown;
  }

  [[gnu::noinline]] bool take_other(const Argument& argument, PyObject* const& value, Int& number,
                                    Integers*& next_integers) {
    switch (argument.kind) {
      case Argument::integers:
        number = next_integers - integers;
        return integers_of(value, *next_integers++);
      case Argument::type: {
        // NumPy's words and types first: other libraries have many more.
        type = PyLong_CheckExact(value) ? nullptr : known_type(value);
        if (type == nullptr) type = descr_of_type(value);
        return type != nullptr;
      }
      case Argument::constant:
        return constant_of(value, operands[0].descr, number);
      default:
        return false;
    }
  }
};

}  // namespace anydml::python

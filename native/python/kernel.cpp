#include "kernel.hpp"

#include <bit>
#include <cstring>
#include <string>

namespace nb = nanobind;

namespace anydml::python {
namespace {

std::vector<Kernel>& table() {
  static std::vector<Kernel> kernels;  // filled by static objects, in any order
  return kernels;
}

void append(const Kernel& kernel, const Attribute& attribute, nb::handle value,
            std::vector<Int>& numbers) {
  PyObject* const object = value.ptr();
  int overflow = 0;
  Int number = 0;
  if (object == Py_None) {
    number = 0;
  } else if (PyLong_Check(object)) {  // a bool is one
    number = PyLong_AsLongLongAndOverflow(object, &overflow);
  } else if (PyFloat_Check(object)) {
    number = std::bit_cast<Int>(PyFloat_AS_DOUBLE(object));
  } else if (PyUnicode_Check(object) && attribute.words != nullptr) {
    number = code_of(object, *attribute.words);
    overflow = number < 0;
  } else if (PyTuple_Check(object) || PyList_Check(object)) {
    const nb::tuple members = nb::steal<nb::tuple>(PySequence_Tuple(object));
    if (!members.is_valid()) throw nb::python_error();
    for (nb::handle member : members) append(kernel, attribute, member, numbers);
    return;
  } else {
    overflow = 1;
  }
  if (overflow != 0)
    raise_argument(std::string(kernel.name) + ": expected a number of 64 bits for " +
                   attribute.name);
  numbers.push_back(number);
}

}  // namespace

const Words kReductions{"none", "add", "mul", "min", "max"};

const Words kIndexTypes{"int64", "int32", "uint32", "uint64"};

const IndexType& index_type(Int number) {
  static const IndexType types[] = {{PyArray_DescrFromType(NPY_INT64), DataType::int64},
                                    {PyArray_DescrFromType(NPY_INT32), DataType::int32},
                                    {PyArray_DescrFromType(NPY_UINT32), DataType::uint32},
                                    {PyArray_DescrFromType(NPY_UINT64), DataType::uint64}};
  return types[number];
}

Registration::Registration(Kernel kernel) { table().push_back(std::move(kernel)); }

const std::vector<Kernel>& all_kernels() { return table(); }

const Kernel& kernel_named(const std::string& name) {
  for (const Kernel& kernel : table())
    if (name == kernel.name) return kernel;
  raise_argument("kernel: expected one that is registered, got " + name);
}

Int code_of(PyObject* word, const Words& words) {
  for (std::size_t i = 0; i < words.size(); ++i)
    if (PyUnicode_CompareWithASCIIString(word, words[i]) == 0) return static_cast<Int>(i);
  return -1;
}

std::vector<Int> numbers_of(const Kernel& kernel, const nb::dict& attributes) {
  std::vector<Int> numbers;
  for (const Attribute& attribute : kernel.attributes) {
    PyObject* const value = PyDict_GetItemString(attributes.ptr(), attribute.name);
    append(kernel, attribute, value == nullptr ? Py_None : value, numbers);
  }
  return numbers;
}

nb::object allocated(const char* call, const char* purpose, int rank, const npy_intp* dims,
                     PyArray_Descr* descr, Int number) {
  PyArrayObject* const array = new_array(rank, dims, descr);
  if (array == nullptr) {
    if (PyErr_ExceptionMatches(PyExc_MemoryError) == 0) throw nb::python_error();
    PyErr_Clear();
    nb::list sizes;
    for (int i = 0; i < rank; ++i) sizes.append(static_cast<Int>(dims[i]));
    const std::string what = number < 0 ? purpose : purpose + (' ' + std::to_string(number));
    raise_allocation(call, nb::tuple(sizes), descr, what.c_str());
  }
  return nb::steal(reinterpret_cast<PyObject*>(array));
}

}  // namespace anydml::python

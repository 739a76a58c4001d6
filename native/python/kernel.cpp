#include "shape_rules.hpp"
#include "types.hpp"

#include <bit>
#include <iterator>
#include <string>

namespace nb = nanobind;

namespace anydml::python {
namespace {

std::vector<Kernel>& table() {
  static std::vector<Kernel> kernels;  // filled by static objects, in any order
  return kernels;
}

// One number; false for a value that has none.
bool take_number(const Attribute& attribute, PyObject* value, bool floats, Int& number) {
  int overflow = 0;
  if (PyLong_Check(value)) {  // a bool counts as a number
    number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow == 0;
  }
  if (PyFloat_Check(value) && floats) {
    number = std::bit_cast<Int>(PyFloat_AS_DOUBLE(value));
    return true;
  }
  if (!PyUnicode_Check(value) || attribute.words == nullptr) return false;
  number = code_of(value, *attribute.words);
  return number >= 0;
}

}  // namespace

const Words kIndexWords{
#define ANYDML_INDEX_TYPE(name) #name,
#include "common/types.def"
};

const IndexType& index_type(Int number) {
  static const IndexType types[] = {
#define ANYDML_INDEX_TYPE(name) {numpy_descr(#name), DataType::name},
#include "common/types.def"
  };
  return types[number];
}

const char* validate_numbers(const Kernel& kernel, const Call& call) {
  const int rank = kernel.inputs > 0 ? call.operands[0].tensor.layout.rank : 0;
  std::size_t expected = 0;
  for (const Attribute& attribute : kernel.attributes) {
    if (attribute.words != nullptr && expected < call.number_count &&
        (call.numbers[expected] < 0 ||
         call.numbers[expected] >= static_cast<Int>(attribute.words->size())))
      return kNumbers;
    expected += attribute.count == Attribute::per_axis ? static_cast<std::size_t>(rank)
                : attribute.count == Attribute::two    ? 2
                                                       : 1;
  }
  return call.number_count == expected ? nullptr : kNumbers;
}

namespace {

const char* validate_type(const Results::One& one, const Tensor& output) {
  switch (one.type) {
    case Results::like:
      return one.element == output.type && one.element_size == output.element_size ? nullptr
                                                                                   : kElements;
    case Results::index:
      if (!is_index_type(output.type)) return kIndices;
      return can_index(output.type, one.limit)
                 ? nullptr
                 : "indices: expected 64 bits for an axis of this length";
    case Results::number:
      return output.type != DataType::unknown ? nullptr : "result: expected a type of numbers";
    case Results::sequence:
      return is_integer_type(output.type) || output.type == DataType::float32 ||
                     output.type == DataType::float16
                 ? nullptr
                 : "result: expected an integer type, float32 or float16";
    case Results::count:
      return output.type == DataType::uint32 && output.layout.count() == 1
                 ? nullptr
                 : "count: expected one uint32";
    default:
      return nullptr;
  }
}

// `measured`: the least value of a size that depends on the data; `but`: an axis of any size.
const char* validate_output(const Results::One& one, const Tensor& output, Int measured = 0,
                            int but = -1) {
  const Layout& layout = output.layout;
  if (one.rank != kAnyRank && layout.rank != one.rank) return kRank;
  for (int i = 0; i < one.rank; ++i) {
    const Int size = layout.sizes[i], expected = one.dims[i];
    if (i != but && (expected == kMeasured ? size < measured
                     : one.at_most         ? size > expected
                                           : size != expected))
      return kSizes;
  }
  return validate_type(one, output);
}

// The members of a list must add up to the size of the first result on an axis.
const char* validate_list(const Results& results, const List& list) {
  const Results::One& one = results.one[0];
  if (list.count == 0) return "parts: expected at least one";
  Operand operand;
  void* data = nullptr;
  Int total = 0;
  for (std::size_t i = 0; i < list.count; ++i) {
    const Tensor* const part = list.get(i, operand, data);
    if (part == nullptr) return "parts: expected arrays of a supported type";
    if (const char* const wrong = validate_output(one, *part, 0, results.axis)) return wrong;
    if (__builtin_add_overflow(total, part->layout.sizes[results.axis], &total))
      return "parts: together longer than any array";
  }
  return total == one.dims[results.axis]
             ? nullptr
             : "parts: their sizes do not add up to the size of the whole";
}

}  // namespace

const char* validate_input(const Kernel& kernel, const Call& call, Results& results) {
  if (const char* const wrong = validate_numbers(kernel, call)) return wrong;
  return kernel.shape(call, results);
}

const char* validate(const Kernel& kernel, const Call& call) {
  Results results;
  if (const char* const wrong = validate_input(kernel, call, results)) return wrong;
  if (kernel.list == Lists::outputs) return validate_list(results, call.list);
  const Int limit = kernel.measured ? call.operands[0].tensor.layout.count() : 0;
  for (int i = 0; i < kernel.outputs; ++i)
    if (const char* const wrong =
            validate_output(results.one[i], call.operands[kernel.inputs + i].tensor, limit))
      return wrong;
  return nullptr;
}

const char* validate_measured(const Kernel& kernel, const Call& call, Int size) {
  Results results;
  if (const char* const wrong = validate_input(kernel, call, results)) return wrong;
  return validate_output(results.one[kernel.outputs - 1], call.operands[kernel.inputs].tensor,
                         size);
}

Registration::Registration(Kernel kernel) { table().push_back(std::move(kernel)); }

const std::vector<Kernel>& all_kernels() { return table(); }

const Kernel& find_kernel(const std::string& name) {
  for (const Kernel& kernel : table())
    if (name == kernel.name) return kernel;
  raise_argument("kernel: expected one that is registered, got " + name);
}

Int code_of(PyObject* word, const Words& words) {
  for (std::size_t i = 0; i < words.size(); ++i)
    if (PyUnicode_CompareWithASCIIString(word, words[i]) == 0) return static_cast<Int>(i);
  return -1;
}

bool take_attribute(const Attribute& attribute, PyObject* value, const PyArray_Descr* constants,
                    Int*& next, const Int* end) {
  if (attribute.count == Attribute::two && constants != nullptr) {
    if (end - next < 2) return false;
    next[1] = 0;
    next += 2;
    return constant_of(value, constants, next[-2]);
  }
  const bool is_list = PyList_Check(value) || PyTuple_Check(value);
  PyObject* const* const items = is_list ? PySequence_Fast_ITEMS(value) : &value;
  const Py_ssize_t count = is_list ? PySequence_Fast_GET_SIZE(value) : 1;
  if (count > end - next) return false;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!take_number(attribute, items[i], constants == nullptr, *next++)) return false;
  return true;
}

std::vector<Int> numbers_of(const Kernel& kernel, const nb::dict& attributes) {
  Int numbers[kMaxValues];
  Int* next = numbers;
  for (const Attribute& attribute : kernel.attributes) {
    PyObject* const value = PyDict_GetItemString(attributes.ptr(), attribute.name);
    if (value == nullptr || value == Py_None)
      *next++ = 0;
    else if (!take_attribute(attribute, value, nullptr, next, std::end(numbers)))
      raise_argument(std::string(kernel.name) + ": expected a number of 64 bits for " +
                     attribute.name);
  }
  return {numbers, next};
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

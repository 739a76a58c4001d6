#include "memory_call.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>

#include "../cuda/host/compiler.hpp"
#include "../cuda/host/device.hpp"
#include "arguments.hpp"
#include "tensor_memory.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

Int code_of(const TypeFacts& facts) { return Int{facts.dlpack_code} << 8 | 8 * facts.size; }

constexpr Py_ssize_t kOperandParts = 7;

// Returns false, without an exception, for anything but a 64-bit integer.
bool integer_of(PyObject* object, Int& number) {
  if (!PyLong_CheckExact(object)) return false;
  int overflow = 0;
  number = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}

bool address_of(PyObject* object, void*& address) {
  if (!PyLong_CheckExact(object)) return false;
  const unsigned long long number = PyLong_AsUnsignedLongLong(object);
  if (number == ~0ull && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return false;
  }
  address = reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
  return true;
}

bool take_layout(PyObject* sizes, PyObject* strides, Int unit, Operand& operand) {
  if (!PyTuple_Check(sizes) || !PyTuple_Check(strides)) return false;
  const Py_ssize_t rank = PyTuple_GET_SIZE(sizes);
  if (rank > kMaxRank || PyTuple_GET_SIZE(strides) != rank) return false;
  Layout& layout = operand.tensor.layout;
  layout.rank = 0;
  for (Py_ssize_t i = 0; i < rank; ++i) {
    Int size, stride;
    if (!integer_of(PyTuple_GET_ITEM(sizes, i), size) ||
        !integer_of(PyTuple_GET_ITEM(strides, i), stride) ||
        __builtin_mul_overflow(stride, unit, &stride))
      return false;
    layout.push(size, stride);
  }
  return layout.normalize_checked(operand.tensor.element_size);
}

// A GPU faults on misaligned elements, where a processor only takes a little longer.
bool is_aligned(const Operand& operand) {
  const Layout& layout = operand.tensor.layout;
  auto low_bits = reinterpret_cast<std::uintptr_t>(operand.data);
  for (int i = 0; i < layout.rank; ++i)
    if (layout.sizes[i] > 1) low_bits |= static_cast<std::uintptr_t>(layout.strides[i]);
  const auto size = static_cast<std::uintptr_t>(std::min(operand.tensor.element_size, 8));
  return layout.count() == 0 || low_bits % size == 0;
}

bool operand_of_memory(PyObject* object, Operand& operand) {
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) < kOperandParts) return false;
  const auto part = [&](int i) { return PyTuple_GET_ITEM(object, i); };
  Block block{0, part(1), part(2), 0, nullptr, 0, 0};
  return integer_of(part(0), block.code) && integer_of(part(3), block.unit) &&
         address_of(part(4), block.address) && integer_of(part(5), block.offset) &&
         integer_of(part(6), block.bytes) && set_operand(block, operand);
}

// ---- a call -------------------------------------------------------------------------------------

struct Place {
  int device = -1;  // the host
  void* stream = nullptr;

  bool on_device() const { return device >= 0; }
};

bool place_of(PyObject* object, Place& place) {
  if (object == Py_None) return true;
  Int device;
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != 2 ||
      !integer_of(PyTuple_GET_ITEM(object, 0), device) || device < 0 ||
      !address_of(PyTuple_GET_ITEM(object, 1), place.stream))
    return false;
  place.device = static_cast<int>(device);
  return true;
}

// Whether an attribute of the call chooses the type of a result.
bool chooses_type(const Kernel& kernel) {
  return std::ranges::any_of(kernel.arguments, [](const Argument& argument) {
    return argument.kind == Argument::type || argument.kind == Argument::index_type_or_none;
  });
}

// The attributes that a call takes: the kernel's, the sizes of a list of results, a type.
Py_ssize_t taken_attributes(const Kernel& kernel) {
  return static_cast<Py_ssize_t>(kernel.attributes.size()) +
         (kernel.list == Lists::outputs ? 1 : 0) + (chooses_type(kernel) ? 1 : 0);
}

struct MemoryArguments : Arguments {
  Int numbers[kMaxValues];
  Results results;
  Place place;
  bool tensors = false;
  InlineVector<Operand, 8> members;  // of a list
  InlineVector<nb::object, 8> storages;

  bool take_operand(PyObject* object, Operand& operand, nb::object& storage) const {
    if (tensors) return tensors::operand_of(object, operand, storage);
    return operand_of_memory(object, operand) && (!place.on_device() || is_aligned(operand));
  }

  bool take(const Kernel& kernel, PyObject* const* values) {
    nb::object* const held = storages.make(static_cast<std::size_t>(kernel.inputs));
    for (int i = 0; i < kernel.inputs; ++i)
      if (!take_operand(*values++, operands[i], held[i])) return false;
    if (kernel.list == Lists::inputs && !take_list(*values++)) return false;
    Int* next = numbers;
    for (const Attribute& attribute : kernel.attributes)
      if (!take_attribute(attribute, *values++, next)) return false;
    if (kernel.list == Lists::outputs && !take_sizes(*values++, next)) return false;
    if (!chooses_type(kernel)) return true;
    Integers* none = nullptr;
    Int unused;
    const auto kind = kernel.arguments.back().kind;
    return take_argument({kind}, *values, unused, none);
  }

  bool take_attribute(const Attribute& attribute, PyObject* value, Int*& next) const {
    if (attribute.count == Attribute::per_axis) {
      if (!PyTuple_CheckExact(value) && !PyList_CheckExact(value)) return false;
      const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
      if (count != operands[0].tensor.layout.rank) return false;
      for (Py_ssize_t i = 0; i < count; ++i)
        if (!integer_of(PySequence_Fast_GET_ITEM(value, i), *next++)) return false;
      return true;
    }
    if (attribute.count == Attribute::two) {
      next[1] = 0;
      const bool known = constant_of(value, operands[0].descr, next[0]);
      next += 2;
      return known;
    }
    Int& number = *next++;
    if (PyBool_Check(value)) {
      number = value == Py_True;
      return true;
    }
    if (attribute.words == nullptr) return integer_of(value, number);
    number = PyUnicode_CheckExact(value) ? python::code_of(value, *attribute.words) : -1;
    return number >= 0;
  }

  // The sizes of a list of results on an axis, which is the kernel's first attribute.
  bool take_sizes(PyObject* value, Int* sizes) {
    if (!PyTuple_CheckExact(value) && !PyList_CheckExact(value)) return false;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
    const Layout& layout = operands[0].tensor.layout;
    const int axis =
        numbers[0] < 0 || numbers[0] >= layout.rank ? -1 : static_cast<int>(numbers[0]);
    if (axis < 0 || count == 0) return false;
    Int rest = layout.sizes[axis], first = 0;
    bool equal = true;
    for (Py_ssize_t i = 0; i < count; ++i) {
      Int size;
      if (!integer_of(PySequence_Fast_GET_ITEM(value, i), size) || size < 0 || size > rest)
        return false;
      if (i == 0) first = size;
      equal = equal && size == first;
      if (i < 2 * kMaxRank) sizes[i] = size;
      rest -= size;
    }
    if (rest != 0 || (!equal && count > 2 * kMaxRank)) return false;
    results.equal = count;
    results.sizes = equal ? nullptr : sizes;
    return true;
  }

  bool take_list(PyObject* object) {
    if (!PyList_CheckExact(object) && !PyTuple_CheckExact(object)) return false;
    const auto count = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(object));
    Operand* const taken = members.make(count);
    nb::object* const held = storages.make(count);
    for (std::size_t i = 0; i < count; ++i)
      if (static_cast<std::size_t>(PySequence_Fast_GET_SIZE(object)) != count ||
          !take_operand(PySequence_Fast_ITEMS(object)[i], taken[i], held[i]))
        return false;
    list = {taken, nullptr, count};
    return true;
  }
};

// Results allocated by the caller's library.
class Maker {
 public:
  explicit Maker(PyObject* make) : make_(make) {}

  // A result, and the operand's address.
  nb::object make(const Results::One& one, void*& data) const {
    if (make_ == Py_None) return tensors::make(one, data);
    const Int code = code_of_descr(one.descr);
    if (code < 0) return {};
    const nb::object shape = nb::steal(PyTuple_New(one.rank));
    const nb::object type = nb::steal(PyLong_FromLongLong(code));
    if (!shape.is_valid() || !type.is_valid()) throw nb::python_error();
    for (int i = 0; i < one.rank; ++i) {
      PyObject* const size = PyLong_FromSsize_t(one.dims[i]);
      if (size == nullptr) throw nb::python_error();
      PyTuple_SET_ITEM(shape.ptr(), i, size);
    }
    PyObject* const arguments[] = {nullptr, type.ptr(), shape.ptr()};
    const nb::object pair = nb::steal(
        PyObject_Vectorcall(make_, arguments + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    if (!pair.is_valid()) throw nb::python_error();
    if (!PyTuple_Check(pair.ptr()) || PyTuple_GET_SIZE(pair.ptr()) != 2 ||
        !address_of(PyTuple_GET_ITEM(pair.ptr(), 1), data))
      raise_argument("make: expected a pair of a result and its address");
    return nb::borrow(PyTuple_GET_ITEM(pair.ptr(), 0));
  }

 private:
  PyObject* make_;
};

bool lay_out(const Results::One& one, Operand& operand) {
  operand.descr = one.descr;
  operand.array = nullptr;
  Layout& layout = operand.tensor.layout;
  layout.rank = 0;
  if (one.rank > kMaxRank ||
      !element_of(one.descr, operand.tensor.type, operand.tensor.element_size))
    return false;
  for (int i = 0; i < one.rank; ++i) layout.push(one.dims[i], 0);
  set_packed_strides(layout, operand.tensor.element_size);
  return layout.normalize_checked(operand.tensor.element_size);
}

bool blocks() {
  const char* const value = std::getenv("ANYDML_BLOCKING");
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

void wait_if_blocking(cuda::Device& device, cuda::Queue& queue) {
  if (!blocks()) return;
  queue.wait(false);
  device.raise_bad_indices(cuda::BadIndices::latest_of_thread());
}

void enqueue(const Kernel& kernel, const Call& call, const Place& place) {
  without_gil(kDriver, [&] {
    cuda::Device& device = cuda::device_at(place.device);
    device.refuse_bad_indices();
    cuda::Queue queue(device, place.stream);
    if (kernel.checks_indices) queue.name_call({std::string(kernel.name) + ": indices"});
    kernel.enqueue(call, queue);
    wait_if_blocking(device, queue);
  });
}

bool run(const Kernel& kernel, const Call& call, const Place& place) {
  if (!place.on_device()) return kernel.run(call) == -1;
  enqueue(kernel, call, place);
  return true;
}

// A result whose size depends on the data.
[[gnu::noinline]] nb::object measured(const Kernel& kernel, MemoryArguments& arguments,
                                      Results::One& one, Call& call, const Maker& maker) {
  Operand& operand = arguments.operands[kernel.inputs];
  nb::object result = nb::none();
  const auto make = [&](Int size) -> const Operand* {
    one.set_measured(size);
    nb::object output = maker.make(one, operand.data);
    if (!output.is_valid() || !lay_out(one, operand)) return nullptr;
    result = std::move(output);
    return &operand;
  };
  if (!arguments.place.on_device()) {
    kernel.measured->run(call, std::ref(make));
    return result;
  }
  without_gil(kDriver, [&] {
    cuda::Device& device = cuda::device_at(arguments.place.device);
    device.refuse_bad_indices();
    cuda::Queue queue(device, arguments.place.stream);
    kernel.measured->enqueue(call, queue,
                             [&](Int size) { return make_outside(queue, make, size); });
    if (blocks()) queue.wait(false);
  });
  return result;
}

// A list of results. Members of one layout share one operand, because an operand takes a kilobyte.
nb::object call_with_list(const Kernel& kernel, const MemoryArguments& arguments, Results& results,
                          Call& call, const Maker& maker) {
  Results::One& one = results.one[0];
  const auto count = static_cast<std::size_t>(results.equal);
  const bool equal = results.sizes == nullptr;
  nb::object tuple = nb::steal(PyTuple_New(results.equal));
  if (!tuple.is_valid()) raise_set(kernel.name, kUncounted, "the list of arrays");
  std::vector<Operand> members(equal ? 1 : count);
  std::vector<void*> addresses(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (!equal) one.dims[results.axis] = results.sizes[i];
    nb::object output = maker.make(one, addresses[i]);
    if (!output.is_valid()) return nb::none();
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), output.release().ptr());
    if (equal && i > 0) continue;
    if (!lay_out(one, members[i])) return nb::none();
    members[i].data = addresses[i];
  }
  if (equal)
    call.list = {nullptr, nullptr, count, members.data(), addresses.data()};
  else
    call.list = {members.data(), nullptr, count};
  return run(kernel, call, arguments.place) ? tuple : nb::none();
}

nb::object named_tuple(PyObject* kind, const nb::object* members, int count) {
  const nb::object plain = nb::steal(PyTuple_New(count));
  if (!plain.is_valid()) throw nb::python_error();
  for (int i = 0; i < count; ++i)
    PyTuple_SET_ITEM(plain.ptr(), i, nb::object(members[i]).release().ptr());
  return kind == Py_None ? plain : nb::borrow(kind)(*nb::borrow<nb::tuple>(plain));
}

// values: the class of several results, the place, the allocator of results, inputs, arguments.
nb::object called(const Kernel& kernel, PyObject* const* values, int threads) {
  MemoryArguments arguments;
  Results& results = arguments.results;
  Call call;
  call.output_is_private = true;
  call.threads = threads;
  arguments.tensors = values[2] == Py_None;
  if (!place_of(values[1], arguments.place) || (arguments.tensors && arguments.place.on_device()) ||
      !arguments.take(kernel, values + 3) ||
      !arguments.shape_of_numbers(kernel, arguments.numbers, call, results))
    return nb::none();
  if (arguments.place.on_device() &&
      (kernel.enqueue == nullptr || cuda::compiler_places().version.empty()))
    return nb::none();
  const Maker maker(values[2]);
  if (kernel.measured)
    return measured(kernel, arguments, results.one[kernel.outputs - 1], call, maker);
  if (kernel.list == Lists::outputs) return call_with_list(kernel, arguments, results, call, maker);
  nb::object outputs[kMaxResults];
  Operand* const next = arguments.operands + kernel.inputs;
  for (int i = 0; i < kernel.outputs; ++i) {
    outputs[i] = maker.make(results.one[i], next[i].data);
    if (!outputs[i].is_valid() || !lay_out(results.one[i], next[i])) return nb::none();
  }
  if (!run(kernel, call, arguments.place)) return nb::none();
  return kernel.outputs == 1 ? outputs[0] : named_tuple(values[0], outputs, kernel.outputs);
}

constexpr Py_ssize_t kLeading = 3;  // values that precede the operands

PyObject* fast_call(PyObject* self, PyObject* const* values, Py_ssize_t count) {
  const Kernel& kernel = *static_cast<const Kernel*>(PyCapsule_GetPointer(self, nullptr));
  const Py_ssize_t expected =
      kLeading + kernel.inputs + (kernel.list == Lists::inputs ? 1 : 0) + taken_attributes(kernel);
  if (count != expected) {
    PyErr_Format(PyExc_TypeError, "%s() takes %zd values, got %zd", kernel.name, expected, count);
    return nullptr;
  }
  const int threads = threads_now();
  if (threads < 1) return nullptr;
  try {
    return translate_exceptions(kernel.name, [&] { return called(kernel, values, threads); })
        .release()
        .ptr();
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  }
}

nb::object memory_call(const std::string& name) {
  static PyMethodDef definition = {
      "memory_call", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(fast_call)),
      METH_FASTCALL, nullptr};
  return bound_to(kernel_with_function(name), definition);
}

}  // namespace

bool lies_within(const Operand& operand, Int offset, Int bytes) {
  const Layout& layout = operand.tensor.layout;
  if (bytes < 0 || layout.count() == 0) return true;
  Int low = offset, high = offset;  // normalized: only sums with the offset can overflow
  for (int i = 0; i < layout.rank; ++i) {
    const Int reach = (layout.sizes[i] - 1) * layout.strides[i];
    if (__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
      return false;
  }
  return low >= 0 && high <= bytes - operand.tensor.element_size;
}

bool set_operand(const Block& block, Operand& operand) {
  operand.array = nullptr;
  operand.descr = descr_of_code(block.code);
  if (operand.descr == nullptr ||
      !element_of(operand.descr, operand.tensor.type, operand.tensor.element_size))
    return false;
  const Int unit = block.unit == 0 ? operand.tensor.element_size : block.unit;
  Int offset;
  if (!take_layout(block.sizes, block.strides, unit, operand) ||
      __builtin_mul_overflow(block.offset, unit, &offset) ||
      !lies_within(operand, offset, block.bytes))
    return false;
  operand.data = static_cast<char*>(block.address) + offset;
  return operand.tensor.layout.count() == 0 || block.address != nullptr;
}

PyArray_Descr* descr_of_code(Int code) {
  static PyArray_Descr* found[std::size(kElementTypes)] = {};
  for (std::size_t i = 0; i < std::size(kElementTypes); ++i) {
    const TypeFacts& facts = kElementTypes[i];
    if (code != code_of(facts) || !facts.in_numpy) continue;
    if (found[i] == nullptr) found[i] = numpy_descr(facts.name);
    return found[i];
  }
  if (code < 0 || code >= Int{1} << 16) return nullptr;
  const AddedType* const added =
      added_type_of_dlpack(static_cast<std::uint8_t>(code >> 8), static_cast<std::uint8_t>(code));
  return added == nullptr ? nullptr : added->descr;
}

Int code_of_descr(const PyArray_Descr* descr) {
  const Int size = static_cast<Int>(PyDataType_ELSIZE(descr));
  for (const TypeFacts& facts : kElementTypes)
    if (facts.in_numpy && facts.size == size && facts.kind == descr->kind) return code_of(facts);
  const AddedType* const added = added_type(descr);
  return added == nullptr ? -1 : code_of(*added->facts);
}

void bind_memory_call(nb::module_& module) {
  module.def("memory_call", &memory_call);
  module.def("use_tensors", &tensors::use, nb::arg(), nb::arg(), nb::arg().none());
  module.def("have_storage", &tensors::have_storage);
  module.def("stream_of", &tensors::stream_of);
  module.def("type_code", [](nb::handle dtype) -> nb::object {
    if (PyArray_DescrCheck(dtype.ptr()) == 0) return nb::none();
    const Int code = code_of_descr(reinterpret_cast<PyArray_Descr*>(dtype.ptr()));
    return code < 0 ? nb::none() : nb::object(nb::int_(code));
  });
}

}  // namespace anydml::python

#include "failures.hpp"

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace anydml::python {
namespace {

nb::object error_class(const char* name) {
  return nb::module_::import_("anydml.core.errors").attr(name);
}

[[noreturn]] void raise(const nb::object& kind, const nb::object& error) {
  PyErr_SetObject(kind.ptr(), error.ptr());
  throw nb::python_error();
}

}  // namespace

void raise_allocation(const char* call, unsigned long long bytes, const char* purpose) {
  const nb::object kind = error_class("AllocationError");
  const nb::object amount = bytes == kUncounted ? nb::none() : nb::object(nb::int_(bytes));
  raise(kind, kind(call, amount, purpose));
}

void raise_allocation(const char* call, const nb::tuple& shape, const PyArray_Descr* descr,
                      const char* purpose) {
  nb::object bytes = nb::int_(static_cast<Int>(PyDataType_ELSIZE(descr)));
  for (nb::handle size : shape) bytes = bytes * size;
  if (PyObject_IsTrue(bytes.ptr()) == 0)
    // Not out of memory: NumPy multiplies the other sizes of an empty array as well.
    raise_argument(std::string(call) + ": expected sizes that a NumPy array can have for " +
                   purpose + ", got " + nb::cast<std::string>(nb::str(shape)));
  const nb::object kind = error_class("AllocationError");
  raise(kind, kind(call, bytes, purpose));
}

void raise_set(const char* call, unsigned long long bytes, const char* purpose) {
  if (PyErr_ExceptionMatches(PyExc_MemoryError) == 0) throw nb::python_error();
  PyErr_Clear();
  raise_allocation(call, bytes, purpose);
}

void raise_device(const std::string& message) {
  const nb::object kind = error_class("DeviceError");
  raise(kind, kind(nb::str(message.c_str())));
}

void raise_bad_index(const cuda::BadIndexFound& bad) {
  const cuda::BadIndex& found = bad.found;
  nb::list sizes;
  for (const Int size : found.sizes) sizes.append(size);
  const nb::object value = found.is_signed
                               ? nb::object(nb::int_(found.value))
                               : nb::object(nb::int_(static_cast<unsigned long long>(found.value)));
  const nb::object error =
      nb::module_::import_("anydml.devices.backends.cuda")
          .attr("bad_index")(found.indices.c_str(), nb::tuple(sizes), found.is_signed,
                             found.position, value, found.axis, found.size, bad.device, bad.earlier,
                             found.captured, found.more);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

void raise_argument(const std::string& message) {
  const nb::object kind = error_class("ArgumentError");
  raise(kind, kind(nb::str(message.c_str())));
}

}  // namespace anydml::python

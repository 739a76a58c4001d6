// Chains of elementwise operations on NumPy's arrays (native/elements/cpu/chain.cpp).
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "failures.hpp"
#include "kernel.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

// Runs a chain on arrays of floats that are packed, all of one size, and returns whether they were.
// `numbers` are the kernel's; who calls has made them.
bool chain(const nb::tuple& arrays, const std::vector<Int>& numbers, int threads) {
  std::vector<void*> operands;
  Int count = -1;
  for (nb::handle item : arrays) {
    if (!PyArray_CheckExact(item.ptr())) return false;
    auto* const array = reinterpret_cast<PyArrayObject*>(item.ptr());
    if (PyArray_TYPE(array) != NPY_FLOAT || !PyArray_ISCARRAY_RO(array)) return false;
    if (count >= 0 && PyArray_SIZE(array) != count) return false;
    count = PyArray_SIZE(array);
    operands.push_back(PyArray_DATA(array));
  }
  translate_exceptions("chain", [&] {
    const nb::gil_scoped_release unlocked;
    call_kernel<&run_chain>(operands, count, numbers.data(), threads);
  });
  return true;
}

std::vector<std::string> chain_operations() {
  return {
#define ANYDML_OPERATION(name, value) #name,
#include "common/chain.def"
#undef ANYDML_OPERATION
  };
}

}  // namespace

void bind_chain(nb::module_& module) {
  module.def("chain", &chain);
  module.def("chain_operations", &chain_operations);
}

}  // namespace anydml::python

// The extension module: bindings, and the host side of the GPU kernels, built for the oldest
// processor. The CPU kernels are libraries that it loads.
#define ANYDML_IMPORT_NUMPY
#include "kernel.hpp"
#include "types.hpp"

#include <string>

#include <nanobind/stl/string.h>

#include "loaded_kernels.hpp"
#include "runtime/cpu/threads.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

nb::tuple pool() {
  const PoolState state = pool_state();
  return nb::make_tuple(state.limit, state.held, state.lent);
}

}  // namespace
}  // namespace anydml::python

NB_MODULE(_bindings, module) {
  using namespace anydml::python;
  // A daemon thread that is in a call at exit never releases the references that it holds.
  nb::set_leak_warnings(false);
  if (PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
  module.def("load_kernels", &load_kernels);
  module.def("available_threads", &anydml::available_threads);
  module.def("pool", &pool);
  module.def("pool_peak", &anydml::pool_peak);
  module.def("set_pool_limit", [](std::size_t bytes) { anydml::pool_set_limit(bytes); });
  bind_types(module);
  bind_compiled_call(module);
  bind_cuda(module);
  bind_call(module);
  bind_numpy(module);
  bind_tensors(module);
  bind_xla(module);
  bind_call_key(module);
  bind_chain(module);
}

// The native extension of one instruction-set level. Every level is a module of its own, so that no
// inline function compiled for a newer processor can be linked into an older one's code.
#define ANYDML_IMPORT_NUMPY
#include "added_types.hpp"
#include "memory_call.hpp"

#include <string>

#include <nanobind/stl/string.h>

#include "../cpu/runtime/threads.hpp"

namespace nb = nanobind;

#ifndef ANYDML_LEVEL
#define ANYDML_LEVEL "baseline"
#endif

namespace anydml::python {
namespace {

nb::tuple pool() {
  const PoolState state = pool_state();
  return nb::make_tuple(state.limit, state.held, state.lent);
}

}  // namespace
}  // namespace anydml::python

NB_MODULE(ANYDML_MODULE, module) {
  using namespace anydml::python;
  // A daemon thread that the exit finds in a call never gives back what it holds.
  nb::set_leak_warnings(false);
  if (PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
  module.attr("level") = ANYDML_LEVEL;
  module.def("available_threads", &anydml::available_threads);
  module.def("pool", &pool);
  module.def("pool_peak", &anydml::pool_peak);
  module.def("set_pool_limit", [](std::size_t bytes) { anydml::pool_set_limit(bytes); });
  bind_added_types(module);
  bind_door(module);
  bind_quick(module);
  bind_memory_call(module);
  bind_binder(module);
  bind_cuda(module);
}

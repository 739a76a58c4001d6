// The library of kernels that was loaded, and what of it the module calls without a kernel.
#include "loaded_kernels.hpp"

#include <dlfcn.h>
#include <nanobind/nanobind.h>
#include <Python.h>

#include <cstring>

namespace anydml {
namespace {

const KernelTable* table;

}  // namespace

namespace python {

const char* load_kernels(const char* path) {
  const auto refuse = [&](const char* why) {
    PyErr_Format(PyExc_ImportError,
                 "%s: expected a library of kernels that was built with this installation of "
                 "anydml (%s); install anydml again",
                 path, why);
    throw nanobind::python_error();
  };
  if (table != nullptr) return table->level;
  // Never unloaded, and with local symbols: threads of the pool run its code until the process
  // ends.
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) refuse(dlerror());
  void* const function = dlsym(library, "anydml_kernels");
  if (function == nullptr) refuse("it has no kernels");
  const KernelTable* const loaded = reinterpret_cast<decltype(&anydml_kernels)>(function)();
  if (std::strcmp(loaded->interface, ANYDML_INTERFACE) != 0) refuse("it is of another build");
  table = loaded;
  return table->level;
}

const KernelTable& loaded_kernels() { return *table; }

}  // namespace python

int available_threads() { return table->available_threads(); }

void* pool_acquire(std::size_t bytes) { return table->pool_acquire(bytes); }

void pool_release(void* block) { table->pool_release(block); }

PoolState pool_state() { return table->pool_state(); }

std::size_t pool_peak() { return table->pool_peak(); }

void pool_set_limit(std::size_t bytes) { table->pool_set_limit(bytes); }

}  // namespace anydml

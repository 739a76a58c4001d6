// The functions of the kernels as the module calls them: each goes through the table of the library
// that was loaded (native/cpu/interface.hpp).
#include "loaded_kernels.hpp"

#include <dlfcn.h>
#include <nanobind/nanobind.h>
#include <Python.h>

#include <cstring>
#include <type_traits>

#include "../cpu/interface.hpp"

namespace anydml {
namespace {

const KernelTable* table;

template <class Function, class... Arguments>
auto call(Function function, const Arguments&... arguments) {
  Failure failure;
  const auto check = [&] {
    if (failure.purpose != nullptr) throw AllocationFailed(failure.bytes, failure.purpose);
  };
  if constexpr (std::is_void_v<std::invoke_result_t<Function, const Arguments&..., Failure&>>) {
    function(arguments..., failure);
    check();
  } else {
    auto result = function(arguments..., failure);
    check();
    return result;
  }
}

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

}  // namespace python

void TopKPlan::run(const void* in, void* out, void* at, int threads) const {
  call(table->top_k, *this, in, out, at, threads);
}

NonzeroPlan::Found NonzeroPlan::scan(const void* in, int threads) const {
  return call(table->nonzero_scan, *this, in, threads);
}

void NonzeroPlan::write(const Found& found, const Tensor& rows, void* out, int threads) const {
  call(table->nonzero_write, *this, found, rows, out, threads);
}

Status ScatterPlan::run(const void* in, const void* at, const void* from, void* out,
                        bool output_is_private, int threads) const {
  return call(table->scatter, *this, in, at, from, out, output_is_private, threads);
}

Status ScatterNdPlan::run(const void* in, const void* at, const void* from, void* out,
                          bool output_is_private, int threads) const {
  return call(table->scatter_nd, *this, in, at, from, out, output_is_private, threads);
}

void copy_elements(const Layout& target_layout, void* target, const Layout& source_layout,
                   const void* source, int element_size, int threads) {
  call(table->copy_elements, target_layout, target, source_layout, source, element_size, threads);
}

void SlabsPlan::split(const void* in, void* const* out, int threads) const {
  call(table->split, *this, in, out, threads);
}

void SlabsPlan::join(const void* const* in, void* out, int threads) const {
  call(table->join, *this, in, out, threads);
}

void CastPlan::run(const void* in, void* out, int threads) const {
  call(table->cast, *this, in, out, threads);
}

void IdentityPlan::run(const void* in, void* out, int threads) const {
  call(table->identity, *this, in, out, threads);
}

void SequencePlan::run(void* out, int threads) const { call(table->sequence, *this, out, threads); }

void PaddingPlan::run(const void* in, void* out, int threads) const {
  call(table->padding, *this, in, out, threads);
}

void ReversePlan::run(const void* in, const void* at, void* out, int threads) const {
  call(table->reverse, *this, in, at, out, threads);
}

void UpsamplePlan::run(const void* in, void* out, int threads) const {
  call(table->upsample, *this, in, out, threads);
}

Status GatherPlan::run(const void* in, const void* at, void* out, bool output_is_private,
                       int threads) const {
  return call(table->gather, *this, in, at, out, output_is_private, threads);
}

Status GatherElementsPlan::run(const void* in, const void* at, void* out, bool output_is_private,
                               int threads) const {
  return call(table->gather_elements, *this, in, at, out, output_is_private, threads);
}

Status GatherNdPlan::run(const void* in, const void* at, void* out, bool output_is_private,
                         int threads) const {
  return call(table->gather_nd, *this, in, at, out, output_is_private, threads);
}

namespace kernels {
#define ANYDML_KERNEL(name) \
  Status name(const Work& work) { return call(table->kernels.name, work); }
#include "kernels.def"
#undef ANYDML_KERNEL
}  // namespace kernels

int available_threads() { return table->available_threads(); }

void* pool_acquire(std::size_t bytes) { return table->pool_acquire(bytes); }

void pool_release(void* block) { table->pool_release(block); }

PoolState pool_state() { return table->pool_state(); }

std::size_t pool_peak() { return table->pool_peak(); }

void pool_set_limit(std::size_t bytes) { table->pool_set_limit(bytes); }

}  // namespace anydml

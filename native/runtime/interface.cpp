#include "runtime/interface.hpp"

namespace {

using namespace anydml;

constexpr KernelTable kTable{
    .interface = ANYDML_INTERFACE,
    .level = ANYDML_LEVEL,
    .functions = {},
    .available_threads = available_threads,
    .pool_acquire = pool_acquire,
    .pool_release = pool_release,
    .pool_state = pool_state,
    .pool_peak = pool_peak,
    .pool_set_limit = pool_set_limit,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const KernelTable* anydml_kernels() {
  return &kTable;
}

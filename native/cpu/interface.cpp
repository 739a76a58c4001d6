#include "interface.hpp"

namespace {

using namespace anydml;

constexpr KernelTable kTable{
    .interface = ANYDML_INTERFACE,
    .level = ANYDML_LEVEL,
    .top_k = Sealed<&TopKPlan::run>::run,
    .nonzero_scan = Sealed<&NonzeroPlan::scan>::run,
    .nonzero_write = Sealed<&NonzeroPlan::write>::run,
    .scatter = Sealed<&ScatterPlan::run>::run,
    .scatter_nd = Sealed<&ScatterNdPlan::run>::run,
    .copy_elements = Sealed<&copy_elements>::run,
    .split = Sealed<&SlabsPlan::split>::run,
    .join = Sealed<&SlabsPlan::join>::run,
    .cast = Sealed<&CastPlan::run>::run,
    .identity = Sealed<&IdentityPlan::run>::run,
    .sequence = Sealed<&SequencePlan::run>::run,
    .padding = Sealed<&PaddingPlan::run>::run,
    .reverse = Sealed<&ReversePlan::run>::run,
    .upsample = Sealed<&UpsamplePlan::run>::run,
    .gather = Sealed<&GatherPlan::run>::run,
    .gather_elements = Sealed<&GatherElementsPlan::run>::run,
    .gather_nd = Sealed<&GatherNdPlan::run>::run,
    .kernels =
        {
#define ANYDML_KERNEL(name) .name = Sealed<&anydml::kernels::name>::run,
#include "kernels.def"
#undef ANYDML_KERNEL
        },
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

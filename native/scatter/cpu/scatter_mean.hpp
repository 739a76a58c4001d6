// SCATTER and SCATTER_ND with plans for a mean.
#pragma once

#include "runtime/plans.hpp"

namespace anydml::scatter {

Status run_mean(const ScatterPlan& plan, const void* input, const void* indices,
                const void* updates, void* output, bool output_is_private, int threads);
Status run_mean(const ScatterNdPlan& plan, const void* input, const void* indices,
                const void* updates, void* output, bool output_is_private, int threads);

}  // namespace anydml::scatter

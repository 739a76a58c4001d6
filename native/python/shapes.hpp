// Whether the operands of a kernel fit together.
//
// The last check before a kernel runs, on the very layouts that it gets: whatever a caller has
// checked before, and whatever has changed since then (an operand's own methods may run in
// between), no kernel reads or writes out of bounds. Null where all fits, else what does not.
#pragma once

#include "../cpu/plans.hpp"

namespace anydml::python {

const char* misfit(const TopKPlan& plan);
const char* misfit(const NonzeroPlan& plan);
const char* misfit(const NonzeroPlan& plan, Int count, const Tensor& rows);
const char* misfit(const ScatterPlan& plan);
const char* misfit(const ScatterNdPlan& plan);
const char* misfit(const GatherPlan& plan);
const char* misfit(const GatherElementsPlan& plan);
const char* misfit(const GatherNdPlan& plan);

// The next part of a plan of slabs; and all of them together.
const char* misfit(const SlabsPlan& plan, const Tensor& part);
const char* misfit(const SlabsPlan& plan);
const char* misfit_of_copy(const Tensor& target, const Tensor& source);

bool is_index(DataType type);

}  // namespace anydml::python

// How GATHER_ELEMENTS runs; gather_elements.cpp knows when, the tests force each.
#pragma once

#include "runtime/plans.hpp"

namespace anydml {

enum class GatherElementsMethod {
  choose,
  direct,  // every element from where it is
  strips,  // off the last axis: a strip of columns at a time, packed into scratch
};

// Runs by the given method and fills in the status, or returns false where it does not apply.
bool gather_elements_by(const GatherElementsPlan& plan, GatherElementsMethod method,
                        const void* input, const void* indices, void* output,
                        bool output_is_private, int threads, Status& status);

}  // namespace anydml

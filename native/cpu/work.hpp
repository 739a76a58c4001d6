// Kernels that are one function each: native/cpu/kernels/NAME.cpp defines kernels::NAME.
//
// CMake lists them (kernels.cmake); the table of a library, the module's calls through it and the
// declarations below follow. What native/cpu/plans.hpp says of plans holds for them: natural
// shapes, any strides, sizes and attributes that have been checked, index values that have not.
#pragma once

#include "plans.hpp"

namespace anydml {

struct Work {
  struct Memory {
    const Tensor* tensor;
    void* data;
  };
  const Memory* operands;  // inputs, then outputs
  const Int* numbers;      // attributes, as the registration declares them
  bool output_is_private;  // outputs are discarded if an index is bad
  int threads;
};

namespace kernels {
#define ANYDML_KERNEL(name) Status name(const Work& work);
#include "kernels.def"
#undef ANYDML_KERNEL
}  // namespace kernels

}  // namespace anydml

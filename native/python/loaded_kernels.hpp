// Calls of kernels: each goes through the table of the library that was loaded.
#pragma once

#include <type_traits>

#include "runtime/interface.hpp"

namespace anydml::python {

// Loads a library of kernels, once; returns its level. ImportError if it is of another build.
const char* load_kernels(const char* path);

const KernelTable& loaded_kernels();

// Calls a function of the table; a method's plan comes first.
template <auto function, class... Arguments>
auto call_kernel(const Arguments&... arguments) {
  const Slot<function>& slot = loaded_kernels().functions;
  Failure failure;
  const auto check = [&] {
    if (failure.purpose != nullptr) throw AllocationFailed(failure.bytes, failure.purpose);
  };
  if constexpr (std::is_void_v<
                    std::invoke_result_t<Entry<function>, const Arguments&..., Failure&>>) {
    slot.run(arguments..., failure);
    check();
  } else {
    auto result = slot.run(arguments..., failure);
    check();
    return result;
  }
}
template <class Plan, class... Arguments>
auto run_plan(const Plan& plan, const Arguments&... arguments) {
  return call_kernel<&Plan::run>(plan, arguments...);
}

}  // namespace anydml::python

// What a library of kernels offers to the extension module: one table of functions.
//
// The kernels are compiled once for each instruction-set level, into a library that exports
// anydml_kernels() and nothing else; the pools of threads and memory are in it. The module, which
// is compiled once for the oldest processor, loads one of them (native/python/loaded_kernels.cpp).
// Both compile the headers below for themselves, and layouts of structures are the same at every
// level, so that no inline function of a newer level is linked into the module. No exception
// leaves a library: it becomes a Failure, and an exception again on the other side.
#pragma once

#include <limits>

#include "runtime/cpu/threads.hpp"
#include "runtime/plans.hpp"

namespace anydml {

// Memory that a kernel could not get, or nothing (purpose is null).
struct Failure {
  unsigned long long bytes = 0;
  const char* purpose = nullptr;
};

// A kernel as the table has it: an AllocationFailed becomes a Failure. Kernels throw nothing else.
template <class Result, class Kernel>
Result sealed(Failure& failure, Kernel kernel) noexcept {
  try {
    return kernel();
  } catch (const AllocationFailed& error) {
    failure = {error.bytes(), error.purpose()};
  } catch (const std::bad_alloc&) {
    failure = {std::numeric_limits<unsigned long long>::max(), "scratch"};
  }
  return Result();
}

template <auto function>
struct Sealed;
template <class Plan, class Result, class... Arguments, Result (Plan::*method)(Arguments...) const>
struct Sealed<method> {
  static Result run(const Plan& plan, Arguments... arguments, Failure& failure) noexcept {
    return sealed<Result>(failure, [&] { return (plan.*method)(arguments...); });
  }
};
template <class Result, class... Arguments, Result (*function)(Arguments...)>
struct Sealed<function> {
  static Result run(Arguments... arguments, Failure& failure) noexcept {
    return sealed<Result>(failure, [&] { return function(arguments...); });
  }
};
template <auto function>
using Entry = decltype(&Sealed<function>::run);

// The entries of functions, each by its function.
template <auto function>
struct Slot {
  Entry<function> run = &Sealed<function>::run;
};
template <auto... functions>
struct Slots : Slot<functions>... {};

struct KernelTable {
  const char* interface;  // ANYDML_INTERFACE: of the headers that both sides were compiled with
  const char* level;

  Slots<&TopKPlan::run, &NonzeroPlan::scan, &NonzeroPlan::write, &ScatterPlan::run,
        &ScatterNdPlan::run, &SlabsPlan::split, &SlabsPlan::join, &CastPlan::run,
        &IdentityPlan::run, &SequencePlan::run, &PaddingPlan::run, &ReversePlan::run,
        &UpsamplePlan::run, &GatherPlan::run, &GatherElementsPlan::run, &GatherNdPlan::run,
        &OneHotPlan::run, &run_chain, &copy_elements>
      functions;

  // These do not throw.
  decltype(&anydml::available_threads) available_threads;
  decltype(&anydml::pool_acquire) pool_acquire;
  decltype(&anydml::pool_release) pool_release;
  decltype(&anydml::pool_state) pool_state;
  decltype(&anydml::pool_peak) pool_peak;
  decltype(&anydml::pool_set_limit) pool_set_limit;
};

}  // namespace anydml

extern "C" const anydml::KernelTable* anydml_kernels();

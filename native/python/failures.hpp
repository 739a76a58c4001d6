// What goes wrong in a native call, as the package's own exceptions.
#pragma once

#include <string>

#include "../cuda/host/bad_indices.hpp"
#include "../cuda/host/queue.hpp"
#include "numpy.hpp"
// nanobind after Python.h, which numpy.hpp includes first.
#include <nanobind/nanobind.h>

namespace anydml::python {

// The bytes of something that could not even be counted.
constexpr unsigned long long kUncounted = ~0ull;

// AllocationError: a call could not allocate this many bytes for a purpose.
[[noreturn]] void raise_allocation(const char* call, unsigned long long bytes, const char* purpose);

// The same for an array of these sizes (Python integers, however large).
[[noreturn]] void raise_allocation(const char* call, const nanobind::tuple& shape,
                                   const PyArray_Descr* descr, const char* purpose);

// The exception that is set, or AllocationError in place of a plain MemoryError.
[[noreturn]] void raise_set(const char* call, unsigned long long bytes, const char* purpose);

// DeviceError: what a GPU, its driver or its compiler refused.
[[noreturn]] void raise_device(const std::string& message);

// IndexOutOfRangeError: what a GPU has found, in this call or in an earlier one.
[[noreturn]] void raise_bad_index(const cuda::BadIndexFound& bad);

// ArgumentError: operands that a kernel cannot take, whatever has been checked before.
[[noreturn]] void raise_argument(const std::string& message);

// Runs the body of a native call; memory that is not to be had becomes an AllocationError that
// names the call.
template <class Body>
decltype(auto) translate_exceptions(const char* call, Body&& body) {
  try {
    return body();
  } catch (const AllocationFailed& failed) {
    raise_allocation(call, failed.bytes(), failed.purpose());
  } catch (const std::bad_alloc&) {
    raise_allocation(call, kUncounted, "the list of arrays");
  } catch (const cuda::DeviceFailed& failed) {
    raise_device(failed.what());
  } catch (const cuda::BadIndexFound& bad) {
    raise_bad_index(bad);
  } catch (const std::length_error&) {  // of a vector
    raise_allocation(call, kUncounted, "the list of arrays");
  }
}

// The same around a function, to be bound: named("top_k", &top_k).
template <class Result, class... Arguments>
auto named(const char* call, Result (*function)(Arguments...)) {
  return [call, function](Arguments... arguments) -> Result {
    return translate_exceptions(
        call, [&]() -> Result { return function(std::forward<Arguments>(arguments)...); });
  };
}

}  // namespace anydml::python

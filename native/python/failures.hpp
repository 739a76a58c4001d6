// Failures of native calls as the package's own exceptions.
#pragma once

#include <string>

#include "numpy.hpp"
#include "runtime/cuda/bad_indices.hpp"
#include "runtime/cuda/queue.hpp"
// nanobind after Python.h, which numpy.hpp includes first.
#include <nanobind/nanobind.h>

namespace anydml::python {

// The size of a request that could not be counted.
constexpr unsigned long long kUncounted = ~0ull;

// AllocationError: a call could not allocate this many bytes for a purpose.
[[noreturn]] void raise_allocation(const char* call, unsigned long long bytes, const char* purpose);

// The same for an array of these sizes (Python integers, however large).
[[noreturn]] void raise_allocation(const char* call, const nanobind::tuple& shape,
                                   const PyArray_Descr* descr, const char* purpose);

// Raises the exception that is set, or AllocationError in place of a plain MemoryError.
[[noreturn]] void raise_set(const char* call, unsigned long long bytes, const char* purpose);

// DeviceError: an error of a GPU, its driver or its compiler.
[[noreturn]] void raise_device(const std::string& message);

// IndexOutOfRangeError: a bad index that a GPU has reported, in this call or an earlier one.
[[noreturn]] void raise_bad_index(const cuda::BadIndexFound& bad);

// ArgumentError: operands that a kernel cannot take, whatever Python has checked before.
[[noreturn]] void raise_argument(const std::string& message);

// Runs the body of a native call and translates C++ exceptions into Python's; a failed allocation
// becomes an AllocationError that names the call.
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
  } catch (const std::length_error&) {  // thrown by std::vector
    raise_allocation(call, kUncounted, "the list of arrays");
  }
}

}  // namespace anydml::python

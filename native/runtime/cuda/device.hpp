// One GPU: its context, its pool of scratch memory and its compiled kernels.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/cuda/bad_indices.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/cuda/host_counters.hpp"
#include "runtime/cuda/queue.hpp"

namespace anydml::cuda {

struct DeviceFacts {
  std::string name;
  std::size_t memory = 0;  // bytes
  int major = 0, minor = 0;
  int multiprocessors = 0;
};

// The properties of a device, without a context on it.
DeviceFacts facts_of(int ordinal);

struct Device {
  // Retains the primary context, which other libraries use as well, for the life of the process.
  explicit Device(int ordinal);

  // The compiled kernel, from memory, from disk or from the compiler.
  Function& function(const char* source, const char* entry, const Define* defines,
                     std::size_t count);
  // Precompiles a variant to disk. Returns whether it was missing.
  bool warm(const Variant& variant);

  int ordinal;
  CUdevice handle = 0;
  CUcontext context = nullptr;
  CUmemoryPool pool = nullptr;
  DeviceFacts facts;
  unsigned max_shared = 0;
  BadIndices bad_indices;
  HostCounters host_counters;

  // Throws BadIndexFound for reports of earlier calls; polls once, without waiting.
  void refuse_bad_indices() { raise_bad_indices(0); }
  // The same after the host has waited for the device or a stream, in the call of this number.
  void raise_bad_indices(unsigned long long call);

 private:
  Function& find_function(const char* source, const char* entry, const Define* defines,
                          std::size_t count);

  std::mutex mutex_;
  std::map<std::string, CUmodule> modules_;                     // by variant
  std::map<std::string, std::unique_ptr<Function>> functions_;  // by variant and entry

  // The same without building a text for the key, which would slow down a small call.
  struct Known {
    std::string source, entry;
    std::vector<std::pair<std::string, Int>> defines;
    Function* function;
  };
  std::unordered_multimap<std::size_t, Known> known_;
};

// The device of an ordinal; created at its first use, never destroyed.
Device& device_at(int ordinal);

// The devices created so far.
std::vector<int> devices_in_use();

}  // namespace anydml::cuda

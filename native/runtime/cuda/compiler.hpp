// NVRTC, loaded when a kernel is first compiled, and a cache of its results.
#pragma once

#include <string>
#include <vector>

#include "runtime/cuda/queue.hpp"

namespace anydml::cuda {

// A source of native/*/cuda or a header that they include; made by CMake (native/sources.cmake).
struct Source {
  const char* name;
  const char* text;
};
extern const Source kSources[];
extern const std::size_t kSourceCount;

// Paths; set before the first use.
struct CompilerPlaces {
  std::vector<std::string> libraries = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  std::string cache;    // folder; empty: no cache
  std::string version;  // of this library
};
CompilerPlaces& compiler_places();

// Called once, before the first compilation of the process that a user waits for.
extern void (*announce_compilation)();

// Macros as a compiler takes them.
std::vector<std::string> options_of(const std::vector<Define>& defines);

// Machine code of a source for an architecture ("sm_90"), with these options (-DANYDML_..), from
// the cache or compiled. `compiled` says whether it was compiled. Throws DeviceFailed.
std::string cubin_of(const std::string& source, const std::string& architecture, int driver_version,
                     const std::vector<std::string>& options, bool* compiled = nullptr);

}  // namespace anydml::cuda

#include "runtime/cuda/driver.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <mutex>

#include "runtime/cuda/queue.hpp"

namespace anydml::cuda {
namespace {

std::string& library() {
  static std::string path = "libcuda.so.1";
  return path;
}

std::atomic<const Driver*> ready{nullptr};
std::atomic<bool> forked{false};  // in a process whose parent had used the driver

const Driver* load() {
  void* const handle = dlopen(library().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw DeviceFailed("no NVIDIA driver: " + library() + " cannot be loaded");
  Driver found;
#define ANYDML_CUDA_LOAD(member, symbol, ...)                                        \
  found.member = reinterpret_cast<CUresult (*)(__VA_ARGS__)>(dlsym(handle, symbol)); \
  if (found.member == nullptr)                                                       \
    throw DeviceFailed("the NVIDIA driver is too old: it has no " symbol " (CUDA 12 has)");
  ANYDML_CUDA_FUNCTIONS(ANYDML_CUDA_LOAD)
#undef ANYDML_CUDA_LOAD
  const CUresult result = found.cuInit(0);
  if (result != kSuccess) throw DeviceFailed("no usable NVIDIA GPU: " + found.words(result));
  found.check(found.cuDriverGetVersion(&found.version), "cuDriverGetVersion");
  found.check(found.cuDeviceGetCount(&found.devices), "cuDeviceGetCount");
  pthread_atfork(nullptr, nullptr, [] {
    ready = nullptr;
    forked = true;
  });
  return new Driver(found);  // never destroyed: calls may come while statics are destroyed
}

}  // namespace

std::string Driver::words(CUresult result) const {
  const char* text = nullptr;
  if (cuGetErrorString == nullptr || cuGetErrorString(result, &text) != kSuccess || text == nullptr)
    text = "unknown error";
  return std::string(text) + " (" + std::to_string(result) + ")";
}

void Driver::check(CUresult result, const char* what) const {
  if (result == kSuccess) return;
  throw DeviceFailed(std::string(what) + ": " + words(result));
}

const Driver& driver() {
  if (const Driver* const known = ready) return *known;
  if (forked)
    throw DeviceFailed(
        "CUDA was used before this process was forked, and does not work in it; start processes by "
        "'spawn' or 'forkserver'");
  static std::mutex* const mutex = new std::mutex;
  const std::lock_guard<std::mutex> lock(*mutex);
  if (ready == nullptr) ready = load();  // tried again at the next call when it throws
  return *ready;
}

void set_driver_library(const std::string& path) { library() = path; }

}  // namespace anydml::cuda

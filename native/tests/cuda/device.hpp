// Helpers of the tests on a GPU: memory on the device, and times of kernels.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "runtime/cuda/device.hpp"
#include "runtime/cuda/queue.hpp"
#include "tests/harness.hpp"

namespace anydml::test {

// Functions of the driver that only tests need.
template <class... Arguments>
void driver_call(const char* symbol, Arguments... arguments) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, symbol));
  EXPECT(function != nullptr, "%s", symbol);
  const int result = function(arguments...);
  EXPECT(result == 0, "%s: %d", symbol, result);
}

class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes) : bytes_(bytes) {
    driver_call("cuMemAlloc_v2", &address_, std::max<std::size_t>(bytes, 1));
  }
  DeviceMemory(const void* host, std::size_t bytes) : DeviceMemory(bytes) { write(host); }
  ~DeviceMemory() { driver_call("cuMemFree_v2", address_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void write(const void* host) { driver_call("cuMemcpyHtoD_v2", address_, host, bytes_); }
  void read(void* host) const { driver_call("cuMemcpyDtoH_v2", host, address_, bytes_); }
  void fill(unsigned char byte) { driver_call("cuMemsetD8_v2", address_, byte, bytes_); }
  char* data() const { return reinterpret_cast<char*>(address_); }
  std::size_t size() const { return bytes_; }

 private:
  unsigned long long address_ = 0;
  std::size_t bytes_;
};

// The median time of some repetitions in ms, with the second-level cache flushed before each. The
// flush also lets the host get ahead of the GPU.
class Timer {
 public:
  Timer() : flush_(std::size_t{256} << 20) {
    driver_call("cuEventCreate", &begin_, 0u);
    driver_call("cuEventCreate", &end_, 0u);
  }
  template <class Work>
  double median(int repetitions, const Work& work) {
    std::vector<double> times;
    for (int i = 0; i < repetitions; ++i) {
      void* const stream = nullptr;
      for (int twice = 0; twice < 2; ++twice)
        driver_call("cuMemsetD8Async", reinterpret_cast<unsigned long long>(flush_.data()),
                    static_cast<unsigned char>(i), flush_.size(), stream);
      driver_call("cuEventRecord", begin_, stream);
      work();
      driver_call("cuEventRecord", end_, stream);
      driver_call("cuEventSynchronize", end_);
      float milliseconds = 0;
      driver_call("cuEventElapsedTime", &milliseconds, begin_, end_);
      times.push_back(static_cast<double>(milliseconds));
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

 private:
  DeviceMemory flush_;
  void* begin_ = nullptr;
  void* end_ = nullptr;
};

// Bytes a millisecond of a copy on the device, both directions counted.
inline double copy_rate(Timer& timer) {
  const std::size_t bytes = std::size_t{1} << 30;
  DeviceMemory from(bytes), to(bytes);
  from.fill(1);
  const double ms = timer.median(9, [&] {
    driver_call("cuMemcpyDtoDAsync_v2", reinterpret_cast<unsigned long long>(to.data()),
                reinterpret_cast<unsigned long long>(from.data()), bytes,
                static_cast<void*>(nullptr));
  });
  return 2 * static_cast<double>(bytes) / ms;
}

}  // namespace anydml::test

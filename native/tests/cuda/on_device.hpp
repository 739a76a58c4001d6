// Helpers of the tests of GPU kernels: operands in host and device memory, of which every byte is
// compared, and times by events.
#pragma once

#include <dlfcn.h>

#include <functional>
#include <memory>
#include <string>

#include "runtime/cuda/compiler.hpp"
#include "runtime/cuda/device.hpp"
#include "runtime/cuda/plans.hpp"
#include "tests/numbers.hpp"

namespace anydml::test {

// Driver functions that the library does not use.
struct Events {
  int (*create)(void**, unsigned) = nullptr;
  int (*record)(void*, void*) = nullptr;
  int (*wait)(void*) = nullptr;
  int (*elapsed)(float*, void*, void*) = nullptr;
  int (*allocate)(unsigned long long*, std::size_t) = nullptr;
  int (*release)(unsigned long long) = nullptr;
  int (*upload)(unsigned long long, const void*, std::size_t) = nullptr;
  int (*download)(void*, unsigned long long, std::size_t) = nullptr;
  int (*enter)(void*) = nullptr;

  Events() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    const auto find = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      EXPECT(function != nullptr, "%s", name);
    };
    find(create, "cuEventCreate");
    find(record, "cuEventRecord");
    find(wait, "cuEventSynchronize");
    find(elapsed, "cuEventElapsedTime");
    find(allocate, "cuMemAlloc_v2");
    find(release, "cuMemFree_v2");
    find(upload, "cuMemcpyHtoD_v2");
    find(download, "cuMemcpyDtoH_v2");
    find(enter, "cuCtxSetCurrent");
  }
};
inline const Events& events() {
  static const Events found;
  return found;
}

inline cuda::Device& device() {
  static cuda::Device& first = []() -> cuda::Device& {
    if (const char* const cache = std::getenv("ANYDML_TEST_CACHE")) {
      cuda::compiler_places().cache = cache;
      // A cache key that finds what `anydml warm` has compiled.
      const char* const version = std::getenv("ANYDML_TEST_VERSION");
      cuda::compiler_places().version = version == nullptr ? "test" : version;
    }
    cuda::Device& gpu = cuda::device_at(0);
    EXPECT(events().enter(gpu.context) == 0, "context");
    return gpu;
  }();
  return first;
}

// Runs work on the device and waits for it.
template <class Work>
void on_device(Work&& work) {
  cuda::Queue queue(device(), nullptr);
  work(queue);
  queue.wait(true);
}

class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes) {
    device();
    EXPECT(events().allocate(&address_, std::max<std::size_t>(bytes, 16)) == 0, "%zu bytes", bytes);
  }
  ~DeviceMemory() { events().release(address_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  char* get() const { return reinterpret_cast<char*>(address_); }
  void upload(const void* from, std::size_t bytes) const {
    EXPECT(events().upload(address_, from, bytes) == 0, "upload");
  }
  void download(void* to, std::size_t bytes) const {
    EXPECT(events().download(to, address_, bytes) == 0, "download");
  }

 private:
  unsigned long long address_ = 0;
};

// A tensor of random bytes twice, with margins around it: the CPU works on one, the GPU on the
// other.
class Operand {
 public:
  Operand(Random& random, const std::vector<Int>& sizes, int element_size, DataType type,
          Strides strides, Role role) {
    tensor.type = type;
    tensor.element_size = element_size;
    const int rank = static_cast<int>(sizes.size());
    std::vector<int> order(sizes.size());
    for (int i = 0; i < rank; ++i) order[static_cast<std::size_t>(i)] = i;
    const bool any = strides == Strides::any, stepped = strides == Strides::stepped;
    if (any && random.chance(0.6))
      for (int i = rank - 1; i > 0; --i)
        std::swap(order[static_cast<std::size_t>(i)],
                  order[static_cast<std::size_t>(random.between(0, i))]);
    for (Int size : sizes) tensor.layout.push(size, 0);
    Int stride = element_size, low = 0, high = element_size;
    if (stepped) stride *= random.chance(0.6) ? 2 : random.between(1, 6);
    for (int n = rank - 1; n >= 0; --n) {
      const int i = order[static_cast<std::size_t>(n)];
      const Int size = tensor.layout.sizes[i];
      if (any && random.chance(0.3)) stride += random.between(0, 9) * element_size;
      Int own = stride;
      if (any && role == Role::input && random.chance(0.15)) own = 0;
      if ((any || stepped) && random.chance(0.15)) own = -own;
      tensor.layout.strides[i] = own;
      if (size > 1) (own < 0 ? low : high) += (size - 1) * own;
      if (own != 0) stride = std::abs(own) * std::max<Int>(size, 1);
    }
    // At any element of a line, but usually at its beginning.
    const Int lead = random.chance(0.5) ? 0 : random.between(0, 15) * element_size;
    origin_ = (kMarginBytes - low + 15) / 16 * 16 + lead;
    bytes.resize(static_cast<std::size_t>(origin_ + high + kMarginBytes));
    random.fill(bytes.data(), bytes.size());
  }

  char* host() { return reinterpret_cast<char*>(bytes.data()) + origin_; }
  char* on_gpu() {
    if (gpu_ == nullptr) {
      gpu_ = std::make_unique<DeviceMemory>(bytes.size());
      gpu_->upload(bytes.data(), bytes.size());
    }
    return gpu_->get() + origin_;
  }
  char* at(Int flat) { return host() + offset_at(tensor.layout, flat); }
  Int count() const { return tensor.layout.count(); }
  // Whether both memories are equal after the CPU and the GPU have worked.
  bool same(std::string& where) {
    std::vector<unsigned char> found(bytes.size());
    gpu_->download(found.data(), found.size());
    if (found == bytes) return true;
    std::size_t at = 0;
    while (found[at] == bytes[at]) ++at;
    std::size_t differ = 0;
    for (std::size_t i = 0; i < found.size(); ++i) differ += found[i] != bytes[i] ? 1 : 0;
    where = "byte " + std::to_string(static_cast<Int>(at) - origin_) +
            " from the first element: " + std::to_string(found[at]) + ", not " +
            std::to_string(bytes[at]) + "; " + std::to_string(differ) + " bytes differ";
    return false;
  }
  std::string text() const {
    std::string all = "{";
    for (int i = 0; i < tensor.layout.rank; ++i)
      all += (i > 0 ? " " : "") + std::to_string(tensor.layout.sizes[i]) + ":" +
             std::to_string(tensor.layout.strides[i]);
    return all + "} type " + std::to_string(static_cast<int>(tensor.type)) + " of " +
           std::to_string(tensor.element_size) + " at " + std::to_string(origin_ % 16);
  }

  Tensor tensor;
  std::vector<unsigned char> bytes;

 private:
  static constexpr Int kMarginBytes = 256;
  Int origin_ = 0;
  std::unique_ptr<DeviceMemory> gpu_;
};

// Counts failures and prints the first ones.
struct Outcome {
  Int passed = 0, failed = 0;

  void add(bool good, const std::string& what) {
    ++(good ? passed : failed);
    if (!good && failed <= 20) std::printf("FAILED %s\n", what.c_str());
  }
  void expect(Operand& operand, const std::string& what) {
    std::string where;
    const bool good = operand.same(where);
    add(good, what + ": " + where);
  }
  int exit_status(const char* name) const {
    std::printf("%s: %lld passed, %lld failed\n", name, passed, failed);
    return failed == 0 && passed > 0 ? 0 : 1;
  }
};

inline std::vector<Int> random_sizes(Random& random, int max_rank, Int limit) {
  std::vector<Int> sizes;
  for (Int i = random.between(0, max_rank); i > 0; --i) {
    sizes.push_back(random.chance(0.02) ? 0 : random.between(1, random.chance(0.4) ? limit : 5));
    limit = std::max<Int>(1, limit / std::max<Int>(1, sizes.back()));
  }
  return sizes;
}

// ---- times --------------------------------------------------------------------------------------

class Clock {
 public:
  Clock() : flush_(kFlush) {
    for (void*& event : marks_) EXPECT(events().create(&event, 0) == 0, "event");
  }

  // The median of some runs in ms, with cold caches.
  double time(const std::function<void(cuda::Queue&)>& work, int repetitions = 11) {
    std::vector<float> times;
    for (int i = 0; i < repetitions + 2; ++i) {
      cuda::Queue queue(device(), nullptr);
      queue.zero(flush_.get(), kFlush);
      events().record(marks_[0], nullptr);
      work(queue);
      events().record(marks_[1], nullptr);
      EXPECT(events().wait(marks_[1]) == 0, "the work failed");
      float ms = 0;
      events().elapsed(&ms, marks_[0], marks_[1]);
      if (i >= 2) times.push_back(ms);
    }
    std::sort(times.begin(), times.end());
    return static_cast<double>(times[times.size() / 2]);
  }

  // Bytes a ms of the driver's copy, both directions counted.
  double copy_rate() {
    constexpr Int bytes = Int{1} << 30;
    DeviceMemory from(bytes), to(bytes);
    const double ms = time([&](cuda::Queue& queue) { queue.copy(to.get(), from.get(), bytes); });
    rate_ = 2 * static_cast<double>(bytes) / ms;
    std::printf("copy of 1 GiB: %.3f ms, %.3f TB/s\n", ms, rate_ / 1e9);
    return rate_;
  }

  std::string only;  // a substring of the names of timings

  // Prints the time, and the rate of moving these bytes as a fraction of the copy's rate.
  double report(const std::string& name, double bytes,
                const std::function<void(cuda::Queue&)>& work) {
    if (name.find(only) == std::string::npos) return 0;
    const double ms = time(work);
    std::printf("%-52s %8.4f ms  %5.1f %%\n", name.c_str(), ms, 100 * bytes / ms / rate_);
    std::fflush(stdout);
    return ms;
  }

 private:
  static constexpr Int kFlush = Int{256} << 20;
  DeviceMemory flush_;
  void* marks_[2] = {};
  double rate_ = 1;
};

// Fills device memory with repetitions of a block of some MB.
inline void repeat_on_device(const DeviceMemory& memory, Int bytes,
                             const std::vector<unsigned char>& block) {
  const Int chunk = std::min<Int>(bytes, static_cast<Int>(block.size()));
  memory.upload(block.data(), static_cast<std::size_t>(chunk));
  on_device([&](cuda::Queue& queue) {
    for (Int at = chunk; at < bytes; at += chunk)
      queue.copy(memory.get() + at, memory.get(), std::min(chunk, bytes - at));
  });
}

inline const std::vector<unsigned char>& random_block() {
  static const std::vector<unsigned char> block = [] {
    Random random(1);
    std::vector<unsigned char> pattern(std::size_t{64} << 20);
    random.fill(pattern.data(), pattern.size());
    return pattern;
  }();
  return block;
}

inline Tensor packed_tensor(DataType type, int size, const std::vector<Int>& sizes) {
  Tensor tensor;
  tensor.type = type;
  tensor.element_size = size;
  for (Int s : sizes) tensor.layout.push(s, 0);
  set_packed_strides(tensor.layout, size);
  return tensor;
}

}  // namespace anydml::test

#include "runtime/cuda/device.hpp"

#include <algorithm>

#include "runtime/cuda/compiler.hpp"

namespace anydml::cuda {
namespace {

// Bytes that the pool keeps for later calls instead of releasing them to the system.
constexpr unsigned long long kCachedPoolBytes = 256ull << 20;

// Never destroyed: calls may come while static objects are destroyed.
struct Devices {
  std::mutex mutex;
  std::map<int, std::unique_ptr<Device>> by_ordinal;
};
Devices& devices() {
  static Devices* const all = new Devices;
  return *all;
}

std::size_t hash_of(const char* text, std::size_t state) {
  for (; *text != '\0'; ++text)
    state = (state ^ static_cast<unsigned char>(*text)) * 0x100000001B3ull;
  return state;
}

std::string joined(const char* source, const std::vector<std::string>& options) {
  std::string all = source;
  for (const std::string& option : options) all += " " + option;
  return all;
}

}  // namespace

DeviceFacts facts_of(int ordinal) {
  const Driver& cuda = driver();
  CUdevice handle = 0;
  cuda.check(cuda.cuDeviceGet(&handle, ordinal), "cuDeviceGet");
  DeviceFacts facts;
  char name[256] = {};
  cuda.check(cuda.cuDeviceGetName(name, sizeof name - 1, handle), "cuDeviceGetName");
  facts.name = name;
  cuda.check(cuda.cuDeviceTotalMem(&facts.memory, handle), "cuDeviceTotalMem");
  const auto attribute = [&](int which) {
    int value = 0;
    cuda.check(cuda.cuDeviceGetAttribute(&value, which, handle), "cuDeviceGetAttribute");
    return value;
  };
  facts.major = attribute(kMajor);
  facts.minor = attribute(kMinor);
  facts.multiprocessors = attribute(kMultiprocessors);
  return facts;
}

Device::Device(int number) : ordinal(number) {
  const Driver& cuda = driver();
  facts = facts_of(number);
  cuda.check(cuda.cuDeviceGet(&handle, number), "cuDeviceGet");
  int shared = 0, pools = 0;
  cuda.check(cuda.cuDeviceGetAttribute(&shared, kMaxShared, handle), "cuDeviceGetAttribute");
  cuda.check(cuda.cuDeviceGetAttribute(&pools, kMemoryPools, handle), "cuDeviceGetAttribute");
  if (pools == 0) throw DeviceFailed(facts.name + ": this device has no memory pools");
  max_shared = static_cast<unsigned>(shared);
  cuda.check(cuda.cuDevicePrimaryCtxRetain(&context, handle), "cuDevicePrimaryCtxRetain");
  MemoryPoolProperties properties;
  properties.device = number;
  cuda.check(cuda.cuMemPoolCreate(&pool, &properties), "cuMemPoolCreate");
  unsigned long long cached_bytes = kCachedPoolBytes;
  cuda.check(cuda.cuMemPoolSetAttribute(pool, kReleaseThreshold, &cached_bytes),
             "cuMemPoolSetAttribute");
}

void Device::raise_bad_indices(unsigned long long call) {
  BadIndex found;
  if (!bad_indices.take(found)) return;
  const bool earlier = found.call == 0 || found.call != call || found.captured;
  throw BadIndexFound(std::move(found), ordinal, earlier);
}

Function& Device::function(const char* source, const char* entry, const Define* defines,
                           std::size_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::size_t hash = hash_of(source, hash_of(entry, count));
  for (std::size_t i = 0; i < count; ++i)
    hash = hash_of(defines[i].name, hash ^ static_cast<std::size_t>(defines[i].value));
  const auto [begin, end] = known_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Known& known = it->second;
    if (known.source == source && known.entry == entry && known.defines.size() == count &&
        std::equal(defines, defines + count, known.defines.begin(),
                   [](const Define& define, const auto& other) {
                     return other.second == define.value && other.first == define.name;
                   }))
      return *known.function;
  }
  Known known{source, entry, {}, &find_function(source, entry, defines, count)};
  for (std::size_t i = 0; i < count; ++i)
    known.defines.emplace_back(defines[i].name, defines[i].value);
  return *known_.emplace(hash, std::move(known))->second.function;
}

Function& Device::find_function(const char* source, const char* entry, const Define* defines,
                                std::size_t count) {
  const std::vector<std::string> options = options_of({defines, defines + count});
  const std::string variant = joined(source, options);
  const std::string key = variant + " " + entry;
  const auto known = functions_.find(key);
  if (known != functions_.end()) return *known->second;
  const Driver& cuda = driver();
  CUmodule& module = modules_[variant];
  if (module == nullptr) {
    const std::string architecture =
        "sm_" + std::to_string(facts.major) + std::to_string(facts.minor);
    const std::string cubin = cubin_of(source, architecture, cuda.version, options);
    cuda.check(cuda.cuModuleLoadData(&module, cubin.data()), "cuModuleLoadData");
  }
  auto fresh = std::make_unique<Function>();
  cuda.check(cuda.cuModuleGetFunction(&fresh->handle, module, entry), "cuModuleGetFunction");
  return *(functions_[key] = std::move(fresh));
}

bool Device::warm(const Variant& variant) {
  const std::string architecture =
      "sm_" + std::to_string(facts.major) + std::to_string(facts.minor);
  bool compiled = false;
  cubin_of(variant.source, architecture, driver().version, options_of(variant.defines), &compiled);
  return compiled;
}

Device& device_at(int ordinal) {
  const int count = driver().devices;
  if (ordinal < 0 || ordinal >= count)
    throw DeviceFailed("no CUDA device " + std::to_string(ordinal) + ": this machine has " +
                       std::to_string(count));
  Devices& all = devices();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::unique_ptr<Device>& device = all.by_ordinal[ordinal];
  if (device == nullptr) device = std::make_unique<Device>(ordinal);
  return *device;
}

std::vector<int> devices_in_use() {
  Devices& all = devices();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<int> found;
  for (const auto& [ordinal, device] : all.by_ordinal)
    if (device != nullptr) found.push_back(ordinal);
  return found;
}

}  // namespace anydml::cuda

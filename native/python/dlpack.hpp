// DLPack's structures, as its specification (version 1.3) lays them out.
#pragma once

#include <cstdint>

namespace anydml::dlpack {

constexpr std::int32_t kCpu = 1, kCuda = 2;  // device types

struct Version {
  std::uint32_t major, minor;
};

struct Type {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  std::int32_t device_type, device;
  std::int32_t rank;
  Type type;
  std::int64_t* sizes;
  std::int64_t* strides;  // in elements; null where there are no gaps
  std::uint64_t offset;   // of the first element, in bytes
};

struct Managed {  // before version 1
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};

struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned*);
  std::uint64_t flags;
  Tensor tensor;
};

// The table of a library's own C functions, in the capsule "dlpack_exchange_api". Each returns 0 on
// success, and sets an exception otherwise.
struct Exchange {
  Version version;
  Exchange* previous;
  int (*allocate)(Tensor* like, ManagedVersioned** result, void* context,
                  void (*set_error)(void* context, const char* kind, const char* message));
  int (*managed_of)(void* object, ManagedVersioned** result);
  int (*object_of)(ManagedVersioned* managed, void** object);  // takes ownership
  int (*tensor_of)(void* object, Tensor* tensor);              // borrowed
  int (*current_stream)(std::int32_t device_type, std::int32_t device, void** stream);
};

}  // namespace anydml::dlpack

// XLA's foreign function interface, version 0.1, as its C header (xla/ffi/api/c_api.h) lays it out:
// only what a handler needs. Version 0.1 is the one of the oldest jaxlib that is supported (0.6.0);
// later libraries accept handlers of earlier versions, and earlier libraries refuse later ones.
// Every struct begins with its size: a library with later versions appends members.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anydml::python::xla {

constexpr int kMajorVersion = 0;
constexpr int kMinorVersion = 1;

enum ExtensionType { kMetadataExtension = 1 };
struct Extension {
  std::size_t struct_size;
  int type;
  Extension* next;
};

struct Version {
  std::size_t struct_size;
  Extension* extensions;
  int major_version, minor_version;
};

// A call frame with this extension queries the handler's properties instead of running it.
struct Metadata {
  std::size_t struct_size;
  Version version;
  std::uint32_t traits;
};
struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

struct Error;    // owned by XLA
struct Context;  // of one execution
enum ErrorCode { kInvalidArgument = 3, kResourceExhausted = 8, kOutOfRange = 11, kInternal = 13 };
struct CreateError {
  std::size_t struct_size;
  Extension* extensions;
  const char* message;
  int code;
};

struct GetStream {
  std::size_t struct_size;
  Extension* extensions;
  Context* context;
  void* stream;  // out
};
struct GetDeviceOrdinal {
  std::size_t struct_size;
  Extension* extensions;
  Context* context;
  std::int32_t ordinal;  // out
};

constexpr int kS64 = 5;  // of element types, whose numbers are in types.def

struct Buffer {
  std::size_t struct_size;
  Extension* extensions;
  int type;
  void* data;
  std::int64_t rank;
  std::int64_t* sizes;
};

enum AttributeType { kArrayAttribute = 1, kStringAttribute = 4 };
struct Text {
  const char* data;
  std::size_t size;
};
struct Array {
  int type;
  std::size_t size;
  void* data;
};

struct Buffers {
  std::size_t struct_size;
  Extension* extensions;
  std::int64_t size;
  int* types;  // 1: a Buffer
  void** items;
};
struct Attributes {
  std::size_t struct_size;
  Extension* extensions;
  std::int64_t size;
  int* types;  // AttributeType
  Text** names;
  void** values;
};

struct Api {
  std::size_t struct_size;
  Extension* extensions;
  Version version;
  const void* internal;
  Error* (*create_error)(CreateError*);
  void* unused_1[3];
  Error* (*get_stream)(GetStream*);
  void* unused_2[12];
  Error* (*get_device_ordinal)(GetDeviceOrdinal*);  // since jaxlib 0.6
};

struct CallFrame {
  std::size_t struct_size;
  Extension* extensions;
  const Api* api;
  Context* context;
  int stage;
  Buffers arguments, results;
  Attributes attributes;
  void* future;
};

using Handler = Error*(CallFrame*);

}  // namespace anydml::python::xla

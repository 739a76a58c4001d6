// GPU bindings: what Python needs of the driver and the compiler. Calls of kernels are in call.cpp.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

#include "dlpack.hpp"
#include "kernel.hpp"
#include "runtime/cuda/compiler.hpp"
#include "runtime/cuda/device.hpp"
#include "runtime/cuda/driver.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

using cuda::Queue;

void* stream_of(std::uintptr_t stream) { return reinterpret_cast<void*>(stream); }

// Runs a body that calls the driver, without the interpreter lock.
template <class Body>
void with_driver(Body&& body) {
  translate_exceptions("cuda", [&] { without_gil(kDriver, body); });
}

// The bytes of an object with the buffer protocol.
struct Bytes {
  Py_buffer view;

  Bytes(nb::handle array, int flags) {
    if (PyObject_GetBuffer(array.ptr(), &view, flags) != 0) throw nb::python_error();
  }
  ~Bytes() { PyBuffer_Release(&view); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
};

// Device memory owned by this library, for operands that no other library holds.
class Buffer {
 public:
  Buffer(int device, std::size_t bytes, std::uintptr_t stream) {
    with_driver([&] {
      queue_ = std::make_unique<Queue>(cuda::device_at(device), stream_of(stream));
      data_ = queue_->scratch(static_cast<Int>(bytes));
      queue_->leave();
    });
  }
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(data_); }

 private:
  std::unique_ptr<Queue> queue_;
  void* data_ = nullptr;
};

// A place in the work of a stream.
class Event {
 public:
  Event(int device, std::uintptr_t stream) : device_(device) {
    with_driver([&] {
      const Queue queue(cuda::device_at(device), stream_of(stream));  // its context is current
      const cuda::Driver& driver = cuda::driver();
      driver.check(driver.cuEventCreate(&event_, cuda::kWithoutTiming), "cuEventCreate");
      driver.check(driver.cuEventRecord(event_, stream_of(stream)), "cuEventRecord");
    });
  }
  ~Event() {
    if (event_ != nullptr) cuda::driver().cuEventDestroy(event_);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Lets the work that is put into another stream from now on wait for it.
  void precede(std::uintptr_t stream) const {
    with_driver([&] {
      const Queue queue(cuda::device_at(device_), stream_of(stream));
      const cuda::Driver& driver = cuda::driver();
      driver.check(driver.cuStreamWaitEvent(stream_of(stream), event_, 0), "cuStreamWaitEvent");
    });
  }
  // Whether the stream has reached it. An error of the device counts: nothing will follow.
  bool has_passed() const { return cuda::driver().cuEventQuery(event_) != cuda::kNotReady; }
  void wait() const {
    with_driver([&] { cuda::driver().cuEventSynchronize(event_); });
  }

 private:
  int device_;
  cuda::CUevent event_ = nullptr;
};

// The state that a DLPack capsule's consumer owns.
struct Exported {
  dlpack::Managed managed;
  PyObject* owner;
  std::int64_t sizes[kMaxRank], strides[kMaxRank];
};

void release_exported(dlpack::Managed* managed) {
  auto* const exported = static_cast<Exported*>(managed->context);
  if (Py_IsInitialized() != 0) {  // at process exit the memory is released anyway
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(exported->owner);
    PyGILState_Release(state);
  }
  delete exported;
}

// A capsule of packed memory, on a GPU or (device -1) on the host. The owner lives until the
// consumer releases the capsule.
nb::object capsule_of(nb::handle owner, std::uintptr_t address, int device, int code, int bits,
                      const std::vector<Int>& sizes) {
  if (sizes.size() > kMaxRank)
    raise_argument("dlpack: expected at most 64 axes, got " + std::to_string(sizes.size()));
  auto exported = std::make_unique<Exported>();
  Int stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    exported->sizes[i] = sizes[i];
    exported->strides[i] = stride;
    stride *= sizes[i] > 0 ? sizes[i] : 1;
  }
  exported->managed.tensor = {reinterpret_cast<void*>(address),
                              device < 0 ? dlpack::kCpu : dlpack::kCuda,
                              device < 0 ? 0 : device,
                              static_cast<std::int32_t>(sizes.size()),
                              {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1},
                              exported->sizes,
                              exported->strides,
                              0};
  exported->managed.context = exported.get();
  exported->managed.deleter = release_exported;
  PyObject* const capsule = PyCapsule_New(&exported->managed, "dltensor", [](PyObject* self) {
    if (PyCapsule_IsValid(self, "dltensor") == 0) return;  // consumed
    auto* const managed = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(self, "dltensor"));
    managed->deleter(managed);
  });
  if (capsule == nullptr) throw nb::python_error();
  exported->owner = owner.inc_ref().ptr();
  (void)exported.release();
  return nb::steal(capsule);
}

void upload(int device, std::uintptr_t stream, std::uintptr_t to, nb::handle array) {
  const Bytes bytes(array, PyBUF_SIMPLE);
  with_driver([&] {
    Queue queue(cuda::device_at(device), stream_of(stream));
    queue.write(reinterpret_cast<void*>(to), bytes.view.buf, static_cast<Int>(bytes.view.len));
  });
}

void download(int device, std::uintptr_t stream, nb::handle array, std::uintptr_t from) {
  const Bytes bytes(array, PyBUF_WRITABLE);
  with_driver([&] {
    Queue queue(cuda::device_at(device), stream_of(stream));
    queue.read(bytes.view.buf, reinterpret_cast<void*>(from), static_cast<Int>(bytes.view.len));
  });
}

void clear(int device, std::uintptr_t stream, std::uintptr_t to, std::size_t bytes) {
  with_driver([&] {
    Queue(cuda::device_at(device), stream_of(stream))
        .zero(reinterpret_cast<void*>(to), static_cast<Int>(bytes));
  });
}

// Waits for a stream, for the end of a call, or for the whole device. Raises errors that kernels
// have reported.
void synchronize(int device, nb::object stream) {
  const bool all = stream.is_none();
  void* const on = all ? nullptr : stream_of(nb::cast<std::uintptr_t>(stream));
  with_driver([&] {
    cuda::Device& gpu = cuda::device_at(device);
    {
      Queue queue(gpu, on);
      queue.wait(all);
    }
    gpu.raise_bad_indices(all ? 0 : cuda::BadIndices::latest_of_thread());
  });
}

// Raises errors that finished calls have reported, without waiting for the others.
void raise_bad_indices(int device) {
  translate_exceptions("cuda", [&] {
    cuda::Device& gpu = cuda::device_at(device);
    gpu.raise_bad_indices(gpu.bad_indices.latest());
  });
}

// (name, bytes of memory, major, minor, multiprocessors) of each GPU, and the driver's version.
nb::tuple devices() {
  return translate_exceptions("cuda", [&] {
    const cuda::Driver& driver = cuda::driver();
    nb::list all;
    for (int i = 0; i < driver.devices; ++i) {
      const cuda::DeviceFacts facts = cuda::facts_of(i);
      all.append(nb::make_tuple(facts.name, facts.memory, facts.major, facts.minor,
                                facts.multiprocessors));
    }
    return nb::make_tuple(all, driver.version);
  });
}

// Kernels of one family share their variants.
std::vector<cuda::Variant> all_variants() {
  std::vector<cuda::Variant> all;
  std::vector<decltype(Kernel::variants)> seen = {nullptr};
  for (const Kernel& kernel : all_kernels()) {
    if (std::find(seen.begin(), seen.end(), kernel.variants) != seen.end()) continue;
    seen.push_back(kernel.variants);
    const std::vector<cuda::Variant> added = kernel.variants();
    all.insert(all.end(), added.begin(), added.end());
  }
  return all;
}

cuda::Variant variant_at(std::size_t i) {
  const std::vector<cuda::Variant> all = all_variants();
  if (i >= all.size()) raise_argument("variant: there are " + std::to_string(all.size()));
  return all[i];
}

// Compiles variant `i` of `variants()` for a device unless it is cached; returns whether it did.
bool warm(int device, std::size_t i) {
  const cuda::Variant variant = variant_at(i);
  bool compiled = false;
  with_driver([&] { compiled = cuda::device_at(device).warm(variant); });
  return compiled;
}

// Machine code for an architecture that need not be present, for tests, with the caller's options.
nb::bytes compile(const std::string& architecture, std::size_t i,
                  const std::vector<std::string>& more) {
  const cuda::Variant variant = variant_at(i);
  std::string code;
  with_driver([&] {
    std::vector<std::string> options = cuda::options_of(variant.defines);
    options.insert(options.end(), more.begin(), more.end());
    code = cuda::cubin_of(variant.source, architecture, 0, options);
  });
  return nb::bytes(code.data(), code.size());
}

void announce() {
  const nb::gil_scoped_acquire locked;
  try {
    nb::module_::import_("anydml.devices.backends.cuda").attr("announce")();
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("anydml");
  }
}

void configure(const std::vector<std::string>& libraries, const std::string& cache,
               const std::string& version, const std::string& driver_library) {
  cuda::CompilerPlaces& places = cuda::compiler_places();
  places.libraries = libraries;
  places.cache = cache;
  places.version = version;
  cuda::announce_compilation = announce;
  if (!driver_library.empty()) cuda::set_driver_library(driver_library);
}

// Whether calls have checked indices since the last synchronization with the device.
bool indices_open(int device) {
  return translate_exceptions("cuda", [&] { return cuda::device_at(device).bad_indices.open(); });
}

}  // namespace

void bind_cuda(nb::module_& module) {
  nb::module_ cuda = module.def_submodule("cuda");
  nb::class_<Buffer>(cuda, "Buffer")
      .def(nb::init<int, std::size_t, std::uintptr_t>())
      .def_prop_ro("address", &Buffer::address);
  nb::class_<Event>(cuda, "Event")
      .def(nb::init<int, std::uintptr_t>())
      .def("precede", &Event::precede)
      .def("has_passed", &Event::has_passed)
      .def("wait", &Event::wait);
  cuda.def("configure", &configure);
  cuda.def("devices", &devices);
  cuda.def("in_use", &cuda::devices_in_use);
  cuda.def("indices_open", &indices_open);
  cuda.def("dlpack", &capsule_of);
  cuda.def("upload", &upload);
  cuda.def("download", &download);
  cuda.def("clear", &clear);
  cuda.def("synchronize", &synchronize, nb::arg(), nb::arg().none());
  cuda.def("raise_bad_indices", &raise_bad_indices);
  cuda.def("variants", [] { return all_variants().size(); });
  cuda.def("warm", &warm);
  cuda.def("compile", &compile);
}

}  // namespace anydml::python

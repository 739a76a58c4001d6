// GPU bindings: kernels by name on device memory, and what Python needs of the driver. Operands are
// (address, dtype, shape, strides in bytes). The caller (src/anydml/devices/backends/cuda.py)
// validates them and keeps them alive until the work has run.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

#include "../cuda/host/compiler.hpp"
#include "../cuda/host/device.hpp"
#include "../cuda/host/driver.hpp"
#include "dlpack.hpp"
#include "kernel.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

using cuda::Queue;

[[noreturn]] void refuse(const char* kernel, const std::string& what) {
  raise_argument(std::string(kernel) + ": " + what);
}

Int number(const char* kernel, PyObject* object) {
  const Int value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    refuse(kernel, "expected sizes and strides of 64 bits");
  }
  return value;
}

Operand operand_on_device(const char* kernel, nb::handle object) {
  PyObject* const parts = object.ptr();
  if (PyTuple_Check(parts) == 0 || PyTuple_GET_SIZE(parts) != 4) refuse(kernel, "no operand");
  PyObject *const sizes = PyTuple_GET_ITEM(parts, 2), *const strides = PyTuple_GET_ITEM(parts, 3);
  PyObject* const dtype = PyTuple_GET_ITEM(parts, 1);
  const auto address =
      static_cast<std::uintptr_t>(PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(parts, 0)));
  Operand operand;
  operand.data = reinterpret_cast<void*>(address);
  Tensor& tensor = operand.tensor;
  if (PyArray_DescrCheck(dtype) == 0 ||
      !element_of(reinterpret_cast<PyArray_Descr*>(dtype), tensor.type, tensor.element_size))
    refuse(kernel, "a type that no kernel takes");
  if (PyTuple_Check(sizes) == 0 || PyTuple_Check(strides) == 0 ||
      PyTuple_GET_SIZE(sizes) > kMaxRank || PyTuple_GET_SIZE(sizes) != PyTuple_GET_SIZE(strides))
    refuse(kernel, "too many axes");
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sizes); ++i)
    tensor.layout.push(number(kernel, PyTuple_GET_ITEM(sizes, i)),
                       number(kernel, PyTuple_GET_ITEM(strides, i)));
  if (!tensor.layout.normalize_checked(tensor.element_size))
    refuse(kernel, "expected at most 2^48 elements, within the address space");
  // A GPU faults on misaligned elements, where a processor only takes a little longer.
  const std::uintptr_t size = static_cast<std::uintptr_t>(tensor.element_size);
  std::uintptr_t low_bits = tensor.layout.count() == 0 ? 0 : address;
  for (int i = 0; i < tensor.layout.rank; ++i)
    if (tensor.layout.sizes[i] > 1)
      low_bits |= static_cast<std::uintptr_t>(tensor.layout.strides[i]);
  if (low_bits % (size < 8 ? size : 8) != 0) refuse(kernel, "expected elements that are aligned");
  return operand;
}

// The operands of a call on a device.
struct Operands {
  std::vector<Operand> operands, members;

  void add(const Kernel& kernel, nb::handle objects, bool list, int expected) {
    std::vector<Operand>& to = list ? members : operands;
    int count = 0;
    for (nb::handle one : objects) {
      to.push_back(operand_on_device(kernel.name, one));
      to.back().descr = reinterpret_cast<PyArray_Descr*>(PyTuple_GET_ITEM(one.ptr(), 1));
      ++count;
    }
    if (!list && count != expected) refuse(kernel.name, "other operands than it takes");
  }

  Call call(const std::vector<Int>& numbers) const {
    Call result;
    result.operands = operands.data();
    result.list.operands = members.data();
    result.list.count = members.size();
    result.numbers = numbers.data();
    result.number_count = numbers.size();
    return result;
  }
};

const Kernel& kernel_on_device(const std::string& name) {
  const Kernel& kernel = find_kernel(name);
  if (kernel.enqueue == nullptr) raise_device(name + ": this operator has no kernel for CUDA yet");
  return kernel;
}

void* stream_of(std::uintptr_t stream) { return reinterpret_cast<void*>(stream); }

// `indices`: the name of the index operand in messages, and the number of leading sizes of 1 that
// it and the data have and the kernel does not see; None for the name that array functions use.
cuda::CallName name_of(const Kernel& kernel, nb::handle indices) {
  if (indices.is_none()) return {std::string(kernel.name) + ": indices"};
  const auto parts = nb::cast<nb::tuple>(indices);
  return {nb::cast<std::string>(parts[0]), nb::cast<int>(parts[1]), nb::cast<int>(parts[2])};
}

void run(const std::string& name, int device, std::uintptr_t stream, nb::handle inputs,
         nb::handle outputs, const nb::dict& attributes, bool output_is_private,
         nb::handle indices) {
  const Kernel& kernel = kernel_on_device(name);
  translate_exceptions(kernel.name, [&] {
    Operands operands;
    operands.add(kernel, inputs, kernel.list == Lists::inputs, kernel.inputs);
    operands.add(kernel, outputs, kernel.list == Lists::outputs, kernel.outputs);
    const std::vector<Int> numbers = numbers_of(kernel, attributes);
    Call call = operands.call(numbers);
    call.output_is_private = output_is_private;
    if (const char* const wrong = validate(kernel, call)) refuse(kernel.name, wrong);
    const cuda::CallName call_name = name_of(kernel, indices);
    without_gil(kDriver, [&] {
      cuda::Device& gpu = cuda::device_at(device);
      gpu.refuse_bad_indices();
      Queue queue(gpu, stream_of(stream));
      queue.name_call(call_name);
      kernel.enqueue(call, queue);
    });
  });
}

// Calls a kernel whose output size depends on the data: `make` returns an operand of a given size.
void run_measured(const std::string& name, int device, std::uintptr_t stream, nb::handle input,
                  const nb::dict& attributes, const nb::object& make) {
  const Kernel& kernel = kernel_on_device(name);
  translate_exceptions(kernel.name, [&] {
    if (!kernel.measured) refuse(kernel.name, "no kernel whose output's size the data decide");
    Operand operands[2] = {operand_on_device(kernel.name, input), {}};
    const std::vector<Int> numbers = numbers_of(kernel, attributes);
    Call call;
    call.operands = operands;
    call.numbers = numbers.data();
    call.number_count = numbers.size();
    Results results;
    if (const char* const wrong = validate_input(kernel, call, results)) refuse(kernel.name, wrong);
    nb::object output;
    const auto make_result = [&](Int size) {
      output = make(size);
      operands[1] = operand_on_device(kernel.name, output);
      if (const char* const wrong = validate_measured(kernel, call, size))
        refuse(kernel.name, wrong);
      return operands + 1;
    };
    without_gil(kDriver, [&] {
      cuda::Device& gpu = cuda::device_at(device);
      gpu.refuse_bad_indices();
      Queue queue(gpu, stream_of(stream));
      kernel.measured->enqueue(call, queue,
                               [&](Int size) { return make_outside(queue, make_result, size); });
    });
  });
}

// Device memory owned by this library, for operands that no other library holds.
class Buffer {
 public:
  Buffer(int device, std::size_t bytes, std::uintptr_t stream) {
    translate_exceptions("cuda", [&] {
      without_gil(kDriver, [&] {
        queue_ = std::make_unique<Queue>(cuda::device_at(device), stream_of(stream));
        data_ = queue_->scratch(static_cast<Int>(bytes));
        queue_->leave();
      });
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
    translate_exceptions("cuda", [&] {
      without_gil(kDriver, [&] {
        const Queue queue(cuda::device_at(device), stream_of(stream));  // its context is current
        const cuda::Driver& driver = cuda::driver();
        driver.check(driver.cuEventCreate(&event_, cuda::kWithoutTiming), "cuEventCreate");
        driver.check(driver.cuEventRecord(event_, stream_of(stream)), "cuEventRecord");
      });
    });
  }
  ~Event() {
    if (event_ != nullptr) cuda::driver().cuEventDestroy(event_);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Lets the work that is put into another stream from now on wait for it.
  void precede(std::uintptr_t stream) const {
    translate_exceptions("cuda", [&] {
      without_gil(kDriver, [&] {
        const Queue queue(cuda::device_at(device_), stream_of(stream));
        const cuda::Driver& driver = cuda::driver();
        driver.check(driver.cuStreamWaitEvent(stream_of(stream), event_, 0), "cuStreamWaitEvent");
      });
    });
  }
  // Whether the stream has reached it. An error of the device counts: nothing will follow.
  bool has_passed() const { return cuda::driver().cuEventQuery(event_) != cuda::kNotReady; }
  void wait() const {
    translate_exceptions(
        "cuda", [&] { without_gil(kDriver, [&] { cuda::driver().cuEventSynchronize(event_); }); });
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
  if (sizes.size() > kMaxRank) refuse("dlpack", "too many axes");
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
  translate_exceptions("cuda", [&] {
    Py_buffer view;
    if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
    const struct Held {
      Py_buffer* view;
      ~Held() { PyBuffer_Release(view); }
    } held{&view};
    without_gil(kDriver, [&] {
      Queue queue(cuda::device_at(device), stream_of(stream));
      queue.write(reinterpret_cast<void*>(to), view.buf, static_cast<Int>(view.len));
    });
  });
}

void download(int device, std::uintptr_t stream, nb::handle array, std::uintptr_t from) {
  translate_exceptions("cuda", [&] {
    Py_buffer view;
    if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_WRITABLE) != 0) throw nb::python_error();
    const struct Held {
      Py_buffer* view;
      ~Held() { PyBuffer_Release(view); }
    } held{&view};
    without_gil(kDriver, [&] {
      Queue queue(cuda::device_at(device), stream_of(stream));
      queue.read(view.buf, reinterpret_cast<void*>(from), static_cast<Int>(view.len));
    });
  });
}

void clear(int device, std::uintptr_t stream, std::uintptr_t to, std::size_t bytes) {
  translate_exceptions("cuda", [&] {
    without_gil(kDriver, [&] {
      Queue(cuda::device_at(device), stream_of(stream))
          .zero(reinterpret_cast<void*>(to), static_cast<Int>(bytes));
    });
  });
}

// Waits for a stream, for the end of a call, or for the whole device. Raises errors that kernels
// have reported.
void synchronize(int device, nb::object stream) {
  translate_exceptions("cuda", [&] {
    void* const on = stream.is_none() ? nullptr : stream_of(nb::cast<std::uintptr_t>(stream));
    const bool all = stream.is_none();
    without_gil(kDriver, [&] {
      cuda::Device& gpu = cuda::device_at(device);
      {
        Queue queue(gpu, on);
        queue.wait(all);
      }
      gpu.raise_bad_indices(all ? 0 : cuda::BadIndices::latest_of_thread());
    });
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

// Compiles variant `i` of `variants()` for a device unless it is cached; returns whether it did.
bool warm(int device, std::size_t i) {
  return translate_exceptions("cuda", [&] {
    const std::vector<cuda::Variant> all = all_variants();
    if (i >= all.size()) raise_argument("variant: there are " + std::to_string(all.size()));
    bool compiled = false;
    without_gil(kDriver, [&] { compiled = cuda::device_at(device).warm(all[i]); });
    return compiled;
  });
}

// Machine code for an architecture that need not be present, for tests, with the caller's options.
nb::bytes compile(const std::string& architecture, std::size_t i,
                  const std::vector<std::string>& more) {
  return translate_exceptions("cuda", [&] {
    const std::vector<cuda::Variant> all = all_variants();
    if (i >= all.size()) raise_argument("variant: there are " + std::to_string(all.size()));
    std::string code;
    without_gil(kDriver, [&] {
      std::vector<std::string> options = cuda::options_of(all[i].defines);
      options.insert(options.end(), more.begin(), more.end());
      code = cuda::cubin_of(all[i].source, architecture, 0, options);
    });
    return nb::bytes(code.data(), code.size());
  });
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

nb::list in_use() {
  nb::list all;
  for (const int ordinal : cuda::devices_in_use()) all.append(ordinal);
  return all;
}

// Whether calls have checked indices since the last synchronization with the device.
bool indices_open(int device) {
  return translate_exceptions("cuda", [&] { return cuda::device_at(device).bad_indices.open(); });
}

nb::list kernels() {
  nb::list names;
  for (const Kernel& kernel : all_kernels())
    if (kernel.enqueue != nullptr) names.append(kernel.name);
  return names;
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
  cuda.def("kernels", &kernels);
  cuda.def("in_use", &in_use);
  cuda.def("indices_open", &indices_open);
  cuda.def("run", &run, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
           nb::arg().none());
  cuda.def("run_measured", &run_measured);
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

// Handlers that XLA calls in place of a custom call named "anydml": one on the CPU, one on NVIDIA
// GPUs. Attributes of the call: `kernel`, a name, and `numbers`, which are the number of threads
// (0: that of the process), the first axis that indices point into, how many axes they point into,
// and the kernel's own attributes (Call::numbers). Optional ones: `where`, how messages call the
// operand with indices, and `padding`, the leading sizes of 1 that messages count of the data and
// of the indices. Buffers are packed in row-major order.
//
// A handler runs on a thread of XLA's, without the interpreter lock, and takes the lock only to
// make an exception of a failure. The GPU's handler enqueues on XLA's stream and never waits. It is
// not declared compatible with command buffers: its scratch comes from the pool of the stream,
// which graphs that are nested in others cannot allocate from.
#include "xla_ffi.hpp"

#include <nanobind/stl/string.h>

#include <cfenv>
#include <string>
#include <vector>

#include "library.hpp"
#include "runtime/cpu/with_type.hpp"
#include "runtime/cuda/device.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

constexpr std::size_t kHead = 3;  // numbers before the kernel's own
constexpr const char* kOthers = "not a call that anydml.jax makes";

PyObject* describe = nullptr;  // takes an exception and returns its message, or null

struct Refused {
  std::string what;
};

const TypeFacts* facts_of_xla(int type) {
  for (const TypeFacts& facts : kElementTypes)
    if (facts.xla_number == type) return &facts;
  return nullptr;
}

// NumPy's descriptors of complex types, by which kernels know them.
PyArray_Descr* complex_descr(DataType type) {
  static PyArray_Descr* const types[] = {PyArray_DescrFromType(NPY_COMPLEX64),
                                         PyArray_DescrFromType(NPY_COMPLEX128)};
  return type == DataType::complex64 ? types[0] : type == DataType::complex128 ? types[1] : nullptr;
}

void set_operand(const xla::Buffer& buffer, Operand& operand) {
  const TypeFacts* const facts = facts_of_xla(buffer.type);
  if (facts == nullptr) throw Refused{"expected operands of types that kernels take"};
  operand.data = buffer.data;
  operand.descr = complex_descr(facts->type);
  operand.tensor.type = facts->operand_type();
  operand.tensor.element_size = facts->size;
  if (const char* const wrong = set_packed_layout(buffer.rank, buffer.sizes, operand))
    throw Refused{wrong};
}

// The call that a frame describes.
struct Request {
  const Kernel* kernel = nullptr;
  Operand operands[kMaxOperands];
  std::vector<Operand> members;  // of the list
  Call call;
  int first_axis = 0, axes = 0;
  cuda::CallName name;

  explicit Request(const xla::CallFrame& frame) {
    const xla::Attributes& attributes = frame.attributes;
    std::string where;
    for (std::int64_t i = 0; i < attributes.size; ++i) {
      const std::string key(attributes.names[i]->data, attributes.names[i]->size);
      if (key == "kernel" && attributes.types[i] == xla::kStringAttribute) {
        const auto& text = *static_cast<const xla::Text*>(attributes.values[i]);
        kernel = kernel_called({text.data, text.size});
      } else if (key == "numbers" && attributes.types[i] == xla::kArrayAttribute) {
        set_numbers(*static_cast<const xla::Array*>(attributes.values[i]));
      } else if (key == "where" && attributes.types[i] == xla::kStringAttribute) {
        const auto& text = *static_cast<const xla::Text*>(attributes.values[i]);
        where = {text.data, text.size};
      } else if (key == "padding" && attributes.types[i] == xla::kArrayAttribute) {
        set_padding(*static_cast<const xla::Array*>(attributes.values[i]));
      }
    }
    if (kernel == nullptr || call.numbers == nullptr) throw Refused{kOthers};
    name.indices = where.empty() ? std::string(kernel->name) + ": indices" : where;
    take(frame.arguments, kernel->inputs, kernel->list == Lists::inputs);
    take(frame.results, kernel->outputs, kernel->list == Lists::outputs);
    call.operands = operands;
    call.list = {members.data(), nullptr, members.size()};
    call.output_is_private = call.may_decline = true;  // XLA drops the results of a failed call
    if (const char* const wrong = validate(*kernel, call)) throw Refused{wrong};
  }

 private:
  std::size_t taken_ = 0;

  // Takes as many operands as the kernel has, or the members of its list.
  void take(const xla::Buffers& buffers, int expected, bool is_list) {
    const auto count = static_cast<std::size_t>(buffers.size);
    if (is_list ? expected != 0 : buffers.size != expected) throw Refused{kOthers};
    Operand* to = operands + taken_;
    if (is_list) {
      members = std::vector<Operand>(count);
      to = members.data();
    } else {
      taken_ += count;
    }
    for (std::size_t i = 0; i < count; ++i)
      set_operand(*static_cast<const xla::Buffer*>(buffers.items[i]), to[i]);
  }

  static const Kernel* kernel_called(const std::string& name) {
    for (const Kernel& one : all_kernels())
      if (name == one.name) return &one;
    return nullptr;
  }

  void set_padding(const xla::Array& array) {
    if (array.type != xla::kS64 || array.size != 2) return;
    const auto* const sizes = static_cast<const Int*>(array.data);
    name.data_padding = static_cast<int>(sizes[0]);
    name.indices_padding = static_cast<int>(sizes[1]);
  }

  void set_numbers(const xla::Array& array) {
    if (array.type != xla::kS64 || array.size < kHead) return;
    const auto* const numbers = static_cast<const Int*>(array.data);
    call.threads = numbers[0] > 0 ? static_cast<int>(numbers[0]) : threads_of_process();
    first_axis = static_cast<int>(numbers[1]);
    axes = static_cast<int>(numbers[2]);
    call.numbers = numbers + kHead;
    call.number_count = array.size - kHead;
  }
};

Int index_at(const Operand& indices, Int position) {
  const auto* const data = static_cast<const char*>(indices.data);
  return with_index(indices.tensor.type, [&]<class Index>(Index) {
    return static_cast<Int>(reinterpret_cast<const Index*>(data)[position]);
  });
}

[[noreturn]] void throw_bad_index(const Request& request, Int position) {
  const Operand &data = request.operands[0], &indices = request.operands[1];
  const Layout& layout = indices.tensor.layout;
  cuda::BadIndex bad;
  bad.indices = std::string(request.kernel->name) + ": indices";
  bad.sizes.assign(layout.sizes, layout.sizes + layout.rank);
  bad.is_signed = is_signed_type(indices.tensor.type);
  bad.position = position;
  bad.value = index_at(indices, position);
  bad.axis = request.first_axis;
  if (request.axes > 1) bad.axis += static_cast<int>(position % request.axes);
  bad.size = bad.axis < data.tensor.layout.rank ? data.tensor.layout.sizes[bad.axis] : 0;
  throw cuda::BadIndexFound(std::move(bad), -1, false);
}

// XLA's threads flush subnormal numbers to zero; kernels do not.
class UsualArithmetic {
 public:
  UsualArithmetic() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~UsualArithmetic() { std::fesetenv(&before_); }
  UsualArithmetic(const UsualArithmetic&) = delete;
  UsualArithmetic& operator=(const UsualArithmetic&) = delete;

 private:
  std::fenv_t before_;
};

void run(const Request& request, const xla::CallFrame&) {
  const UsualArithmetic usual;
  const Int bad = request.kernel->runs.run(request.call);
  if (bad >= 0) throw_bad_index(request, bad);
  if (bad == kDeclined) throw Refused{kOthers};
}

void enqueue(const Request& request, const xla::CallFrame& frame) {
  const std::string name = request.kernel->name;
  xla::GetStream stream{sizeof stream, nullptr, frame.context, nullptr};
  xla::GetDeviceOrdinal device{sizeof device, nullptr, frame.context, 0};
  if (frame.api->get_stream(&stream) != nullptr ||
      frame.api->get_device_ordinal(&device) != nullptr)
    throw cuda::DeviceFailed(name + ": XLA has no stream for it");
  cuda::Queue queue(cuda::device_at(device.ordinal), stream.stream);
  if (request.kernel->checks_indices) queue.name_call(request.name);
  request.kernel->runs.enqueue(request.call, queue);
}

xla::Error* error_of(const xla::CallFrame& frame, int code, const std::string& message) {
  xla::CreateError error{sizeof error, nullptr, message.c_str(), code};
  return frame.api->create_error(&error);
}

// The message of the current failure, as the package's own exception words it.
std::string message_of_failure(const std::string& kernel) {
  if (Py_IsInitialized() == 0) return "the interpreter has ended";
  const nb::gil_scoped_acquire locked;
  try {
    translate_exceptions(kernel.c_str(), [] { throw; });
  } catch (nb::python_error& error) {
    const nb::object message = nb::steal(PyObject_CallOneArg(describe, error.value().ptr()));
    if (message.is_valid()) return nb::cast<std::string>(message);
    PyErr_Clear();
  } catch (const std::exception& error) {
    return error.what();
  }
  return kernel + ": failed";
}

void answer(const xla::MetadataExtension& asked) {
  asked.metadata->version.major_version = xla::kMajorVersion;
  asked.metadata->version.minor_version = xla::kMinorVersion;
}

template <void (*kWork)(const Request&, const xla::CallFrame&)>
xla::Error* handle(xla::CallFrame* frame) {
  if (frame->extensions != nullptr && frame->extensions->type == xla::kMetadataExtension) {
    answer(*reinterpret_cast<const xla::MetadataExtension*>(frame->extensions));
    return nullptr;
  }
  std::string name = "anydml";
  try {
    const Request request(*frame);
    name = request.kernel->name;
    kWork(request, *frame);
    return nullptr;
  } catch (const Refused& refused) {
    return error_of(*frame, xla::kInvalidArgument, name + ": " + refused.what);
  } catch (const cuda::BadIndexFound&) {
    return error_of(*frame, xla::kOutOfRange, message_of_failure(name));
  } catch (const std::bad_alloc&) {
    return error_of(*frame, xla::kResourceExhausted, message_of_failure(name));
  } catch (...) {
    return error_of(*frame, xla::kInternal, message_of_failure(name));
  }
}

// The handlers of the platforms "cpu" and "CUDA", as jax.ffi.register_ffi_target takes them.
nb::tuple handlers(nb::handle describe_failure) {
  complex_descr(DataType::unknown);  // made while the lock is held
  describe = describe_failure.inc_ref().ptr();
  const auto capsule = [](xla::Handler* handler) {
    nb::object result =
        nb::steal(PyCapsule_New(reinterpret_cast<void*>(handler), nullptr, nullptr));
    if (!result.is_valid()) throw nb::python_error();
    return result;
  };
  return nb::make_tuple(capsule(&handle<run>), capsule(&handle<enqueue>));
}

// The attributes of a kernel's call as numbers.
nb::list attribute_numbers(const std::string& kernel, const nb::dict& attributes) {
  nb::list numbers;
  for (const Int number : numbers_of(find_kernel(kernel), attributes)) numbers.append(number);
  return numbers;
}

}  // namespace

void bind_xla(nb::module_& module) {
  module.def("xla_handlers", &handlers);
  module.def("attribute_numbers", &attribute_numbers);
}

}  // namespace anydml::python

#include "libtorch.hpp"

#include <dlfcn.h>
#if defined(__APPLE__)
#include <malloc/malloc.h>
#else
#include <malloc.h>
#endif

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace anydml::python::libtorch {
namespace {

struct Functions {
  int (*storage_size)(Handle, std::int64_t*);
  int (*storage_offset)(Handle, std::int64_t*);
  int (*data)(Handle, void**);
  int (*rank)(Handle, std::int64_t*);
  int (*sizes)(Handle, std::int64_t**);
  int (*strides)(Handle, std::int64_t**);
  int (*type)(Handle, std::int32_t*);
  int (*empty)(std::int64_t rank, const std::int64_t* sizes, const std::int64_t* strides,
               std::int32_t type, std::int32_t device_type, std::int32_t device, Handle* made);
  int (*release)(Handle);
  std::int32_t (*cpu)();
  std::int32_t (*cuda)();
  PyObject* (*wrap)(const void* tensor);  // THPVariable_Wrap, of libtorch_python
};

Functions functions;
void* library = nullptr;  // libtorch_cpu
PyGetSetDef* gradient = nullptr;
std::size_t object_place = 0, keys_place = 0;  // of an object's implementation; of its keys
bool learnt = false;

template <class Function>
bool find(void* in, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(in, name));
  return function != nullptr;
}

bool find_all() {
  // They are loaded, or there would be no tensor.
  library = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  void* const python = dlopen("libtorch_python.so", RTLD_NOLOAD | RTLD_LAZY);
  return library != nullptr && python != nullptr &&
         find(library, "aoti_torch_get_storage_size", functions.storage_size) &&
         find(library, "aoti_torch_get_storage_offset", functions.storage_offset) &&
         find(library, "aoti_torch_get_data_ptr", functions.data) &&
         find(library, "aoti_torch_get_dim", functions.rank) &&
         find(library, "aoti_torch_get_sizes", functions.sizes) &&
         find(library, "aoti_torch_get_strides", functions.strides) &&
         find(library, "aoti_torch_get_dtype", functions.type) &&
         find(library, "aoti_torch_empty_strided", functions.empty) &&
         find(library, "aoti_torch_delete_tensor_object", functions.release) &&
         find(library, "aoti_torch_device_type_cpu", functions.cpu) &&
         find(library, "aoti_torch_device_type_cuda", functions.cuda) &&
         find(python, "_Z16THPVariable_WrapRKN2at10TensorBaseE", functions.wrap);
}

template <class Word>
Word word_at(const void* begin, std::size_t place) {
  Word word;
  std::memcpy(&word, static_cast<const char*>(begin) + place, sizeof word);
  return word;
}

// A tensor as the C interface has it: the address of a pointer to the implementation.
Handle handle_of(PyObject* tensor) { return reinterpret_cast<char*>(tensor) + object_place; }
const void* implementation_of(PyObject* tensor) {
  return word_at<const void*>(tensor, object_place);
}

// The bytes of a block of the allocator's.
std::size_t size_of_block(const void* block) {
#if defined(__APPLE__)
  return malloc_size(block);
#else
  return malloc_usable_size(const_cast<void*>(block));
#endif
}

struct Sample {
  PyObject* tensor;
  const void* implementation;
  std::uint64_t keys;
  std::int64_t storage;
};

// The first place that all samples agree on, 0 for none. Nothing behind it is read.
template <class Agree>
std::size_t place_of(const std::vector<Sample>& samples, std::size_t begin, std::size_t end,
                     Agree&& agree) {
  for (std::size_t place = begin; place + sizeof(void*) <= end; place += sizeof(void*)) {
    bool all = true;
    for (const Sample& sample : samples) all = all && agree(sample, place);
    if (all) return place;
  }
  return 0;
}

constexpr std::size_t kImplementation = 256;  // more than it has had in any version

// How much of every sample's implementation may be read: all of the block that it is in.
std::size_t readable(const std::vector<Sample>& samples) {
  std::size_t size = kImplementation;
  for (const Sample& sample : samples) size = std::min(size, size_of_block(sample.implementation));
  return size;
}

bool learn_places(const std::vector<Sample>& samples) {
  if (samples.empty()) return false;
  std::size_t size = static_cast<std::size_t>(-1);
  for (const Sample& sample : samples)
    size = std::min(size, static_cast<std::size_t>(Py_TYPE(sample.tensor)->tp_basicsize));
  object_place =
      place_of(samples, sizeof(PyObject), size, [](const Sample& sample, std::size_t place) {
        return word_at<const void*>(sample.tensor, place) == sample.implementation;
      });
  if (object_place == 0) return false;
  keys_place = place_of(
      samples, sizeof(void*), readable(samples), [](const Sample& sample, std::size_t place) {
        return word_at<std::uint64_t>(sample.implementation, place) == sample.keys;
      });
  return keys_place != 0;
}

// That the C interface takes what is handed to it for a tensor.
bool answers(const std::vector<Sample>& samples) {
  for (const Sample& sample : samples) {
    std::int64_t bytes = 0;
    if (sample.storage >= 0 &&
        (functions.storage_size(handle_of(sample.tensor), &bytes) != 0 || bytes != sample.storage))
      return false;
  }
  return true;
}

}  // namespace

bool learn(nb::handle samples, nb::handle requires_grad) {
  learnt = false;
  if (Py_TYPE(requires_grad.ptr()) != &PyGetSetDescr_Type) return false;
  std::vector<Sample> read;
  for (const nb::handle sample : samples)
    read.push_back({nb::handle(sample[0]).ptr(),
                    reinterpret_cast<const void*>(nb::cast<std::uintptr_t>(sample[1])),
                    nb::cast<std::uint64_t>(sample[2]), nb::cast<std::int64_t>(sample[3])});
  gradient = reinterpret_cast<PyGetSetDescrObject*>(requires_grad.inc_ref().ptr())->d_getset;
  learnt = gradient->get != nullptr && find_all() && learn_places(read) && answers(read);
  return learnt;
}

bool known() { return learnt; }

std::uint64_t keys_of(PyObject* tensor) {
  return word_at<std::uint64_t>(implementation_of(tensor), keys_place);
}

bool requires_grad(PyObject* tensor) {
  PyObject* const answer = gradient->get(tensor, gradient->closure);
  if (answer == nullptr) PyErr_Clear();
  Py_XDECREF(answer);  // a bool, which stays
  return answer != Py_False;
}

bool storage_of(PyObject* tensor, Int& bytes, Int& offset) {
  std::int64_t size = 0, first = 0;
  const Handle handle = handle_of(tensor);
  if (functions.storage_size(handle, &size) != 0 || functions.storage_offset(handle, &first) != 0)
    return false;
  bytes = size;
  offset = first;
  return true;
}

bool view_of(PyObject* tensor, View& view) {
  const Handle handle = handle_of(tensor);
  return functions.rank(handle, &view.rank) == 0 && functions.sizes(handle, &view.sizes) == 0 &&
         functions.strides(handle, &view.strides) == 0 && functions.type(handle, &view.type) == 0 &&
         functions.data(handle, &view.data) == 0;
}

std::int32_t type_named(const char* name) {
  std::int32_t (*number)() = nullptr;
  return learnt && find(library, (std::string("aoti_torch_dtype_") + name).c_str(), number)
             ? number()
             : -1;
}

Handle make(int rank, const std::int64_t* sizes, std::int32_t type, int device, void*& data) {
  std::int64_t strides[2 * kMaxRank], next = 1;
  for (int i = rank - 1; i >= 0; --i) {
    strides[i] = next;
    if (__builtin_mul_overflow(next, std::max(sizes[i], std::int64_t{1}), &next)) return nullptr;
  }
  Handle made = nullptr;
  const std::int32_t where = device < 0 ? functions.cpu() : functions.cuda();
  if (functions.empty(rank, sizes, strides, type, where, std::max(device, 0), &made) != 0)
    return nullptr;
  if (functions.data(made, &data) == 0) return made;
  release(made);
  return nullptr;
}

void release(Handle handle) { functions.release(handle); }

nb::object object_of(Handle handle) {
  PyObject* object = nullptr;
  try {
    object = functions.wrap(handle);
  } catch (...) {  // what is set says why
  }
  release(handle);
  if (object == nullptr && PyErr_Occurred() == nullptr) PyErr_NoMemory();
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

}  // namespace anydml::python::libtorch

// The interface of kernel families to a GPU: compiled functions, scratch and launches, in the order
// of one stream. Only `read` waits for the GPU.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/host_counters.hpp"
#include "runtime/plans.hpp"

namespace anydml::cuda {

struct Device;
struct CallName;
struct BadIndexReport;

// One specialisation of a source: a macro ANYDML_<name> of this value.
struct Define {
  const char* name;
  Int value;
};

// A variant that `anydml warm` precompiles.
struct Variant {
  const char* source;  // as "padding": the file native/moving/cuda/padding.cu
  std::vector<Define> defines;
};

// A compiled kernel of one variant; lives as long as the process.
struct Function {
  void* handle = nullptr;
  std::atomic<unsigned> dynamic_shared{0};  // bytes, the largest request of a launch so far
};

struct Dim {
  unsigned x = 1, y = 1, z = 1;
};

// An error of the driver or the compiler, in its words.
class DeviceFailed : public std::exception {
 public:
  explicit DeviceFailed(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

// The work of one call on a device's stream. Makes the device's context current and restores the
// previous one. When the queue is destroyed, scratch is returned to the device's pool in stream
// order.
class Queue {
 public:
  Queue(Device& device, void* stream);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Restores the caller's context until `enter`, which may be called from another thread.
  void leave();
  void enter();

  // The name of the call in messages.
  void name_call(const CallName& name);

  // For kernels that check indices while they run (bad_index.cuh): the indices point into
  // `count` axes of the data from `axis` on. Every report is published by a kernel after all that
  // take it; if an index was bad, it sets a private result to zeros.
  BadIndexReport report(const Tensor& indices, const Layout& data, int axis, int count);
  void publish_report(const BadIndexReport& report, void* result = nullptr, Int bytes = 0);

  // Waits until the work of the stream has run, or that of the whole device.
  void wait(bool device);

  int multiprocessors() const;
  unsigned max_shared() const;  // bytes of shared memory that a block may have (opt-in)

  // Undefined contents, 256-byte aligned. Throws AllocationFailed.
  void* scratch(Int bytes);
  template <class T>
  T* scratch_of(Int count) {
    return static_cast<T*>(scratch(count * static_cast<Int>(sizeof(T))));
  }

  // A kernel of a source, specialised; compiled at its first use on a device.
  Function& function(const char* source, const char* entry, std::initializer_list<Define> defines);

  // Arguments are passed as the kernel declares them: same types, same order.
  template <class... Arguments>
  void launch(Function& function, Dim grid, Dim block, unsigned shared, Arguments... arguments) {
    void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
    launch_with(function, grid, block, shared, pointers);
  }
  // A cooperative launch: all blocks run at the same time, so that they may wait for each other.
  // The grid is limited by `resident`.
  template <class... Arguments>
  void launch_cooperative(Function& function, Dim grid, Dim block, unsigned shared,
                          Arguments... arguments) {
    void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
    launch_with(function, grid, block, shared, pointers, Way::cooperative);
  }
  // A dependent launch: the previous launch belongs to the same call, and the function waits for it
  // by itself (order.cuh). Its blocks are scheduled before the previous launch has ended.
  template <class... Arguments>
  void launch_dependent(Function& function, Dim grid, Dim block, unsigned shared,
                        Arguments... arguments) {
    void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
    launch_with(function, grid, block, shared, pointers, Way::dependent);
  }
  // A launch in clusters of blocks, which run at the same time on neighbouring multiprocessors.
  bool has_clusters() const;
  template <class... Arguments>
  void launch_cluster(Function& function, Dim grid, Dim block, unsigned shared, unsigned size,
                      Arguments... arguments) {
    void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
    launch_with(function, grid, block, shared, pointers, Way::alone, size);
  }
  // The number of blocks of this function that one multiprocessor runs at a time.
  int resident(Function& function, unsigned threads, unsigned shared);

  void zero(void* target, Int bytes);
  void copy(void* target, const void* source, Int bytes);  // on the device
  // Of more than one number, it waits, so that the host may change it.
  void write(void* target, const void* host, Int bytes);
  void read(void* host, const void* source, Int bytes);  // waits for all work before

  // A slot where a kernel of this call writes a number >= 0 for the host, in addition to the
  // `source` of `counter_value`, which waits for it. Comes with a device word to accumulate the
  // number in, which is 0 and must be left 0. Null pointers: no slot, the number is read from
  // `source`.
  HostCounters::Slot counter_for_host();
  Int counter_value(const Int* source);

 private:
  bool captured() const;
  enum class Way { alone, cooperative, dependent };
  void allow_shared(Function& function, unsigned shared);
  void launch_with(Function& function, Dim grid, Dim block, unsigned shared, void** arguments,
                   Way way = Way::alone, unsigned cluster = 1);

  Device& device_;
  void* stream_;
  bool pushed_ = false;
  std::vector<void*> scratch_;
  HostCounters::Slot counter_;
  std::unique_ptr<CallName> name_;
};

inline unsigned blocks_for(Int items, Int per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

}  // namespace anydml::cuda

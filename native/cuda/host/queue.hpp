// What a kernel family needs of a GPU: functions compiled for it, scratch, launches, in the order
// of one stream. Nothing here waits for the GPU but `read`.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "../../cpu/plans.hpp"
#include "host_counters.hpp"

namespace anydml::cuda {

struct Device;
struct CallName;
struct BadIndexReport;

// One specialisation of a source: a macro ANYDML_<name> of this value.
struct Define {
  const char* name;
  Int value;
};

// What `anydml warm` compiles ahead.
struct Variant {
  const char* source;  // as "top_k": the file native/cuda/kernels/top_k.cu
  std::vector<Define> defines;
};

// A compiled kernel of one variant; lives as long as the process.
struct Function {
  void* handle = nullptr;
  std::atomic<unsigned> dynamic_shared{0};  // bytes, the most that a launch may request so far
};

struct Dim {
  unsigned x = 1, y = 1, z = 1;
};

// What the driver or the compiler refused, in its words.
class DeviceFailed : public std::exception {
 public:
  explicit DeviceFailed(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

// The work of one call on a device's stream. It makes the device's context current and puts back
// the one that was; scratch goes back to the device's pool, behind the work, when the queue ends.
class Queue {
 public:
  Queue(Device& device, void* stream);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Puts the caller's context back until `enter`, which may come from another thread.
  void leave();
  void enter();

  // How messages name the call.
  void name_call(const CallName& name);

  // For kernels that check indices while they run (kernels/bad_index.cuh): the indices point into
  // `count` axes of the data from `axis` on. Every report is published by a kernel after all that
  // take it; if an index was bad, it sets a private result to zeros.
  BadIndexReport report(const Tensor& indices, const Layout& data, int axis, int count);
  void publish_report(const BadIndexReport& report, void* result = nullptr, Int bytes = 0);

  // Until the work of the stream has run, or of the whole device.
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
  // The same with all blocks running at a time, so that they may wait for each other; no more than
  // `resident` says that there can be.
  template <class... Arguments>
  void launch_together(Function& function, Dim grid, Dim block, unsigned shared,
                       Arguments... arguments) {
    void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
    launch_with(function, grid, block, shared, pointers, Way::together);
  }
  // The same, where the launch before is of this call, and the function waits for it by itself
  // (kernels/order.cuh): its blocks are at their places when the last of that one's end.
  template <class... Arguments>
  void launch_behind(Function& function, Dim grid, Dim block, unsigned shared,
                     Arguments... arguments) {
    void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
    launch_with(function, grid, block, shared, pointers, Way::behind);
  }
  // Blocks of this function that one multiprocessor runs at a time.
  int resident(Function& function, unsigned threads, unsigned shared);

  void zero(void* target, Int bytes);
  void copy(void* target, const void* source, Int bytes);  // on the device
  void write(void* target, const void* host, Int bytes);   // waits, so that the host may change it
  void read(void* host, const void* source, Int bytes);    // waits for all work before

  // Where a kernel of this call writes a number of at least 0 for the host, besides `source` of
  // `counter_value`, which waits for it, and a word to add it up in, which is 0 and is left so.
  // Nulls: nowhere, the number is read from there.
  HostCounters::Slot counter_for_host();
  Int counter_value(const Int* source);

 private:
  bool captured() const;
  enum class Way { alone, together, behind };
  void allow_shared(Function& function, unsigned shared);
  void launch_with(Function& function, Dim grid, Dim block, unsigned shared, void** arguments,
                   Way way = Way::alone);

  Device& device_;
  void* stream_;
  void* previous_ = nullptr;  // the context that was current
  bool pushed_ = false;
  std::vector<void*> scratch_;
  HostCounters::Slot counter_;
  std::unique_ptr<CallName> name_;
};

inline unsigned blocks_for(Int items, Int per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

}  // namespace anydml::cuda

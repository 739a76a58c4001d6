// Reports of bad indices from kernels to the host, through mapped memory that the host polls.
//
// A call that checks indices takes a slot of a ring in device memory and keeps here what a
// message needs. Its kernels note the first bad index in the slot; the last of them writes it to
// the page that the host polls, and clears the slot. The ring is longer than the queues of a
// device: a slot comes round again when its call has long ended. A call that is captured in a graph
// runs at any time and any number of times: its slot is memory of the graph, and its message stays.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/cuda/bad_index.cuh"
#include "runtime/plans.hpp"

namespace anydml::cuda {

// How messages name a call, and how many sizes of 1 its tensors have in front that kernels do not
// see.
struct CallName {
  std::string indices = "indices";  // as "gather: indices"
  int data_padding = 0, indices_padding = 0;
};

// The contents of a message.
struct BadIndex {
  unsigned long long call = 0;  // its number; 0 if it is no longer known
  std::string indices;
  std::vector<Int> sizes;  // of the index tensor
  bool is_signed = false, captured = false;
  Int position = 0, value = 0;  // in row-major order; the bits of it
  int axis = 0;
  Int size = 0;
  Int more = 0;  // other calls with a bad index
};

class BadIndexFound : public std::exception {
 public:
  BadIndexFound(BadIndex bad_index, int ordinal, bool by_earlier_call)
      : found(std::move(bad_index)), device(ordinal), earlier(by_earlier_call) {}
  const char* what() const noexcept override { return "an index out of range"; }

  BadIndex found;
  int device;
  bool earlier;
};

class BadIndices {
 public:
  // The report of a new call whose indices point into `count` axes of the data from `axis` on. The
  // device's context is current; `captured` is a slot of the graph's that is zero when it is used.
  BadIndexReport begin(const CallName& name, const Tensor& indices, const Layout& data, int axis,
                       int count, BadIndexSlot* captured);

  // Whether memory for reports is allocated: that is not possible while a graph is captured.
  bool ready() const { return page_.load(std::memory_order_acquire) != nullptr; }
  void prepare();

  // One load, without waiting.
  bool any() const;
  // Takes the report of the earliest call with a bad index; false if no call had one.
  bool take(BadIndex& found);

  // Whether there may be unreported bad indices: of calls since `all_waited`, or of calls in
  // graphs, which may run at any time.
  bool open();
  unsigned long long latest() const { return latest_; }
  void all_waited(unsigned long long until) { waited_ = until; }

  // The number of this thread's latest call.
  static unsigned long long latest_of_thread();

 private:
  struct Call {
    unsigned long long number = 0;
    std::string indices;
    std::vector<Int> sizes, bounds;
    int axis = 0;
    bool is_signed = false;
  };
  BadIndex described(const BadIndexEntry& entry) const;

  static constexpr unsigned long long kCalls = 16384;

  std::mutex mutex_;
  std::atomic<BadIndexPage*> page_{nullptr};  // as the host sees it
  BadIndexPage* device_page_ = nullptr;
  BadIndexSlot* slots_ = nullptr;  // kCalls of them, and the count of those published
  std::atomic<unsigned long long> taken_{0}, latest_{0}, waited_{0};
  std::vector<Call> calls_;
  std::unordered_map<unsigned long long, Call> captured_;
};

}  // namespace anydml::cuda

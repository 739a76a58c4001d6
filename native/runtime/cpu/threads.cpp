// The pool: one job at a time; workers spin briefly for the next one before they sleep.
//
// A job is published by one addition to `state_`; a worker enters it by one compare-and-swap on the
// same word, so it can neither enter a job that is closed nor mistake one job for another. The
// fields that describe the job are written before it opens and do not change until the last worker
// has left.
#include "runtime/cpu/threads.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>

#include "runtime/cpu/control_groups.hpp"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#define ANYDML_PAUSE() _mm_pause()
#elif defined(__aarch64__)
#define ANYDML_PAUSE() asm volatile("yield")
#else
#define ANYDML_PAUSE() ((void)0)
#endif

namespace anydml {
namespace {

constexpr int kMaxWorkers = 255;
constexpr std::size_t kMinStackBytes = std::size_t{1} << 20;  // some systems give threads 128 KB

// How long an idle worker spins for the next job before it sleeps: long enough to catch the next
// pass of the same operator, short enough not to take a core from other threads.
constexpr std::chrono::microseconds kIdleSpin{30};

// How long the caller spins for busy workers before it sleeps.
constexpr std::chrono::microseconds kDoneSpin{50};

template <class Ready>
bool spin(std::chrono::microseconds limit, Ready ready) {
  if (ready()) return true;
  const auto end = std::chrono::steady_clock::now() + limit;
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      ANYDML_PAUSE();
    }
  } while (std::chrono::steady_clock::now() < end);
  return ready();
}

// Linux wakes a thread on the processor where it went to sleep. Where other threads spin on the
// rest, as those of PyTorch and ONNX Runtime do after their calls, that is often the caller's, and
// the worker would wait until the job is over. So one that sleeps on its caller's processor is
// woken without that processor in its affinity mask, which it restores when it runs.
class Displaced {
 public:
#if defined(__linux__)
  // By the thread itself.
  void note() {
    thread_ = static_cast<pid_t>(syscall(SYS_gettid));
    cpu_ = sched_getcpu();
  }
  void begin() {
    if (cpu_ < 0 || cpu_ != sched_getcpu()) return;
    if (sched_getaffinity(thread_, sizeof allowed_, &allowed_) != 0) return;
    cpu_set_t others = allowed_;
    CPU_CLR(static_cast<unsigned>(cpu_), &others);
    active_ = CPU_COUNT(&others) > 0 && sched_setaffinity(thread_, sizeof others, &others) == 0;
  }
  void end() {
    if (active_) sched_setaffinity(0, sizeof allowed_, &allowed_);
    active_ = false;
  }

 private:
  pid_t thread_ = 0;
  int cpu_ = -1;
  cpu_set_t allowed_;
  bool active_ = false;
#else
  void note() {}
  void begin() {}
  void end() {}
#endif
};

class Pool;

struct Worker {
  Pool* pool;
  int index;
  std::mutex mutex;  // for all members below
  std::condition_variable wake;
  bool asleep = false;
  Displaced displaced;
};

class Pool {
 public:
  // False when another caller owns the pool, or this one does (a nested call, from its thread or a
  // worker's): the work is then the caller's alone.
  bool run(Int chunks, int threads, void (*body)(void*, Int), void* context) noexcept {
    if (owned_.exchange(true, std::memory_order_acquire)) return false;
    active_count_ = static_cast<int>(
        std::min<Int>({static_cast<Int>(threads) - 1, chunks - 1, static_cast<Int>(kMaxWorkers)}));
    start_workers(active_count_);
    body_ = body;
    context_ = context;
    chunks_ = chunks;
    next_.store(0, std::memory_order_relaxed);
    state_.fetch_add(kGeneration + kOpen, std::memory_order_acq_rel);
    for (int i = 0; i < std::min(active_count_, workers_); ++i) wake(*all_[i]);
    work();
    // Close the job: no worker enters from here on; wait for those that did.
    state_.fetch_sub(kOpen, std::memory_order_acq_rel);
    wait_for_workers();
    owned_.store(false, std::memory_order_release);
    return true;
  }

 private:
  // state_: the low bits count workers inside the job, one bit says that it is open, one that the
  // caller sleeps until the workers have left, and the rest counts jobs.
  static constexpr uint64_t kEntered = 0xFFFF;
  static constexpr uint64_t kOpen = 1ull << 16;
  static constexpr uint64_t kWaiting = 1ull << 17;
  static constexpr uint64_t kGeneration = 1ull << 18;

  void work() noexcept {
    for (;;) {
      const Int chunk = next_.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= chunks_) break;
      body_(context_, chunk);
    }
  }

  void wait_for_workers() {
    const auto done = [&] { return (state_.load(std::memory_order_acquire) & kEntered) == 0; };
    if (spin(kDoneSpin, done)) return;
    std::unique_lock<std::mutex> lock(done_mutex_);
    state_.fetch_or(kWaiting, std::memory_order_acq_rel);
    done_.wait(lock, done);
    state_.fetch_and(~kWaiting, std::memory_order_acq_rel);
  }

  // Whether a job is open that this worker has not been in.
  static bool is_new(uint64_t state, uint64_t seen) {
    return (state & kOpen) != 0 && state / kGeneration != seen / kGeneration;
  }

  bool enter(uint64_t& seen) {
    uint64_t state = state_.load(std::memory_order_acquire);
    while (is_new(state, seen)) {
      if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire)) {
        seen = state;
        return true;
      }
    }
    return false;
  }

  void leave() {
    const uint64_t before = state_.fetch_sub(1, std::memory_order_acq_rel);
    if ((before & kWaiting) == 0 || (before & kEntered) != 1) return;
    // The lock orders this after the caller's last look before it sleeps.
    {
      std::lock_guard<std::mutex> lock(done_mutex_);
    }
    done_.notify_one();
  }

  void wake(Worker& worker) {
    {
      std::lock_guard<std::mutex> lock(worker.mutex);
      if (!worker.asleep) return;
      worker.asleep = false;
      worker.displaced.begin();
    }
    worker.wake.notify_one();
  }

  void sleep(Worker& worker, uint64_t seen) {
    std::unique_lock<std::mutex> lock(worker.mutex);
    // A thread that opens a job after this check sees `asleep` set.
    if (is_new(state_.load(std::memory_order_acquire), seen)) return;
    worker.asleep = true;
    worker.displaced.note();
    worker.wake.wait(lock, [&] { return !worker.asleep; });
    worker.displaced.end();
  }

  [[noreturn]] void loop(Worker& worker) {
    uint64_t seen = 0;
    for (;;) {
      while (spin(kIdleSpin, [&] { return enter(seen); })) {
        if (worker.index < active_count_) work();
        leave();
      }
      sleep(worker, seen);
    }
  }

  static void* main(void* argument) {
    auto* const worker = static_cast<Worker*>(argument);
    worker->pool->loop(*worker);
  }

  // Starts fewer if the system refuses: the caller and the existing workers do the work.
  void start_workers(int count) {
    if (workers_ >= count) return;
    // Signals are for the threads of the application.
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    // Detached and never joined: at exit the system takes the thread with the process, whatever the
    // interpreter is doing. Workers never touch the interpreter.
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) == 0) {
      pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
      std::size_t stack = 0;
      if (pthread_attr_getstacksize(&attributes, &stack) == 0 && stack < kMinStackBytes)
        pthread_attr_setstacksize(&attributes, kMinStackBytes);
      while (workers_ < count) {
        auto* const worker = new (std::nothrow) Worker;
        if (worker == nullptr) break;
        worker->pool = this;
        worker->index = workers_;
        pthread_t thread;
        if (pthread_create(&thread, &attributes, main, worker) != 0) {
          delete worker;
          break;
        }
        all_[workers_++] = worker;
      }
      pthread_attr_destroy(&attributes);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  // Each on a cache line of its own: all threads take chunks, and idle workers poll the state.
  alignas(64) std::atomic<Int> next_{0};
  alignas(64) std::atomic<uint64_t> state_{kGeneration};
  // The job.
  alignas(64) Int chunks_ = 0;
  void (*body_)(void*, Int) = nullptr;
  void* context_ = nullptr;
  int active_count_ = 0;
  // Members of the owner.
  alignas(64) std::atomic<bool> owned_{false};
  int workers_ = 0;
  Worker* all_[kMaxWorkers];
  std::mutex done_mutex_;
  std::condition_variable done_;
};

// Measured from the start of one call to the start of the next.
constexpr std::chrono::microseconds kSuccession{100};

// Never destroyed: detached workers may outlive static destructors. A forked child has none of its
// parent's threads, and the parent's pool may be in the middle of a job, so the child abandons that
// pool and creates its own at first use.
std::atomic<Pool*> pool{nullptr};

const bool fork_safe =
    pthread_atfork(nullptr, nullptr, [] { pool.store(nullptr, std::memory_order_relaxed); }) == 0;

// Null if the allocation fails. Lock-free: a fork could happen while a lock is held.
Pool* the_pool() {
  (void)fork_safe;
  Pool* current = pool.load(std::memory_order_acquire);
  if (current != nullptr) return current;
  auto* const fresh = new (std::nothrow) Pool;
  if (fresh == nullptr) return nullptr;
  if (pool.compare_exchange_strong(current, fresh, std::memory_order_acq_rel)) return fresh;
  delete fresh;
  return current;
}

}  // namespace

void run_chunks(Int chunks, int threads, void (*body)(void*, Int), void* context) {
  if (threads > 1 && chunks > 1) {
    Pool* const own = the_pool();
    if (own != nullptr && own->run(chunks, threads, body, context)) return;
  }
  for (Int chunk = 0; chunk < chunks; ++chunk) body(context, chunk);
}

bool in_quick_succession() {
  static std::atomic<int64_t> last{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const std::chrono::steady_clock::duration before(
      last.exchange(now.count(), std::memory_order_relaxed));
  return now - before < kSuccession;
}

int available_threads() {
  int count = static_cast<int>(std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0) count = CPU_COUNT(&set);
  // More threads than a container's limit are stopped together for the rest of every period.
  count = std::min(count, processor_limit());
#endif
  return std::max(count, 1);
}

}  // namespace anydml

// A small thread pool of our own.
//
// The caller works too and takes chunks from an atomic counter; it waits only for workers that have
// entered the job, so a worker that the system schedules late costs nothing. OpenMP's barrier cost
// milliseconds at p90 when the other core was busy, and its forked children hang.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <type_traits>

#include "common/layout.hpp"

namespace anydml {

// Runs `body(context, chunk)` for every chunk in [0, chunks) on at most `threads` threads, the
// caller's among them, and returns when all are done. Chunks start in ascending order. The
// body must not throw; the templates below catch what theirs throw. No body may fork. While another
// caller owns the pool, or inside a body, everything runs on the caller's thread: no
// oversubscription, no deadlock.
void run_chunks(Int chunks, int threads, void (*body)(void*, Int), void* context);

// An exception of a body is rethrown in the caller, whatever thread threw it; chunks that have not
// begun by then are skipped. If several bodies throw, one exception is rethrown.
template <class Body>
class Guarded {
 public:
  explicit Guarded(Body& body) : body_(body) {}
  static void run(void* context, Int chunk) {
    auto& self = *static_cast<Guarded*>(context);
    if (self.failed_.load(std::memory_order_relaxed)) return;
    try {
      self.body_(chunk);
    } catch (...) {
      if (!self.failed_.exchange(true, std::memory_order_relaxed))
        self.error_ = std::current_exception();
    }
  }
  // Runs after the job: the workers have left, so this thread sees their writes.
  void rethrow() {
    if (failed_.load(std::memory_order_relaxed)) std::rethrow_exception(error_);
  }

 private:
  Body& body_;
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
};

template <class Body>
void parallel_chunks(Int chunks, int threads, Body&& body) {
  if (chunks <= 0) return;
  if (threads <= 1 || chunks == 1) {
    for (Int chunk = 0; chunk < chunks; ++chunk) body(chunk);
    return;
  }
  Guarded<std::remove_reference_t<Body>> guarded(body);
  run_chunks(chunks, threads, &guarded.run, &guarded);
  guarded.rethrow();
}

// Splits [0, total) into ranges of at least `grain` items and calls body(begin, end) for each.
// There are more ranges than threads, so that fast threads take over the work of a slow one.
template <class Body>
void parallel_ranges(Int total, Int grain, int threads, Body&& body) {
  if (total <= 0) return;
  if (grain < 1) grain = 1;
  Int chunks = total / grain;
  const Int max_chunks = threads <= 1 ? 1 : Int{8} * threads;
  if (chunks > max_chunks) chunks = max_chunks;
  if (chunks <= 1) {
    body(Int{0}, total);
    return;
  }
  parallel_chunks(chunks, threads, [&](Int chunk) {
    // Rounded so that the ranges cover [0, total) exactly, without overflow for any int64 total.
    const Int size = total / chunks, rest = total % chunks;
    const Int begin = chunk * size + (chunk < rest ? chunk : rest);
    body(begin, begin + size + (chunk < rest ? 1 : 0));
  });
}

// Whether this call follows soon after the previous one. Waking a worker costs its caller ten
// microseconds, so calls of less than a hundred share their work only if they follow one another so
// closely that the worker has not gone to sleep.
bool in_quick_succession();

// The processors that the calling thread may use, by its affinity and its container's limit; at
// least 1. Reads one or two files: call it once.
int available_threads();

}  // namespace anydml

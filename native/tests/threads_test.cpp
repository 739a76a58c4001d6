// The thread pool: every chunk runs exactly once, while threads call, sleep or fork at the same
// time. After a fork, parent and child each have a working pool.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <new>
#include <thread>
#include <vector>

#include "harness.hpp"
#include "runtime/cpu/memory.hpp"
#include "runtime/cpu/threads.hpp"

// Failing allocations: counts down to the next one that fails, unless it is negative. Clang's
// memory sanitizer defines these functions itself.
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define ANYDML_FAILING_MEMORY 0
#endif
#endif
#ifndef ANYDML_FAILING_MEMORY
#define ANYDML_FAILING_MEMORY 1
static int fail_after = -1;
static void* fails_or(std::size_t bytes, std::size_t alignment) noexcept {
  if (fail_after >= 0 && fail_after-- == 0) return nullptr;
  return alignment == 0 ? ::operator new(bytes)
                        : ::operator new(bytes, std::align_val_t{alignment});
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return fails_or(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return fails_or(bytes, static_cast<std::size_t>(alignment));
}
#endif

// Forks with threads running.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace anydml::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

long passed = 0;
bool brief = false;

int scaled(int times) { return brief ? times / 10 + 1 : times; }

// Bodies stay in their chunk until `count` threads are in theirs: no thread may sleep forever.
class Meeting {
 public:
  explicit Meeting(int count) : count_(count) {}
  bool join() {
    here_.fetch_add(1);
    const auto end = Clock::now() + std::chrono::seconds(20);
    while (here_.load() < count_) {
      if (Clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  const int count_;
  std::atomic<int> here_{0};
};

// ---- threads ------------------------------------------------------------------------------------

void every_chunk_once(Random& random) {
  for (int round = 0; round < scaled(400); ++round) {
    const int threads = static_cast<int>(random.between(1, 8));
    const Int chunks = random.between(0, random.chance(0.2) ? 3000 : 40);
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(chunks));
    std::atomic<int> inside{0}, peak{0};
    parallel_chunks(chunks, threads, [&](Int chunk) {
      const int now = inside.fetch_add(1) + 1;
      int before = peak.load();
      while (before < now && !peak.compare_exchange_weak(before, now)) {
      }
      thread_local Int last_chunk = -1;
      thread_local int last_round = -1;
      EXPECT(last_round != round || last_chunk < chunk, "chunks out of order");
      last_round = round;
      last_chunk = chunk;
      runs[static_cast<std::size_t>(chunk)].fetch_add(1);
      inside.fetch_sub(1);
    });
    for (Int chunk = 0; chunk < chunks; ++chunk)
      EXPECT(runs[static_cast<std::size_t>(chunk)].load() == 1, "chunk %lld of %lld ran %d times",
             chunk, chunks, runs[static_cast<std::size_t>(chunk)].load());
    EXPECT(peak.load() <= threads, "%d threads, asked for %d", peak.load(), threads);
    ++passed;
  }
}

// Slow chunks after a job of more threads, which are still waiting for the next one.
void never_more_threads() {
  for (int round = 0; round < 40; ++round) {
    const int threads = 2 + round % 2;
    std::atomic<int> inside{0}, peak{0};
    parallel_chunks(64, 8, [](Int) {});
    parallel_chunks(2 * threads, threads, [&](Int) {
      const int now = inside.fetch_add(1) + 1;
      int before = peak.load();
      while (before < now && !peak.compare_exchange_weak(before, now)) {
      }
      std::this_thread::sleep_for(microseconds(400));
      inside.fetch_sub(1);
    });
    EXPECT(peak.load() <= threads, "%d threads, asked for %d", peak.load(), threads);
    ++passed;
  }
}

void ranges_cover(Random& random) {
  for (int round = 0; round < scaled(2000); ++round) {
    const int threads = static_cast<int>(random.between(1, 8));
    const Int total = random.between(0, random.chance(0.5) ? 100 : 100000);
    const Int grain = random.between(0, random.chance(0.5) ? 10 : 20000);
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(total));
    std::atomic<Int> ranges{0};
    parallel_ranges(total, grain, threads, [&](Int begin, Int end) {
      EXPECT(0 <= begin && begin < end && end <= total, "[%lld, %lld)", begin, end);
      EXPECT(end - begin >= std::min(grain, total), "%lld below %lld", end - begin, grain);
      for (Int i = begin; i < end; ++i) runs[static_cast<std::size_t>(i)].fetch_add(1);
      ranges.fetch_add(1);
    });
    for (const auto& count : runs) EXPECT(count.load() == 1, "%d times", count.load());
    EXPECT(ranges.load() <= Int{8} * threads, "%lld ranges", ranges.load());
    ++passed;
  }
  const Int huge = std::numeric_limits<Int>::max();
  std::atomic<Int> sum{0};
  parallel_ranges(huge, huge / 1000, 4, [&](Int begin, Int end) { sum.fetch_add(end - begin); });
  EXPECT(sum.load() == huge, "%lld", sum.load());
  ++passed;
}

void nested_calls() {
  for (int round = 0; round < scaled(200); ++round) {
    std::atomic<Int> runs{0};
    parallel_chunks(6, 4, [&](Int) {
      const pthread_t own = pthread_self();
      parallel_chunks(5, 8, [&](Int) {
        EXPECT(pthread_equal(pthread_self(), own) != 0, "a nested chunk left its thread");
        parallel_chunks(3, 2, [&](Int) { runs.fetch_add(1); });
      });
    });
    EXPECT(runs.load() == 6 * 5 * 3, "%lld", runs.load());
    ++passed;
  }
}

// Each job's context lives on its caller's stack and is wiped afterwards. A worker that mistakes
// one job for another, or a body that outlives its job, is detected here and by the sanitizers.
void many_callers() {
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([caller] {
      Random random(static_cast<uint64_t>(caller));
      for (int round = 0; round < scaled(1500); ++round) {
        struct Job {
          Int stamp;
          std::atomic<Int> sum{0};
        } job;
        job.stamp = caller * 1000000 + round;
        const Int chunks = random.between(2, 12);
        parallel_chunks(chunks, static_cast<int>(random.between(2, 6)),
                        [&job, stamp = job.stamp](Int chunk) {
                          EXPECT(job.stamp == stamp, "another job's context");
                          job.sum.fetch_add(chunk + 1);
                        });
        EXPECT(job.sum.load() == chunks * (chunks + 1) / 2, "%lld", job.sum.load());
        job.stamp = -1;
        if (random.chance(0.02)) std::this_thread::sleep_for(microseconds(200));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  ++passed;
}

// All threads must join, however long the pool has been idle.
void no_lost_wake_up(Random& random) {
  for (int round = 0; round < scaled(4000); ++round) {
    const int threads = static_cast<int>(random.between(2, 5));
    // About as long as an idle worker spins before it sleeps, or clearly longer.
    const auto idle = std::chrono::nanoseconds(random.between(25000, 45000));
    if (random.chance(0.05)) std::this_thread::sleep_for(microseconds(random.between(0, 150)));
    for (const auto end = Clock::now() + idle; Clock::now() < end;) {
    }
    Meeting meeting(threads);
    std::atomic<int> met{0};
    parallel_chunks(threads, threads, [&](Int) { met.fetch_add(meeting.join() ? 1 : 0); });
    EXPECT(met.load() == threads, "%d of %d threads came", met.load(), threads);
    ++passed;
  }
}

// The caller runs out of chunks long before a worker is done, and must sleep and wake again.
void slow_workers(Random& random) {
  const pthread_t own = pthread_self();
  for (int round = 0; round < scaled(300); ++round) {
    const int threads = static_cast<int>(random.between(2, 4));
    const auto delay = microseconds(random.between(0, 400));
    Meeting meeting(threads);
    std::vector<Int> done(static_cast<std::size_t>(threads), 0);  // plain: the return orders it
    parallel_chunks(threads, threads, [&](Int chunk) {
      EXPECT(meeting.join(), "not all threads came");
      if (pthread_equal(pthread_self(), own) == 0) std::this_thread::sleep_for(delay);
      done[static_cast<std::size_t>(chunk)] = chunk + 1;
    });
    for (int i = 0; i < threads; ++i)
      EXPECT(done[static_cast<std::size_t>(i)] == i + 1, "returned before chunk %d was done", i);
    ++passed;
  }
}

void workers_take_no_signals() {
  const pthread_t own = pthread_self();
  Meeting meeting(3);
  std::atomic<int> blocked{0};
  parallel_chunks(3, 3, [&](Int) {
    meeting.join();
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, nullptr, &set);
    const bool mine = pthread_equal(pthread_self(), own) != 0;
    EXPECT(mine != (sigismember(&set, SIGINT) == 1), "signal mask");
    if (!mine) blocked.fetch_add(1);
  });
  EXPECT(blocked.load() == 2, "%d", blocked.load());
  ++passed;
}

// A worker that is woken on another processor than its caller's has its affinity back when it runs.
void workers_get_their_processors_back() {
#if defined(__linux__)
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof(all), &all) != 0 || CPU_COUNT(&all) < 2) return;
  const pthread_t own = pthread_self();
  for (int round = 0; round < scaled(60); ++round) {
    // Called from each processor in turn, and so from that of the worker too.
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &all)) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      if (sched_setaffinity(0, sizeof(one), &one) != 0) continue;
      Meeting meeting(2);
      std::atomic<bool> back{false};
      parallel_chunks(2, 2, [&](Int) {
        EXPECT(meeting.join(), "not all threads came");
        if (pthread_equal(pthread_self(), own) != 0) return;
        cpu_set_t now;
        back = sched_getaffinity(0, sizeof(now), &now) == 0 && CPU_EQUAL(&now, &all);
      });
      EXPECT(back.load(), "a worker does not get all of its %d processors back", CPU_COUNT(&all));
      std::this_thread::sleep_for(microseconds(300));  // the worker sleeps
    }
    EXPECT(sched_setaffinity(0, sizeof(all), &all) == 0, "affinity");
  }
#endif
  ++passed;
}

void threads_follow_affinity() {
  EXPECT(available_threads() >= 1, "%d", available_threads());
#if defined(__linux__)
  std::thread([] {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof(all), &all) != 0) return;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0) return;
    EXPECT(available_threads() == 1, "%d", available_threads());
    // A thread that may use one processor only still works, and with help.
    std::atomic<int> runs{0};
    parallel_chunks(50, 4, [&](Int) { runs.fetch_add(1); });
    EXPECT(runs.load() == 50, "%d", runs.load());
  }).join();
#endif
  ++passed;
}

// ---- fork ---------------------------------------------------------------------------------------

// Whether a forked child runs this and exits by itself.
bool child_does(const std::function<bool()>& work) {
  std::fflush(stdout);
  const pid_t child = fork();
  EXPECT(child >= 0, "fork");
  if (child == 0) {
    alarm(60);  // a child that hangs is a failure, not a test that hangs
    _exit(work() ? 0 : 1);
  }
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child, "waitpid");
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool both_pools_work() {
  for (int round = 0; round < 3; ++round) {
    Meeting meeting(3);
    std::atomic<int> met{0};
    parallel_chunks(3, 3, [&](Int) { met.fetch_add(meeting.join() ? 1 : 0); });
    if (met.load() != 3) return false;
    void* const block = pool_acquire(std::size_t{3} << 20);
    if (block == nullptr) return false;
    std::memset(block, 1, std::size_t{3} << 20);
    pool_release(block);
  }
  return true;
}

void fork_when_idle() {
  EXPECT(child_does(both_pools_work), "in the child of a process that never used them");
#if ANYDML_FAILING_MEMORY
  // One allocation fails: that of the pool, the first worker or the second; the others do the work.
  for (const int after : {0, 1, 2})
    EXPECT(child_does([after] {
             const pthread_t own = pthread_self();
             fail_after = after;
             std::atomic<int> runs{0};
             parallel_chunks(50, 3, [&](Int) {
               runs.fetch_add(1);
               const bool mine = pthread_equal(pthread_self(), own) != 0;
               std::this_thread::sleep_for(microseconds(mine ? 10 : 1000));
             });
             return runs.load() == 50 && fail_after < 0;
           }),
           "without memory after %d", after);
#endif
#if !defined(__SANITIZE_THREAD__)
  EXPECT(child_does([] {
           std::atomic<int> runs{0};
           parallel_chunks(1000, 1000, [&](Int) { runs.fetch_add(1); });
           return runs.load() == 1000;
         }),
         "more threads than there may be");
#endif
  EXPECT(both_pools_work(), "before the fork");
  EXPECT(child_does(both_pools_work), "in the child");
  EXPECT(child_does([] { return both_pools_work() && child_does(both_pools_work); }),
         "in the child's child");
  EXPECT(both_pools_work(), "after the fork");
  ++passed;
}

// Other threads are in the middle of jobs and of the memory pool's lists.
void fork_in_the_middle() {
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  busy.emplace_back([&] {
    while (!stop.load()) pool_release(pool_acquire(std::size_t{100} << 10));
  });
  for (int i = 0; i < 3; ++i) {
    busy.emplace_back([&, i] {
      Random random(static_cast<uint64_t>(i));
      while (!stop.load()) {
        parallel_chunks(8, 3, [](Int) {
          void* const block = pool_acquire(std::size_t{100} << 10);
          static_cast<char*>(block)[0] = 1;
          pool_release(block);
        });
        if (random.chance(0.1)) std::this_thread::sleep_for(microseconds(100));
      }
    });
  }
  for (int round = 0; round < scaled(40); ++round) {
    std::this_thread::sleep_for(microseconds(round * 37 % 500));
    EXPECT(child_does(both_pools_work), "in the child, round %d", round);
    ++passed;
  }
  stop.store(true);
  for (std::thread& thread : busy) thread.join();
}

}  // namespace
}  // namespace anydml::test

int main() {
  using namespace anydml::test;
  brief = std::getenv("ANYDML_TEST_SHORT") != nullptr;
  Random random(7);
  fork_when_idle();  // first, so that the child of a process that never used the pools is tested
                     // too
  every_chunk_once(random);
  never_more_threads();
  ranges_cover(random);
  nested_calls();
  many_callers();
  no_lost_wake_up(random);
  slow_workers(random);
  workers_take_no_signals();
  workers_get_their_processors_back();
  threads_follow_affinity();
  fork_in_the_middle();
  std::printf("%ld passed, 0 failed\n", passed);
  return 0;
}

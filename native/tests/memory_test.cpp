// The memory pool: alignment, reuse and statistics, no byte lent twice, absurd sizes; and the
// streaming copy.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <new>
#include <thread>
#include <vector>

#include "harness.hpp"
#include "runtime/cpu/memory.hpp"

// Some cases ask for more memory than there is.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace anydml::test {
namespace {

using std::chrono::microseconds;

long passed = 0;
bool brief = false;

int scaled(int times) { return brief ? times / 10 + 1 : times; }

constexpr std::size_t kKilo = std::size_t{1} << 10, kMega = std::size_t{1} << 20;

void alignment() {
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64},
                            std::size_t{65}, std::size_t{1000}, 64 * kKilo - 1, 64 * kKilo,
                            64 * kKilo + 1, 4 * kMega - 1, 4 * kMega, 4 * kMega + 1, 9 * kMega}) {
    std::vector<void*> blocks;
    for (int i = 0; i < 5; ++i) {
      blocks.push_back(pool_acquire(bytes));
      EXPECT(blocks.back() != nullptr, "%zu bytes", bytes);
      EXPECT(reinterpret_cast<uintptr_t>(blocks.back()) % 64 == 0, "%zu bytes", bytes);
      std::memset(blocks.back(), 0xA5, bytes);
    }
    for (void* allocation : blocks) pool_release(allocation);
    ++passed;
  }
  pool_release(nullptr);
}

void absurd_sizes() {
  void* const acquired = pool_acquire(kMega);
  pool_release(acquired);
  const std::size_t max_size = std::numeric_limits<std::size_t>::max();
  for (std::size_t bytes :
       {max_size, max_size - 63, max_size / 2, max_size / 4 + 1, max_size / 8, max_size / 32})
    EXPECT(pool_acquire(bytes) == nullptr, "%zu bytes", bytes);
  EXPECT(pool_state().held == 0, "what is kept is given back before giving up");
  EXPECT(pool_state().lent == 0, "%zu", pool_state().lent);
  for (Int count : {std::numeric_limits<Int>::max(), Int{1} << 61, Int{1} << 60}) {
    bool thrown = false;
    try {
      const Scratch<uint64_t> scratch(count);
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
    EXPECT(thrown, "scratch of %lld", count);
  }
  ++passed;
}

void reuse_and_books() {
  const PoolState first = pool_state();
  pool_set_limit(0);
  EXPECT(pool_state().held == 0 && pool_state().limit == 0, "limit 0");
  void* block = pool_acquire(kMega);
  EXPECT(pool_state().lent == kMega, "%zu", pool_state().lent);
  pool_release(block);
  EXPECT(pool_state().held == 0 && pool_state().lent == 0, "nothing is kept at limit 0");

  pool_set_limit(16 * kMega);
  block = pool_acquire(kMega);
  pool_release(block);
  EXPECT(pool_state().held == kMega && pool_state().lent == 0, "%zu", pool_state().held);
  EXPECT(pool_acquire(kMega - 5) == block, "the kept block is the one to take");
  EXPECT(pool_state().held == 0 && pool_state().lent == kMega, "%zu", pool_state().held);
  pool_release(block);
  EXPECT(pool_acquire(kMega * 9 / 10) == block, "at most a quarter too large");
  pool_release(block);
  void* const small = pool_acquire(kMega / 2);
  EXPECT(small != block, "a small array must not hold a large block");
  pool_release(small);
  EXPECT(pool_state().held == kMega * 3 / 2, "%zu", pool_state().held);
  pool_set_limit(0);
  pool_set_limit(16 * kMega);

  // Best fit; the newest of equal blocks.
  void* const a = pool_acquire(kMega);
  void* const b = pool_acquire(kMega + 64 * kKilo);
  void* const c = pool_acquire(kMega);
  void* const d = pool_acquire(kMega + 64 * kKilo);
  for (void* allocation : {c, d, a, b}) pool_release(allocation);
  EXPECT(pool_acquire(kMega) == a, "the newest of equal size");
  EXPECT(pool_acquire(kMega) == c, "then the other");
  EXPECT(pool_acquire(kMega) == b, "then the newest of the next larger");
  EXPECT(pool_acquire(kMega) == d, "then the other");
  for (void* allocation : {a, b, c, d}) pool_release(allocation);

  // The oldest block is released when the limit is reached, and a block larger than the limit is
  // not kept.
  pool_set_limit(0);
  pool_set_limit(3 * kMega);
  std::vector<void*> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(pool_acquire(kMega));
  EXPECT(pool_state().lent == 5 * kMega, "%zu", pool_state().lent);
  for (void* allocation : blocks) pool_release(allocation);
  EXPECT(pool_state().held == 3 * kMega && pool_state().lent == 0, "%zu", pool_state().held);
  for (std::size_t i : {4u, 3u, 2u}) EXPECT(pool_acquire(kMega) == blocks[i], "block %zu", i);
  for (std::size_t i : {2u, 3u, 4u}) pool_release(blocks[i]);
  void* const large = pool_acquire(4 * kMega);
  pool_release(large);
  EXPECT(pool_state().held == 3 * kMega, "%zu", pool_state().held);

  // The peak stays when blocks are returned, whether they were kept before or are new.
  pool_peak();
  void* const acquired = pool_acquire(kMega);
  void* const fresh = pool_acquire(2 * kMega);
  pool_release(acquired);
  EXPECT(pool_peak() == 3 * kMega, "two blocks at a time");
  EXPECT(pool_peak() == 2 * kMega, "what is lent is the next peak's start");
  pool_release(fresh);
  EXPECT(pool_peak() == 2 * kMega && pool_peak() == 0, "nothing is lent");
  pool_set_limit(0);
  pool_set_limit(3 * kMega);
  for (void*& slot : blocks) slot = pool_acquire(kMega);
  for (void* allocation : blocks) pool_release(allocation);

  // Small blocks are neither kept nor counted.
  void* const tiny = pool_acquire(100);
  EXPECT(pool_state().lent == 0, "%zu", pool_state().lent);
  pool_release(tiny);
  EXPECT(pool_state().held == 3 * kMega, "%zu", pool_state().held);
  pool_set_limit(0);
  for (const std::size_t bytes : {64 * kKilo - 1, 64 * kKilo}) {
    void* const edge = pool_acquire(bytes);
    EXPECT(pool_state().lent == bytes / (64 * kKilo) * bytes, "%zu bytes", bytes);
    pool_release(edge);
  }
  pool_set_limit(first.limit);
  ++passed;
}

// Several threads hold blocks, each filled with its own mark from end to end.
void nothing_twice() {
  pool_set_limit(24 * kMega);
  std::vector<std::thread> threads;
  std::atomic<bool> stop{false};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      struct Held {
        uint64_t* words;
        std::size_t count;
        uint64_t mark;
      };
      Random random(static_cast<uint64_t>(100 + t));
      std::vector<Held> all;
      uint64_t next = static_cast<uint64_t>(t) << 32;
      for (int round = 0; round < scaled(2500); ++round) {
        if (all.size() < 6 || random.chance(0.5)) {
          const std::size_t top = random.chance(0.1) ? 600 * kKilo : 40 * kKilo;
          Held held;
          held.count = static_cast<std::size_t>(random.between(1, static_cast<Int>(top)));
          held.words = static_cast<uint64_t*>(pool_acquire(held.count * 8));
          EXPECT(held.words != nullptr, "%zu words", held.count);
          held.mark = ++next;
          std::fill(held.words, held.words + held.count, held.mark);
          all.push_back(held);
        }
        if (all.size() > 10 || random.chance(0.4)) {
          const auto at =
              static_cast<std::size_t>(random.between(0, static_cast<Int>(all.size()) - 1));
          const Held held = all[at];
          for (std::size_t i = 0; i < held.count; ++i)
            EXPECT(held.words[i] == held.mark, "somebody else wrote into this block");
          all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
          pool_release(held.words);
        }
      }
      for (const Held& held : all) pool_release(held.words);
    });
  }
  std::thread limiter([&] {
    for (std::size_t i = 0; !stop.load(); ++i) {
      pool_set_limit(i % 30 * kMega);
      const PoolState state = pool_state();
      EXPECT(state.limit == i % 30 * kMega, "%zu", state.limit);
      std::this_thread::sleep_for(microseconds(300));
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop.store(true);
  limiter.join();
  EXPECT(pool_state().lent == 0, "%zu", pool_state().lent);
  pool_set_limit(0);
  EXPECT(pool_state().held == 0, "%zu", pool_state().held);
  pool_set_limit(512 * kMega);
  ++passed;
}

void scratch_moves() {
  Scratch<int> empty;
  EXPECT(empty.get() == nullptr, "empty");
  Scratch<int> one(1000);
  one[999] = 7;
  Scratch<int> other(std::move(one));
  EXPECT(one.get() == nullptr && other[999] == 7, "moved");
  empty = std::move(other);
  EXPECT(other.get() == nullptr && empty[999] == 7, "assigned");
  empty.reset(50000);
  empty[49999] = 1;
  empty.reset(0);
  EXPECT(empty.get() != nullptr, "no elements, yet a block");
  ++passed;
}

void stream_copies(Random& random) {
  stream_copy(nullptr, nullptr, 0);
  for (int round = 0; round < scaled(3000); ++round) {
    const auto bytes = static_cast<std::size_t>(random.between(0, random.chance(0.9) ? 400 : 9000));
    const auto to = static_cast<std::size_t>(random.between(0, 70));
    const auto from = static_cast<std::size_t>(random.between(0, 70));
    std::vector<unsigned char> source(bytes + 80), target(bytes + 150, 0xEE);
    for (auto& byte : source) byte = static_cast<unsigned char>(random.bits());
    std::vector<unsigned char> expected = target;
    std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(to));
    stream_copy(target.data() + to, source.data() + from, bytes);
    stream_fence();
    EXPECT(target == expected, "%zu bytes from %zu to %zu", bytes, from, to);
    ++passed;
  }
}

}  // namespace
}  // namespace anydml::test

int main() {
  using namespace anydml::test;
  brief = std::getenv("ANYDML_TEST_SHORT") != nullptr;
  Random random(7);
  alignment();
  absurd_sizes();
  reuse_and_books();
  nothing_twice();
  scratch_moves();
  stream_copies(random);
  std::printf("%ld passed, 0 failed\n", passed);
  return 0;
}

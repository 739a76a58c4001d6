// A chain of operations on packed arrays of floats of one size, block by block: what only the chain
// reads stays in the near cache. Threads take ranges of blocks; each has registers of its own.
//
// No prefetcher follows arrays that are read in bursts, with a block's operations between them:
// each operation prefetches its part of the next block.
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>

#include "runtime/cpu/threads.hpp"
#include "runtime/plans.hpp"

namespace anydml {
namespace {

constexpr Int kBlock = 1024;  // floats
constexpr Int kGrain = 32;    // blocks that are worth another thread
constexpr Int kLine = 64 / sizeof(float);
constexpr Int kHead = 2, kWords = 4;

struct alignas(64) Register {
  float at[kBlock];
};

// One operation on a block; a block may be its own target. A function of its own, so that no
// compiler rounds a product and a following sum only once.
template <class Operation>
void apply(const float* a, const float* b, float* to, Operation operation) {
  for (Int i = 0; i < kBlock; ++i) to[i] = operation(a[i], b[i]);
}

template <class Operation>
void apply(const float* a, const float* b, float* to, Int count, Operation operation) {
  if (count == kBlock) return apply(a, b, to, operation);
  for (Int i = 0; i < count; ++i) to[i] = operation(a[i], b[i]);
}

void run(Int code, const float* first, const float* second, float* to, Int count) {
  enum : Int {
#define ANYDML_OPERATION(name, value) k_##name,
#include "common/chain.def"
#undef ANYDML_OPERATION
  };
  switch (code) {
#define ANYDML_OPERATION(name, value)      \
  case k_##name:                           \
    return apply(first, second, to, count, \
                 []([[maybe_unused]] float a, [[maybe_unused]] float b) { return value; });
#include "common/chain.def"
#undef ANYDML_OPERATION
  }
}

}  // namespace

void run_chain(const std::vector<void*>& arrays, Int total, const Int* numbers, int threads) {
  const Int array_count = static_cast<Int>(arrays.size()), constants = numbers[0],
            registers = numbers[1];
  const Int* const bits = numbers + kHead;
  const Int* const program = bits + constants;
  Int operations = 0;
  for (const Int* one = program; *one >= 0; one += kWords) ++operations;
  const Int part = (kBlock / kLine + operations - 1) / operations * kLine;
  const Int blocks = (total + kBlock - 1) / kBlock;
  parallel_ranges(blocks, kGrain, threads, [&](Int begin, Int end) {
    const auto own = std::make_unique_for_overwrite<Register[]>(constants + registers);
    for (Int i = 0; i < constants; ++i)
      std::fill_n(own[i].at, kBlock, std::bit_cast<float>(static_cast<std::uint32_t>(bits[i])));
    for (Int first = begin * kBlock; first < std::min(total, end * kBlock); first += kBlock) {
      const auto array = [&](Int i) { return static_cast<float*>(arrays[i]) + first; };
      const auto place = [&](Int i) {
        return i < array_count ? array(i) : own[i - array_count].at;
      };
      const Int count = std::min(kBlock, total - first);
      const Int later = std::min(kBlock, total - first - count);
      Int from = 0;
      for (const Int* one = program; *one >= 0; one += kWords, from += part) {
        for (Int i = 0; i < array_count; ++i)
          for (Int at = from; at < std::min(from + part, later); at += kLine)
            __builtin_prefetch(array(i) + kBlock + at, 0, 2);
        run(one[0], place(one[1]), place(one[2]), place(one[3]), count);
      }
    }
  });
}

}  // namespace anydml

// Many updates of one short line by a reduction of integers: each thread combines its share of them
// into a copy of its own, and the copies are combined at last. Integers give the same bits in any
// order, so this is as good as one update after the other. O(updates + threads * line); scratch of
// a line for each thread but the first, together less than a quarter of the updates.

#include <algorithm>
#include <cstring>

#include "scatter/cpu/scatter.hpp"

namespace anydml::scatter {
namespace {

// Updates in one chunk of a thread.
constexpr Int kShare = Int{1} << 15;

Int workers_of(const Problem& problem, int threads) {
  return std::min<Int>(threads, problem.length / (8 * problem.axis_size));
}

// The neutral element of the reduction.
void clear(char* line, const Problem& problem, const char* output) {
  const Int size = problem.element_size, bytes = problem.axis_size * size;
  switch (problem.reduction) {
    case Reduction::min:
    case Reduction::max:
      copy_steps(line, size, output, problem.axis[kOut], problem.axis_size, problem.element_size);
      return;
    default:
      std::memset(line, 0, static_cast<std::size_t>(bytes));
      if (problem.reduction == Reduction::mul)
        for (Int at = 0; at < bytes; at += size) line[at] = 1;
  }
}

}  // namespace

bool shares_apply(const Problem& problem, int threads, const Tuning& tuning) {
  return problem.any_order && problem.columns == 1 && problem.groups == 1 &&
         problem.length >= tuning.share_updates &&
         problem.axis_size * problem.element_size <= tuning.row_bytes &&
         workers_of(problem, threads) > 1;
}

bool run_shares(const Problem& problem, const char* indices, const char* updates, char* output,
                int threads) {
  const Int workers = workers_of(problem, threads), size = problem.element_size;
  const Int line_bytes = (problem.axis_size * size + 63) / 64 * 64;
  Scratch<char> copies((workers - 1) * line_bytes);
  for (Int worker = 1; worker < workers; ++worker)
    clear(copies.get() + (worker - 1) * line_bytes, problem, output);
  std::atomic<bool> good{true};
  parallel_items((problem.length + kShare - 1) / kShare, workers, threads,
                 [&](Int worker, Int item) {
                   Problem share = problem;
                   share.length = std::min(kShare, problem.length - item * kShare);
                   Target target{output, problem.axis[kOut], 0, 0, false};
                   if (worker > 0) {
                     target.base = copies.get() + (worker - 1) * line_bytes;
                     target.axis = size;
                   }
                   if (!update_lines(share, indices + item * kShare * problem.axis[kIndex],
                                     updates + item * kShare * problem.axis[kUpdate], 1, 1, target))
                     good.store(false, std::memory_order_relaxed);
                 },
                 [](Int) {});
  for (Int worker = 1; worker < workers; ++worker)
    problem.writer->combine_row(output, problem.axis[kOut],
                                copies.get() + (worker - 1) * line_bytes, size, problem.axis_size);
  return good.load(std::memory_order_relaxed);
}

}  // namespace anydml::scatter

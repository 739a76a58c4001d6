// ONE_HOT: off everywhere, and on where an index points.
//
// One pass over the output, in blocks that stay in a near cache: a block of sequences is filled,
// and then marked. Threads take blocks. No scratch; an index is read once.
#include "common/indexing.hpp"
#include "runtime/cpu/read_once.hpp"
#include "runtime/cpu/threads.hpp"
#include "runtime/cpu/with_type.hpp"
#include "runtime/plans.hpp"

namespace anydml {
namespace {

constexpr Int kBlockBytes = 1 << 14;
constexpr Int kRunBytes = 1 << 10;  // of neighbouring sequences

// A value at `size` places in each of `count` sequences; the smaller step is the inner loop's.
template <class T>
void fill(char* to, Int count, Int count_step, Int size, Int size_step, T value) {
  if (size_step > count_step) {
    std::swap(count, size);
    std::swap(count_step, size_step);
  }
  constexpr Int kStep = sizeof(T);
  if (size_step == kStep && count_step == size * kStep) {
    size *= count;
    count = 1;
  }
  for (Int i = 0; i < count; ++i, to += count_step) {
    if (size_step == kStep)
      for (Int k = 0; k < size; ++k) store(to + k * kStep, value);
    else
      for (Int k = 0; k < size; ++k) store(to + k * size_step, value);
  }
}

// The sequences and their indices, walked in one order.
struct Sequences {
  Layout places, lookups;
  Int size, step;  // of a sequence

  Sequences(const OneHotPlan& plan) {
    const Layout &out = plan.output.layout, &in = plan.indices.layout;
    const int axis = plan.axis, behind = plan.inserts ? axis : axis + 1;
    size = out.sizes[axis];
    step = out.strides[axis];
    for (int i = 0; i < out.rank; ++i) {
      if (i == axis) continue;
      places.push(out.sizes[i], out.strides[i]);
      lookups.push(out.sizes[i], in.strides[i < axis ? i : i - axis - 1 + behind]);
    }
    Layout* both[2] = {&places, &lookups};
    collapse(both);
    if (places.rank > 0) return;
    places.push(1, 0);
    lookups.push(1, 0);
  }
};

template <class T, class Index>
void run_all(const Sequences& all, T off, T on, const char* lookup, char* target, int threads) {
  const int inner = all.places.rank - 1;
  const Int row = all.places.sizes[inner], place_step = all.places.strides[inner];
  const Int lookup_step = all.lookups.strides[inner];
  const Int bytes = all.size * Int{sizeof(T)};
  Int block = std::max<Int>(1, kBlockBytes / bytes);
  if (place_step < all.step) block = std::max(block, kRunBytes / Int{sizeof(T)});
  block = std::min(block, row);
  const Int blocks = (row + block - 1) / block;
  const Int grain = std::max<Int>(1, kCopyGrain / (block * bytes));
  parallel_ranges(all.places.count() / row * blocks, grain, threads, [&](Int begin, Int end) {
    const Layout* const walked[2] = {&all.places, &all.lookups};
    Walker<2> at(walked, inner);
    at.start(begin / blocks);
    Int first = begin % blocks * block;
    for (Int i = begin; i < end; ++i) {
      const Int count = std::min(block, row - first);
      char* const to = target + at.offset[0] + first * place_step;
      const char* const from = lookup + at.offset[1] + first * lookup_step;
      fill(to, count, place_step, all.size, all.step, off);
      for (Int k = 0; k < count; ++k) {
        const auto size = static_cast<unsigned long long>(all.size);
        const auto place = wrap_index(read_once<Index>(from + k * lookup_step), size);
        if (place < size) store(to + k * place_step + static_cast<Int>(place) * all.step, on);
      }
      first += count;
      if (first < row) continue;
      first = 0;
      at.next();
    }
  });
}

}  // namespace

void OneHotPlan::run(const void* lookup, const void* table, void* to, int threads) const {
  if (output.layout.count() == 0) return;
  const Sequences all(*this);
  const char* const first = static_cast<const char*>(table);
  with_element(output.element_size, [&]<class T>(T) {
    const T off = load<T>(first), on = load<T>(first + offset_at(values.layout, 1));
    with_index(indices.type, [&]<class Index>(Index) {
      run_all<T, Index>(all, off, on, static_cast<const char*>(lookup), static_cast<char*>(to),
                        threads);
    });
  });
}

}  // namespace anydml

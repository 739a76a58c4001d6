// Means of updates: sums by the kernels of SCATTER and SCATTER_ND, then a division by how many
// updates each has, which the same kernel counts. The indices are read once for each of the passes;
// when another thread changes them in between, some sums are divided by other counts. Scratch:
// 8 bytes for each element of the output.
#include "scatter/cpu/scatter_mean.hpp"

#include "runtime/cpu/memory.hpp"
#include "runtime/cpu/with_type.hpp"
#include "scatter/cpu/scatter_combine.hpp"
#include "scatter/cpu/scatter_parts.hpp"

namespace anydml::scatter {
namespace {

template <class T>
T mean_of(T sum, Int count) {
  if constexpr (kIsShortFloat<T>)
    return rounded<T>(number(sum) / static_cast<float>(count));
  else
    return divided<Numbers>(sum, count);
}

template <class T>
void divide(const Layout& layout, char* sums, const Int* counts, Int more, int threads) {
  const Layout* const walked[1] = {&layout};
  parallel_ranges(layout.count(), kParallelElements / 4, threads, [&](Int begin, Int end) {
    Walker<1> walker(walked, layout.rank);
    walker.start(begin);
    for (Int i = begin; i < end; ++i, walker.next()) {
      if (counts[i] == 0) continue;  // what no update names keeps its bits
      char* const place = sums + walker.offset[0];
      store(place, mean_of(load<T>(place), counts[i] + more));
    }
  });
}

void divide(const Tensor& output, void* data, const Int* counts, Int more, int threads) {
  const auto run = [&]<class T>(T) {
    divide<T>(output.layout, static_cast<char*>(data), counts, more, threads);
  };
  if (output.type == DataType::complex64) return run(Complex<float>{});
  if (output.type == DataType::complex128) return run(Complex<double>{});
  with_type<Half, Bfloat>(output.type, run);
}

// One value for all elements of a tensor.
Tensor spread(const Tensor& tensor) {
  Tensor same = tensor;
  std::fill_n(same.layout.strides, same.layout.rank, 0);
  return same;
}

template <class Plan>
Status run_plan(Plan plan, const void* input, const void* indices, const void* updates,
                void* output, bool output_is_private, int threads) {
  const Mean mean = plan.mean;
  plan.mean = Mean::no;
  const Int total = plan.output.layout.count();
  Scratch<Int> counts(std::max<Int>(total, 1));
  Plan count = plan;
  Tensor& counted = count.output;
  counted.type = DataType::int64;
  counted.element_size = sizeof(Int);
  set_packed_strides(counted.layout, counted.element_size);
  count.input = counted;
  count.updates = spread(plan.updates);
  count.updates.type = DataType::int64;
  count.updates.element_size = sizeof(Int);

  if (mean == Mean::of_updates) {
    Plan start = plan;
    start.reduction = Reduction::none;
    start.updates = spread(plan.updates);
    const char zeros[16] = {};
    const Status status = start.run(input, indices, zeros, output, output_is_private, threads);
    if (!status.ok()) return status;
    plan.input = plan.output;
    input = output;
    output_is_private = true;  // it has been written
  }
  const Status status = plan.run(input, indices, updates, output, output_is_private, threads);
  if (!status.ok() && mean != Mean::of_updates) return status;
  const Int one = 1;
  std::fill_n(counts.get(), total, Int{0});
  count.run(counts.get(), indices, &one, counts.get(), true, threads);
  divide(plan.output, output, counts.get(), mean == Mean::with_element ? 1 : 0, threads);
  return {};
}

}  // namespace

Status run_mean(const ScatterPlan& plan, const void* input, const void* indices,
                const void* updates, void* output, bool output_is_private, int threads) {
  return run_plan(plan, input, indices, updates, output, output_is_private, threads);
}

Status run_mean(const ScatterNdPlan& plan, const void* input, const void* indices,
                const void* updates, void* output, bool output_is_private, int threads) {
  return run_plan(plan, input, indices, updates, output, output_is_private, threads);
}

}  // namespace anydml::scatter

// SCATTER and SCATTER_ND of single elements by one index each, where these ascend or descend as
// they lie: the input copied, and the updates put over it.
//
//   count    looks at some indices; where those are in order, at all, and whether each is inside
//            (scatter_count.cu)
//   copy     of the input, unless every element has an update
//   put      of updates; where every element has one, no index is read again
//
// Nothing waits: what has been put in place so is known on the device, and the kernels of the
// partition, which are launched behind these, do nothing then. Nor do these, where there is no
// order.
#include "scatter/cuda/scatter_job.hpp"

namespace anydml::cuda::scatter {

// With less than one update per this many elements, the updates of a bucket are written over its
// elements while these are in the second-level cache.
constexpr Int kSparse = 4;
constexpr Int kMinOrdered = 1 << 21;  // of fewer, kernels that end at once take too long

bool may_be_ordered(const Job& job) {
  const Int count = job.tuples();
  Layout from = job.index_tuples, base = job.base, updates = job.update_tuples;
  Layout* both[2] = {&from, &base};
  collapse(both);
  Layout* only[1] = {&updates};
  collapse(only);
  return job.length == 1 && job.scales[0] == 1 && from.rank == 1 && updates.rank == 1 &&
         from.strides[0] == job.indices.element_size && base.strides[0] == 0 &&
         unit_of(job.index_data) >= 16 && count >= kMinOrdered && count >= job.slices() / kSparse;
}

void put_in_order(const Job& job, const Order* order, Queue& queue) {
  const bool moves = job.reduction == Reduction::none;
  Layout updates = job.update_tuples;
  Layout* only[1] = {&updates};
  collapse(only);
  InOrder in;
  in.order = order;
  in.type = static_cast<int>(job.indices.type);
  in.once = moves ? 0 : 1;
  in.copies = job.in_place ? 0 : 1;
  in.count = static_cast<unsigned>(job.tuples());
  in.slices = static_cast<unsigned>(job.slices());
  in.update_step = updates.strides[0];
  const Dim all{kOrderBlocks * static_cast<unsigned>(queue.multiprocessors())};
  const Dim threads{kOrderThreads};
  const auto kernel = [&](const char* entry) -> Function& {
    return queue.function(
        "scatter_ordered", entry,
        {{"TYPE", moves ? 0 : static_cast<Int>(job.type)}, {"SIZE", job.output.element_size}});
  };
  if (!job.in_place)
    queue.launch_dependent(kernel("scatter_ordered_copy"), all, threads, 0, job.output_data,
                           job.input_data, in);
  queue.launch_dependent(kernel("scatter_ordered_put"), all, threads, 0, job.output_data,
                         job.input_data, job.index_data, job.update_data,
                         static_cast<int>(job.reduction), in);
}

}  // namespace anydml::cuda::scatter

// What the kernels offer to the binding layer: the plans of native/runtime/plans.hpp, whose meaning
// is the same to the bit, run on a queue. Pointers are the device's; sizes and axes have been
// checked.
#pragma once

#include "runtime/cuda/queue.hpp"
#include "runtime/plans.hpp"

namespace anydml::cuda {

void top_k(const TopKPlan& plan, const void* input, void* values, void* indices, Queue& queue,
           const void* lengths = nullptr);

// The two phases of NONZERO_COORDINATES. What `scan` finds stays on the device.
struct NonzeroFound {
  Int* count = nullptr;    // one number on the device
  void* bits = nullptr;    // a bit an element, row-major, behind `skip` others
  void* starts = nullptr;  // non-zero elements before each chunk
  Int skip = 0;
};
// `for_host`: Queue::counter_value will read the count.
NonzeroFound nonzero_scan(const NonzeroPlan& plan, const void* input, Queue& queue,
                          bool for_host = false);
// `max_rows` rows there are at most; the count is read on the device. Rows beyond the count are not
// touched.
void nonzero_write(const NonzeroPlan& plan, const NonzeroFound& found, Int max_rows,
                   const Tensor& rows, void* coordinates, Queue& queue);
// The count as the type of a tensor of one element.
void nonzero_count(const NonzeroFound& found, const Tensor& tensor, void* count, Queue& queue);

void copy_elements(const Layout& target_layout, void* target, const Layout& source_layout,
                   const void* source, int element_size, Queue& queue);
void split(const SlabsPlan& plan, const void* joined, void* const* parts, Queue& queue);
void join(const SlabsPlan& plan, const void* const* parts, void* joined, Queue& queue);

void one_hot(const OneHotPlan& plan, const void* indices, const void* values, void* output,
             Queue& queue);
void cast(const CastPlan& plan, const void* input, void* output, Queue& queue);
void identity(const IdentityPlan& plan, const void* input, void* output, Queue& queue);
void sequence(const SequencePlan& plan, void* output, Queue& queue);
void pad(const PaddingPlan& plan, const void* input, void* output, Queue& queue);
void reverse_subsequences(const ReversePlan& plan, const void* input, const void* lengths,
                          void* output, Queue& queue);
void upsample(const UpsamplePlan& plan, const void* input, void* output, Queue& queue);

// If an index is bad, an output that is private (`output_is_private`) becomes zeros, and another
// one is not written. The index is reported later (bad_indices.hpp).
void gather(const GatherPlan& plan, const void* input, const void* indices, void* output,
            bool output_is_private, Queue& queue);
void gather_elements(const GatherElementsPlan& plan, const void* input, const void* indices,
                     void* output, bool output_is_private, Queue& queue);
void gather_nd(const GatherNdPlan& plan, const void* input, const void* indices, void* output,
               bool output_is_private, Queue& queue);
// `output_is_private` as in native/runtime/plans.hpp. If an index is bad, a private output becomes
// zeros, and another one is not written.
void scatter_elements(const ScatterPlan& plan, const void* input, const void* indices,
                      const void* updates, void* output, bool output_is_private, Queue& queue);
void scatter_nd(const ScatterNdPlan& plan, const void* input, const void* indices,
                const void* updates, void* output, bool output_is_private, Queue& queue);

// All variants that a device may have to compile.
std::vector<Variant> top_k_variants();
std::vector<Variant> nonzero_variants();
std::vector<Variant> copy_variants();           // copy, split, join
std::vector<Variant> data_movement_variants();  // cast, identity, sequence, pad, tile
std::vector<Variant> one_hot_variants();
std::vector<Variant> image_variants();   // reverse_subsequences, upsample
std::vector<Variant> gather_variants();  // all three, and the checks of indices
std::vector<Variant> scatter_variants();

}  // namespace anydml::cuda

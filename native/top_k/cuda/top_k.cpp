// TOP_K: the k greatest (or smallest) elements of every row along an axis, sorted, ties in
// ascending position, NaN greatest; the order is order.hpp's, the results are those of
// native/top_k/cpu.
//
//   ranks        n <= 32: the rank of every element by counting, some lanes of a warp a row.
//   rounds       n <= 128, k <= 32: a warp a row, the best of the lanes' best, k times.
//   short        n <= 8192: a row in the registers of a block; a bound from the threads' maxima,
//                or all.
//   select       longer ones: a bound from a sample, one reading that collects what reaches it, an
//                order of the list; a block a row, or several, if rows are few (top_k_select.cu).
//   columns      rows side by side in memory: exact, tile by tile, then as rows.
//   sort         more than the list of select holds: what it picks, or whole rows when k is a good
//                part of n, by a radix sort of keys and places.
//   prepare      keys made beforehand, for orders that the kernels do not have.
//
// Rows may have lengths: a block or a warp reads that of its row, and makes its own plan of a
// shorter one. Results in the order of their positions are ranked or sorted by these at the end.
//
// What has another layout is packed first. All bounds are exact for every input, and places are
// part of the order throughout: ties change nothing about the time.
//
// If another stream changes the input meanwhile, the results are unspecified: they may match no
// single state of the input. But a kernel that counts first and then moves works on a copy, lists
// are bounded, and places come from counters.
#include "top_k/cuda/top_k_job.hpp"

namespace anydml::cuda {
namespace selection {
namespace {

unsigned long long flip_of(DataType type, int width, bool largest) {
  const unsigned long long smallest = largest ? 0 : ~0ull;
  const bool has_sign = is_float_type(type) || is_signed_type(type);
  return has_sign ? smallest : smallest ^ 1ull << (8 * width - 1);
}

// The same sizes packed, with the axis last in memory.
Layout packed_rows(const Layout& layout, int axis, int element_size) {
  Layout packed = layout;
  packed.strides[axis] = element_size;
  Int stride = element_size * layout.sizes[axis];
  for (int i = layout.rank - 1; i >= 0; --i) {
    if (i == axis) continue;
    packed.strides[i] = stride;
    stride *= layout.sizes[i];
  }
  return packed;
}

// Rows and strides of three tensors along an axis. False: too many dimensions for the kernels.
bool describe(const TopKPlan& plan, const void* input, void* values, void* indices,
              const Rows& of_lengths, Job& job) {
  const Layout& layout = plan.input.layout;
  const bool scalar = layout.rank == 0;
  Layout rows, value_rows, index_rows;
  for (int i = 0; i < layout.rank; ++i) {
    if (i == plan.axis) continue;
    rows.push(layout.sizes[i], layout.strides[i]);
    value_rows.push(layout.sizes[i], plan.values.layout.strides[i]);
    index_rows.push(layout.sizes[i], plan.indices.layout.strides[i]);
  }
  Layout* layouts[3] = {&rows, &value_rows, &index_rows};
  collapse(layouts);
  if (rows.rank > anydml::top_k::kDims) return false;
  Rows& to = job.rows;
  to = of_lengths;
  to.sorted = plan.sorted;
  to.fill = plan.fill;
  to.nan_last = plan.nan_last && plan.largest && is_float_type(plan.input.type);
  to.last_first = plan.last_first;
  to.rows = rows.count();
  to.n = scalar ? 1 : layout.sizes[plan.axis];
  to.k = plan.k;
  to.input = static_cast<const char*>(input);
  to.values = static_cast<char*>(values);
  to.indices = static_cast<char*>(indices);
  to.wide_indices = plan.indices.element_size == 8;
  job.width = plan.input.element_size;
  job.is_float = plan.input.type == DataType::bfloat16 ? 2 : is_float_type(plan.input.type) ? 1 : 0;
  to.flip = flip_of(plan.input.type, job.width, plan.largest);
  to.stride = to.n == 1 ? job.width : layout.strides[plan.axis];
  to.value_stride = to.k == 1 ? job.width : plan.values.layout.strides[plan.axis];
  to.index_stride = to.k == 1 ? plan.indices.element_size : plan.indices.layout.strides[plan.axis];
  to.rank = rows.rank;
  for (int i = 0; i < rows.rank; ++i) {
    to.sizes[i] = rows.sizes[i];
    to.input_strides[i] = rows.strides[i];
    to.value_strides[i] = value_rows.strides[i];
    to.index_strides[i] = index_rows.strides[i];
  }
  return true;
}

// The rows' lengths, at one stride.
void describe_lengths(const TopKPlan& plan, const void* lengths, Rows& to, Queue& queue) {
  if (lengths == nullptr || plan.lengths.layout.count() == 0) return;
  const int width = plan.lengths.element_size;
  Layout layout = plan.lengths.layout;
  Layout* layouts[1] = {&layout};
  collapse(layouts);
  if (layout.rank > 1) {
    const Layout from = layout;
    set_packed_strides(layout, width);
    void* const copy = queue.scratch(layout.count() * width);
    copy_elements(layout, copy, from, lengths, width, queue);
    lengths = copy;
  }
  to.lengths = lengths;
  to.length_stride = layout.rank == 0 ? 0 : layout.rank > 1 ? width : layout.strides[0];
  to.wide_lengths = width == 8;
  to.unsigned_lengths = !is_signed_type(plan.lengths.type);
}

}  // namespace
}  // namespace selection

void top_k(const TopKPlan& plan, const void* input, void* values, void* indices, Queue& queue,
           const void* lengths) {
  if (plan.k <= 0 || plan.input.layout.count() == 0) return;
  selection::Rows of_lengths{};
  selection::describe_lengths(plan, lengths, of_lengths, queue);
  selection::Job job;
  if (selection::describe(plan, input, values, indices, of_lengths, job)) {
    if (job.rows.stride == job.width) return selection::choose(job, queue);
    if (selection::columns(job, queue)) return;
    TopKPlan packed = plan;
    packed.input.layout =
        selection::packed_rows(plan.input.layout, plan.axis, plan.input.element_size);
    void* const copy = queue.scratch(plan.input.layout.count() * plan.input.element_size);
    copy_elements(packed.input.layout, copy, plan.input.layout, input, plan.input.element_size,
                  queue);
    if (selection::describe(packed, copy, values, indices, of_lengths, job))
      return selection::choose(job, queue);
  }
  // All three packed, as rows of one dimension.
  TopKPlan packed = plan;
  Tensor* const tensors[3] = {&packed.input, &packed.values, &packed.indices};
  void* copies[3];
  for (int i = 0; i < 3; ++i) {
    Tensor& tensor = *tensors[i];
    tensor.layout = selection::packed_rows(tensor.layout, plan.axis, tensor.element_size);
    copies[i] = queue.scratch(tensor.layout.count() * tensor.element_size);
  }
  copy_elements(packed.input.layout, copies[0], plan.input.layout, input, plan.input.element_size,
                queue);
  selection::describe(packed, copies[0], copies[1], copies[2], of_lengths, job);
  selection::choose(job, queue);
  copy_elements(plan.values.layout, values, packed.values.layout, copies[1],
                plan.values.element_size, queue);
  copy_elements(plan.indices.layout, indices, packed.indices.layout, copies[2],
                plan.indices.element_size, queue);
}

std::vector<Variant> top_k_variants() {
  std::vector<Variant> variants;
  const int types[][2] = {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {2, 1}, {4, 1}, {8, 1}, {2, 2}};
  for (const auto& [width, is_float] : types) {
    const auto add = [&, w = width, f = is_float](const char* source, std::vector<Define> more) {
      more.insert(more.begin(), {{"width", w}, {"is_float", f}});
      variants.push_back({source, std::move(more)});
    };
    add("top_k_small", {});
    add("top_k_prepare", {});
    for (const Int threads : {64, 128, 256, 512})
      for (const Int per_thread : {16, 8}) {
        if (per_thread == 16)
          add("top_k_short",
              {{"threads", threads}, {"small_k", 0}, {"per_thread", per_thread}, {"full", 0}});
        if (width == 1 || (per_thread == 16 && threads < 512)) continue;
        for (const Int full : {0, 1})
          add("top_k_short",
              {{"threads", threads}, {"small_k", 1}, {"per_thread", per_thread}, {"full", full}});
      }
    add("top_k_columns", {{"per_thread", width == 8 ? 8 : 16}});
    for (const Int team : {0, 1, 2, 3, 4}) add("top_k_select", {{"team", team}});
    for (const Int wide : {0, 1}) add("top_k_sort", {{"wide", wide}});
  }
  return variants;
}

}  // namespace anydml::cuda

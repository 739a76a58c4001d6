// SCATTER (SCATTER_ELEMENTS) and SCATTER_ND: which algorithm runs, and why.
//
//   lines     SCATTER, lines along the axis that fit shared memory (scatter_lines.cu), moving or
//             where order does not matter: integers, and minima and maxima of floats
//   few       moving a few updates in place, or of rows: every block knows all (scatter_few.cu)
//   sparse    moving updates of few slices, or in place: bits of the slices that they name, and a
//             map of those that several name (scatter_sparse.cu)
//   winners   moving: a map of the last update of each slice (scatter_rows.cu), if it is small
//             compared with the output, or fits the second-level cache
//   order     the same as buckets, by one index each that ascend or descend (scatter_ordered.cpp)
//   buckets   single elements of long packed outputs, moving or where order does not matter: a
//             partition into buckets that fit shared memory (scatter_buckets.cpp)
//   sorting   everything: the keys of the updates (scatter_keys.cu), sorted stably by TOP_K's
//             passes; then the last update of each slice is moved, or all are combined in order,
//             and sums divided by their terms
//
// Indices are read once where a key is kept. The caller's output is written after a kernel has
// checked all indices, and not at all if one was bad; a private output becomes zeros then.
#include <algorithm>

#include "scatter/cuda/scatter_job.hpp"

namespace anydml::cuda {
namespace scatter {
namespace {

Job job_for(const Tensor& input, const Tensor& indices, const Tensor& output, Reduction reduction,
            const void* source, const void* positions, const void* values, void* target,
            bool output_is_private) {
  Job job;
  job.type = output.type;
  job.reduction = reduction;
  job.output_is_private = output_is_private;
  job.in_place = source == target;
  job.size = output.element_size;
  job.indices = indices;
  job.input = job.in_place ? output : input;
  job.output = output;
  job.input_data = static_cast<const char*>(source);
  job.index_data = static_cast<const char*>(positions);
  job.update_data = static_cast<const char*>(values);
  job.output_data = static_cast<char*>(target);
  return job;
}

// The largest unit, up to `max_unit` bytes, for all addresses and the strides of some dimensions.
Int common_unit(const Job& job, Int max_unit) {
  Int unit = std::min({max_unit, unit_of(job.output_data), unit_of(job.update_data)});
  if (!job.in_place) unit = std::min(unit, unit_of(job.input_data));
  for (const Layout* layout : {&job.outer_in, &job.outer_out, &job.update_tuples})
    for (int i = 0; i < layout->rank; ++i) unit = std::min(unit, unit_of(layout->strides[i]));
  return unit;
}

// Elements that are only moved are moved in units as large as their layout allows.
void resolve(Job& job) {
  Layout* slices[3] = {&job.slice_in, &job.slice_out, &job.slice_update};
  collapse(slices);
  Layout* outer[2] = {&job.outer_in, &job.outer_out};
  collapse(outer);
  Layout* tuples[1] = {&job.update_tuples};
  collapse(tuples);
  if (job.reduction != Reduction::none) return;
  Int size = job.size;
  Int unit = common_unit(job, size);
  for (const Layout* layout : slices)
    for (int i = 0; i < layout->rank; ++i) unit = std::min(unit, unit_of(layout->strides[i]));
  if (unit < size) {
    for (Layout* layout : slices) layout->push(size / unit, unit);
    collapse(slices);
    size = unit;
  }
  const int last = job.slice_out.rank - 1;
  bool contiguous = last >= 0;
  for (const Layout* layout : slices) contiguous = contiguous && layout->strides[last] == size;
  if (contiguous) {
    unit = std::min(common_unit(job, 16), unit_of(job.slice_out.sizes[last] * size));
    for (const Layout* layout : slices)
      for (int i = 0; i < last; ++i) unit = std::min(unit, unit_of(layout->strides[i]));
    if (unit > size)
      for (Layout* layout : slices) {
        layout->sizes[last] = layout->sizes[last] * size / unit;
        layout->strides[last] = unit;
      }
    size = std::max(size, unit);
    collapse(slices);
  }
  job.size = static_cast<int>(size);
}

}  // namespace

Places places_of(const Layout& first, const Layout* second) {
  Places places;
  places.rank = first.rank;
  places.narrow = first.count() < Int{1} << 31 ? 1 : 0;
  for (int i = 0; i < first.rank; ++i) {
    places.divisors[i] = divisor_of(places.narrow ? std::max<Int>(first.sizes[i], 1) : 1);
    places.sizes[i] = first.sizes[i];
    places.first[i] = first.strides[i];
    places.second[i] = second == nullptr ? 0 : second->strides[i];
  }
  return places;
}

Tuples tuples_of(const Job& job) {
  Tuples tuples;
  tuples.type = static_cast<int>(job.indices.type);
  tuples.length = job.length;
  tuples.width = 0;
  const Int size = job.indices.element_size;
  Int unit = unit_of(job.index_data);
  for (int i = 0; i < job.index_tuples.rank; ++i)
    unit = std::min(unit, unit_of(job.index_tuples.strides[i]));
  tuples.paired = job.length == 2 && job.step == size && unit >= 2 * size ? 1 : 0;
  tuples.count = job.tuples();
  tuples.step = job.step;
  for (int d = 0; d < job.length; ++d) {
    tuples.sizes[d] = job.sizes[d];
    tuples.scales[d] = job.scales[d];
  }
  return tuples;
}

int key_width(Int slices) {
  return slices < 0xFF ? 1 : slices < 0xFFFF ? 2 : slices < 0xFFFFFFFF ? 4 : 8;
}

void find_keys(const Job& job, void* keys, int width, unsigned* winners,
               const BadIndexReport& report, Queue& queue) {
  Layout from = job.index_tuples, base = job.base;
  Layout* both[2] = {&from, &base};
  collapse(both);
  Tuples tuples = tuples_of(job);
  tuples.width = width;
  queue.launch(queue.function("scatter_keys", "scatter_keys",
                              {{"INDEX", static_cast<Int>(job.indices.type)}}),
               {blocks_for(tuples.count, kKeysPerThread * kScatterThreads)}, {kScatterThreads}, 0,
               job.index_data, places_of(from, &base), tuples, keys, winners, report);
}

void check_indices(const Job& job, const BadIndexReport& report, Queue& queue) {
  const Tensor& indices = job.indices;
  const bool packed = indices.layout.packed(indices.element_size);
  if (!packed || unit_of(job.index_data) < 16)
    return find_keys(job, nullptr, 0, nullptr, report, queue);
  const Int count = indices.layout.count(), lines = (count * indices.element_size + 15) / 16;
  queue.launch(queue.function("scatter_keys", "scatter_check",
                              {{"INDEX", static_cast<Int>(job.indices.type)}}),
               {blocks_for(lines, kCheckLinesPerThread * kScatterThreads)}, {kScatterThreads}, 0,
               job.index_data, Offset{count}, tuples_of(job), report);
}

namespace {

// Two layouts of a whole tensor, in units as large as they lie.
struct OutputCopy {
  Layout to, from;
  Int unit;

  OutputCopy(const Job& job, bool with_input) : to(job.output.layout) {
    const Int size = job.output.element_size;
    from = with_input ? job.input.layout : to;
    Layout* both[2] = {&to, &from};
    collapse(both);
    const auto common = [&](Int max_unit, int dimensions) {
      Int unit_bytes = std::min(max_unit, unit_of(job.output_data));
      if (with_input) unit_bytes = std::min(unit_bytes, unit_of(job.input_data));
      for (int i = 0; i < dimensions; ++i)
        unit_bytes = std::min({unit_bytes, unit_of(to.strides[i]), unit_of(from.strides[i])});
      return unit_bytes;
    };
    unit = common(size, to.rank);
    if (unit < size) {
      to.push(size / unit, unit);
      from.push(size / unit, unit);
      collapse(both);
    }
    const int last = to.rank - 1;
    if (last < 0 || to.strides[last] != unit || from.strides[last] != unit) return;
    const Int wide = std::min(common(16, last), unit_of(to.sizes[last] * unit));
    if (wide <= unit) return;
    to.sizes[last] = from.sizes[last] = to.sizes[last] * unit / wide;
    to.strides[last] = from.strides[last] = unit = wide;
    collapse(both);
  }
};

Dim blocks_of(const OutputCopy& output_copy, Queue& queue) {
  const Int needed = (output_copy.to.count() + kScatterThreads - 1) / kScatterThreads;
  return {static_cast<unsigned>(std::min<Int>(needed, 32 * queue.multiprocessors()))};
}

}  // namespace

void copy_input(const Job& job, const BadIndexReport& report, Queue& queue) {
  if (job.in_place || job.output.layout.count() == 0) return;
  if (job.output_is_private)
    return copy_elements(job.output.layout, job.output_data, job.input.layout, job.input_data,
                         job.output.element_size, queue);
  const OutputCopy output_copy(job, true);
  queue.launch(queue.function("scatter_copy", "scatter_copy", {{"SIZE", output_copy.unit}}),
               blocks_of(output_copy, queue), {kScatterThreads}, 0, job.output_data, job.input_data,
               places_of(output_copy.to, &output_copy.from), output_copy.to.count(), report);
}

void publish_output(const Job& job, const BadIndexReport& report, Queue& queue) {
  const Int bytes = job.output.layout.count() * job.output.element_size;
  if (!job.output_is_private) return queue.publish_report(report);
  if (job.output.layout.packed(job.output.element_size))
    return queue.publish_report(report, job.output_data, bytes);
  const OutputCopy output_copy(job, false);
  queue.launch(queue.function("scatter_copy", "scatter_clear", {{"SIZE", output_copy.unit}}),
               blocks_of(output_copy, queue), {kScatterThreads}, 0, job.output_data,
               places_of(output_copy.to), output_copy.to.count(), report);
  queue.publish_report(report);
}

void by_sorting(const Job& job, const BadIndexReport& report, Queue& queue) {
  const Int count = job.tuples();
  Sorted sorted;
  sorted.count = count;
  sorted.slices = job.slices();
  sorted.elements = job.slice_elements();
  sorted.lanes_log = std::min(log_above(sorted.elements), 5u);
  sorted.key_width = key_width(sorted.slices);
  sorted.update_width = count < Int{1} << 32 ? 4 : 8;
  void* const keys = queue.scratch(count * sorted.key_width);
  void* const ordered = queue.scratch(count * sorted.key_width);
  void* const updates = queue.scratch(count * sorted.update_width);
  find_keys(job, keys, sorted.key_width, nullptr, report, queue);
  copy_input(job, report, queue);

  const auto list = [&](DataType type, int size) {
    Tensor tensor;
    tensor.type = type;
    tensor.element_size = size;
    tensor.layout.push(count, size);
    return tensor;
  };
  const DataType types[] = {DataType::uint8, DataType::uint16, DataType::uint32, DataType::uint64};
  const DataType type = types[log_above(sorted.key_width)];
  const DataType places = sorted.update_width == 4 ? DataType::uint32 : DataType::uint64;
  TopKPlan sort;
  sort.input = sort.values = list(type, sorted.key_width);
  sort.indices = list(places, sorted.update_width);
  sort.axis = 0;
  sort.k = count;
  sort.largest = false;
  top_k(sort, keys, ordered, updates, queue);
  sorted.keys = ordered;
  sorted.updates = updates;

  const Places outer = places_of(job.outer_out), tuples = places_of(job.update_tuples),
               slice = places_of(job.slice_out, &job.slice_update);
  const Dim grid{blocks_for(count << sorted.lanes_log, kScatterThreads)};
  if (job.reduction == Reduction::none) {
    queue.launch(
        queue.function("scatter_sorted", "scatter_move", {{"TYPE", 0}, {"SIZE", job.size}}), grid,
        {kScatterThreads}, 0, job.output_data, job.update_data, sorted, outer, tuples, slice,
        report);
    return;
  }
  const auto kernel = [&](const char* entry) -> Function& {
    return queue.function("scatter_sorted", entry,
                          {{"TYPE", static_cast<Int>(job.type)},
                           {"SIZE", job.size},
                           {"COMBINE", static_cast<Int>(job.reduction)}});
  };
  Chains chains;
  chains.count = queue.scratch_of<unsigned long long>(1);
  chains.starts = queue.scratch_of<Offset>(count / kLongChain + 1);
  queue.zero(chains.count, sizeof *chains.count);
  const int mean = static_cast<int>(job.mean);
  queue.launch(kernel("scatter_combine"), grid, {kScatterThreads}, 0, job.output_data,
               job.update_data, sorted, outer, tuples, slice, chains, mean, report);
  if (count <= kLongChain) return;
  queue.launch(kernel("scatter_chains"), {static_cast<unsigned>(2 * queue.multiprocessors())},
               {kChainThreads}, 2 * kChainBytes, job.output_data, job.update_data, sorted, outer,
               tuples, slice, chains, mean, report);
}

namespace {

void run(const ScatterPlan* elements, Job& job, Queue& queue) {
  resolve(job);
  if (job.tuples() == 0) {
    if (!job.in_place)
      copy_elements(job.output.layout, job.output_data, job.input.layout, job.input_data,
                    job.output.element_size, queue);
    return;
  }
  const BadIndexReport report =
      queue.report(job.indices, job.output.layout, job.axis, std::max(job.length, 1));
  if (job.slices() == 0 || job.slice_elements() == 0) {  // indices may be bad nevertheless
    if (job.length > 0) check_indices(job, report, queue);
    return queue.publish_report(report);
  }
  bool published = false;
  const bool done = job.mean == Mean::no &&
                    ((elements != nullptr && by_lines(*elements, job, report, queue, published)) ||
                     by_few(job, report, queue, published) || by_buckets(job, report, queue) ||
                     by_sparse(job, report, queue, published) || by_winners(job, report, queue));
  if (!done) by_sorting(job, report, queue);
  if (!published) publish_output(job, report, queue);
}

}  // namespace
}  // namespace scatter

void scatter_elements(const ScatterPlan& plan, const void* input, const void* indices,
                      const void* updates, void* output, bool output_is_private, Queue& queue) {
  scatter::Job job = scatter::job_for(plan.input, plan.indices, plan.output, plan.reduction, input,
                                      indices, updates, output, output_is_private);
  job.mean = plan.mean;
  const Layout& output_layout = plan.output.layout;
  const int rank = output_layout.rank;
  job.axis = plan.axis;
  job.length = 1;
  job.step = 0;
  job.index_tuples = plan.indices.layout;
  job.update_tuples = plan.updates.layout;
  job.base = plan.indices.layout;
  job.sizes[0] = job.scales[0] = 1;
  Int scale = 1;
  for (int d = rank - 1; d >= 0; --d) {
    job.base.strides[d] = d == plan.axis ? 0 : scale;
    if (d == plan.axis) {
      job.sizes[0] = output_layout.sizes[d];
      job.scales[0] = scale;
    }
    scale *= output_layout.sizes[d];
  }
  job.outer_in = job.input.layout;
  job.outer_out = output_layout;
  scatter::run(&plan, job, queue);
}

void scatter_nd(const ScatterNdPlan& plan, const void* input, const void* indices,
                const void* updates, void* output, bool output_is_private, Queue& queue) {
  scatter::Job job = scatter::job_for(plan.input, plan.indices, plan.output, plan.reduction, input,
                                      indices, updates, output, output_is_private);
  job.mean = plan.mean;
  const Layout &output_layout = plan.output.layout, &from = job.input.layout;
  const Layout &lookup = plan.indices.layout, &values = plan.updates.layout;
  const int batch = lookup.rank - 1;
  job.axis = 0;
  job.length = static_cast<int>(lookup.sizes[batch]);
  job.step = lookup.strides[batch];
  job.index_tuples = lookup.slice(0, batch);
  job.update_tuples = values.slice(0, batch);
  job.base = job.index_tuples;
  for (int i = 0; i < batch; ++i) job.base.strides[i] = 0;
  Int scale = 1;
  for (int d = job.length - 1; d >= 0; --d) {
    job.sizes[d] = output_layout.sizes[d];
    job.scales[d] = scale;
    scale *= output_layout.sizes[d];
  }
  job.outer_in = from.slice(0, job.length);
  job.outer_out = output_layout.slice(0, job.length);
  job.slice_in = from.slice(job.length, from.rank);
  job.slice_out = output_layout.slice(job.length, output_layout.rank);
  job.slice_update = values.slice(batch, values.rank);
  scatter::run(nullptr, job, queue);
}

std::vector<Variant> scatter_variants() {
  std::vector<Variant> all;
  for (const DataType type : kIndexTypes)
    for (const char* source : {"scatter_keys", "scatter_count"})
      all.push_back({source, {{"INDEX", static_cast<Int>(type)}}});
  for (Int size : {1, 2, 4, 8, 16}) {
    all.push_back({"scatter_sorted", {{"TYPE", 0}, {"SIZE", size}}});
    for (const char* source : {"scatter_copy", "scatter_few", "scatter_sparse", "scatter_rows"})
      all.push_back({source, {{"SIZE", size}}});
    if (size <= 8) {
      all.push_back({"scatter_append", {{"SIZE", size}, {"NUMBERED", size == 8}}});
      if (size == 2 || size == 4)
        all.push_back({"scatter_append", {{"SIZE", size}, {"NUMBERED", 1}}});
      all.push_back({"scatter_bucket", {{"TYPE", 0}, {"SIZE", size}}});
      all.push_back({"scatter_ordered", {{"TYPE", 0}, {"SIZE", size}}});
    }
    for (Int wide : {0, 1})
      all.push_back({"scatter_lines", {{"TYPE", 0}, {"SIZE", size}, {"WIDE", wide}}});
  }
  for (const TypeFacts& facts : kElementTypes) {
    if (facts.type == DataType::unknown) continue;
    const std::vector<Define> typed{{"TYPE", static_cast<Int>(facts.type)}, {"SIZE", facts.size}};
    for (Reduction reduction : {Reduction::add, Reduction::mul, Reduction::min, Reduction::max}) {
      const bool orders = reduction == Reduction::min || reduction == Reduction::max;
      if (orders && is_complex_type(facts.type)) continue;
      std::vector<Define> reduced = typed;
      reduced.push_back({"COMBINE", static_cast<Int>(reduction)});
      all.push_back({"scatter_sorted", reduced});
    }
    if (is_complex_type(facts.type)) continue;
    all.push_back({"scatter_bucket", typed});
    all.push_back({"scatter_ordered", typed});
    if (facts.size <= 4)
      all.push_back({"scatter_lines",
                     {{"TYPE", static_cast<Int>(facts.type)}, {"SIZE", facts.size}, {"WIDE", 1}}});
  }
  return all;
}

}  // namespace anydml::cuda

// NONZERO_COORDINATES: bits and counts, a scan of the counts, rows from the bits.
//
// One pass over the input makes a bit of every element, in order, and counts them by granules of
// 8192; a scan over the counts says where each granule's rows begin; then warps make rows from
// bits. An input that is not packed is read as it lies, or packed first where its innermost
// dimension is not the one along which it is dense. Scratch: a bit an element and 12 bytes a
// granule, and a packed input.
#include <algorithm>

#include "nonzero/cuda/nonzero.cuh"
#include "runtime/cuda/plans.hpp"
#include "runtime/cuda/tables.hpp"

namespace anydml::cuda {
namespace {

Axes axes_of(const Layout& layout, int first, Int elements) {
  Axes axes;
  axes.count = layout.rank - first;
  axes.narrow = elements < Int{1} << 32 ? 1 : 0;
  Int inside = 1;
  for (int i = layout.rank - 1; i >= first; --i) {
    const Int size = layout.sizes[i];
    const bool is_long = size > kLongAxis;
    axes.axes[i - first] = {size, inside, layout.strides[i], divisor_of(is_long ? 1 : size),
                            is_long ? 1u : 0u};
    inside *= size;
  }
  return axes;
}

// Groups whose counts are added up without sums kept by the scan.
constexpr Int kSmallGroups = 16;

constexpr Int granules_of(Int positions) { return (positions + kGranule - 1) / kGranule; }

}  // namespace

NonzeroFound nonzero_scan(const NonzeroPlan& plan, const void* input, Queue& queue, bool for_host) {
  NonzeroFound found;
  const Tensor& tensor = plan.input;
  const Int size = tensor.element_size, elements = tensor.layout.count();
  if (elements == 0) {
    found.count = queue.scratch_of<Int>(1);
    queue.zero(found.count, sizeof(Int));
    return found;
  }
  Layout layout = tensor.layout;
  Layout* only[1] = {&layout};
  collapse(only);
  if (!layout.packed(size) && !reads_in_order(layout, tensor.element_size)) {
    Layout packed = layout;
    set_packed_strides(packed, size);
    void* const copy = queue.scratch(elements * size);
    copy_elements(packed, copy, layout, input, tensor.element_size, queue);
    layout = packed;
    input = copy;
  }
  const bool packed = layout.packed(size);
  const char* const data = static_cast<const char*>(input);
  // Lines begin before the first element, where that is not at the beginning of one.
  const Int lead = packed ? static_cast<Int>(reinterpret_cast<unsigned long long>(data) & 15) : 0;
  found.skip = lead / size;
  const Int end = found.skip + elements, granules = granules_of(end);
  const Int groups = (granules + kGroup - 1) / kGroup;
  // One block of scratch, because each allocation slows down a small call.
  const Int sums_kept = groups > kSmallGroups ? groups : 0;
  char* next = static_cast<char*>(queue.scratch(granules * (kGranule / 8) + 8 * (granules + 2) +
                                                4 * granules + 8 * sums_kept + 4 * 16));
  const auto part = [&next](Int bytes) {
    char* const begin = next;
    next += (bytes + 15) / 16 * 16;
    return static_cast<void*>(begin);
  };
  found.bits = part(granules * (kGranule / 8));
  found.starts = part(8 * (granules + 1));
  found.count = static_cast<Int*>(part(8));
  unsigned* const counts = static_cast<unsigned*>(part(4 * granules));
  unsigned long long* sums = nullptr;
  if (sums_kept > 0) {
    sums = static_cast<unsigned long long*>(part(8 * sums_kept));
    queue.zero(sums, groups * static_cast<Int>(sizeof *sums));
  }
  const HostCounters::Slot slot = for_host ? queue.counter_for_host() : HostCounters::Slot{};
  Starts to{reinterpret_cast<Offset*>(found.starts), reinterpret_cast<Offset*>(found.count),
            reinterpret_cast<Offset*>(slot.device),
            granules > 1 && granules <= kMaxSummedGranules ? slot.sum : nullptr};
  unsigned* const bits = static_cast<unsigned*>(found.bits);
  const Int sign = is_float_type(tensor.type) ? 1 : 0;
  if (packed) {
    const Int many = std::max<Int>(1, 4 / size);  // granules of a block
    queue.launch(queue.function("nonzero", "nonzero_lines", {{"SIZE", size}, {"FLOAT", sign}}),
                 {blocks_for(granules, many)}, {kNonzeroThreads}, 0, data - lead,
                 static_cast<unsigned>(found.skip), end, granules, bits, counts, sums, to);
  } else {
    queue.launch(queue.function("nonzero", "nonzero_elements", {{"SIZE", size}, {"FLOAT", sign}}),
                 {blocks_for(granules, 1)}, {kNonzeroThreads}, 0, data, axes_of(layout, 0, end),
                 end, bits, counts, sums, to);
  }
  if (to.sum != nullptr) to.host_count = nullptr;  // the count has been written
  if (granules > 1)
    queue.launch_dependent(queue.function("nonzero_starts", "nonzero_starts", {}),
                           {blocks_for(granules, kGroup)}, {kScanThreads}, 0, counts, sums,
                           granules, to);
  return found;
}

void nonzero_write(const NonzeroPlan& plan, const NonzeroFound& found, Int max_rows,
                   const Tensor& rows, void* coordinates, Queue& queue) {
  const Layout& layout = plan.input.layout;
  const Int elements = layout.count(), size = rows.element_size;
  max_rows = std::min(max_rows, rows.layout.sizes[0]);
  if (elements == 0 || plan.columns == 0 || max_rows == 0) return;
  const Int granules = granules_of(found.skip + elements);
  const Int row_step = rows.layout.strides[0], column_step = rows.layout.strides[1];
  const bool packed = (max_rows == 1 || row_step == plan.columns * size) &&
                      (plan.columns == 1 || column_step == size);
  const Int columns = packed && plan.columns <= 4 ? plan.columns : 0;
  const bool paired = columns == 2 && std::min(unit_of(coordinates), unit_of(row_step)) >= 2 * size;
  // Enough blocks for the device, even if there are few granules.
  int granules_log = 3;
  const Int min_granules = Int{queue.multiprocessors()} * 8;
  while (granules_log > 0 && (granules >> granules_log) < min_granules) --granules_log;
  queue.launch(
      queue.function("nonzero_rows", "nonzero_rows", {{"SIZE", size}, {"COLUMNS", columns}}),
      {blocks_for(granules, Int{1} << granules_log)}, {kNonzeroThreads}, 0,
      static_cast<const unsigned*>(found.bits), static_cast<const Int*>(found.starts), granules,
      static_cast<unsigned>(found.skip), granules_log,
      axes_of(layout, layout.rank - plan.columns, elements), coordinates, max_rows, row_step,
      column_step, paired ? 1 : 0);
}

void nonzero_count(const NonzeroFound& found, const Tensor& tensor, void* count, Queue& queue) {
  queue.launch(queue.function("nonzero_starts", "nonzero_count", {}), {}, {}, 0, found.count, count,
               tensor.element_size);
}

std::vector<Variant> nonzero_variants() {
  std::vector<Variant> all{{"nonzero_starts", {}}};
  for (Int size : {1, 2, 4, 8, 16})
    for (Int sign : {0, 1})
      if (sign == 0 || (size > 1 && size < 16))
        all.push_back({"nonzero", {{"SIZE", size}, {"FLOAT", sign}}});
  for (Int size : {4, 8})
    for (Int columns : {0, 1, 2, 3, 4})
      all.push_back({"nonzero_rows", {{"SIZE", size}, {"COLUMNS", columns}}});
  return all;
}

}  // namespace anydml::cuda

// REVERSE_SUBSEQUENCES and UPSAMPLE_2D.
//
// A line's elements move in units as large as addresses and strides allow, dimensions behind the
// axis that share their lengths together; packed rows 16 bytes at a time, and lines side by side
// some positions at a time. An image whose elements repeat is made in lines of 16 bytes, or is a
// copy whose source does not move along two more dimensions.
#include "images/cuda/images.cuh"

#include <algorithm>

#include "runtime/cuda/plans.hpp"
#include "runtime/cuda/tables.hpp"

namespace anydml::cuda {
namespace {

struct Lines {
  Layout to, from, lengths;  // the same sizes; lengths do not move along the axis
  char* target;
  const char* source;
  const char* counts;
  DataType counts_type;
  int axis;
  Int begin, size;  // on the axis, of the whole
  Int unit;

  void push(Int count, Int to_step, Int from_step, Int lengths_step) {
    to.push(count, to_step);
    from.push(count, from_step);
    lengths.push(count, lengths_step);
  }
  void append(const Layout& a, const Layout& b, const Layout& c) {
    for (int i = 0; i < a.rank; ++i) push(a.sizes[i], a.strides[i], b.strides[i], c.strides[i]);
  }
};

Lines lines_of(const ReversePlan& plan, const void* input, const void* lengths, void* output) {
  const Layout &to = plan.output.layout, &from = plan.input.layout;
  Layout counts = plan.lengths.layout;
  counts.sizes[plan.axis] = to.sizes[plan.axis];
  Lines lines{{},
              {},
              {},
              static_cast<char*>(output),
              static_cast<const char*>(input),
              static_cast<const char*>(lengths),
              plan.lengths.type,
              0,
              0,
              to.sizes[plan.axis],
              0};
  Layout outer[3] = {to.slice(0, plan.axis), from.slice(0, plan.axis), counts.slice(0, plan.axis)};
  Layout inner[3] = {to.slice(plan.axis + 1, to.rank), from.slice(plan.axis + 1, to.rank),
                     counts.slice(plan.axis + 1, to.rank)};
  Layout* outsides[3] = {&outer[0], &outer[1], &outer[2]};
  Layout* insides[3] = {&inner[0], &inner[1], &inner[2]};
  collapse(outsides);
  collapse(insides);
  // What moves as one: an element, or a contiguous row of them with one length.
  const Int size = plan.output.element_size;
  Int bytes = size;
  const int last = inner[0].rank - 1;
  if (last >= 0 && inner[0].strides[last] == size && inner[1].strides[last] == size &&
      inner[2].strides[last] == 0) {
    bytes *= inner[0].sizes[last];
    for (Layout* layout : insides) --layout->rank;
  }
  lines.append(outer[0], outer[1], outer[2]);
  lines.axis = lines.to.rank;
  lines.push(lines.size, to.strides[plan.axis], from.strides[plan.axis], 0);
  lines.append(inner[0], inner[1], inner[2]);
  lines.unit = std::min({unit_of(bytes), unit_of(lines.target), unit_of(lines.source)});
  for (int i = 0; i < lines.to.rank; ++i)
    lines.unit =
        std::min({lines.unit, unit_of(lines.to.strides[i]), unit_of(lines.from.strides[i])});
  if (bytes > lines.unit) lines.push(bytes / lines.unit, lines.unit, lines.unit, 0);
  return lines;
}

Function& reverse_kernel(const Lines& lines, const char* entry, Queue& queue) {
  return queue.function("reverse", entry,
                        {{"SIZE", lines.unit}, {"LENGTH", static_cast<Int>(lines.counts_type)}});
}

// Lines that are packed rows, at whole lines of 16 bytes. False: nothing has been done.
bool reverse_rows(const Lines& lines, Queue& queue) {
  const int last = lines.to.rank - 1;
  const Int row = lines.size * lines.unit;
  if (lines.axis != last || lines.to.sizes[last] != lines.size || row % 16 != 0 ||
      lines.to.strides[last] != lines.unit || lines.from.strides[last] != lines.unit)
    return false;
  Int unit = std::min(unit_of(lines.target), unit_of(lines.source));
  for (int i = 0; i < last; ++i)
    unit = std::min({unit, unit_of(lines.to.strides[i]), unit_of(lines.from.strides[i])});
  if (unit < 16) return false;
  ReverseRows turning;
  turning.rows = walk_of(lines.to, lines.from, 0, last);
  for (int i = 0; i < last; ++i) turning.lengths[i] = lines.lengths.strides[i];
  turning.size = lines.size;
  turning.lines = divisor_of(row / 16);
  turning.items = static_cast<unsigned>(lines.to.count() / lines.size * (row / 16));
  queue.launch(reverse_kernel(lines, "reverse_rows", queue),
               {blocks_for(turning.items, kImageThreads * kReverseRowUnroll)}, {kImageThreads}, 0,
               lines.target, lines.source, lines.counts, turning);
  return true;
}

// Lines that lie side by side in the output.
bool reverse_lines(const Lines& lines, Queue& queue) {
  constexpr Int kMinColumns = 16;
  const int last = lines.to.rank - 1;
  if (lines.axis == last || lines.to.strides[last] != lines.unit ||
      lines.to.sizes[last] < kMinColumns)
    return false;
  ReverseLines turning;
  turning.columns = walk_of(lines.to, lines.from, 0, last + 1, lines.axis);
  for (int i = 0, n = 0; i <= last; ++i)
    if (i != lines.axis) turning.lengths[n++] = lines.lengths.strides[i];
  turning.begin = lines.begin;
  turning.size = lines.size;
  turning.to_step = lines.to.strides[lines.axis];
  turning.from_step = lines.from.strides[lines.axis];
  turning.positions = static_cast<unsigned>(lines.to.sizes[lines.axis]);
  turning.count = static_cast<unsigned>(lines.to.count() / lines.to.sizes[lines.axis]);
  const Int chunks = blocks_for(turning.positions, kReverseRowsPerBlock);
  turning.chunks = divisor_of(chunks);
  queue.launch(reverse_kernel(lines, "reverse_lines", queue),
               {static_cast<unsigned>(blocks_for(turning.count, 32) * chunks)}, {kImageThreads}, 0,
               lines.target, lines.source, lines.counts, turning);
  return true;
}

void reverse(const Lines& lines, Queue& queue) {
  const Int units = lines.to.count();
  if (units > kMaxUnits) {  // the longest dimension in two halves
    const int cut = static_cast<int>(
        std::max_element(lines.to.sizes, lines.to.sizes + lines.to.rank) - lines.to.sizes);
    Lines first = lines, second = lines;
    const Int half = lines.to.sizes[cut] / 2;
    for (Layout* layout : {&first.to, &first.from, &first.lengths}) layout->sizes[cut] = half;
    for (Layout* layout : {&second.to, &second.from, &second.lengths}) layout->sizes[cut] -= half;
    second.target += half * lines.to.strides[cut];
    second.source += half * lines.from.strides[cut];
    second.counts += half * lines.lengths.strides[cut];
    if (cut == lines.axis) second.begin += half;
    reverse(first, queue);
    reverse(second, queue);
    return;
  }
  if (reverse_rows(lines, queue) || reverse_lines(lines, queue)) return;
  Turning turning;
  turning.walk = walk_of(lines.to, lines.from, 0, lines.to.rank);
  for (int i = 0; i < lines.to.rank; ++i) turning.lengths[i] = lines.lengths.strides[i];
  turning.axis = lines.axis;
  turning.begin = lines.begin;
  turning.size = lines.size;
  turning.from_step = lines.from.strides[lines.axis];
  queue.launch(reverse_kernel(lines, "reverse_units", queue),
               {blocks_for(units, kImageThreads * kReverseUnroll)}, {kImageThreads}, 0,
               lines.target, lines.source, lines.counts, turning, static_cast<unsigned>(units));
}

// Each element again and again, in whole lines. False: nothing has been done.
bool repeat_lines(const UpsamplePlan& plan, const void* input, void* output, Queue& queue) {
  const Layout &in = plan.input.layout, &out = plan.output.layout;
  const int outer = in.rank - 2;
  const Int size = plan.output.element_size, row = out.sizes[outer + 1] * size;
  Layout to = out.slice(0, outer), from = in.slice(0, outer);
  Layout* both[2] = {&to, &from};
  collapse(both);
  const Int items = to.count() * in.sizes[outer] * (row / 16);
  if (size > 8 || out.strides[outer + 1] != size || row % 16 != 0 || items == 0 ||
      items > kMaxUnits || out.sizes[outer + 1] > kMaxUnits || plan.width > kMaxUnits)
    return false;
  Int unit = std::min(unit_of(output), unit_of(out.strides[outer]));
  for (int i = 0; i < to.rank; ++i) unit = std::min(unit, unit_of(to.strides[i]));
  if (unit < 16 || plan.height > kMaxUnits) return false;
  Repeating shape;
  shape.lines = divisor_of(row / 16);
  shape.rows = divisor_of(in.sizes[outer]);
  shape.width = divisor_of(plan.width);
  shape.height = static_cast<unsigned>(plan.height);
  shape.items = static_cast<unsigned>(items);
  shape.from_row = in.strides[outer];
  shape.from_column = in.strides[outer + 1];
  shape.to_row = out.strides[outer];
  queue.launch(queue.function("upsample_nearest", "upsample_nearest", {{"SIZE", size}}),
               {blocks_for(items, kImageThreads)}, {kImageThreads}, 0, static_cast<char*>(output),
               static_cast<const char*>(input), walk_of(to, from, 0, to.rank), shape);
  return true;
}

// The same in any layout.
void repeat(const UpsamplePlan& plan, const void* input, void* output, Queue& queue) {
  Layout to, from;
  const int outer = plan.input.layout.rank - 2;
  for (int i = 0; i < plan.input.layout.rank; ++i) {
    const Int size = plan.input.layout.sizes[i], step = plan.output.layout.strides[i];
    const Int scale = i < outer ? 1 : i == outer ? plan.height : plan.width;
    if (size > 1) {
      to.push(size, step * scale);
      from.push(size, plan.input.layout.strides[i]);
    }
    if (scale > 1) {
      to.push(scale, step);
      from.push(scale, 0);
    }
  }
  copy_elements(to, output, from, input, plan.output.element_size, queue);
}

void interpolate(const Layout& images_to, char* target, const Layout& images_from,
                 const char* source, const Stretching& shape, DataType type, Int elements,
                 Queue& queue) {
  const Int images = images_to.count(), tiles_per_image = shape.across * shape.down;
  if (images > 1 && images * tiles_per_image > kMaxUnits) {  // the longest dimension in two halves
    const int cut = static_cast<int>(
        std::max_element(images_to.sizes, images_to.sizes + images_to.rank) - images_to.sizes);
    const Int half = images_to.sizes[cut] / 2;
    Layout to = images_to, from = images_from;
    to.sizes[cut] = from.sizes[cut] = half;
    interpolate(to, target, from, source, shape, type, elements, queue);
    to.sizes[cut] = from.sizes[cut] = images_to.sizes[cut] - half;
    interpolate(to, target + half * to.strides[cut], from, source + half * from.strides[cut], shape,
                type, elements, queue);
    return;
  }
  const bool wide = elements > 1;
  const unsigned rows = (kImageThreads >> shape.columns_log) * (wide ? kWideRows : kUpsampleRows);
  queue.launch(queue.function("upsample", wide ? "upsample_linear_wide" : "upsample_linear",
                              {{"TYPE", static_cast<Int>(type)}}),
               {static_cast<unsigned>(images * tiles_per_image)}, {kImageThreads},
               (rows + (static_cast<unsigned>(elements) << shape.columns_log)) * 16, target, source,
               walk_of(images_to, images_from, 0, images_to.rank), shape);
}

}  // namespace

void reverse_subsequences(const ReversePlan& plan, const void* input, const void* lengths,
                          void* output, Queue& queue) {
  if (plan.output.layout.count() > 0) reverse(lines_of(plan, input, lengths, output), queue);
}

void upsample(const UpsamplePlan& plan, const void* input, void* output, Queue& queue) {
  if (plan.output.layout.count() == 0) return;
  if (!plan.linear) {
    if (!repeat_lines(plan, input, output, queue)) repeat(plan, input, output, queue);
    return;
  }
  const Layout &in = plan.input.layout, &out = plan.output.layout;
  const int outer = in.rank - 2;
  Stretching shape;
  shape.high = in.sizes[outer];
  shape.wide = in.sizes[outer + 1];
  shape.rows = out.sizes[outer];
  shape.columns = out.sizes[outer + 1];
  shape.height = plan.height;
  shape.width = plan.width;
  shape.from_row = in.strides[outer];
  shape.from_column = in.strides[outer + 1];
  shape.to_row = out.strides[outer];
  shape.to_column = out.strides[outer + 1];
  Layout to = out.slice(0, outer), from = in.slice(0, outer);
  Layout* both[2] = {&to, &from};
  collapse(both);
  const Int size = plan.output.element_size, elements = 16 / size;
  Int unit = std::min({unit_of(output), unit_of(shape.to_row), unit_of(shape.columns * size)});
  for (int i = 0; i < to.rank; ++i) unit = std::min(unit, unit_of(to.strides[i]));
  const bool wide = unit == 16 && shape.to_column == size && shape.from_column == size &&
                    shape.wide * size < Int{1} << 31;
  const Int side = wide ? elements : 1, rows = wide ? kWideRows : kUpsampleRows;
  shape.columns_log = std::min(log_above((shape.columns + side - 1) / side), 8u);
  const Int at_once = Int{kImageThreads >> shape.columns_log} * rows;
  const Int block = side << shape.columns_log;
  shape.across = (shape.columns + block - 1) / block;
  shape.down = (shape.rows + at_once - 1) / at_once;
  interpolate(to, static_cast<char*>(output), from, static_cast<const char*>(input), shape,
              plan.output.type, side, queue);
}

std::vector<Variant> image_variants() {
  std::vector<Variant> all;
  for (const DataType length : kIndexTypes)
    for (Int size : {1, 2, 4, 8, 16})
      all.push_back({"reverse", {{"SIZE", size}, {"LENGTH", static_cast<Int>(length)}}});
  for (Int size : {1, 2, 4, 8}) all.push_back({"upsample_nearest", {{"SIZE", size}}});
  for (DataType type : {DataType::float32, DataType::float16})
    all.push_back({"upsample", {{"TYPE", static_cast<Int>(type)}}});
  return all;
}

}  // namespace anydml::cuda

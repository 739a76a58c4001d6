// SPLIT and JOIN: a whole tensor and the slabs that it consists of along one axis.
//
// Where the dimensions behind the axis are packed and those before it have one common step, the
// whole is rows of bytes, and each part a piece of every row; one kernel moves all parts, units of
// the whole in its order where addresses allow large ones, segments of pieces where they do not,
// tiles through shared memory where pieces are a few bytes. All other strides: a copy a part.
// The parts are a table in the kernel's argument, or in scratch where they are many.
#include <algorithm>
#include <string>
#include <vector>

#include "common/slab_rows.hpp"
#include "moving/cuda/slabs.cuh"
#include "runtime/cuda/plans.hpp"
#include "runtime/cuda/tables.hpp"

namespace anydml::cuda {
namespace {

// From pieces of this many bytes on, segments are faster than small units, and tiles are slower.
constexpr Int long_piece(Int unit) { return unit <= 2 ? 64 : unit == 4 ? 128 : 256; }
constexpr Int kShortPiece = 48;
// Pieces of up to this many bytes are moved many rows at a time, or eight.
constexpr Int kTallPiece = 256, kShortRun = 1024;
// Segments of a row that have an entry each.
constexpr Int kDirect = 4096;

struct Matrix {
  Slabs slabs;
  std::vector<SlabPart> parts;  // with the last entry
  Int rows, bytes, unit;
  bool split, same_layout;

  // With a table of the parts, as entries or as addresses.
  void start(std::string entry, Int size, Int blocks, unsigned shared, Queue& queue) const {
    const bool is_small_table = parts.size() <= kSmallParts + 1;
    const bool addresses = same_layout && entry != "segments";
    const bool in_argument = addresses ? slabs.count <= kSmallAddresses : is_small_table;
    entry += std::string(addresses ? "_same_layout" : "") + (in_argument ? "_few" : "");
    Function& function =
        queue.function("slabs", entry.c_str(), {{"SIZE", size}, {"SPLIT", split ? 1 : 0}});
    const Dim grid{static_cast<unsigned>(blocks)}, block{kSlabThreads};
    if (!in_argument) {
      queue.launch(function, grid, block, shared, slabs);
    } else if (addresses) {
      AddressTable table;
      for (unsigned p = 0; p < slabs.count; ++p) table.data[p] = parts[p].data;
      queue.launch(function, grid, block, shared, slabs, table);
    } else {
      PartTable table;
      std::copy(parts.begin(), parts.end(), table.parts);
      queue.launch(function, grid, block, shared, slabs, table);
    }
  }

  void keep_table(bool addresses, Queue& queue) {
    if (addresses && slabs.count > kSmallAddresses) {
      std::vector<char*> all(parts.size() + parts.size() % 2);  // whole lines
      for (std::size_t p = 0; p < parts.size(); ++p) all[p] = parts[p].data;
      const Int table_bytes = static_cast<Int>(all.size() * sizeof(char*));
      void* const table = queue.scratch(table_bytes);
      store_lines(table, all.data(), table_bytes, queue);
      slabs.table = table;
    } else if (!addresses && parts.size() > kSmallParts + 1) {
      slabs.table = table_on_device(parts.data(), static_cast<Int>(parts.size()), queue);
    }
  }

  // Calls body(rows) for stretches of at least one row, and of at most kMaxUnits items, where a row
  // has `row_items`.
  template <class Body>
  void for_stretches(Int row_items, Body&& body) {
    const Int max_rows = std::max<Int>(1, kMaxUnits / row_items);
    for (Int row = 0; row < rows; row += max_rows) {
      slabs.row = row;
      const Int chunk = std::min(max_rows, rows - row);
      slabs.rows = static_cast<unsigned>(chunk);
      body(chunk);
    }
  }

  void segments(Queue& queue) {
    const Int mean = bytes / slabs.count;
    slabs.lanes_log = std::clamp(log_above((mean + kLaneBytes - 1) / kLaneBytes), kMinLanesLog, 8u);
    const Int length = Int{kLaneBytes} << slabs.lanes_log;
    Int all = 0;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      parts[p].more = all;
      if (p + 1 < parts.size()) all += (parts[p + 1].begin - parts[p].begin + length - 1) / length;
    }
    slabs.segments = divisor_of(all);
    if (all <= kDirect) {
      slabs.direct = 1;
      std::vector<SlabPart> entries;
      for (std::size_t p = 0; p + 1 < parts.size(); ++p) {
        const Int piece = parts[p + 1].begin - parts[p].begin;
        for (Int at = 0; at < piece; at += length)
          entries.push_back({parts[p].data + at, parts[p].step, parts[p].begin + at,
                             std::min(length, piece - at)});
      }
      parts.swap(entries);
    }
    keep_table(false, queue);
    for_stretches(all, [&](Int chunk) {
      slabs.items = static_cast<unsigned>(chunk * all);
      start("segments", 1, blocks_for(chunk * all << slabs.lanes_log, kSlabThreads), 0, queue);
    });
  }

  void units(Queue& queue) {
    const Int row_units = bytes / unit, mean = bytes / slabs.count;
    // Several rows a block if pieces are short, so that each part is accessed in longer stretches.
    slabs.shape = mean <= kTallPiece ? kManyRows : mean <= kShortRun ? kEightRows : kInOrder;
    const Int run = slabs.shape == kManyRows ? 32 : kSlabRun, height = kSlabBlock / run;
    const Int across = (row_units + run - 1) / run;
    if (rows < 8 * height || across * run > row_units + row_units / 8) slabs.shape = kInOrder;
    slabs.across = divisor_of(across);
    keep_table(same_layout, queue);
    for_stretches(row_units, [&](Int chunk) {
      slabs.items = static_cast<unsigned>(chunk * row_units);
      start("units", unit,
            slabs.shape == kInOrder ? (chunk * row_units + kSlabBlock - 1) / kSlabBlock
                                    : (chunk + height - 1) / height * across,
            0, queue);
    });
  }

  void tiles(Queue& queue) {
    const Int row_units = bytes / unit;
    const int size = static_cast<int>(unit);
    const unsigned all = tile_log(size);
    slabs.column_log = std::min(log_above(row_units), all - 6);
    slabs.row_log = all - slabs.column_log;
    const Int columns = Int{1} << slabs.column_log, height = Int{1} << slabs.row_log;
    const Int across = (row_units + columns - 1) / columns;
    const unsigned shared =
        ((1u << slabs.column_log) + tile_pad(size)) * static_cast<unsigned>(size) << slabs.row_log;
    slabs.across = divisor_of(across);
    keep_table(same_layout, queue);
    for_stretches(row_units, [&](Int chunk) {
      start("tiles", unit, (chunk + height - 1) / height * across, shared, queue);
    });
  }
};

void by_layouts(const SlabsPlan& plan, bool split, char* joined, void* const* parts, Queue& queue) {
  const int axis = plan.axis;
  Layout slab = plan.joined.layout, part = plan.joined.layout;
  for (Int p = 0; p < plan.count(); ++p) {
    slab.sizes[axis] = part.sizes[axis] = plan.length(p);
    std::copy_n(plan.strides(p), part.rank, part.strides);
    char* const at = joined + plan.begin(p) * slab.strides[axis];
    if (split)
      copy_elements(part, parts[p], slab, at, plan.joined.element_size, queue);
    else
      copy_elements(slab, at, part, parts[p], plan.joined.element_size, queue);
  }
}

void move(const SlabsPlan& plan, bool split, char* joined, void* const* data, Queue& queue) {
  const Layout& layout = plan.joined.layout;
  if (layout.count() == 0) return;
  Matrix matrix;
  Slabs& slabs = matrix.slabs;
  slabs = {};
  matrix.split = split;
  if (!as_rows(layout, plan.joined.element_size, plan.axis, layout.sizes[plan.axis], layout.strides,
               matrix.bytes, slabs.step))
    return by_layouts(plan, split, joined, data, queue);
  matrix.rows = layout.count() * plan.joined.element_size / matrix.bytes;
  matrix.same_layout = true;
  matrix.parts.reserve(static_cast<std::size_t>(plan.count()) + 1);
  const bool one_row = matrix.rows == 1;
  Int begin = 0, first = 0, unit = std::min(unit_of(joined), one_row ? 16 : unit_of(slabs.step));
  for (Int p = 0; p < plan.count(); ++p) {
    Int bytes, step;
    if (!as_rows(layout, plan.joined.element_size, plan.axis, plan.length(p), plan.strides(p),
                 bytes, step))
      return by_layouts(plan, split, joined, data, queue);
    if (bytes == 0) continue;  // it is neither read nor written
    matrix.parts.push_back({static_cast<char*>(data[p]), step, begin, 0});
    unit = std::min({unit, unit_of(data[p]), unit_of(bytes), one_row ? 16 : unit_of(step)});
    if (begin == 0) {
      first = bytes;
      slabs.part_step = step;
    }
    matrix.same_layout =
        matrix.same_layout && bytes == first && (one_row || step == slabs.part_step);
    begin += bytes;
  }
  slabs.joined = joined;
  slabs.count = static_cast<unsigned>(matrix.parts.size());
  matrix.unit = unit;
  matrix.parts.push_back({nullptr, 0, begin, 0});
  const Int units = matrix.bytes / unit, mean = matrix.bytes / slabs.count;
  if ((unit < 16 && mean >= long_piece(unit)) || units > kMaxUnits) return matrix.segments(queue);
  slabs.units = divisor_of(units);
  if (matrix.same_layout) slabs.part_units = divisor_of(first / unit);
  if (mean <= kShortPiece && matrix.rows >= 32 && slabs.count > 1) return matrix.tiles(queue);
  matrix.units(queue);
}

}  // namespace

void split(const SlabsPlan& plan, const void* joined, void* const* parts, Queue& queue) {
  move(plan, true, static_cast<char*>(const_cast<void*>(joined)), parts, queue);
}

void join(const SlabsPlan& plan, const void* const* parts, void* joined, Queue& queue) {
  move(plan, false, static_cast<char*>(joined), const_cast<void* const*>(parts), queue);
}

}  // namespace anydml::cuda

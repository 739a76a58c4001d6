// GATHER_ELEMENTS: every output element from its own position along the axis.
//
// direct: a chunk of indices becomes byte offsets on the stack, then the elements are read in the
// order of the output. Along the last axis the reads of a row stay in that row. Along another axis
// they jump from row to row, and power-of-two strides put them all in the same few cache sets.
// strips: there, a strip of one to four cache lines' width is copied to scratch that fits a near
// cache, so that the input is read once, line by line, and the jumps stay in the cache. Scratch:
// at most 512 KB a thread, and less than an eighth of the input.
//
// Without `output_is_private`, one pass over the indices checks them before the first write. An
// index that another thread makes bad after that reads position 0.
#include "gather/cpu/gather_elements.hpp"

#include "gather/cpu/gather.hpp"
#include "gather/cpu/gather_row.hpp"

namespace anydml {
using namespace gather;

namespace {

// Most bytes of a strip: it shares a second-level cache with indices and output.
constexpr Int kStripBytes = Int{512} << 10, kFarStripBytes = Int{8} << 20;
constexpr Int kStripLines = 4;
// The largest step of a strip's elements in the input, in elements.
constexpr Int kMaxStrideElements = 4;
// Most bytes of a row that is packed before it is read.
constexpr Int kPackedRow = Int{16} << 10;
// Rows shorter than this are read whole before a prefetch could help.
constexpr Int kMinPrefetched = 1024;

struct Gather {
  const GatherElementsPlan& plan;
  IndexValues reader;
  Layout from, to;  // of the indices' sizes; the input does not move along the axis
  Axes axes;
  Int total;
  const char* input;
  char* output;
  std::atomic<Int> first_bad{kNoBadIndex};

  Gather(const GatherElementsPlan& p, const void* in, const void* indices, void* out)
      : plan(p),
        reader(p.indices, indices),
        from(p.output.layout),
        to(p.output.layout),
        total(p.output.layout.count()),
        input(static_cast<const char*>(in)),
        output(static_cast<char*>(out)) {
    axes.count = 1;
    axes.sizes[0] = p.input.layout.sizes[p.axis];
    axes.strides[0] = p.input.layout.strides[p.axis];
    for (int i = 0; i < from.rank; ++i)
      from.strides[i] = i == p.axis ? 0 : p.input.layout.strides[i];
    Layout* both[2] = {&from, &to};
    collapse(both);
    if (from.rank == 0) {  // one element: a row of one
      from.push(1, 0);
      to.push(1, p.output.element_size);
    }
  }
};

// ---- direct -------------------------------------------------------------------------------------

// Elements at offsets from an address that advances by from_step.
template <class T>
void copy_run(char* target, Int to_step, const char* source, Int from_step, const Int* offsets,
              Int count, bool far) {
  constexpr Int size = sizeof(T);
  Int i = 0;
  if (far)
    for (; i < count - kPrefetchElements; ++i) {
      prefetch(source + (i + kPrefetchElements) * from_step + offsets[i + kPrefetchElements]);
      store(target + i * to_step, load<T>(source + i * from_step + offsets[i]));
    }
  if (to_step == size && from_step == 0)
    for (; i < count; ++i) store(target + i * size, load<T>(source + offsets[i]));
  else
    for (; i < count; ++i)
      store(target + i * to_step, load<T>(source + i * from_step + offsets[i]));
}

// `run` elements of one row, by the indices from `done` on. Returns the first bad one of these, or
// -1.
template <class T>
Int read_row([[maybe_unused]] const Gather& gather, [[maybe_unused]] char* target,
             [[maybe_unused]] const char* row, [[maybe_unused]] const char* values,
             [[maybe_unused]] Int done, [[maybe_unused]] Int run) {
  Int bad = -1;
  if constexpr (ANYDML_GATHER_ROW && (sizeof(T) == 4 || sizeof(T) == 2))
    with_index(gather.plan.indices.type, [&](auto index) {
      using Index = decltype(index);
      bad = gather_row<T, Index>(target, row, values + done * Int{sizeof(Index)}, run,
                                 gather.axes.sizes[0]);
    });
  return bad;
}

// Rows that are far away, to a packed output.
template <class T>
void run_far(Gather& gather, Int begin, Int end) {
  const int inner = gather.to.rank - 1;
  const Int length = gather.to.sizes[inner], from_step = gather.from.strides[inner];
  const Layout* const layouts[1] = {&gather.from};
  Walker<1> walker(layouts, inner);
  walker.start(begin / length);
  Int column = begin % length;
  const auto make = [&](Int at, Int count, Int* offsets) {
    gather.reader.prefetch(at + kPrefetchIndices, count);
    lower(gather.first_bad,
          read_offsets(gather.reader, at, count, gather.axes, gather.plan.mode, offsets));
    for (Int done = 0; done < count;) {
      const Int run = std::min(length - column, count - done);
      const Int from = walker.offset[0] + column * from_step;
      if (from_step != 0)
        for (Int i = 0; i < run; ++i) offsets[done + i] += from + i * from_step;
      else if (from != 0)
        for (Int i = 0; i < run; ++i) offsets[done + i] += from;
      done += run;
      column += run;
      if (column < length) continue;
      column = 0;
      walker.next();
    }
  };
  copy_far<T>(gather.output, Int{sizeof(T)}, gather.input, begin, end, make);
}

template <class T>
void run_direct(Gather& gather, Int begin, Int end, bool far, bool packed, bool stream) {
  constexpr Int size = sizeof(T);
  alignas(64) Int offsets[kIndexChunk];
  alignas(64) char indices[kIndexChunk * 8];
  alignas(64) char buffer[kIndexChunk * size];
  alignas(64) char row[kPackedRow];
  const Int chunk = far ? kIndexChunk : kNearChunk;
  const int inner = gather.to.rank - 1;
  const Int length = gather.to.sizes[inner];
  const Int to_step = gather.to.strides[inner], from_step = gather.from.strides[inner];
  const bool flat = packed && length < chunk / 2;
  const Layout* const layouts[2] = {&gather.to, &gather.from};
  Walker<2> walker(layouts, inner);
  walker.start(begin / length);
  Int at = begin % length;
  LineWriter writer(gather.output + begin * size);
  // The reads of a row come in any order, which no prefetcher follows: the next row is prefetched
  // line by line while this one is read.
  const Int depth = gather.axes.sizes[0], step = gather.axes.strides[0];
  const Int row_bytes = depth * std::abs(step);
  const bool prefetches =
      !far && inner > 0 && row_bytes >= kMinPrefetched && length >= row_bytes / 64;
  // Rows whose elements lie apart are packed first, unless little is read from them.
  const bool is_strided = step != size;
  const bool packs = depth * size <= kPackedRow && length >= depth / 4;
  const bool at_once = !far && !flat && from_step == 0 && to_step == size &&
                       (!is_strided || packs) && gather.plan.mode == OutOfRange::raise &&
                       row_applies(depth, size);
  const char* packed_row = nullptr;  // the row that `row` holds
  const Int next_row = prefetches ? gather.from.strides[inner - 1] : 0;
  while (begin < end) {
    const Int count = std::min(chunk, end - begin);
    const char* values = gather.reader.place(begin);
    // Strided indices take twice as many lines: prefetch those of the next chunk now.
    if (values == nullptr && begin + count < end) gather.reader.prefetch(begin + count, count);
    if (!at_once)
      lower(gather.first_bad,
            read_offsets(gather.reader, begin, count, gather.axes, gather.plan.mode, offsets));
    else if (values == nullptr)
      values = gather.reader.read(begin, count, indices);
    for (Int done = 0; done < count;) {
      const Int run = std::min(length - at, count - done);
      const Int from = walker.offset[1] + at * from_step;
      if (prefetches)
        for (Int line = row_bytes * at / length; line < row_bytes * (at + run) / length; line += 64)
          prefetch(gather.input + walker.offset[1] + next_row + line);
      if (at_once) {
        const char* source = gather.input + from;
        if (is_strided) {
          if (packed_row != source) copy_steps(row, size, source, step, depth, size);
          packed_row = source;
          source = row;
        }
        const Int bad = read_row<T>(
            gather, stream ? buffer + done * size : gather.output + walker.offset[0] + at * to_step,
            source, values, done, run);
        if (bad >= 0) lower(gather.first_bad, begin + done + bad);
      } else if (flat) {  // many short rows: one list of offsets for all of them
        for (Int i = 0; i < run; ++i) offsets[done + i] += from + i * from_step;
      } else {
        copy_run<T>(stream ? buffer + done * size : gather.output + walker.offset[0] + at * to_step,
                    to_step, gather.input + from, from_step, offsets + done, run, far);
      }
      done += run;
      at += run;
      if (at < length) continue;
      at = 0;
      walker.next();
    }
    if (flat)
      copy_run<T>(stream ? buffer : gather.output + begin * size, size, gather.input, 0, offsets,
                  count, false);
    if (stream) writer.append(buffer, count * size);
    begin += count;
  }
  writer.finish();
  if (stream) stream_fence();
}

void by_direct(Gather& gather, int threads) {
  const int size = gather.plan.input.element_size;
  const Int span = gather.axes.sizes[0] * std::abs(gather.axes.strides[0]);
  const bool packed = gather.plan.output.layout.packed(size);
  // A long row of which little is read is in no near cache either.
  const Int length = gather.to.sizes[gather.to.rank - 1];
  const bool sparse = length * 64 < span && gather.total / length * span > kFarBytes;
  const bool far = sparse || span > kFarBytes;
  const bool stream = packed && !far && gather.total * size >= kStreamBytes;
  with_element(size, [&](auto unit) {
    // Reads that miss the near caches are worth a thread sooner.
    parallel_ranges(gather.total, far ? kIndexGrain / 16 : kIndexGrain, threads,
                    [&](Int begin, Int end) {
                      if (far && packed) return run_far<decltype(unit)>(gather, begin, end);
                      run_direct<decltype(unit)>(gather, begin, end, far, packed, stream);
                    });
  });
}

// ---- strips -------------------------------------------------------------------------------------

// The last two dimensions are the axis and columns, contiguous in the output and nearly so in the
// input.
struct Strips {
  Int depth;    // positions of the input along the axis
  Int rows;     // of the indices
  Int row;      // step between the output's, in bytes
  Int columns;  // in elements
  Int step;     // between the input's
  Int width;    // of a strip, in bytes
  Int outer;    // positions before the axis
  Int count;    // strips of all
  Axes packed;  // the axis in scratch

  // False if strips do not apply.
  bool plan(const Gather& gather, Int size) {
    const int inner = gather.to.rank - 1;
    if (inner < 1 || gather.from.strides[inner - 1] != 0 || gather.to.strides[inner] != size)
      return false;
    step = gather.from.strides[inner];
    if (std::abs(step) > kMaxStrideElements * size) return false;
    depth = gather.axes.sizes[0];
    rows = gather.to.sizes[inner - 1];
    row = gather.to.strides[inner - 1];
    columns = gather.to.sizes[inner];
    Int lines = std::min(kStripBytes / 64 / std::max<Int>(1, depth), kStripLines);
    if (lines == 0 && depth * 64 <= kFarStripBytes) lines = 1;
    if (lines < 1 || columns * size < 64) return false;
    width = lines * 64;
    packed.count = 1;
    packed.sizes[0] = depth;
    packed.strides[0] = width;
    outer = gather.total / (rows * columns);
    count = outer * ((columns * size + width - 1) / width);
    return true;
  }
};

template <class T>
void run_strip(Gather& gather, const Strips& strips, Int number, char* scratch, bool stream) {
  constexpr Int size = sizeof(T);
  const Int per_outer = strips.count / strips.outer, per_strip = strips.width / size;
  const int inner = gather.to.rank - 1;
  const Int first = number % per_outer * per_strip, outer = number / per_outer;
  const Int columns = std::min(per_strip, strips.columns - first);
  const Layout from_outer = gather.from.slice(0, inner - 1),
               to_outer = gather.to.slice(0, inner - 1);
  const char* source = gather.input + offset_at(from_outer, outer) + first * strips.step;
  char* target = gather.output + offset_at(to_outer, outer) + first * size;

  for (Int row = 0; row < strips.depth; ++row, source += gather.axes.strides[0]) {
    if (columns == per_strip && strips.step == size)
      for (Int at = 0; at < strips.width; at += 64)
        std::memcpy(scratch + row * strips.width + at, source + at, 64);
    else
      copy_steps(scratch + row * strips.width, size, source, strips.step, columns, int{size});
  }

  alignas(64) Int offsets[kStripLines * 64];
  alignas(64) char line[kStripLines * 64];
  stream = stream && reinterpret_cast<uintptr_t>(target) % 64 == 0 && columns == per_strip;
  for (Int row = 0; row < strips.rows; ++row, target += strips.row) {
    const Int flat = (outer * strips.rows + row) * strips.columns + first;
    if (row + 8 < strips.rows) gather.reader.prefetch(flat + 8 * strips.columns, columns);
    lower(gather.first_bad,
          read_offsets(gather.reader, flat, columns, strips.packed, gather.plan.mode, offsets));
    char* const out = stream ? line : target;
    for (Int i = 0; i < columns; ++i)
      store(out + i * size, load<T>(scratch + offsets[i] + i * size));
    if (!stream) continue;
    for (Int at = 0; at < strips.width; at += 64) stream_line(target + at, line + at);
  }
  if (stream) stream_fence();
}

void by_strips(Gather& gather, const Strips& strips, int threads) {
  const int size = gather.plan.input.element_size;
  const Int slab = strips.depth * strips.width;
  Int workers = std::min<Int>(std::max(threads, 1), strips.count);
  if (gather.total < 2 * kIndexGrain) workers = 1;
  Scratch<char> scratch(workers * slab);
  const bool stream = gather.total * size >= kStreamBytes && strips.row % 64 == 0;
  std::atomic<Int> next{0};
  // One chunk for each thread, each with its own scratch; idle threads take the next strip.
  with_element(size, [&](auto unit) {
    parallel_chunks(workers, threads, [&](Int worker) {
      for (;;) {
        const Int strip = next.fetch_add(1, std::memory_order_relaxed);
        if (strip >= strips.count) break;
        run_strip<decltype(unit)>(gather, strips, strip, scratch.get() + worker * slab, stream);
      }
    });
  });
}

}  // namespace

bool gather_elements_by(const GatherElementsPlan& plan, GatherElementsMethod method,
                        const void* input, const void* indices, void* output,
                        bool output_is_private, int threads, Status& status) {
  Gather gather(plan, input, indices, output);
  status = Status{};
  if (gather.total == 0) return true;
  const Int size = plan.input.element_size;
  Strips strips;
  if (method == GatherElementsMethod::direct) {
    strips.count = 0;
  } else if (!strips.plan(gather, size)) {
    if (method == GatherElementsMethod::strips) return false;
    strips.count = 0;
  } else if (method == GatherElementsMethod::choose &&
             (strips.depth * strips.columns * size < kFarBytes || strips.rows < strips.depth / 4 ||
              threads * strips.width * 8 > strips.outer * strips.columns * size)) {
    strips.count = 0;  // the input is near, mostly unread, or too narrow for scratch
  }
  if (plan.input.layout.sizes[plan.axis] == 0 ||
      (!output_is_private && plan.mode == OutOfRange::raise)) {
    status.bad_index =
        first_bad_index(gather.reader, gather.total, gather.axes, plan.mode, threads);
    if (!status.ok()) return true;
  }
  if (strips.count > 0)
    by_strips(gather, strips, threads);
  else
    by_direct(gather, threads);
  if (output_is_private) status = status_of(gather.first_bad);
  return true;
}

Status GatherElementsPlan::run(const void* input_data, const void* indices_data, void* output_data,
                               bool output_is_private, int threads) const {
  Status status;
  gather_elements_by(*this, GatherElementsMethod::choose, input_data, indices_data, output_data,
                     output_is_private, threads, status);
  return status;
}

}  // namespace anydml

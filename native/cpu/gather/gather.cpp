// GATHER: slices of the input along one axis, in the order of the indices.
//
// Indices become byte offsets, a chunk at a time on the stack, and the blocks behind the axis are
// copied from there in the order of the output. With several positions before the axis and more
// indices than one chunk the offsets are kept (8 bytes an index, at most an eighth of the output).
// Without that and without `output_is_private`, one pass over the indices checks them before the
// first write; an index that another thread makes bad after that reads position 0. Blocks of
// megabytes are shared out among the threads one by one.
#include "gather.hpp"

namespace anydml {
using namespace gather;

namespace {

struct Gather {
  const GatherPlan& plan;
  IndexValues reader;
  BlockCopier block;
  Layout outer;  // the input before the axis
  Layout items;  // the output without the blocks
  Axes axes;
  Int outers, count;
  const char* input;
  char* output;

  Gather(const GatherPlan& p, const void* in, const void* indices, void* out)
      : plan(p),
        reader(p.indices, indices),
        block(p.output.layout.slice(p.axis + p.indices.layout.rank, p.output.layout.rank),
              p.input.layout.slice(p.axis + 1, p.input.layout.rank), p.input.element_size),
        outer(p.input.layout.slice(0, p.axis)),
        items(p.output.layout.slice(0, p.axis + p.indices.layout.rank)),
        outers(outer.count()),
        count(p.indices.layout.count()),
        input(static_cast<const char*>(in)),
        output(static_cast<char*>(out)) {
    axes.count = 1;
    axes.sizes[0] = p.input.layout.sizes[p.axis];
    axes.strides[0] = p.input.layout.strides[p.axis];
  }

  Int offsets(Int at, Int length, Int* result) const {
    return read_offsets(reader, at, length, axes, plan.mode, result);
  }

  // Items [begin, end) of outers * count; `cached_offsets`: all offsets, or null.
  void run(Int begin, Int end, const Int* cached_offsets, bool far, bool stream,
           std::atomic<Int>& first_bad) const {
    if (far && outers == 1 && block.is_element() && items.rank <= 1)
      return block.copy_far(output, items.rank == 0 ? 0 : items.strides[0], input, begin, end,
                            [&](Int at, Int length, Int* chunk_offsets) {
                              reader.prefetch(at + kPrefetchIndices, length);
                              lower(first_bad, offsets(at, length, chunk_offsets));
                            });
    alignas(64) Int chunk_offsets[kIndexChunk];
    Int have_begin = 0, have_end = 0;  // indices whose offsets are in `chunk_offsets`
    const Layout* const walked[1] = {&outer};
    Walker<1> walker(walked, outer.rank);
    walker.start(begin / count);
    OutputItems target(items, output, block, stream);
    target.start(begin);
    const Int chunk = far ? kIndexChunk : kNearChunk;
    // A short list reads a few lines here and there of every position before the axis: those of a
    // position that comes soon are prefetched.
    const bool prefetches = outers > 1 && count <= kNearChunk && block.bytes() <= 64 && !near();
    Walker<1> prefetch_walker(walked, outer.rank);
    prefetch_walker.start(prefetches ? begin / count + kPrefetchElements / count + 1 : 0);
    Int at = begin % count;
    while (begin < end) {
      const Int length = std::min({chunk, count - at, end - begin});
      if (cached_offsets == nullptr && (at < have_begin || at + length > have_end)) {
        // All of a short list, for the positions before the axis to share.
        const bool share = outers > 1 && count <= kNearChunk;
        have_begin = share ? 0 : at;
        have_end = share ? count : at + length;
        lower(first_bad, offsets(have_begin, have_end - have_begin, chunk_offsets));
      }
      if (prefetches)
        for (Int i = 0; i < length; ++i)
          prefetch(input + prefetch_walker.offset[0] + chunk_offsets[at - have_begin + i]);
      target.copy(
          input + walker.offset[0],
          cached_offsets != nullptr ? cached_offsets + at : chunk_offsets + (at - have_begin),
          length, far);
      at += length;
      begin += length;
      if (at < count) continue;
      at = 0;
      walker.next();
      if (prefetches) prefetch_walker.next();
    }
  }

  // The whole input fits a near cache.
  bool near() const { return plan.input.layout.count() * plan.input.element_size <= kFarBytes; }

  void run_huge(int threads, bool stream, std::atomic<Int>& first_bad) const {
    for (Int i = 0; i < outers * count; ++i) {
      Int offset;
      lower(first_bad, offsets(i % count, 1, &offset));
      block.plan().run(output + offset_at(items, i), input + offset_at(outer, i / count) + offset,
                       threads, stream);
    }
  }
};

}  // namespace

Status GatherPlan::run(const void* input_data, const void* indices_data, void* output_data,
                       bool output_is_private, int threads) const {
  Gather gather(*this, input_data, indices_data, output_data);
  const Int bytes = gather.block.bytes(), total = gather.outers * gather.count;
  const bool nothing = total * bytes == 0;
  const bool caches_offsets =
      gather.count > kNearChunk && gather.outers > 1 && gather.outers * bytes >= 64;
  if (nothing && mode != OutOfRange::raise) return Status{};
  if (nothing || gather.axes.sizes[0] == 0 ||
      (!output_is_private && !caches_offsets && mode == OutOfRange::raise)) {
    const Int bad = first_bad_index(gather.reader, gather.count, gather.axes, mode, threads);
    if (bad >= 0 || nothing) return Status{bad};
  }
  Layout* outer[1] = {&gather.outer};
  Layout* items[1] = {&gather.items};
  collapse(outer);
  collapse(items);

  std::atomic<Int> first_bad{kNoBadIndex};
  Scratch<Int> cached_offsets;
  if (caches_offsets) {
    cached_offsets.reset(gather.count);
    parallel_ranges(gather.count, kIndexGrain, threads, [&](Int begin, Int end) {
      for (Int i = begin; i < end; i += kIndexChunk)
        lower(first_bad,
              gather.offsets(i, std::min(kIndexChunk, end - i), cached_offsets.get() + i));
    });
    if (!status_of(first_bad).ok()) return status_of(first_bad);
  }

  if (bytes >= 4 * kCopyGrain && total < 8 * Int{threads}) {
    gather.run_huge(threads, total * bytes >= kStreamBytes, first_bad);
    return output_is_private ? status_of(first_bad) : Status{};
  }
  const bool far = gather.axes.sizes[0] * std::abs(gather.axes.strides[0]) > kFarBytes;
  const bool stream = OutputItems::streams(gather.items, gather.block, far);
  // Short reads that miss the near caches are worth a thread sooner.
  const Int grain = kCopyGrain / std::max<Int>(bytes, gather.near() ? 16 : 64);
  parallel_ranges(total, grain, threads, [&](Int begin, Int end) {
    gather.run(begin, end, cached_offsets.get(), far, stream, first_bad);
  });
  return output_is_private ? status_of(first_bad) : Status{};
}

}  // namespace anydml

// GATHER_ND: blocks of the input at tuples of coordinates, in the order of the tuples.
//
// A chunk of tuples becomes byte offsets on the stack, then the blocks are copied from there in the
// order of the output. Without `output_is_private`, one pass over the indices checks them before
// the first write; an index that another thread makes bad after that reads position 0. Blocks of
// megabytes are shared out among the threads one by one. O(1) scratch.
#include "gather.hpp"

namespace anydml {
using namespace gather;

namespace {

struct GatherNd {
  const GatherNdPlan& plan;
  int width;  // of a tuple
  IndexValues reader;
  BlockCopier block;
  Layout batches;  // of the input
  Layout items;    // the output without the blocks
  Axes axes;
  Int count;  // tuples of a batch
  Int total;  // of all
  const char* input;
  char* output;

  GatherNd(const GatherNdPlan& p, const void* in, const void* indices, void* out)
      : plan(p),
        width(static_cast<int>(p.indices.layout.sizes[p.indices.layout.rank - 1])),
        reader(p.indices, indices),
        block(p.output.layout.slice(p.indices.layout.rank - 1, p.output.layout.rank),
              p.input.layout.slice(p.batch_dims + width, p.input.layout.rank),
              p.input.element_size),
        batches(p.input.layout.slice(0, p.batch_dims)),
        items(p.output.layout.slice(0, p.indices.layout.rank - 1)),
        total(items.count()),
        input(static_cast<const char*>(in)),
        output(static_cast<char*>(out)) {
    const Int batch_count = batches.count();
    count = batch_count == 0 ? 0 : total / batch_count;
    axes.count = width;
    for (int k = 0; k < width; ++k) {
      axes.sizes[k] = p.input.layout.sizes[p.batch_dims + k];
      axes.strides[k] = p.input.layout.strides[p.batch_dims + k];
    }
  }

  Int offsets(Int tuple, Int length, Int* result) const {
    return read_offsets(reader, tuple, length, axes, plan.mode, result);
  }

  void run(Int begin, Int end, bool far, bool stream, std::atomic<Int>& first_bad) const {
    if (far && total == count && block.is_element() && items.rank <= 1 &&
        width * kPrefetchElements <= kIndexChunk)
      return block.copy_far(output, items.rank == 0 ? 0 : items.strides[0], input, begin, end,
                            [&](Int at, Int length, Int* chunk_offsets) {
                              reader.prefetch((at + kPrefetchIndices) * width, length * width);
                              lower(first_bad, offsets(at, length, chunk_offsets));
                            });
    alignas(64) Int chunk_offsets[kIndexChunk];
    const Int max_tuples = std::max<Int>(1, (far ? kIndexChunk : kNearChunk) / std::max(width, 1));
    const Layout* const walked[1] = {&batches};
    Walker<1> walker(walked, batches.rank);
    walker.start(begin / count);
    OutputItems target(items, output, block, stream);
    target.start(begin);
    Int left = count - begin % count;  // of the batch
    // Offsets of tuples may be of several batches: they count from the start of their own batch.
    for (Int at = begin; at < end;) {
      const Int length = std::min(max_tuples, end - at);
      lower(first_bad, offsets(at, length, chunk_offsets));
      for (Int done = 0; done < length;) {
        const Int run = std::min(left, length - done);
        target.copy(input + walker.offset[0], chunk_offsets + done, run, far);
        done += run;
        left -= run;
        if (left > 0) continue;
        left = count;
        walker.next();
      }
      at += length;
    }
  }

  void run_huge(int threads, bool stream, std::atomic<Int>& first_bad) const {
    for (Int i = 0; i < total; ++i) {
      Int offset;
      lower(first_bad, offsets(i, 1, &offset));
      block.plan().run(output + offset_at(items, i), input + offset_at(batches, i / count) + offset,
                       threads, stream);
    }
  }
};

}  // namespace

Status GatherNdPlan::run(const void* input_data, const void* indices_data, void* output_data,
                         bool output_is_private, int threads) const {
  GatherNd gather(*this, input_data, indices_data, output_data);
  const Int bytes = gather.block.bytes(), total = gather.total;
  const bool nothing = total * bytes == 0;
  const Int* const sizes = gather.axes.sizes;
  const bool empty = std::count(sizes, sizes + gather.width, 0) > 0;  // an axis without a position
  Int span = 0;
  for (int k = 0; k < gather.width; ++k) span += sizes[k] * std::abs(gather.axes.strides[k]);
  if (nothing && mode != OutOfRange::raise) return Status{};
  if (nothing || empty || (!output_is_private && mode == OutOfRange::raise)) {
    const Int bad = first_bad_index(gather.reader, total, gather.axes, mode, threads);
    if (bad >= 0 || nothing) return Status{bad};
  }
  Layout* batches[1] = {&gather.batches};
  Layout* items[1] = {&gather.items};
  collapse(batches);
  collapse(items);

  std::atomic<Int> first_bad{kNoBadIndex};
  if (bytes >= 4 * kCopyGrain && total < 8 * Int{threads}) {
    gather.run_huge(threads, total * bytes >= kStreamBytes, first_bad);
    return output_is_private ? status_of(first_bad) : Status{};
  }
  const bool far = span > kFarBytes;
  const bool stream = OutputItems::streams(gather.items, gather.block, far);
  // Short reads that miss the near caches are worth a thread sooner.
  parallel_ranges(total, kCopyGrain / std::max<Int>(bytes, far ? 64 : 16), threads,
                  [&](Int begin, Int end) { gather.run(begin, end, far, stream, first_bad); });
  return output_is_private ? status_of(first_bad) : Status{};
}

}  // namespace anydml

// GATHER and GATHER_ND: blocks of the input at indices or tuples of them, in their order.
//
// Indices become byte offsets, a chunk at a time on the stack, and the blocks behind the indexed
// axes are copied from there in the order of the output. GATHER reads the same indices for every
// position before its axis: with several such positions and more indices than one chunk the offsets
// are kept (8 bytes an index, at most an eighth of the output). Without that and without
// `output_is_private`, one pass over the indices checks them before the first write; an index that
// another thread makes bad after that reads position 0. Blocks of megabytes are shared out among
// the threads one by one.
#include "gather/cpu/gather.hpp"

namespace anydml {
using namespace gather;

namespace {

struct Gather {
  OutOfRange mode;
  bool shared;  // every position before the indexed axes has the same tuples
  IndexValues reader;
  BlockCopier block;
  Layout outer;  // the input before the indexed axes
  Layout items;  // the output without the blocks
  Axes axes;
  Int outers, total;  // positions before the axes; items
  Int count;          // tuples of one such position
  Int input_bytes;
  const char* input;
  char* output;

  // `axis`, `width`: the indexed axes; `item_rank`: dimensions of the output before the blocks.
  template <class Plan>
  Gather(const Plan& p, int axis, int width, int item_rank, bool shared_tuples, const void* in,
         const void* indices, void* out)
      : mode(p.mode),
        shared(shared_tuples),
        reader(p.indices, indices),
        block(p.output.layout.slice(item_rank, p.output.layout.rank),
              p.input.layout.slice(axis + width, p.input.layout.rank), p.input.element_size),
        outer(p.input.layout.slice(0, axis)),
        items(p.output.layout.slice(0, item_rank)),
        outers(outer.count()),
        total(items.count()),
        count(shared        ? p.indices.layout.count()
              : outers == 0 ? 0
                            : total / outers),
        input_bytes(p.input.layout.count() * p.input.element_size),
        input(static_cast<const char*>(in)),
        output(static_cast<char*>(out)) {
    axes.count = width;
    for (int k = 0; k < width; ++k) {
      axes.sizes[k] = p.input.layout.sizes[axis + k];
      axes.strides[k] = p.input.layout.strides[axis + k];
    }
  }

  Int offsets(Int tuple, Int length, Int* result) const {
    return read_offsets(reader, tuple, length, axes, mode, result);
  }

  // Items [begin, end); `cached_offsets`: those of all tuples, or null.
  template <bool Shared>
  void run(Int begin, Int end, const Int* cached_offsets, bool far, bool stream,
           std::atomic<Int>& first_bad) const {
    const Int width = axes.count;
    if (far && total == count && block.is_element() && items.rank <= 1 &&
        width * kPrefetchElements <= kIndexChunk)
      return block.copy_far(output, items.rank == 0 ? 0 : items.strides[0], input, begin, end,
                            [&](Int at, Int length, Int* chunk_offsets) {
                              reader.prefetch((at + kPrefetchIndices) * width, length * width);
                              lower(first_bad, offsets(at, length, chunk_offsets));
                            });
    alignas(64) Int chunk_offsets[kIndexChunk];
    const Layout* const walked[1] = {&outer};
    Walker<1> walker(walked, outer.rank);
    walker.start(begin / count);
    OutputItems target(items, output, block, stream);
    target.start(begin);
    const Int chunk = std::max<Int>(1, (far ? kIndexChunk : kNearChunk) / std::max<Int>(width, 1));
    // All of a short list, for the positions before the axis to share.
    const bool share = Shared && outers > 1 && count <= kNearChunk;
    // Such a list reads a few lines here and there of every position before the axis: those of a
    // position that comes soon are prefetched.
    const bool prefetches = share && block.bytes() <= 64 && input_bytes > kFarBytes;
    Walker<1> prefetch_walker(walked, outer.rank);
    prefetch_walker.start(prefetches ? begin / count + kPrefetchElements / count + 1 : 0);
    Int at = begin % count;
    bool first = true;  // of the short list
    while (begin < end) {
      const Int tuple = Shared ? at : begin;
      const Int held = std::min({chunk, end - begin, Shared ? count - at : chunk});
      const Int* now = chunk_offsets;
      if (cached_offsets != nullptr) {
        now = cached_offsets + tuple;
      } else if (!share) {
        lower(first_bad, offsets(tuple, held, chunk_offsets));
      } else {
        if (first) lower(first_bad, offsets(0, count, chunk_offsets));
        first = false;
        now += tuple;
      }
      // Tuples may be of several positions before the axes: their offsets count from their own.
      for (Int done = 0; done < held;) {
        const Int length = Shared ? held : std::min(count - at, held - done);
        if (prefetches)
          for (Int i = 0; i < length; ++i) prefetch(input + prefetch_walker.offset[0] + now[i]);
        target.copy(input + walker.offset[0], now + done, length, far);
        done += length;
        at += length;
        if (at < count) continue;
        at = 0;
        walker.next();
        if (prefetches) prefetch_walker.next();
      }
      begin += held;
    }
  }

  void run_huge(int threads, bool stream, std::atomic<Int>& first_bad) const {
    for (Int i = 0; i < total; ++i) {
      Int offset;
      lower(first_bad, offsets(shared ? i % count : i, 1, &offset));
      block.plan().run(output + offset_at(items, i), input + offset_at(outer, i / count) + offset,
                       threads, stream);
    }
  }

  Status run(bool output_is_private, int threads) {
    const Int bytes = block.bytes(), tuples = shared ? count : total;
    const bool nothing = total * bytes == 0;
    const bool empty = std::count(axes.sizes, axes.sizes + axes.count, 0) > 0;
    const bool caches_offsets = shared && count > kNearChunk && outers > 1 && outers * bytes >= 64;
    if (nothing && mode != OutOfRange::raise) return Status{};
    if (nothing || empty || (!output_is_private && !caches_offsets && mode == OutOfRange::raise)) {
      const Int bad = first_bad_index(reader, tuples, axes, mode, threads);
      if (bad >= 0 || nothing) return Status{bad};
    }
    Layout* both[2][1] = {{&outer}, {&items}};
    collapse(both[0]);
    collapse(both[1]);

    std::atomic<Int> first_bad{kNoBadIndex};
    Scratch<Int> cached_offsets;
    if (caches_offsets) {
      cached_offsets.reset(count);
      parallel_ranges(count, kIndexGrain, threads, [&](Int begin, Int end) {
        for (Int i = begin; i < end; i += kIndexChunk)
          lower(first_bad, offsets(i, std::min(kIndexChunk, end - i), cached_offsets.get() + i));
      });
      if (!status_of(first_bad).ok()) return status_of(first_bad);
    }

    Int span = 0;
    for (int k = 0; k < axes.count; ++k) span += axes.sizes[k] * std::abs(axes.strides[k]);
    const bool far = span > kFarBytes;
    if (bytes >= 4 * kCopyGrain && total < 8 * Int{threads}) {
      run_huge(threads, total * bytes >= kStreamBytes, first_bad);
    } else {
      const bool stream = OutputItems::streams(items, block, far);
      // Short reads that miss the near caches are worth a thread sooner.
      parallel_ranges(total, kCopyGrain / std::max<Int>(bytes, input_bytes <= kFarBytes ? 16 : 64),
                      threads, [&](Int begin, Int end) {
                        shared ? run<true>(begin, end, cached_offsets.get(), far, stream, first_bad)
                               : run<false>(begin, end, nullptr, far, stream, first_bad);
                      });
    }
    return output_is_private ? status_of(first_bad) : Status{};
  }
};

}  // namespace

Status GatherPlan::run(const void* input_data, const void* indices_data, void* output_data,
                       bool output_is_private, int threads) const {
  return Gather(*this, axis, 1, axis + indices.layout.rank, true, input_data, indices_data,
                output_data)
      .run(output_is_private, threads);
}

Status GatherNdPlan::run(const void* input_data, const void* indices_data, void* output_data,
                         bool output_is_private, int threads) const {
  const int last = indices.layout.rank - 1;
  return Gather(*this, batch_dims, static_cast<int>(indices.layout.sizes[last]), last, false,
                input_data, indices_data, output_data)
      .run(output_is_private, threads);
}

}  // namespace anydml

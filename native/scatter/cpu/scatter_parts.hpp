// What SCATTER and SCATTER_ND share: reading index values, writing updates, and the stable
// partition that serves long outputs.
//
// Index values are turned into byte offsets a piece at a time, in a buffer that stays in the first
// cache; writing updates then needs to know the offsets alone. So one side is compiled once per
// index type, the other once per element type, and not their product. Offsets are made from private
// copies of the values that have been checked (read_once.hpp): another thread that changes the
// indices cannot make them wrong.
#pragma once

#include "common/indexing.hpp"
#include "runtime/cpu/copy.hpp"
#include "runtime/cpu/first_bad.hpp"
#include "runtime/cpu/threads.hpp"
#include "runtime/plans.hpp"

namespace anydml::scatter {

// Index values converted at a time.
constexpr Int kPiece = 512;

// Updates, or output elements, below which everything stays on the caller's thread (about 100 us).
constexpr Int kParallelElements = Int{80} << 10;

// A write of at least this many bytes at random places prefetches its cache lines first.
constexpr Int kPrefetchBytes = Int{512} << 10;

// ---- Index values -------------------------------------------------------------------------------

struct IndexReader {
  // offsets[i] = base + scale * (the i-th value, wrapped) + step * i, for up to kPiece values;
  // false when one is out of range, and the offsets are then not to be used.
  bool (*convert)(const char* source, Int stride, Int count, Int size, Int scale, Int base,
                  Int step, Int* offsets);
  // The first value out of range, or -1.
  Int (*check)(const char* source, Int stride, Int count, Int size);
  // offsets[i] = base + sum over d < length of scales[d] * (coordinate d of tuple i, wrapped).
  // Returns the first bad coordinate as i * length + d, or -1.
  Int (*tuples)(const char* source, Int stride, Int coordinate_stride, int length, Int count,
                const Int* sizes, const Int* scales, Int* offsets);
  int size;  // bytes of a value
};
const IndexReader& index_reader(DataType type);

// The first value out of range in row-major order, or none.
Status check_indices(const IndexReader& reader, const Layout& layout, const void* indices, Int size,
                     int threads);

// ---- Updates ------------------------------------------------------------------------------------

// The ways to write updates, for one element type and reduction. Contributions are combined in the
// order given, one at a time. Sums and products of floats of 16 bits are float32 until all updates
// have been taken: targets and blocks hold elements of `size_of` (scatter_sums.hpp).
struct Writer {
  // target + offset of (row, column) takes the update at row * row_stride + column * stride. At
  // most kPiece updates.
  void (*scatter)(char* target, const Int* offsets, const char* updates, Int row_stride, Int stride,
                  Int rows, Int columns);
  // Element locals[i] of a packed block takes values[i]. At most kPiece of them.
  void (*scatter_block)(char* block, const uint16_t* locals, const char* values, Int count);
  // Element i takes update i.
  void (*combine_row)(char* target, Int target_stride, const char* updates, Int stride, Int count);
  // The same where elements take no other update: they are those of the output.
  void (*combine_once)(char* target, Int target_stride, const char* updates, Int stride, Int count);
  // Packed float32 from elements, and back; null where elements take updates as they are.
  void (*widen)(char* sums, const char* elements, Int stride, Int count) = nullptr;
  void (*narrow)(char* elements, Int stride, const char* sums, Int count) = nullptr;

  int size_of(int element_size) const { return widen == nullptr ? element_size : 4; }
};
const Writer& writer(Reduction reduction, DataType type, int element_size);

// For Reduction::none, by element size; the rest, by type.
const Writer& move_writer(int element_size);
const Writer& reduce_writer(Reduction reduction, DataType type);

// ---- Long outputs: a stable partition into buckets ----------------------------------------------

struct Buckets {
  // keys[i] = the output element of update first + i. Returns the first bad index value as a flat
  // position in the index tensor, or -1.
  Int (*keys)(const void* context, Int first, Int count, Int* keys);
  // The updates [first, first + count) without gaps: in place, or gathered into `buffer`, which
  // holds kPiece elements.
  const char* (*values)(const void* context, Int first, Int count, char* buffer);
  const void* context;

  Int updates;        // how many
  const char* input;  // packed; may be `output`
  char* output;       // packed
  const Layout* layout =
      nullptr;   // of both, which are the same and widened, if they are not packed
  Int elements;  // of the output
  int element_size;
  const Writer* writer;

  int bucket_bits = 0;        // 0: chosen; at most 16
  Int round = Int{32} << 20;  // updates partitioned before the output is written; widened: all
};
// With more than one round the indices must have been checked, or the output be private.
Status run_buckets(const Buckets& job, int threads);

// ---- Helpers ------------------------------------------------------------------------------------

// Must be inlined, like everything that only calls them: GCC assumes that a function that only
// prefetches has no effect, and drops its calls.
#define ANYDML_INLINE [[gnu::always_inline]] inline

ANYDML_INLINE void prefetch_write(const void* address) { __builtin_prefetch(address, 1, 3); }
ANYDML_INLINE void prefetch_read(const void* address) { __builtin_prefetch(address, 0, 3); }

// output = input, inlined for a few bytes.
inline void copy_input(const Tensor& input, const void* source, const Tensor& output, void* target,
                       int threads) {
  const Int size = output.element_size;
  const Int bytes = output.layout.count() * size;
  if (bytes == 0) return;
  if (bytes <= 4096 && input.layout.packed(size) && output.layout.packed(size)) {
    std::memcpy(target, source, static_cast<std::size_t>(bytes));
    return;
  }
  copy_elements(output.layout, target, input.layout, source, output.element_size, threads);
}

// Runs body(worker, item) for every item. `workers` of them, each with scratch of its own, take
// items from a counter, so that scratch is bounded and fast workers take over the items of a slow
// one. done(worker) follows the last item of each.
template <class Body, class Done>
void parallel_items(Int items, Int workers, int threads, Body&& body, Done&& done) {
  std::atomic<Int> next{0};
  // Neighbouring items go to one worker, which can then use the lines that the hardware prefetches.
  const Int block = std::max<Int>(1, items / (workers * 16));
  parallel_chunks(workers, threads, [&](Int worker) {
    for (;;) {
      const Int begin = next.fetch_add(block, std::memory_order_relaxed);
      if (begin >= items) break;
      for (Int item = begin; item < std::min(items, begin + block); ++item) body(worker, item);
    }
    done(worker);
  });
}

}  // namespace anydml::scatter

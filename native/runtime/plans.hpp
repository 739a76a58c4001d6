// What the kernels offer to the binding layer: one plan per operator family.
//
// A plan is made from layouts alone, is immutable, and may run from several threads at once. It
// takes natural shapes (no padding to a fixed rank); sizes and axes have been checked, index values
// have not. Any size may be zero. Layout strides are in bytes and arbitrary: zero or negative
// strides on inputs, gaps anywhere; outputs never overlap themselves. Pointers are to the element
// at position zero of every dimension. Elements may be unaligned: read and write them with load()
// and store().
//
// `threads` is the most threads to use. A kernel decides itself whether the work is worth them, and
// its result does not depend on them, to the bit. Kernels may throw AllocationFailed, before they
// have written anything.
#pragma once

#include <memory>
#include <vector>

#include "common/layout.hpp"
#include "common/types.hpp"
#include "runtime/cpu/memory.hpp"

namespace anydml {

struct Tensor {
  Layout layout;
  DataType type = DataType::unknown;
  int element_size = 0;
};

// The first bad index in row-major order of the index tensor, or none.
struct Status {
  Int bad_index = -1;
  bool ok() const { return bad_index < 0; }
};

// ---- TOP_K --------------------------------------------------------------------------------------
// values and indices have the input's sizes with k on the axis. indices has one of the four index
// types.
struct TopKPlan {
  Tensor input, values, indices;
  int axis;
  Int k;
  bool largest;
  bool sorted = true;       // by value; else by index
  bool nan_last = false;    // in both directions; else NaN is the largest
  bool last_first = false;  // of equal elements the last one goes first
  // How many elements a row has, limited to 0 to the size of the axis: the sizes of the input
  // without the axis, one of the four index types. The others are not read, and results without an
  // element are `fill` (its bits) and index -1. If it is empty, all rows are whole.
  Tensor lengths = {};
  uint64_t fill = 0;

  void run(const void* input, void* values, void* indices, int threads,
           const void* lengths = nullptr) const;
};

// ---- NONZERO_COORDINATES ------------------------------------------------------------------------
// scan() reads the input once and remembers where the non-zero elements are; write() then gives
// each of them a row with its last `columns` coordinates. Rows beyond the count are not touched.
struct NonzeroPlan {
  Tensor input;
  int columns;  // 0 to rank

  struct Found {
    Int count = 0;
    Scratch<uint64_t> bits;         // one bit an element, row-major, if `inline_bits` is too small
    Scratch<Int> starts;            // non-zero elements before each chunk, when there are several
    uint64_t inline_bits[16] = {};  // the bits of small inputs, which avoids a heap block for them
  };
  Found scan(const void* input, int threads) const;
  // rows: {count or more, columns}, one of the four index types.
  void write(const Found& found, const Tensor& rows, void* coordinates, int threads) const;
};

// Sums that become means: divided by the number of their terms, the element itself among them or
// not. What no update names keeps its bits; integers are rounded down.
enum class Mean { no, with_element, of_updates };

// ---- SCATTER (SCATTER_ELEMENTS) -----------------------------------------------------------------
// output = input, then output[.., index, ..] = updates, the last in row-major order of the indices
// winning, or every update combined in that order. indices has updates' sizes; off the axis they
// are at most the input's. `input == output` means in place: nothing is copied. `output_is_private`
// says that the output is discarded if an index is bad, so it may be written before all have been
// checked; otherwise nothing is written then. A bad index never writes out of bounds, not even one
// that another thread changes while the kernel runs.
struct ScatterPlan {
  Tensor input, indices, updates, output;
  int axis;
  Reduction reduction = Reduction::none;
  Mean mean = Mean::no;  // of Reduction::add

  Status run(const void* input, const void* indices, const void* updates, void* output,
             bool output_is_private, int threads) const;
};

// ---- SCATTER_ND ---------------------------------------------------------------------------------
// indices {.., t}; updates: indices' sizes without the last, then the input's without the first t.
struct ScatterNdPlan {
  Tensor input, indices, updates, output;
  Reduction reduction = Reduction::none;
  Mean mean = Mean::no;  // of Reduction::add

  Status run(const void* input, const void* indices, const void* updates, void* output,
             bool output_is_private, int threads) const;
};

// ---- SPLIT, JOIN, and every other copy ----------------------------------------------------------
// One copy between two layouts of the same sizes; source and target do not overlap.
void copy_elements(const Layout& target_layout, void* target, const Layout& source_layout,
                   const void* source, int element_size, int threads);

// Slabs along the axis, in order. `joined` is split's input or join's output. There may be a
// million parts, so each stores only its size on the axis and its strides.
struct SlabsPlan {
  Tensor joined;
  int axis = 0;

  SlabsPlan() = default;
  SlabsPlan(const Tensor& tensor, int split_axis) : joined(tensor), axis(split_axis) {}

  void reserve(Int parts, int rank) {
    ends_.reserve(static_cast<std::size_t>(parts));
    strides_.reserve(static_cast<std::size_t>(parts) * static_cast<std::size_t>(rank));
  }
  // The next part: the whole's rank and, but for the axis, its sizes.
  void add(const Layout& part) {
    ends_.push_back(total() + part.sizes[axis]);
    strides_.insert(strides_.end(), part.strides, part.strides + part.rank);
  }
  Int count() const { return static_cast<Int>(ends_.size()); }
  Int total() const { return ends_.empty() ? 0 : ends_.back(); }  // on the axis
  Int begin(Int part) const { return part == 0 ? 0 : ends_[static_cast<std::size_t>(part - 1)]; }
  Int length(Int part) const { return ends_[static_cast<std::size_t>(part)] - begin(part); }
  const Int* strides(Int part) const {
    return strides_.data() + part * static_cast<Int>(joined.layout.rank);
  }

  void split(const void* joined, void* const* parts, int threads) const;
  void join(const void* const* parts, void* joined, int threads) const;

 private:
  std::vector<Int> ends_;     // of each part on the axis
  std::vector<Int> strides_;  // whole.layout.rank for each part
};

// ---- ONE_HOT ------------------------------------------------------------------------------------
// The first element of `values` everywhere, and its second where an index points. Off the axis the
// output has the indices' sizes, which have 1 on the axis, or lack it.
struct OneHotPlan {
  Tensor indices, values, output;
  int axis;
  bool inserts;  // whether the indices lack the axis

  void run(const void* indices, const void* values, void* output, int threads) const;
};

// ---- chains of elementwise operations -----------------------------------------------------------
// Of packed arrays of `total` floats. `numbers`: how many constants and registers there are, the
// bits of the constants, then for each operation its code (native/common/chain.def), two operands
// and the target, until -1. Operands and targets count arrays (inputs, then outputs), constants and
// registers.
void run_chain(const std::vector<void*>& arrays, Int total, const Int* numbers, int threads);

// ---- CAST ---------------------------------------------------------------------------------------
// Sizes of both are equal, types are known. A float becomes an integer towards zero and within its
// range, NaN becomes 0; an integer keeps its low bits; anything becomes the nearest float, ties to
// even, NaN the canonical one. Of equal types it is a copy. Input and output do not overlap.
struct CastPlan {
  Tensor input, output;

  void run(const void* input, void* output, int threads) const;
};

// ---- ELEMENT_WISE_IDENTITY ----------------------------------------------------------------------
// Input and output have the same sizes and type; they may be the very same elements. A copy, or
// element * scale + bias: product and sum are rounded one after the other, floats of 16 and 32 bits
// in FLOAT32, all other types in FLOAT64, and made the type again as CAST does. A NaN is canonical.
struct IdentityPlan {
  Tensor input, output;
  bool scaled = false;
  double scale = 1, bias = 0;

  void run(const void* input, void* output, int threads) const;
};

// ---- FILL_VALUE_SEQUENCE ------------------------------------------------------------------------
// start, start + delta, start + delta + delta, .. in row-major order, each sum rounded to the type.
// Integers are given in `start` and `delta`, as their bits; FLOAT32 and FLOAT16, the only floats,
// in the other two.
struct SequencePlan {
  Tensor output;
  uint64_t start = 0, delta = 0;
  double float_start = 0, float_delta = 0;

  void run(void* output, int threads) const;
};

// ---- PADDING ------------------------------------------------------------------------------------
// The input lies in the output from `starts` on; around it is the value (its bits, of the element's
// size), or elements of the input. One without elements is padded by the value only.
struct PaddingPlan {
  Tensor input, output;
  const Int* starts;  // one per dimension, 0 to the excess of the output
  PaddingMode mode = PaddingMode::constant;
  uint64_t value[2] = {0, 0};

  void run(const void* input, void* output, int threads) const;
};

// ---- REVERSE_SUBSEQUENCES -----------------------------------------------------------------------
// The first elements of each line along the axis, as many as its length says, in the opposite
// order, and the others as they are. lengths has the input's sizes with 1 on the axis, and one of
// the four index types; one below zero means none, one beyond the line all of it.
struct ReversePlan {
  Tensor input, lengths, output;
  int axis;

  void run(const void* input, const void* lengths, void* output, int threads) const;
};

// ---- UPSAMPLE_2D --------------------------------------------------------------------------------
// The last two dimensions, `height` and `width` times as long: each element again and again, or
// (FLOAT32 and FLOAT16) by the two nearest ones in each of the two dimensions, weighted by how far
// the middle of an output element lies from theirs. First along the width, then along the height,
// product and sum rounded to FLOAT32 one after the other; what has no weight does not count. A NaN
// is canonical then.
struct UpsamplePlan {
  Tensor input, output;
  Int height, width;  // at least 1
  bool linear;

  void run(const void* input, void* output, int threads) const;
};

// ---- GATHER, GATHER_ELEMENTS, GATHER_ND ---------------------------------------------------------
// GATHER: output sizes are input[:axis] + indices + input[axis + 1:].
// `output_is_private` as above: without it, nothing is written when an index is bad.
struct GatherPlan {
  Tensor input, indices, output;
  int axis;
  OutOfRange mode = OutOfRange::raise;

  Status run(const void* input, const void* indices, void* output, bool output_is_private,
             int threads) const;
};

// GATHER_ELEMENTS: output has indices' sizes, which off the axis are at most the input's.
struct GatherElementsPlan {
  Tensor input, indices, output;
  int axis;
  OutOfRange mode = OutOfRange::raise;

  Status run(const void* input, const void* indices, void* output, bool output_is_private,
             int threads) const;
};

// GATHER_ND: indices {batch.., .., t}; output: indices without the last, then what is left of
// input.
struct GatherNdPlan {
  Tensor input, indices, output;
  int batch_dims;
  OutOfRange mode = OutOfRange::raise;

  Status run(const void* input, const void* indices, void* output, bool output_is_private,
             int threads) const;
};

}  // namespace anydml

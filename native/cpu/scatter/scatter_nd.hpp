// The algorithms of SCATTER_ND behind ScatterNdPlan::run, for it and for its test, which forces
// each.
#pragma once

#include "scatter_parts.hpp"

namespace anydml::scatter {

// direct: the whole input is copied, then slices are written into the output one after the other.
// rows: which updates each slice takes is found first, then the output is written once, in order.
// buckets: element by element, by the stable partition of scatter_buckets.cpp.
enum class NdMethod { automatic, direct, rows, buckets };

// Parameters that the test lowers so that small data covers every case.
struct NdTuning {
  Int small_bytes = Int{256} << 10;  // operands below which everything is direct
  Int piece_bytes = Int{256} << 10;  // of output written at a time
  Int stream_bytes = kStreamBytes;
  int bucket_bits = 0;
  Int round = Int{32} << 20;
};

Status run_scatter_nd(const ScatterNdPlan& plan, const void* input, const void* indices,
                      const void* updates, void* output, bool output_is_private, int threads,
                      NdMethod method, const NdTuning& tuning);

// SCATTER_ND as `tuples` updates of `slices` slices, each of `slice_bytes`.
struct NdProblem {
  Int tuples, slices, slice_elements, slice_bytes;
  int tuple_length;
  int element_size;  // of what is moved: of a contiguous slice, the largest power of two up to 16
  Int coordinate_stride;
  Layout index_batch, update_batch;                                    // the tuples
  Layout slice_in, slice_out, slice_update;                            // within a slice
  Layout outer_in, outer_out;                                          // the slices
  Int sizes[kMaxRank], slice_scales[kMaxRank], byte_scales[kMaxRank];  // for each coordinate
  bool contiguous;  // of slices, in all three tensors
  bool stepped;     // slices are elements at one step, each tensor's own; true if contiguous
  Int in_step, out_step, update_step;  // in that case; else 0
  bool packed_in, packed_out;
  const IndexReader* reader;
  const Writer* writer;
  Reduction reduction;

  // The beginning of an update, or of a slice.
  Int update_offset(Int tuple) const { return begin(update_batch, tuple); }
  Int input_offset(Int slice) const { return begin(outer_in, slice); }
  Int output_offset(Int slice) const { return begin(outer_out, slice); }
  static Int begin(const Layout& layout, Int flat) {
    return layout.rank == 0   ? 0
           : layout.rank == 1 ? flat * layout.strides[0]
                              : offset_at(layout, flat);
  }
  // sum of coordinates times scales, for some tuples; the first bad index value's flat position in
  // the index tensor, or -1.
  Int read(const char* indices, Int first, Int count, const Int* scales, Int* offsets) const;
  // `count` elements of a stepped slice take those of an update.
  void combine(char* target, Int target_step, const char* update, Int count) const;
  // The slice at `target` takes the update.
  void write_slice(char* target, const char* update) const;
};

// Fails before anything is written when an index is bad.
Status run_nd_rows(const NdProblem& problem, const char* input, const char* indices,
                   const char* updates, char* output, int threads, const NdTuning& tuning);

}  // namespace anydml::scatter

// The algorithms of SCATTER_ND behind ScatterNdPlan::run, for it and for its test, which forces
// each.
#pragma once

#include "scatter/cpu/scatter_sums.hpp"

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

  bool widens() const { return writer->widen != nullptr; }
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
  // `count` elements at a step take those of an update.
  void combine(char* target, Int target_step, const char* update, Int step, Int count) const;
  // The slice at `target` takes the update.
  void write_slice(char* target, const char* update) const;
};

struct NdCall {
  const ScatterNdPlan& plan;
  const NdProblem& problem;
  const char *input, *indices, *updates;
  char* output;
};

// Handling of a bad index. A call that has written nothing is rejected; a private output that has
// been written fails. If the indices were good before, another thread has changed them, and the bad
// one is skipped.
enum class Bad { refused, fails, left_out };

Status check_tuples(const NdProblem& problem, const char* indices, int threads);

// Copies the input, and calls take(first, count, offsets in the output) for pieces of the updates
// in order. Indices of one piece are read once.
template <class Take>
Status for_pieces(const NdCall& call, Bad on_bad, int threads, Take&& take) {
  const NdProblem& problem = call.problem;
  const Int tuples = problem.tuples;
  Int offsets[kPiece];
  const bool is_read_once = tuples <= kPiece && on_bad != Bad::left_out;
  if (is_read_once) {  // this single reading is the check
    const Int bad = problem.read(call.indices, 0, tuples, problem.byte_scales, offsets);
    if (bad >= 0) return {bad};
  } else if (on_bad == Bad::refused) {
    const Status status = check_tuples(problem, call.indices, threads);
    if (!status.ok()) return status;
  }
  if (call.input != call.output)
    copy_input(call.plan.input, call.input, call.plan.output, call.output, threads);
  const bool far = tuples > kPiece && problem.slices * problem.slice_bytes >= kPrefetchBytes;
  for (Int first = 0; first < tuples; first += kPiece) {
    const Int count = std::min(kPiece, tuples - first);
    const Int bad =
        is_read_once ? -1 : problem.read(call.indices, first, count, problem.byte_scales, offsets);
    if (bad >= 0 && on_bad == Bad::fails) return {bad};
    if (bad >= 0) continue;
    if (far)
      for (Int i = 0; i < count; ++i) prefetch_write(call.output + offsets[i]);
    take(first, count, offsets);
  }
  return {};
}

// Sums of few slices, so that only these are written after a copy of the input.
Status run_nd_few(const NdCall& call, Bad on_bad, int threads);
// Fails before anything is written when an index is bad.
Status run_nd_rows(const NdProblem& problem, const char* input, const char* indices,
                   const char* updates, char* output, int threads, const NdTuning& tuning);

}  // namespace anydml::scatter

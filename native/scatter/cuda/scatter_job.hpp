// What SCATTER and SCATTER_ND are to the kernels: updates of slices.
#pragma once

#include "runtime/cuda/bad_indices.hpp"
#include "runtime/cuda/plans.hpp"
#include "runtime/cuda/tables.hpp"
#include "scatter/cuda/scatter.cuh"

namespace anydml::cuda::scatter {

struct Job {
  DataType type;
  Reduction reduction;
  Mean mean = Mean::no;
  bool output_is_private, in_place;
  int size;  // bytes of what is moved or combined at a time: at most of an element

  Tensor indices;
  int axis;                               // the first that they point into
  int length;                             // coordinates of a tuple
  Int step;                               // bytes between them
  Layout index_tuples;                    // where each tuple's first coordinate is
  Layout base;                            // of the same sizes: what its key begins with
  Layout update_tuples;                   // where each one's update begins
  Int sizes[kMaxRank], scales[kMaxRank];  // of each coordinate

  Layout outer_in, outer_out;                // the slices
  Layout slice_in, slice_out, slice_update;  // elements within one

  Tensor input, output;  // whole
  const char* input_data;
  const char* index_data;
  const char* update_data;
  char* output_data;

  Int tuples() const { return index_tuples.count(); }
  Int slices() const { return outer_out.count(); }
  Int slice_elements() const { return slice_out.count(); }
};

Places places_of(const Layout& first, const Layout* second = nullptr);
Tuples tuples_of(const Job& job);

// Keys of `width` bytes, and of each slice the last update, counted from 1; with null for both
// indices are checked only.
void find_keys(const Job& job, void* keys, int width, unsigned* winners,
               const BadIndexReport& report, Queue& queue);
void check_indices(const Job& job, const BadIndexReport& report, Queue& queue);
// Whether the job combines updates that may come in any order: integers, and minima and maxima of
// floats, as codes (scatter_words.cuh).
bool in_any_order(const Job& job);
// The bytes of a key, wide enough that the greatest key is not a slice.
int key_width(Int slices);

// Copies input to output, unless the caller sees the output and an index is bad.
void copy_input(const Job& job, const BadIndexReport& report, Queue& queue);
// The end of a call: sets a private output to zeros if an index is bad.
void publish_output(const Job& job, const BadIndexReport& report, Queue& queue);

// SCATTER along an axis, where lines fit shared memory. False: nothing has been done.
// `published`: whether nothing is left to be done for bad indices.
bool by_lines(const ScatterPlan& plan, const Job& job, const BadIndexReport& report, Queue& queue,
              bool& published);
// Few updates of many slices, after a copy of the input.
bool by_few(const Job& job, const BadIndexReport& report, Queue& queue, bool& published);
// Few updates of many slices, or updates in place: by bits of the slices that they name.
bool by_sparse(const Job& job, const BadIndexReport& report, Queue& queue, bool& published);
// From a map of the last update of each slice.
bool by_winners(const Job& job, const BadIndexReport& report, Queue& queue);
// Where indices are in order: what the device then knows, or null where it does not look.
bool may_be_ordered(const Job& job);
void put_in_order(const Job& job, const Order* order, Queue& queue);
// By buckets that fit shared memory: single elements of long packed outputs.
bool by_buckets(const Job& job, const BadIndexReport& report, Queue& queue);
// By sorting the keys: everything.
void by_sorting(const Job& job, const BadIndexReport& report, Queue& queue);

}  // namespace anydml::cuda::scatter

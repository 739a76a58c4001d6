// What the host and the kernels of SCATTER and SCATTER_ND have in common.
//
// Both are lists of updates, in row-major order of their indices, of slices of the output: of
// single elements, or of what is left behind the axes that coordinates name. A slice's key is its
// number in row-major order.
#pragma once

#include "runtime/cuda/walk.cuh"

namespace anydml::cuda {

constexpr unsigned kScatterThreads = 256;
constexpr unsigned kKeysPerThread = 4;  // keys of a thread
constexpr unsigned kFewUpdates = 2048;  // that every block of scatter_few.cu reads

// Where numbers in row-major order lie, in up to two tensors of the same sizes.
struct Places {
  int rank;
  int narrow;  // whether all numbers are below 2^31
  Divisor divisors[kMaxDims];
  Offset sizes[kMaxDims], first[kMaxDims], second[kMaxDims];
};

// How tuples of coordinates are read: each one is an index on an axis, and adds `scale` times that
// to the key.
struct Tuples {
  int type;  // of the indices: DML_TENSOR_DATA_TYPE
  int length;
  int width;     // bytes of a key
  int paired;    // whether tuples are two coordinates that one access reads
  Offset count;  // of tuples
  Offset step;   // bytes between coordinates
  Offset sizes[kMaxDims], scales[kMaxDims];
};

// Packed indices that are only checked: 16 bytes at a time.
constexpr unsigned kCheckLinesPerThread = 8;  // lines of a thread

// Keys in ascending order, and which update each is of. Keys from `slices` on are not slices.
struct Sorted {
  const void* keys;
  const void* updates;
  int key_width, update_width;  // bytes
  Offset count, slices;
  Offset elements;     // of a slice
  unsigned lanes_log;  // threads of a slice
};

// A sum of updates alone, divided by their number: Mean::of_updates.
constexpr int kMeanOfUpdates = 2;

// Slices that take many updates: where each one's begin in the sorted list.
constexpr Offset kLongChain = 64;
struct Chains {
  unsigned long long* count;
  Offset* starts;
};
constexpr unsigned kChainThreads = 1024;
constexpr unsigned kChainBytes = 32768;  // of updates in shared memory, twice

// Elements side by side of a chain of slices.
ANYDML_BOTH constexpr unsigned chain_log(int size) { return size == 8 ? 4 : 5; }

// Lines along the axis of SCATTER, some columns side by side: a block takes a strip of them.
// Strides are in bytes, but those of `position`, which count elements of the indices in row-major
// order.
struct Line {
  Offset axis, column;
};
struct Lines {
  int type;                 // of the indices: DML_TENSOR_DATA_TYPE
  int reports_bad_indices;  // whether to report bad indices: else an earlier kernel checked
  int copies;               // whether elements that no update names are copied
  unsigned size, length;    // of the axis in the output and in the indices
  unsigned columns, width;  // of all strips side by side; of one: a power of two
  unsigned width_log;
  unsigned staged;  // bytes from which on updates are kept in shared memory; 0: they are not
  Divisor strips;   // side by side
  Line input, output, indices, updates, position;
};
// Lines that are packed in every tensor, at whole lines of 16 bytes: four elements of a thread.
constexpr unsigned kPackedThreads = 512;
constexpr unsigned kPackedBlocks = 3;  // that a multiprocessor runs at a time, of 64 KiB each
// Elements of a thread at a time.
ANYDML_BOTH constexpr unsigned lines_per_thread(int size) { return size > 8 ? 4 : 8; }

// Rows of SCATTER_ND: slices whose elements lie at one step.
struct Slices {
  Offset count, elements;        // elements of a slice
  Offset input, output, update;  // steps, in bytes
  unsigned lanes_log;            // threads of a slice
};
constexpr unsigned kSlicesPerThread = 4;  // slices of a thread

constexpr unsigned kNoKey = 0xFFFFFFFFu;

// What is known of updates of few slices: their keys, bits of slices, and a map of the last update,
// counted from 1, of each slice that several updates name, which is undefined elsewhere.
struct Marks {
  Offset share;  // how many of 2^32 blocks mark, until all updates are marked; others copy
  unsigned count;
  unsigned lines;      // of 16 bytes: the number below, and the bits
  unsigned* repeats;   // not 0 if several updates name one slice
  unsigned* named;     // a bit for each slice that an update names
  unsigned* repeated;  // the same where several do
  unsigned* keys;
  unsigned* winners;
};
constexpr unsigned kClearedPerThread = 4;  // lines of 16 bytes
constexpr unsigned kSettledPerThread = 4;  // updates of a thread at a time
constexpr unsigned kCopiedLinesPerThread = 4;

// What neighbouring keys show.
constexpr unsigned kRises = 1, kFalls = 2, kEqual = 4;

// Indices of one axis that ascend or descend, so that nothing needs to be moved.
struct Order {
  unsigned looks;  // whether a sample of them is ordered
  unsigned seen;   // of all; kOutside where one is bad
};
// Updates of single elements on their way to buckets of neighbouring elements, which fit shared
// memory (scatter_buckets.cpp).
constexpr unsigned kGroup = 8;  // neighbouring updates of a thread
constexpr unsigned kCountThreads = 1024;
constexpr unsigned kAppendThreads = 512, kMaxAppendThreads = 1024;  // 1024 for many buckets
constexpr unsigned kAppendGroups = 2;
// A block of large buckets takes all shared memory of a multiprocessor.
constexpr unsigned kBucketThreads = 512;
ANYDML_BOTH constexpr unsigned max_bucket_threads(bool moves, int size) {
  return moves && size < 8 ? 768 : 1024;
}
constexpr unsigned kMaxBuckets = 8192;
constexpr unsigned kMaxBucketLog = 14;  // of the elements of a bucket
// Updates of a bucket for one block; of more, pieces of those.
constexpr unsigned kCrowded = 1 << 15;
ANYDML_BOTH constexpr unsigned blocks_of_crowded(unsigned count) {
  return (count + kCrowded - 1) / kCrowded;
}
struct Piece {
  unsigned bucket, slot, first;  // its number among crowded ones; its first update in the bucket
};
struct BucketState {
  unsigned counted, crowded, pieces;  // blocks that have counted; crowded buckets, their pieces
  Order order;
};
// The updates of an epoch: a record of 8 bytes has room for this many different groups.
ANYDML_BOTH constexpr unsigned epoch_span(unsigned bucket_log) {
  return kGroup << (32 - bucket_log);
}

constexpr unsigned kOutside = 8;
constexpr unsigned kCheckedPerThread = 8;      // lines of a thread at a time
constexpr unsigned kLookIndicesPerThread = 4;  // indices side by side
constexpr unsigned kOrderThreads = 256;
constexpr unsigned kOrderBlocks = 8;     // of a multiprocessor
constexpr unsigned kOrderPerThread = 4;  // lines, or updates, of a thread at a time
struct InOrder {
  const Order* order;
  int type;    // of the indices: DML_TENSOR_DATA_TYPE
  int once;    // only where no two are equal
  int copies;  // whether the input is another tensor than the output
  unsigned count, slices;
  Offset update_step;  // bytes
};

struct Buckets {
  Order* order;  // 0 at first; null: not checked
  unsigned count, slices;
  unsigned buckets, bucket_log;
  unsigned epochs, span;       // of updates; of the last one there may be fewer
  int moves;                   // only the last update of an element counts
  int in_place;                // the output is the input
  int packed, packed_updates;  // whether indices, and updates, lie side by side in whole lines
  unsigned* keys;              // kNoKey: left out; up to a whole group
  unsigned* counts;            // [bucket][epoch], 0 at first; then where the next record goes
  unsigned* offsets;           // where the records of each begin, and the end
  BucketState* state;          // 0 at first
  Piece* pieces;
  unsigned* left;   // pieces of a crowded bucket that are not done
  unsigned* slots;  // of crowded buckets
  void* maps;       // of the elements of each crowded bucket
  void* records;
};

}  // namespace anydml::cuda

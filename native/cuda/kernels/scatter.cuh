// What the host and the kernels of SCATTER and SCATTER_ND have in common.
//
// Both are lists of updates, in row-major order of their indices, of slices of the output: of
// single elements, or of what is left behind the axes that coordinates name. A slice's key is its
// number in row-major order.
#pragma once

#include "walk.cuh"

namespace anydml::cuda {

constexpr unsigned kScatterThreads = 256;
constexpr unsigned kKeysEach = 4;  // keys of a thread

// Where numbers in row-major order lie, in up to two tensors of the same sizes.
struct Places {
  int rank;
  int narrow;  // whether all numbers are below 2^31
  Divisor divisors[kMostDims];
  Offset sizes[kMostDims], first[kMostDims], second[kMostDims];
};

// How tuples of coordinates are read: each one is an index on an axis, and adds `scale` times that
// to the key.
struct Tuples {
  int type;  // of the indices: DML_TENSOR_DATA_TYPE
  int length;
  int width;      // bytes of a key
  int last_only;  // whether keys may be left out that a later one equals
  Offset count;   // of tuples
  Offset step;    // bytes between coordinates
  Offset sizes[kMostDims], scales[kMostDims];
};

// Packed indices that are only checked: 16 bytes at a time.
constexpr unsigned kCheckEach = 4;  // lines of a thread

// Keys in ascending order, and which update each is of. Keys from `slices` on are no slices.
struct Sorted {
  const void* keys;
  const void* updates;
  int key_width, update_width;  // bytes
  Offset count, slices;
  Offset elements;     // of a slice
  unsigned lanes_log;  // threads of a slice
};

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
  int tells;                // whether bad indices are told: else they have been looked for before
  int copies;               // whether elements that no update names are copied
  unsigned size, length;    // of the axis in the output and in the indices
  unsigned columns, width;  // of all strips side by side; of one: a power of two
  unsigned width_log;
  unsigned staged;  // bytes from which on updates are kept in shared memory; 0: they are not
  Divisor strips;   // side by side
  Line input, output, indices, updates, position;
};
// Elements of a thread at a time.
ANYDML_BOTH constexpr unsigned lines_each(int size) { return size > 8 ? 4 : 8; }

// Rows of SCATTER_ND: slices whose elements lie at one step.
struct Slices {
  Offset count, elements;        // elements of a slice
  Offset input, output, update;  // steps, in bytes
  unsigned lanes_log;            // threads of a slice
};
constexpr unsigned kSlicesEach = 4;  // slices of a thread

// A stable partition of updates by the high bits of their keys, into buckets of neighbouring
// elements that fit shared memory.
constexpr unsigned kPartThreads = 512;
constexpr unsigned kPartEach = 16;
constexpr unsigned kPartTile = kPartThreads * kPartEach;  // updates of a block
constexpr unsigned kMostBuckets = 2048;
constexpr unsigned kPartChunk = 64;  // tiles whose counts a thread adds up
constexpr unsigned kBeginThreads = 1024;
constexpr unsigned kBucketThreads = 512;       // by winners of 16 bits
constexpr unsigned kWideBucketThreads = 1024;  // by words of 32 bits
constexpr unsigned kMostNarrow = 0xFFFF;       // updates of a bucket that 16 bits count
constexpr unsigned kMostBucketLog = 15;        // of the elements of a bucket

struct Partition {
  const unsigned* keys;  // those from `slices` on are left out
  unsigned count, slices, tiles, chunks;
  unsigned buckets, bucket_log;
  unsigned* counts;        // [tile][bucket]; then where each tile's begin
  unsigned* partial;       // [chunk][bucket]: the same of chunks
  unsigned* begins;        // of each bucket, and the end of the last one
  unsigned short* places;  // of updates in their bucket
  void* values;
};
// Shared memory of a block that partitions elements of a size.
ANYDML_BOTH constexpr unsigned part_bytes(unsigned size) {
  const unsigned staged = kPartTile * (size + 4), ranks = kPartThreads / 32 * kMostBuckets * 2;
  return (staged > ranks ? staged : ranks) + 2 * kMostBuckets * 4;
}

}  // namespace anydml::cuda

// What the host and the kernels of SCATTER and SCATTER_ND have in common.
//
// Both are lists of updates, in row-major order of their indices, of slices of the output: of
// single elements, or of what is left behind the axes that coordinates name. A slice's key is its
// number in row-major order.
#pragma once

#include "walk.cuh"

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

// A partition of updates by the high bits of their keys, into buckets of neighbouring elements that
// fit shared memory. Blocks take tiles in their order, so that what they write lies side by side.
constexpr unsigned kPartKeysPerThread = 16;
// Threads, and updates, of a tile of elements of a size: the more, the longer the runs written.
ANYDML_BOTH constexpr unsigned part_threads(int size) { return size <= 4 ? 1024 : 512; }
ANYDML_BOTH constexpr unsigned part_tile(int size) {
  return part_threads(size) * kPartKeysPerThread;
}
constexpr unsigned kMaxGroup = 1 << 16;  // updates that a block counts; a tile less fits 16 bits
constexpr unsigned kBinThreads = 512;
constexpr unsigned kMaxBuckets = 4096;
constexpr unsigned kBinKeysPerThread = 4;  // keys of a thread at a time
constexpr unsigned kBeginThreads = 1024;
constexpr unsigned kBucketThreads = 1024;
constexpr unsigned kBucketBytes = 1 << 17;  // of shared memory: a word an element
constexpr unsigned kUpdatesPerRead = 8;     // of a thread, at once: buckets begin at such
// Updates of a bucket for one block; of more, pieces of those.
constexpr unsigned kOverfullBucketSize = 1 << 16;
// Bytes of what several blocks know of a crowded bucket. Codes of floats that name an update of so
// many need 64 bits.
ANYDML_BOTH constexpr unsigned map_bytes(bool codes, int size) {
  return codes && size <= 4 ? 2 * kBucketBytes : kBucketBytes;
}

// What is known of keys side by side.
struct PartEdge {
  unsigned first, last;  // keys
  unsigned seen;         // kRises, kFalls, kEqual
};
constexpr unsigned kRises = 1, kFalls = 2, kEqual = 4;  // keys left out: all of them
struct PartPiece {
  unsigned bucket, slot, first;  // its number among crowded ones; its first update in the bucket
};
struct PartState {
  unsigned seen;  // of all keys
  unsigned pieces;
};

// Indices of one axis that ascend or descend, so that nothing needs to be moved.
struct Order {
  unsigned looks;  // whether a sample of them is ordered
  unsigned seen;   // of all; kOutside where one is bad
};
constexpr unsigned kOutside = 8;
constexpr unsigned kLookThreads = 1024;
constexpr unsigned kLookIndicesPerThread = 4;  // indices side by side
constexpr unsigned kOrderThreads = 256;
constexpr unsigned kOrderBlocks = 8;     // of a multiprocessor
constexpr unsigned kOrderPerThread = 4;  // lines, or updates, of a thread at a time
struct InOrder {
  Order* order;
  int type;    // of the indices: DML_TENSOR_DATA_TYPE
  int once;    // only where no two are equal
  int copies;  // whether the input is another tensor than the output
  unsigned count, slices;
  Offset update_step;  // bytes
};

struct Partition {
  const Order* order;  // null: not checked
  unsigned* keys;      // kNoKey: left out
  unsigned count, slices;
  unsigned tile, tiles, group, groups;  // updates of a tile; tiles of a group
  unsigned buckets, bucket_log;
  unsigned in_order;         // whether the order in a bucket matters
  unsigned last_only;        // whether only the last of equal keys matters
  unsigned short* before;    // [tile][bucket]: of the tiles before in the group
  unsigned* counts;          // [group][bucket]; then of the groups before
  unsigned* totals;          // of each bucket
  unsigned* firsts;          // updates in the buckets before
  unsigned* bucket_offsets;  // where those of each bucket are moved to
  PartEdge* edges;           // of each group
  PartState* state;
  PartPiece* pieces;
  unsigned* left;          // pieces of a crowded bucket that are not done
  void* maps;              // of the elements of each crowded bucket
  unsigned short* places;  // of updates in their bucket
  void* values;
};

// Shared memory of a block that partitions elements of a size: numbers of each bucket, then the
// updates of the tile in their order, or ranks of each warp.
ANYDML_BOTH constexpr unsigned part_bytes(int size, unsigned buckets) {
  const unsigned staged = part_tile(size) * (static_cast<unsigned>(size) + 4 + 2);
  const unsigned ranks = part_threads(size) / 32 * buckets * 2;
  return (staged > ranks ? staged : ranks) + (2 * buckets + 4) * 4;
}

}  // namespace anydml::cuda

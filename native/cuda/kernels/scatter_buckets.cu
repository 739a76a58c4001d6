// Every element of a bucket (scatter_buckets.cpp), from its updates. For numbers of type
// ANYDML_TYPE by a reduction that gives the same in any order (scatter_words.cuh), or for elements
// of ANYDML_SIZE bytes that are only moved (ANYDML_TYPE 0). A block keeps a word of each element in
// shared memory: what it is so far, or the last update of it, counted from 1, and then the element.
#include "scatter_bucket.cuh"

namespace {

// The state that several blocks share of a crowded bucket.
__device__ inline Mapped* map_of(const Partition& part, unsigned slot) {
  constexpr Offset kBytes = map_bytes(kIsAnyFloat<Element>, ANYDML_SIZE);
  return reinterpret_cast<Mapped*>(static_cast<char*>(part.maps) + slot * kBytes);
}
// The number of a bucket among the crowded ones.
__device__ inline unsigned slot_of(const Partition& part, unsigned bucket) {
  unsigned low = 0, high = part.state->pieces;
  while (low + 1 < high) {
    const unsigned middle = (low + high) / 2;
    if (part.pieces[middle].bucket <= bucket)
      low = middle;
    else
      high = middle;
  }
  return part.pieces[low].slot;
}

#if ANYDML_TYPE == 0
__device__ inline void clear_winners(Cell* words, unsigned size) {
  // A line at a time; the shared memory of a block is whole lines.
  uint4* const lines = reinterpret_cast<uint4*>(words);
  const unsigned count = (size * static_cast<unsigned>(sizeof(Cell)) + 15) / 16;
  for (unsigned i = threadIdx.x; i < count; i += kBucketThreads) lines[i] = {0, 0, 0, 0};
}

// Prefetches the input's elements into the second-level cache, if many of them will be read.
__device__ inline void prefetch_input(const Bucket& bucket, unsigned updates) {
  constexpr unsigned kLine = 128 / sizeof(Element);
  if (updates >= bucket.size) return;
  for (unsigned e = threadIdx.x * kLine; e < bucket.size; e += kBucketThreads * kLine)
    prefetch(bucket.from + e);
}

__device__ inline void copy_elements(const Bucket& bucket) {
  if (bucket.from != bucket.to) bucket.write_batches([&](unsigned e) { return bucket.from[e]; });
}

// Of keys in order, no two of one element: the elements, and then the updates over those.
__device__ void move_strict(const Bucket& bucket, const Updates& updates) {
  if (updates.count != bucket.size) copy_elements(bucket);
  __syncthreads();
  updates.for_each_value(0, updates.count,
                         [&](unsigned at, Element value, unsigned) { bucket.to[at] = value; });
}

// Of few updates, the same for those that are the last of their element.
__device__ void move_few_updates(const Bucket& bucket, const Updates& updates, Cell* words) {
  const unsigned count = updates.count;
  copy_elements(bucket);
  clear_winners(words, bucket.size);
  __syncthreads();
  updates.for_each(0, count,
                   [&](unsigned at, unsigned i) { atomicMax(winner_of(words, at), i + 1); });
  __syncthreads();
  updates.for_each(0, count, [&](unsigned at, unsigned i) {
    if (*winner_of(words, at) == i + 1) bucket.to[at] = updates.value(i);
  });
}

// For many updates, every one is read twice: for its number and for its element.
__device__ void move_many(const Bucket& bucket, const Updates& updates, Cell* words) {
  const unsigned count = updates.count;
  clear_winners(words, bucket.size);
  __syncthreads();
  updates.for_each(0, count,
                   [&](unsigned at, unsigned i) { atomicMax(winner_of(words, at), i + 1); });
  __syncthreads();
  unsigned long long wins = 0, turn = 1;  // a bit an update of this thread
  updates.for_each(0, count, [&](unsigned at, unsigned i) {
    if (*winner_of(words, at) == i + 1) wins |= turn;
    turn <<= 1;
  });
  const unsigned updated = bucket.find_updated(words);
  __syncthreads();
  updates.for_each_value(0, count, [&](unsigned at, Element value, unsigned) {
    if (wins & 1) words[at] = static_cast<Cell>(value);
    wins >>= 1;
  });
  __syncthreads();
  bucket.write(words, updated);
}

// As many as registers keep, moved to the bucket: the same, with places read once and eight updates
// of a thread at a time.
constexpr unsigned kKeptReads = 5;  // times eight
constexpr unsigned kMaxKeptUpdates = kKeptReads * kUpdatesPerRead * kBucketThreads;
__device__ void move_kept(const Bucket& bucket, const Updates& updates, Cell* words) {
  const unsigned count = updates.count;
  const Places8* const all_places = updates.places();
  const Values8* const all_values = updates.values();
  Places8 places[kKeptReads];
#pragma unroll
  for (unsigned j = 0; j < kKeptReads; ++j) {
    const unsigned n = threadIdx.x + j * kBucketThreads;
    if (n * kUpdatesPerRead < count) {
      places[j] = all_places[n];
      prefetch(all_values + n);
    }
  }
  prefetch_input(bucket, count);
  clear_winners(words, bucket.size);
  __syncthreads();
#pragma unroll
  for (unsigned j = 0; j < kKeptReads; ++j) {
    const unsigned first = (threadIdx.x + j * kBucketThreads) * kUpdatesPerRead;
#pragma unroll
    for (unsigned k = 0; k < kUpdatesPerRead; ++k)
      if (first + k < count) atomicMax(winner_of(words, places[j].at(k)), first + k + 1);
  }
  __syncthreads();
  unsigned long long wins = 0;
#pragma unroll
  for (unsigned j = 0; j < kKeptReads; ++j) {
    const unsigned first = (threadIdx.x + j * kBucketThreads) * kUpdatesPerRead;
#pragma unroll
    for (unsigned k = 0; k < kUpdatesPerRead; ++k)
      if (first + k < count && *winner_of(words, places[j].at(k)) == first + k + 1)
        wins |= 1ull << (j * kUpdatesPerRead + k);
  }
  const unsigned updated = bucket.find_updated(words);
  __syncthreads();
#pragma unroll
  for (unsigned j = 0; j < kKeptReads; ++j) {
    const unsigned n = threadIdx.x + j * kBucketThreads;
    if (n * kUpdatesPerRead >= count) continue;
    const Values8 values = all_values[n];
#pragma unroll
    for (unsigned k = 0; k < kUpdatesPerRead; ++k)
      if (wins >> (j * kUpdatesPerRead + k) & 1)
        words[places[j].at(k)] = static_cast<Cell>(values.of[k]);
  }
  __syncthreads();
  bucket.write(words, updated);
}

__device__ void move_all(const Bucket& bucket, const Updates& updates, Cell* words) {
  if (updates.strict)
    move_strict(bucket, updates);
  else if (updates.count < bucket.size / (updates.moved ? 8 : 2))
    move_few_updates(bucket, updates, words);
  else if (updates.moved && updates.count <= kMaxKeptUpdates)
    move_kept(bucket, updates, words);
  else
    move_many(bucket, updates, words);
}

#else
// The warp first combines updates of the same element.
template <Combine kCombine>
__device__ inline void combine_in_warp(Cell* words, unsigned at, Cell update) {
  const unsigned here = __activemask();
  if (here != kAllLanes || !__all_sync(kAllLanes, at == __shfl_sync(kAllLanes, at, 0)))
    return take<kCombine, Element>(words + at, update);
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    update = combine_words<kCombine, Element>(update, __shfl_xor_sync(kAllLanes, update, step));
  if ((threadIdx.x & 31) == 0) take<kCombine, Element>(words + at, update);
}

// An element from its word: numbers are those of the element, 0, and of the bucket's updates.
template <Combine kCombine, class Bits>
__device__ inline Element number_of(const Bucket& bucket, const Updates& updates, unsigned e,
                                    Bits word) {
  return element_of<kCombine, Element>(word, [&](unsigned number) {
    return number == 0 ? bucket.from[e] : updates.value(number - 1);
  });
}

template <Combine kCombine>
__device__ void combine_all(const Bucket& bucket, const Updates& updates, Cell* words) {
  bucket.for_each([&](unsigned e, unsigned) { words[e] = word_of<kCombine>(bucket.from[e], 0); });
  __syncthreads();
  updates.for_each_value(0, updates.count, [&](unsigned at, Element value, unsigned i) {
    combine_in_warp<kCombine>(words, at, word_of<kCombine>(value, i + 1));
  });
  __syncthreads();
  bucket.for_each([&](unsigned e, unsigned) {
    bucket.to[e] = number_of<kCombine>(bucket, updates, e, words[e]);
  });
}
#endif

#if ANYDML_TYPE != 0
// An element as it begins in the map.
template <Combine kCombine>
__device__ inline Mapped mapped(Element element) {
  if constexpr (kIsAnyFloat<Element>)
    return Codes<kCombine, Element, Mapped>::of(element, 0);
  else
    return word_of<kCombine>(element, 0);
}
#endif

// A piece of a crowded bucket, into the words of this block and then into the bucket's map.
#if ANYDML_TYPE != 0
template <Combine kCombine>
#endif
__device__ void add_piece(const Bucket& bucket, const Updates& updates, unsigned first, Cell* words,
                          Mapped* map) {
  const unsigned end =
      updates.count - first < kOverfullBucketSize ? updates.count : first + kOverfullBucketSize;
#if ANYDML_TYPE == 0
  bucket.for_each([&](unsigned e, unsigned) { *winner_of(words, e) = 0; });
  __syncthreads();
  updates.for_each(first, end,
                   [&](unsigned at, unsigned i) { atomicMax(winner_of(words, at), i + 1); });
  __syncthreads();
  bucket.for_each([&](unsigned e, unsigned) {
    const unsigned winner = *winner_of(words, e);
    if (winner != 0) atomicMax(map + e, winner);
  });
#else
  bucket.for_each([&](unsigned e, unsigned) { words[e] = neutral<kCombine, Element>(); });
  __syncthreads();
  updates.for_each_value(first, end, [&](unsigned at, Element value, unsigned i) {
    combine_in_warp<kCombine>(words, at, word_of<kCombine>(value, i - first + 1));
  });
  __syncthreads();
  bucket.for_each([&](unsigned e, unsigned) {
    if (words[e] == neutral<kCombine, Element>()) return;
    if constexpr (kIsAnyFloat<Element>)
      take<kCombine, Element>(
          map + e, Codes<kCombine, Element, Cell>::template widened<Mapped>(words[e], first));
    else
      take<kCombine, Element>(map + e, words[e]);
  });
#endif
}

}  // namespace

// A block a bucket. Crowded ones are only prepared.
extern "C" __global__ void __launch_bounds__(kBucketThreads, 1)
    scatter_bucket(char* output, const char* input, const char* changes,
                   const __grid_constant__ Places tuples, const __grid_constant__ Partition part,
                   int reduction, const __grid_constant__ BadIndexReport report) {
  extern __shared__ uint4 memory[];
  if (is_done(part) || bad_index_found(report)) return;
  Cell* const words = reinterpret_cast<Cell*>(memory);
  const Bucket bucket(output, input, part, blockIdx.x);
  const Updates updates(part, changes, tuples, blockIdx.x);
  if (updates.count == 0) {
    if (input != output) bucket.write_batches([&](unsigned e) { return bucket.from[e]; });
  } else if (updates.count > kOverfullBucketSize) {
    Mapped* const map = map_of(part, slot_of(part, blockIdx.x));
#if ANYDML_TYPE == 0
    bucket.for_each([&](unsigned e, unsigned) { map[e] = 0; });
#else
    with_any_order<Element>(reduction, [&](auto constant) {
      constexpr Combine combine = decltype(constant)::value;
      bucket.for_each([&](unsigned e, unsigned) { map[e] = mapped<combine>(bucket.from[e]); });
    });
#endif
  } else {
#if ANYDML_TYPE == 0
    move_all(bucket, updates, words);
#else
    with_any_order<Element>(reduction, [&](auto constant) {
      combine_all<decltype(constant)::value>(bucket, updates, words);
    });
#endif
  }
}

// Crowded buckets, a block a piece; the last one of a bucket writes it.
extern "C" __global__ void __launch_bounds__(kBucketThreads, 1)
    scatter_overfull_buckets(char* output, const char* input, const char* changes,
                             const __grid_constant__ Places tuples,
                             const __grid_constant__ Partition part, int reduction,
                             const __grid_constant__ BadIndexReport report) {
  extern __shared__ uint4 memory[];
  __shared__ bool last;
  if (is_done(part) || bad_index_found(report)) return;
  Cell* const words = reinterpret_cast<Cell*>(memory);
  const unsigned pieces = part.state->pieces;
  for (unsigned i = blockIdx.x; i < pieces; i += gridDim.x) {
    const PartPiece piece = part.pieces[i];
    const Bucket bucket(output, input, part, piece.bucket);
    const Updates updates(part, changes, tuples, piece.bucket);
    Mapped* const map = map_of(part, piece.slot);
#if ANYDML_TYPE == 0
    add_piece(bucket, updates, piece.first, words, map);
#else
    with_any_order<Element>(reduction, [&](auto constant) {
      add_piece<decltype(constant)::value>(bucket, updates, piece.first, words, map);
    });
#endif
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicSub(part.left + piece.slot, 1u) == 1;
    __syncthreads();
    if (last) {
      __threadfence();
      const volatile Mapped* const known = map;
      bucket.for_each([&](unsigned e, unsigned) {
        const Mapped found = known[e];
#if ANYDML_TYPE == 0
        if (found != 0)
          bucket.to[e] = updates.value(found - 1);
        else if (input != output)
          bucket.to[e] = bucket.from[e];
#else
        with_any_order<Element>(reduction, [&](auto constant) {
          bucket.to[e] = number_of<decltype(constant)::value>(bucket, updates, e, found);
        });
#endif
      });
    }
    __syncthreads();
  }
}

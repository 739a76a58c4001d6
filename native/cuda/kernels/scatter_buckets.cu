// Every element of a bucket (scatter_buckets.cpp), from its updates. For integers of type
// ANYDML_TYPE by a reduction that gives the same in any order, or for elements of ANYDML_SIZE bytes
// that are only moved (ANYDML_TYPE 0). A block keeps a word of each element in shared memory: what
// it is so far, or the last update of it, counted from 1, and then the element.
#include "scatter_combine.cuh"
#include "scatter_device.cuh"

namespace {

using namespace anydml::cuda;

#if ANYDML_TYPE == 0
using Element = Unit<ANYDML_SIZE>::Type;
using Word = Unit<(ANYDML_SIZE <= 4 ? 4 : 8)>::Type;
using Mapped = unsigned;  // of what several blocks find of an element
#else
using Element = Number<ANYDML_TYPE>::Type;
using Word = WordOf<Element>::Bits;
using Mapped = Word;
#endif
constexpr unsigned kOwn = kBucketBytes / sizeof(Word) / kBucketThreads;  // elements of a thread
constexpr unsigned kEach = 8;                                            // at a time

// What a thread reads at once.
struct alignas(16) Places8 {
  unsigned pairs[kTogether / 2];
  __device__ unsigned at(unsigned k) const {
    return k % 2 == 0 ? pairs[k / 2] & 0xFFFFu : pairs[k / 2] >> 16;
  }
};
struct alignas(sizeof(Element) == 1 ? 8 : 16) Values8 {
  Element of[kTogether];
};

// Some updates of a bucket.
struct Updates {
  const Partition& part;
  const char* updates;
  const Places& tuples;
  unsigned begin, count;  // of the bucket
  bool moved, strict;     // to their bucket; in order as they lie, no two of one element

  __device__ Updates(const Partition& of, const char* from, const Places& places, unsigned bucket)
      : part(of), updates(from), tuples(places) {
    const unsigned seen = of.state->seen;
    count = of.totals[bucket];
    moved = !is_ordered(seen);
    strict = !moved && (seen & kEqual) == 0;
    const unsigned first = of.firsts[bucket];
    begin = moved ? of.begins[bucket] : (seen & kFalls) != 0 ? of.count - first - count : first;
  }
  __device__ unsigned place(unsigned i) const {
    return moved ? part.places[begin + i] : part.keys[begin + i] & ((1u << part.bucket_log) - 1);
  }
  __device__ Element value(unsigned i) const {
    if (moved) return static_cast<const Element*>(part.values)[begin + i];
    const unsigned at = begin + i;
    return read<Element>(updates +
                         (tuples.rank == 1 ? at * tuples.first[0] : places_of(tuples, at).first));
  }
  // Those that are moved, some at once.
  __device__ const Places8* places() const {
    return reinterpret_cast<const Places8*>(part.places + begin);
  }
  __device__ const Values8* values() const {
    return reinterpret_cast<const Values8*>(static_cast<const Element*>(part.values) + begin);
  }
  // Calls body with the place of each update from `from` to `end` and its number.
  template <class Body>
  __device__ void each(unsigned from, unsigned end, Body&& body) const {
    for (unsigned base = from + threadIdx.x; base < end; base += kEach * kBucketThreads) {
      unsigned at[kEach];
#pragma unroll
      for (unsigned k = 0; k < kEach; ++k)
        if (base + k * kBucketThreads < end) at[k] = place(base + k * kBucketThreads);
#pragma unroll
      for (unsigned k = 0; k < kEach; ++k)
        if (base + k * kBucketThreads < end) body(at[k], base + k * kBucketThreads);
    }
  }
  // The same with the updates.
  template <class Body>
  __device__ void each_value(unsigned from, unsigned end, Body&& body) const {
#if ANYDML_TYPE != 0
    if (moved) {
      constexpr unsigned kStep = kTogether * kBucketThreads;
      for (unsigned base = from + threadIdx.x * kTogether; base < end; base += 2 * kStep) {
        Places8 at[2];
        Values8 own[2];
#pragma unroll
        for (unsigned k = 0; k < 2; ++k)
          if (base + k * kStep < end) {
            at[k] = places()[(base + k * kStep) / kTogether];
            own[k] = values()[(base + k * kStep) / kTogether];
          }
#pragma unroll
        for (unsigned k = 0; k < 2; ++k)
#pragma unroll
          for (unsigned n = 0; n < kTogether; ++n)
            if (base + k * kStep + n < end) body(at[k].at(n), own[k].of[n]);
      }
      return;
    }
#endif
    for (unsigned base = from + threadIdx.x; base < end; base += kEach * kBucketThreads) {
      unsigned at[kEach];
      Element own[kEach];
#pragma unroll
      for (unsigned k = 0; k < kEach; ++k) {
        const unsigned i = base + k * kBucketThreads;
        if (i >= end) continue;
        at[k] = place(i);
        own[k] = value(i);
      }
#pragma unroll
      for (unsigned k = 0; k < kEach; ++k)
        if (base + k * kBucketThreads < end) body(at[k], own[k]);
    }
  }
};

#if ANYDML_TYPE == 0
__device__ inline unsigned* winner_of(Word* words, unsigned place) {
  return reinterpret_cast<unsigned*>(words + place);
}
__device__ inline Word word_of(Element value) {
#if ANYDML_SIZE == 8
  return value;
#else
  return static_cast<Word>(value);
#endif
}
__device__ inline Element element_of(Word word) {
#if ANYDML_SIZE == 8
  return word;
#else
  return static_cast<Element>(word);
#endif
}
#endif

struct Bucket {
  Element* to;
  const Element* from;
  unsigned size;

  __device__ Bucket(char* output, const char* input, const Partition& part, unsigned number) {
    const unsigned first = number << part.bucket_log, left = part.slices - first;
    size = left < 1u << part.bucket_log ? left : 1u << part.bucket_log;
    from = reinterpret_cast<const Element*>(input) + first;
    to = reinterpret_cast<Element*>(output) + first;
  }
  // Calls body with each element of this thread, and its number among them.
  template <class Body>
  __device__ void each(Body&& body) const {
#pragma unroll
    for (unsigned k = 0; k < kOwn; ++k)
      if (threadIdx.x + k * kBucketThreads < size) body(threadIdx.x + k * kBucketThreads, k);
  }
  // Writes what body gives for each element of this thread, some of which it gives at once.
  template <class Body>
  __device__ void each_batch(Body&& body) const {
#pragma unroll
    for (unsigned base = 0; base < kOwn; base += 16) {
      Element own[16];
#pragma unroll
      for (unsigned k = 0; k < 16; ++k) {
        const unsigned e = threadIdx.x + (base + k) * kBucketThreads;
        if (e < size) own[k] = body(e);
      }
#pragma unroll
      for (unsigned k = 0; k < 16; ++k) {
        const unsigned e = threadIdx.x + (base + k) * kBucketThreads;
        if (e < size) to[e] = own[k];
      }
    }
  }
#if ANYDML_TYPE == 0
  // Which elements of this thread an update names, a bit each.
  __device__ unsigned named(Word* words) const {
    unsigned bits = 0;
    each([&](unsigned e, unsigned k) {
      if (*winner_of(words, e) != 0) bits |= 1u << k;
    });
    return bits;
  }
  __device__ void write(const Word* words, unsigned named) const {
    if (__all_sync(kAllLanes, named == ~0u >> (32 - kOwn))) {
      each([&](unsigned e, unsigned) { to[e] = element_of(words[e]); });
      return;
    }
    // All of some are read before the first is written.
    constexpr unsigned kTurn = 8;
#pragma unroll
    for (unsigned base = 0; base < kOwn; base += kTurn) {
      Element own[kTurn];
#pragma unroll
      for (unsigned k = 0; k < kTurn; ++k) {
        const unsigned e = threadIdx.x + (base + k) * kBucketThreads;
        if (e >= size) continue;
        if (named >> (base + k) & 1)
          own[k] = element_of(words[e]);
        else
          own[k] = from[e];
      }
#pragma unroll
      for (unsigned k = 0; k < kTurn; ++k) {
        const unsigned e = threadIdx.x + (base + k) * kBucketThreads;
        if (e < size) to[e] = own[k];
      }
    }
  }
#endif
};

// What several blocks know of a crowded bucket.
__device__ inline Mapped* map_of(const Partition& part, unsigned slot) {
  return reinterpret_cast<Mapped*>(static_cast<char*>(part.maps) +
                                   static_cast<Offset>(slot) * kBucketBytes);
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
__device__ inline void clear_winners(Word* words, unsigned size) {
  // A line at a time; the shared memory of a block is whole lines.
  uint4* const lines = reinterpret_cast<uint4*>(words);
  const unsigned count = (size * static_cast<unsigned>(sizeof(Word)) + 15) / 16;
  for (unsigned i = threadIdx.x; i < count; i += kBucketThreads) lines[i] = {0, 0, 0, 0};
}

// Brings the input's elements into the second-level cache, where many of them will be asked for.
__device__ inline void prefetch_input(const Bucket& bucket, unsigned updates) {
  constexpr unsigned kLine = 128 / sizeof(Element);
  if (updates >= bucket.size) return;
  for (unsigned e = threadIdx.x * kLine; e < bucket.size; e += kBucketThreads * kLine)
    prefetch(bucket.from + e);
}

__device__ inline void copy_elements(const Bucket& bucket) {
  if (bucket.from != bucket.to) bucket.each_batch([&](unsigned e) { return bucket.from[e]; });
}

// Of keys in order, no two of one element: the elements, and then the updates over those.
__device__ void move_strict(const Bucket& bucket, const Updates& updates) {
  if (updates.count != bucket.size) copy_elements(bucket);
  __syncthreads();
  updates.each_value(0, updates.count, [&](unsigned at, Element value) { bucket.to[at] = value; });
}

// Of few updates the same, of those that are the last of their element.
__device__ void move_few(const Bucket& bucket, const Updates& updates, Word* words) {
  const unsigned count = updates.count;
  copy_elements(bucket);
  clear_winners(words, bucket.size);
  __syncthreads();
  updates.each(0, count, [&](unsigned at, unsigned i) { atomicMax(winner_of(words, at), i + 1); });
  __syncthreads();
  updates.each(0, count, [&](unsigned at, unsigned i) {
    if (*winner_of(words, at) == i + 1) bucket.to[at] = updates.value(i);
  });
}

// Of many, every one is looked at twice: for its number, and for the element that it is.
__device__ void move_many(const Bucket& bucket, const Updates& updates, Word* words) {
  const unsigned count = updates.count;
  clear_winners(words, bucket.size);
  __syncthreads();
  updates.each(0, count, [&](unsigned at, unsigned i) { atomicMax(winner_of(words, at), i + 1); });
  __syncthreads();
  unsigned long long wins = 0, turn = 1;  // a bit an update of this thread
  updates.each(0, count, [&](unsigned at, unsigned i) {
    if (*winner_of(words, at) == i + 1) wins |= turn;
    turn <<= 1;
  });
  const unsigned named = bucket.named(words);
  __syncthreads();
  updates.each_value(0, count, [&](unsigned at, Element value) {
    if (wins & 1) words[at] = word_of(value);
    wins >>= 1;
  });
  __syncthreads();
  bucket.write(words, named);
}

// As many as registers keep, moved to the bucket: the same, with places read once and eight updates
// of a thread at a time.
constexpr unsigned kKept = 5;  // times eight
constexpr unsigned kMostKept = kKept * kTogether * kBucketThreads;
__device__ void move_kept(const Bucket& bucket, const Updates& updates, Word* words) {
  const unsigned count = updates.count;
  const Places8* const all_places = updates.places();
  const Values8* const all_values = updates.values();
  Places8 places[kKept];
#pragma unroll
  for (unsigned j = 0; j < kKept; ++j) {
    const unsigned n = threadIdx.x + j * kBucketThreads;
    if (n * kTogether < count) {
      places[j] = all_places[n];
      prefetch(all_values + n);
    }
  }
  prefetch_input(bucket, count);
  clear_winners(words, bucket.size);
  __syncthreads();
#pragma unroll
  for (unsigned j = 0; j < kKept; ++j) {
    const unsigned first = (threadIdx.x + j * kBucketThreads) * kTogether;
#pragma unroll
    for (unsigned k = 0; k < kTogether; ++k)
      if (first + k < count) atomicMax(winner_of(words, places[j].at(k)), first + k + 1);
  }
  __syncthreads();
  unsigned long long wins = 0;
#pragma unroll
  for (unsigned j = 0; j < kKept; ++j) {
    const unsigned first = (threadIdx.x + j * kBucketThreads) * kTogether;
#pragma unroll
    for (unsigned k = 0; k < kTogether; ++k)
      if (first + k < count && *winner_of(words, places[j].at(k)) == first + k + 1)
        wins |= 1ull << (j * kTogether + k);
  }
  const unsigned named = bucket.named(words);
  __syncthreads();
#pragma unroll
  for (unsigned j = 0; j < kKept; ++j) {
    const unsigned n = threadIdx.x + j * kBucketThreads;
    if (n * kTogether >= count) continue;
    const Values8 values = all_values[n];
#pragma unroll
    for (unsigned k = 0; k < kTogether; ++k)
      if (wins >> (j * kTogether + k) & 1) words[places[j].at(k)] = word_of(values.of[k]);
  }
  __syncthreads();
  bucket.write(words, named);
}

__device__ void move_all(const Bucket& bucket, const Updates& updates, Word* words) {
  if (updates.strict)
    move_strict(bucket, updates);
  else if (updates.count < bucket.size / (updates.moved ? 8 : 2))
    move_few(bucket, updates, words);
  else if (updates.moved && updates.count <= kMostKept)
    move_kept(bucket, updates, words);
  else
    move_many(bucket, updates, words);
}

#else
// Many updates of one element are put together by the warp first.
template <Combine kCombine>
__device__ inline void take_together(Word* words, unsigned at, Element value) {
  const unsigned here = __activemask();
  if (here != kAllLanes || !__all_sync(kAllLanes, at == __shfl_sync(kAllLanes, at, 0)))
    return take<kCombine>(words + at, value);
  Widened<Element> all = static_cast<Widened<Element> >(value);
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    all = combined<kCombine>(all, __shfl_xor_sync(kAllLanes, all, step));
  if ((threadIdx.x & 31) == 0) take<kCombine>(words + at, all);
}

template <Combine kCombine>
__device__ void combine_all(const Bucket& bucket, const Updates& updates, Word* words) {
  bucket.each([&](unsigned e, unsigned) { words[e] = static_cast<Word>(bucket.from[e]); });
  __syncthreads();
  updates.each_value(0, updates.count, [&](unsigned at, Element value) {
    take_together<kCombine>(words, at, value);
  });
  __syncthreads();
  bucket.each([&](unsigned e, unsigned) { bucket.to[e] = static_cast<Element>(words[e]); });
}
#endif

// A piece of a crowded bucket, into the words of this block and then into the bucket's map.
#if ANYDML_TYPE != 0
template <Combine kCombine>
#endif
__device__ void add_piece(const Bucket& bucket, const Updates& updates, unsigned first, Word* words,
                          Mapped* map) {
  const unsigned end = updates.count - first < kCrowd ? updates.count : first + kCrowd;
#if ANYDML_TYPE == 0
  bucket.each([&](unsigned e, unsigned) { *winner_of(words, e) = 0; });
  __syncthreads();
  updates.each(first, end,
               [&](unsigned at, unsigned i) { atomicMax(winner_of(words, at), i + 1); });
  __syncthreads();
  bucket.each([&](unsigned e, unsigned) {
    const unsigned winner = *winner_of(words, e);
    if (winner != 0) atomicMax(map + e, winner);
  });
#else
  bucket.each([&](unsigned e, unsigned) { words[e] = neutral<kCombine, Element>(); });
  __syncthreads();
  updates.each_value(
      first, end, [&](unsigned at, Element value) { take_together<kCombine>(words, at, value); });
  __syncthreads();
  bucket.each([&](unsigned e, unsigned) {
    if (words[e] != neutral<kCombine, Element>())
      take<kCombine>(map + e, static_cast<Widened<Element> >(words[e]));
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
  Word* const words = reinterpret_cast<Word*>(memory);
  const Bucket bucket(output, input, part, blockIdx.x);
  const Updates updates(part, changes, tuples, blockIdx.x);
  if (updates.count == 0) {
    if (input != output) bucket.each_batch([&](unsigned e) { return bucket.from[e]; });
  } else if (updates.count > kCrowd) {
    Mapped* const map = map_of(part, slot_of(part, blockIdx.x));
#if ANYDML_TYPE == 0
    bucket.each([&](unsigned e, unsigned) { map[e] = 0; });
#else
    bucket.each([&](unsigned e, unsigned) { map[e] = static_cast<Mapped>(bucket.from[e]); });
#endif
  } else {
#if ANYDML_TYPE == 0
    move_all(bucket, updates, words);
#else
    with_reduction(reduction, [&](auto constant) {
      combine_all<decltype(constant)::value>(bucket, updates, words);
    });
#endif
  }
}

// Crowded buckets, a block a piece; the last one of a bucket writes it.
extern "C" __global__ void __launch_bounds__(kBucketThreads, 1)
    scatter_crowds(char* output, const char* input, const char* changes,
                   const __grid_constant__ Places tuples, const __grid_constant__ Partition part,
                   int reduction, const __grid_constant__ BadIndexReport report) {
  extern __shared__ uint4 memory[];
  __shared__ bool last;
  if (is_done(part) || bad_index_found(report)) return;
  Word* const words = reinterpret_cast<Word*>(memory);
  const unsigned pieces = part.state->pieces;
  for (unsigned i = blockIdx.x; i < pieces; i += gridDim.x) {
    const PartPiece piece = part.pieces[i];
    const Bucket bucket(output, input, part, piece.bucket);
    const Updates updates(part, changes, tuples, piece.bucket);
    Mapped* const map = map_of(part, piece.slot);
#if ANYDML_TYPE == 0
    add_piece(bucket, updates, piece.first, words, map);
#else
    with_reduction(reduction, [&](auto constant) {
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
      bucket.each([&](unsigned e, unsigned) {
        const Mapped found = known[e];
#if ANYDML_TYPE == 0
        if (found != 0)
          bucket.to[e] = updates.value(found - 1);
        else if (input != output)
          bucket.to[e] = bucket.from[e];
#else
        bucket.to[e] = static_cast<Element>(found);
#endif
      });
    }
    __syncthreads();
  }
}

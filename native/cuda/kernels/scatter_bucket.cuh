// A bucket and its updates, for the kernels of scatter_buckets.cu: elements of type ANYDML_TYPE, or
// of ANYDML_SIZE bytes that are only moved (ANYDML_TYPE 0).
#pragma once

#include "scatter_device.cuh"
#include "scatter_words.cuh"

namespace {

using namespace anydml::cuda;

#if ANYDML_TYPE == 0
using Element = Unit<ANYDML_SIZE>::Type;
using Cell = Unit<(ANYDML_SIZE <= 4 ? 4 : 8)>::Type;
using Mapped = unsigned;  // of what several blocks find of an element
#else
using Element = Number<ANYDML_TYPE>::Type;
using Cell = Word<Element>;
using Mapped = WordOf<Element, kIsAnyFloat<Element> || sizeof(Element) == 8>::Bits;
#endif
constexpr unsigned kOwn = kBucketBytes / sizeof(Cell) / kBucketThreads;  // elements of a thread
constexpr unsigned kUpdatesPerBatch = 8;                                 // at a time

// The unit of a thread's loads.
struct alignas(16) Places8 {
  unsigned pairs[kUpdatesPerRead / 2];
  __device__ unsigned at(unsigned k) const {
    return k % 2 == 0 ? pairs[k / 2] & 0xFFFFu : pairs[k / 2] >> 16;
  }
};
struct alignas(sizeof(Element) == 1 ? 8 : 16) Values8 {
  Element of[kUpdatesPerRead];
};

// A range of a bucket's updates.
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
    begin = moved                  ? of.bucket_offsets[bucket]
            : (seen & kFalls) != 0 ? of.count - first - count
                                   : first;
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
  __device__ void for_each(unsigned from, unsigned end, Body&& body) const {
    for (unsigned base = from + threadIdx.x; base < end;
         base += kUpdatesPerBatch * kBucketThreads) {
      unsigned at[kUpdatesPerBatch];
#pragma unroll
      for (unsigned k = 0; k < kUpdatesPerBatch; ++k)
        if (base + k * kBucketThreads < end) at[k] = place(base + k * kBucketThreads);
#pragma unroll
      for (unsigned k = 0; k < kUpdatesPerBatch; ++k)
        if (base + k * kBucketThreads < end) body(at[k], base + k * kBucketThreads);
    }
  }
  // The same, with the value before the number.
  template <class Body>
  __device__ void for_each_value(unsigned from, unsigned end, Body&& body) const {
#if ANYDML_TYPE != 0
    if (moved) {
      constexpr unsigned kStep = kUpdatesPerRead * kBucketThreads;
      for (unsigned base = from + threadIdx.x * kUpdatesPerRead; base < end; base += 2 * kStep) {
        Places8 at[2];
        Values8 own[2];
#pragma unroll
        for (unsigned k = 0; k < 2; ++k)
          if (base + k * kStep < end) {
            at[k] = places()[(base + k * kStep) / kUpdatesPerRead];
            own[k] = values()[(base + k * kStep) / kUpdatesPerRead];
          }
#pragma unroll
        for (unsigned k = 0; k < 2; ++k)
#pragma unroll
          for (unsigned n = 0; n < kUpdatesPerRead; ++n)
            if (base + k * kStep + n < end) body(at[k].at(n), own[k].of[n], base + k * kStep + n);
      }
      return;
    }
#endif
    for (unsigned base = from + threadIdx.x; base < end;
         base += kUpdatesPerBatch * kBucketThreads) {
      unsigned at[kUpdatesPerBatch];
      Element own[kUpdatesPerBatch];
#pragma unroll
      for (unsigned k = 0; k < kUpdatesPerBatch; ++k) {
        const unsigned i = base + k * kBucketThreads;
        if (i >= end) continue;
        at[k] = place(i);
        own[k] = value(i);
      }
#pragma unroll
      for (unsigned k = 0; k < kUpdatesPerBatch; ++k)
        if (base + k * kBucketThreads < end) body(at[k], own[k], base + k * kBucketThreads);
    }
  }
};

#if ANYDML_TYPE == 0
__device__ inline unsigned* winner_of(Cell* words, unsigned place) {
  return reinterpret_cast<unsigned*>(words + place);
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
  // Calls body with each element of this thread and its index among them.
  template <class Body>
  __device__ void for_each(Body&& body) const {
#pragma unroll
    for (unsigned k = 0; k < kOwn; ++k)
      if (threadIdx.x + k * kBucketThreads < size) body(threadIdx.x + k * kBucketThreads, k);
  }
  // Writes the values that body returns for each element of this thread, in batches.
  template <class Body>
  __device__ void write_batches(Body&& body) const {
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
  // The elements of this thread that an update names, as a bit mask.
  __device__ unsigned find_updated(Cell* words) const {
    unsigned bits = 0;
    for_each([&](unsigned e, unsigned k) {
      if (*winner_of(words, e) != 0) bits |= 1u << k;
    });
    return bits;
  }
  __device__ void write(const Cell* words, unsigned updated) const {
    if (__all_sync(kAllLanes, updated == ~0u >> (32 - kOwn))) {
      for_each([&](unsigned e, unsigned) { to[e] = static_cast<Element>(words[e]); });
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
        if (updated >> (base + k) & 1)
          own[k] = static_cast<Element>(words[e]);
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

}  // namespace

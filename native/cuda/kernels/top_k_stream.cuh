// What blocks that read long rows share: the span that a block reads, its sample, one reading of it
// that collects what reaches a bound, and an exact bound by counting digits.
#pragma once

#include "top_k_block.cuh"
#include "top_k_gate.cuh"

namespace anydml::top_k {
namespace {

constexpr bool kSmallest = ANYDML_smallest != 0;  // of floats
constexpr int kUnroll = ANYDML_unroll;
constexpr int kBlocks = ANYDML_blocks;               // of a multiprocessor
constexpr int kSampled = kVector < 4 ? kVector : 4;  // of one vector a thread

// The segment of a row that the block works on.
struct Span {
  const Raw* first;
  const unsigned* places;      // where the elements are, if not in the order of their places
  unsigned base, place_limit;  // the place of the first element; places are below `place_limit`
  unsigned n, head, vectors;   // elements; before the first whole 16 bytes; these
  unsigned salt;               // of what is sampled
  Raw flip;

  __device__ Item item(Raw bits, unsigned at) const {
    return Candidate::make(key_of(bits, flip), ~(places != nullptr ? places[at] : base + at));
  }
};

// In shared memory: as local variables they would go to local memory, because functions are called.
__shared__ Span span;
__shared__ unsigned histogram[256];  // of digits
__shared__ Item warp_bounds[kWarps];

template <int Width>
__device__ inline Raw element(const uint4& x, int i) {
  if constexpr (Width == 8) {
    const unsigned low = i == 0 ? x.x : x.z, high = i == 0 ? x.y : x.w;
    return static_cast<Raw>(low | static_cast<unsigned long long>(high) << 32);
  } else {
    constexpr int kElementsPerWord = 4 / Width;
    const int word = i / kElementsPerWord;
    const unsigned bits = word == 0 ? x.x : word == 1 ? x.y : word == 2 ? x.z : x.w;
    return static_cast<Raw>(bits >> (8 * Width * (i % kElementsPerWord)));
  }
}

__device__ inline uint4 vector_at(unsigned at) {
  return reinterpret_cast<const uint4*>(span.first + span.head)[at];
}

__device__ inline unsigned hash(unsigned x) {
  x ^= x >> 16;
  x *= 0x7FEB352Du;
  x ^= x >> 15;
  x *= 0x846CA68Bu;
  return x ^ x >> 16;
}

// One vector of the span for each thread, of which some elements are taken; the greatest of them.
__device__ inline Item take_sample(Item (&own)[kSampled]) {
  // Each thread has a stratum. Neighbouring threads sample far from each other, so that all groups
  // are alike in ordered rows.
  const unsigned stratum = (threadIdx.x & 31) * kWarps + threadIdx.x / 32;
  const unsigned long long all = span.vectors;
  const unsigned begin = static_cast<unsigned>(stratum * all / kThreads);
  const unsigned size = static_cast<unsigned>((stratum + 1) * all / kThreads) - begin;
  const unsigned at = begin + __umulhi(hash(stratum + span.salt), size);
  uint4 x{};
  if (size > 0) x = vector_at(at);
  Item greatest = Candidate::make(0, 0);
#pragma unroll
  for (int i = 0; i < kSampled; ++i) {
    const unsigned position = span.head + at * kVector + static_cast<unsigned>(i);
    own[i] = size > 0 ? span.item(element<W>(x, i), position) : Candidate::make(0, 0);
    if (Candidate::above(own[i], greatest)) greatest = own[i];
  }
  return greatest;
}

// A bit for each element that a thread reads at a time.
template <bool Many>
struct MaskOf {
  using Type = unsigned;
};
template <>
struct MaskOf<true> {
  using Type = unsigned long long;
};
using Mask = MaskOf<(kUnroll * kVector > 32)>::Type;

// Puts all that reaches the bound into the list, up to its capacity. Up to the bound's place
// equal keys do, behind it greater ones only.
template <bool Smallest>
__device__ void collect(const Item& bound, int capacity) {
  using Filter = Gate<kFloat, Smallest>;
  const Span here = span;
  const Key key = Candidate::key(bound);
  const long long last = here.places != nullptr
                             ? static_cast<long long>(~0u)
                             : static_cast<long long>(~Candidate::back(bound)) - here.base;
  constexpr Key max_key = static_cast<Key>(kMaxRaw);
  const Filter upto(key, here.flip), behind(key == max_key ? max_key : key + 1, here.flip);
  const unsigned rest = here.n - here.head - here.vectors * kVector;
  const auto put = [&](const Item& item, unsigned slot) {
    if (slot < static_cast<unsigned>(capacity)) list()[slot] = item;
  };
  for (unsigned i = threadIdx.x; i < here.head + rest; i += kThreads) {
    const unsigned position = i < here.head ? i : here.n - rest + (i - here.head);
    const Item item = here.item(here.first[position], position);
    if (!Candidate::above(bound, item)) put(item, slots_of(1));
  }
  unsigned vectors = here.vectors;
  if (key == max_key) {  // nothing is greater
    const long long reach = last < here.head ? 0 : (last - here.head) / kVector + 1;
    vectors = reach < vectors ? static_cast<unsigned>(reach) : vectors;
  }
  const uint4* const first = reinterpret_cast<const uint4*>(here.first + here.head);
  const int volatile* const found = &state.count;
  for (unsigned tile = 0; tile < vectors; tile += kUnroll * kThreads) {
    const unsigned at = tile + threadIdx.x;
    Filter filter = upto;
    const unsigned begin = here.head + tile * kVector;
    if (begin > last) filter.take(behind);
    // Whether some elements pass that do not reach the bound: equals about its place, and all where
    // keys end or where lists are in no order.
    const bool checked = here.places != nullptr || key == max_key ||
                         (begin <= last && last - begin < kUnroll * kThreads * kVector);
    uint4 x[kUnroll];
    unsigned reached = 0;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (at + u * kThreads < vectors) x[u] = first[at + u * kThreads];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (filter.any(x[u]) && at + u * kThreads < vectors) reached |= 1u << u;
    if (reached == 0) continue;
    Mask taken = 0;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if ((reached >> u & 1) == 0) continue;
      unsigned own = 0;
      if constexpr (W == 8) {
        own = (filter.one(x[u].x, x[u].y) ? 1 : 0) | (filter.one(x[u].z, x[u].w) ? 2 : 0);
      } else {
        constexpr int kElementsPerWord = kVector / 4;
        own = filter.lanes(x[u].x) | filter.lanes(x[u].y) << kElementsPerWord |
              filter.lanes(x[u].z) << 2 * kElementsPerWord |
              filter.lanes(x[u].w) << 3 * kElementsPerWord;
      }
      taken |= static_cast<Mask>(own) << (u * kVector);
    }
    // Read again: it is in a near cache, and registers cannot be indexed.
    const auto item_of = [&](Mask bits) {
      const int bit = __ffsll(static_cast<long long>(bits)) - 1;
      const unsigned position =
          here.head + (at + bit / kVector * kThreads) * kVector + bit % kVector;
      return here.item(here.first[position], position);
    };
    if (checked) {
#pragma unroll 1
      for (Mask bits = taken; bits != 0; bits &= bits - 1)
        if (Candidate::above(bound, item_of(bits))) taken ^= bits & (~bits + 1);
      if (taken == 0) continue;
    }
    unsigned slot = slots_of(__popcll(taken));
#pragma unroll 1
    for (; taken != 0; taken &= taken - 1) put(item_of(taken), slot++);
    if (*found > capacity) return;
  }
}

// Counts a digit; threads of a warp with the same digit add once.
__device__ inline void tally(unsigned digit) {
  const unsigned same = __match_any_sync(__activemask(), digit);
  if (__ffs(static_cast<int>(same)) - 1 == lane_of()) atomicAdd(&histogram[digit], __popc(same));
}

// The digit, from the top or from the bottom, at which `need` are reached; how many are left to be
// found in it, and how many it has.
struct Digit {
  unsigned digit, need, has;
};
__device__ inline Digit digit_of(unsigned need, bool from_top) {
  for (unsigned i = 0; i < 255; ++i) {
    const unsigned digit = from_top ? 255 - i : i, has = histogram[digit];
    if (has >= need) return {digit, need, has};
    need -= has;
  }
  const unsigned digit = from_top ? 0 : 255;
  return {digit, need, histogram[digit]};
}

// The span's elements by a digit of their key, of those that have the digits above.
__device__ inline void tally_keys(Key key, int shift) {
  for (unsigned i = threadIdx.x; i < span.n; i += kThreads) {
    const Key other = key_of(span.first[i], span.flip);
    if ((other >> shift >> 8) == (key >> shift >> 8))
      tally(static_cast<unsigned>(other >> shift) & 255);
  }
}

// Those of one key by a digit of their place.
__device__ inline void tally_places(Key key, unsigned place, int shift) {
  for (unsigned i = threadIdx.x; i < span.n; i += kThreads) {
    const Item item = span.item(span.first[i], i);
    const unsigned its = ~Candidate::back(item);
    if (Candidate::key(item) == key && (its >> shift >> 8) == (place >> shift >> 8))
      tally(its >> shift & 255);
  }
}

}  // namespace
}  // namespace anydml::top_k

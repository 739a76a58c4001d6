// TOP_K of long rows, a block a row or a segment of one. A bound is found from a sample; one
// reading of the row collects what reaches it; what was collected is cut to k and put in order.
//
// The bound is a key and a place, as all items differ by place: ties change nothing about how many
// reach it. Sampled places are scattered by a hash, so that the order of the input changes nothing
// either. Where the sample misled, a second bound is made of what was collected; a third is exact,
// by counting digits: a bounded number of readings for every input.
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
  const unsigned* places;     // where the elements are, if not in the order of their places
  unsigned most;              // places are below it
  unsigned n, head, vectors;  // elements; before the first whole 16 bytes; these
  unsigned salt;              // of what is sampled
  Raw flip;

  __device__ Item item(Raw bits, unsigned at) const {
    return Candidate::make(key_of(bits, flip), ~(places != nullptr ? places[at] : at));
  }
};

// In shared memory, as functions that are called would have it in local memory.
__shared__ Span span;
__shared__ unsigned histogram[256];  // of digits
__shared__ Item warp_least[kWarps];

template <int Width>
__device__ inline Raw element(const uint4& x, int i) {
  if constexpr (Width == 8) {
    const unsigned low = i == 0 ? x.x : x.z, high = i == 0 ? x.y : x.w;
    return static_cast<Raw>(low | static_cast<unsigned long long>(high) << 32);
  } else {
    constexpr int each = 4 / Width;
    const int word = i / each;
    const unsigned bits = word == 0 ? x.x : word == 1 ? x.y : word == 2 ? x.z : x.w;
    return static_cast<Raw>(bits >> (8 * Width * (i % each)));
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

// The bound that about `low` of the sample reach. What of the sample is put into the list, and
// looked at again, is what reaches the least of the maxima of groups of threads: `low` groups at
// least, each of which has one.
__device__ __noinline__ Item sampled(int low, int high) {
  if (threadIdx.x == 0) state.count = 0;
  // Each thread has a stratum. Neighbouring threads sample far from each other, so that all groups
  // are alike in ordered rows.
  const unsigned stratum = (threadIdx.x & 31) * kWarps + threadIdx.x / 32;
  const unsigned long long all = span.vectors;
  const unsigned begin = static_cast<unsigned>(stratum * all / kThreads);
  const unsigned size = static_cast<unsigned>((stratum + 1) * all / kThreads) - begin;
  const unsigned at = begin + __umulhi(hash(stratum + span.salt), size);
  uint4 x{};
  if (size > 0) x = vector_at(at);
  Item own[kSampled], most = Candidate::make(0, 0);
#pragma unroll
  for (int i = 0; i < kSampled; ++i) {
    const unsigned position = span.head + at * kVector + static_cast<unsigned>(i);
    own[i] = size > 0 ? span.item(element<W>(x, i), position) : Candidate::make(0, 0);
    if (Candidate::above(own[i], most)) most = own[i];
  }
  int group = low > kThreads / 2 ? 0 : 32;
  while (group > 1 && kThreads / group < low) group /= 2;
  Item least = Candidate::make(0, 0);
  if (group > 0) {
    least = most;
#pragma unroll 1
    for (int step = 1; step < 32; step *= 2) {
      const Item other = Candidate::from_lane(least, step);
      if (Candidate::above(other, least) == (step < group)) least = other;
    }
    if (lane_of() == 0) warp_least[threadIdx.x / 32] = least;
    __syncthreads();
    for (int i = 0; i < kWarps; ++i)
      if (Candidate::above(least, warp_least[i])) least = warp_least[i];
  } else {
    __syncthreads();
  }
  if (__any_sync(kAll, !Candidate::above(least, most))) {
#pragma unroll
    for (int i = 0; i < kSampled; ++i) {
      const bool taken = Candidate::back(own[i]) != 0 && !Candidate::above(least, own[i]);
      const unsigned slot = slot_of(taken);
      if (taken) list()[slot] = own[i];
    }
  }
  __syncthreads();
  const int count = state.count;
  if (count <= high) return count < low ? Candidate::make(0, 0) : least;
  return bound_of(count, low, high, span.most);
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

// Puts all that reaches the bound into the list, as long as there is room. Up to the bound's place
// equal keys do, behind it greater ones only.
template <bool Smallest>
__device__ void collect(const Item& bound, int capacity) {
  using Filter = Gate<kFloat, Smallest>;
  const Span here = span;
  const Key key = Candidate::key(bound);
  const unsigned last = here.places != nullptr ? ~0u : ~Candidate::back(bound);
  constexpr Key most = static_cast<Key>(kMostRaw);
  const Filter upto(key, here.flip), behind(key == most ? most : key + 1, here.flip);
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
  if (key == most) {  // nothing is greater
    const unsigned reach = last < here.head ? 0 : (last - here.head) / kVector + 1;
    vectors = reach < vectors ? reach : vectors;
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
    const bool checked = here.places != nullptr || key == most ||
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
        constexpr int each = kVector / 4;
        own = filter.lanes(x[u].x) | filter.lanes(x[u].y) << each |
              filter.lanes(x[u].z) << 2 * each | filter.lanes(x[u].w) << 3 * each;
      }
      taken |= static_cast<Mask>(own) << (u * kVector);
    }
    // Read once more: it is near, and registers cannot be indexed.
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

// One more for a digit; threads of a warp that have the same one add together.
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

template <class Each>
__device__ Digit digit_among(unsigned need, bool from_top, const Each& each) {
  for (unsigned i = threadIdx.x; i < 256; i += kThreads) histogram[i] = 0;
  __syncthreads();
  each();
  __syncthreads();
  const Digit found = digit_of(need, from_top);
  __syncthreads();
  return found;
}

// The bound that exactly k reach.
__device__ __noinline__ Item exact(int k) {
  Key key = 0;
  Digit found{0, static_cast<unsigned>(k), 0};
  for (int shift = kKeyBits - 8; shift >= 0; shift -= 8) {
    found = digit_among(found.need, true, [&] {
      for (unsigned i = threadIdx.x; i < span.n; i += kThreads) {
        const Key other = key_of(span.first[i], span.flip);
        if ((other >> shift >> 8) == (key >> shift >> 8))
          tally(static_cast<unsigned>(other >> shift) & 255);
      }
    });
    key |= static_cast<Key>(found.digit) << shift;
  }
  if (found.has <= found.need) return Candidate::make(key, 0);
  unsigned place = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    found = digit_among(found.need, false, [&] {
      for (unsigned i = threadIdx.x; i < span.n; i += kThreads) {
        const Item item = span.item(span.first[i], i);
        const unsigned its = ~Candidate::back(item);
        if (Candidate::key(item) == key && (its >> shift >> 8) == (place >> shift >> 8))
          tally(its >> shift & 255);
      }
    });
    place |= found.digit << shift;
  }
  return Candidate::make(key, ~place);
}

// Collects at least k items, at most as many as there is room for; says how many.
__device__ int candidates(int k, const Sampling& sampling) {
  if (sampling.low == 0) {
    for (unsigned i = threadIdx.x; i < span.n; i += kThreads)
      list()[i] = span.item(span.first[i], i);
    __syncthreads();
    return static_cast<int>(span.n);
  }
  int low = sampling.low, high = sampling.high, count = 0;
#pragma unroll 1
  for (int attempt = 0;; ++attempt) {
    Item bound = Candidate::make(0, 0);
    if (attempt == 1 && count > k)
      bound = bound_of(sampling.capacity, k, k + k / 8, span.most);
    else if (attempt < 2)
      bound = sampled(low, high);
    else
      bound = exact(k);
    __syncthreads();
    if (threadIdx.x == 0) state.count = 0;
    __syncthreads();
    collect<kSmallest>(bound, sampling.capacity);
    __syncthreads();
    count = state.count;
    if ((count >= k && count <= sampling.capacity) || attempt == 2) break;
    low = 3 * low + 8;
    high = low + low / 8;
    if (threadIdx.x == 0) span.salt ^= 0x5A5A5A5Au;
  }
  return count < sampling.capacity ? count : sampling.capacity;
}

}  // namespace
}  // namespace anydml::top_k

using namespace anydml::top_k;

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    top_k_long(const __grid_constant__ Rows rows, const __grid_constant__ Parts parts,
               const __grid_constant__ Sampling sampling) {
  const Raw flip = static_cast<Raw>(rows.flip);
  const int k = static_cast<int>(rows.k);
  const long long all = rows.rows * parts.segments;
  for (long long task = blockIdx.x; task < all; task += gridDim.x) {
    long long row = task, segment = 0;
    if (parts.segments > 1) {
      row = all >> 32 == 0 ? static_cast<unsigned>(task) / static_cast<unsigned>(parts.segments)
                           : task / parts.segments;
      segment = task - row * parts.segments;
    }
    const RowOffsets at = offsets_of(rows, row);
    const long long begin =
        segment * parts.length + (segment < parts.longer ? segment : parts.longer);
    const bool unordered = rows.places != nullptr && !rows.ordered;
    if (threadIdx.x == 0) {
      span.first = keys_of(rows, row, at) + begin;
      span.n = static_cast<unsigned>(parts.length + (segment < parts.longer ? 1 : 0));
      span.places =
          unordered ? static_cast<const unsigned*>(rows.places) + row * rows.n + begin : nullptr;
      span.most = unordered ? ~0u : span.n;
      const unsigned misaligned =
          static_cast<unsigned>(reinterpret_cast<unsigned long long>(span.first) & 15) / W;
      const unsigned head = misaligned == 0 ? 0 : kVector - misaligned;
      span.head = head < span.n ? head : span.n;
      span.vectors = (span.n - span.head) / kVector;
      span.salt = static_cast<unsigned>(task) * 7919u;
      span.flip = flip;
    }
    __syncthreads();
    const int count = candidates(k, sampling);
    const bool ordered = parts.keys == nullptr || parts.ordered;
    finish(count, k, ordered, span.most, [&](int r, const Item& item) {
      const Key key = Candidate::key(item);
      long long place = ~Candidate::back(item);
      if (!unordered) place = place_of(rows, row, begin + place);
      if (parts.keys == nullptr) return write_result(rows, at, r, key, place, flip);
      const long long to = task * rows.k + r;
      static_cast<Raw*>(parts.keys)[to] = static_cast<Raw>(key);
      if (parts.wide_places)
        static_cast<long long*>(parts.places)[to] = place;
      else
        static_cast<unsigned*>(parts.places)[to] = static_cast<unsigned>(place);
    });
  }
}

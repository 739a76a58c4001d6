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
constexpr int kUnroll = 4;
constexpr int kEach = ANYDML_each;                   // candidates of a thread, at most
constexpr int kSampled = kVector < 4 ? kVector : 4;  // of each of two vectors a thread

struct Span {
  const Raw* first;
  const unsigned* places;     // where the elements are, if not in the order of their places
  unsigned most;              // places are below it
  unsigned n, head, vectors;  // elements; before the first whole 16 bytes; these

  __device__ Item item(Raw bits, unsigned at, Raw flip) const {
    return Candidate::make(key_of(bits, flip), ~(places != nullptr ? places[at] : at));
  }
};

struct State {
  BlockState block;
  Item bound;
};

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

__device__ inline uint4 vector_at(const Span& span, unsigned at) {
  return reinterpret_cast<const uint4*>(span.first + span.head)[at];
}

__device__ inline unsigned hash(unsigned x) {
  x ^= x >> 16;
  x *= 0x7FEB352Du;
  x ^= x >> 15;
  x *= 0x846CA68Bu;
  return x ^ x >> 16;
}

// The bound that about `low` of the sample reach.
__device__ __noinline__ Item sampled(const Span& span, int low, int high, Raw flip, unsigned salt,
                                     State& state, int& turn) {
  Item own[2 * kSampled];
  constexpr unsigned strata = 2 * kThreads;
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const unsigned stratum = static_cast<unsigned>(j) * kThreads + threadIdx.x;
    const unsigned long long all = span.vectors;
    const unsigned begin = static_cast<unsigned>(stratum * all / strata);
    const unsigned size = static_cast<unsigned>((stratum + 1) * all / strata) - begin;
    const unsigned at = begin + __umulhi(hash(stratum + salt), size);
    uint4 x{};
    if (size > 0) x = vector_at(span, at);
#pragma unroll
    for (int i = 0; i < kSampled; ++i) {
      const unsigned position = span.head + at * kVector + static_cast<unsigned>(i);
      own[j * kSampled + i] =
          size > 0 ? span.item(element<W>(x, i), position, flip) : Candidate::make(0, 0);
    }
  }
  return bound_of(own, low, high, 0, kKeyBits - 1, span.most, state.block, turn);
}

struct Collector {
  Item* items;
  int* count;
  int capacity;
  Item bound;
  Raw flip;

  __device__ void take(const Span& span, Raw bits, unsigned position) const {
    const Item item = span.item(bits, position, flip);
    if (Candidate::above(bound, item)) return;
    const unsigned slot = slot_of(*count);
    if (slot < static_cast<unsigned>(capacity)) items[slot] = item;
  }
};

// Gives the collector all that may reach its bound. Up to the bound's place equal keys do, behind
// it greater ones only.
template <bool Smallest>
__device__ void collect(const Span& span, const Collector& collector) {
  using Filter = Gate<kFloat, Smallest>;
  const Key key = Candidate::key(collector.bound);
  const unsigned last = span.places != nullptr ? ~0u : ~Candidate::back(collector.bound);
  constexpr Key most = static_cast<Key>(kMostRaw);
  const Filter upto(key, collector.flip), behind(key == most ? most : key + 1, collector.flip);
  const unsigned rest = span.n - span.head - span.vectors * kVector;
  for (unsigned i = threadIdx.x; i < span.head + rest; i += kThreads) {
    const unsigned position = i < span.head ? i : span.n - rest + (i - span.head);
    collector.take(span, span.first[position], position);
  }
  unsigned vectors = span.vectors;
  if (key == most) {  // nothing is greater
    const unsigned reach = last < span.head ? 0 : (last - span.head) / kVector + 1;
    vectors = reach < vectors ? reach : vectors;
  }
  const auto test = [&](const uint4& x, unsigned at) {
    const unsigned position = span.head + at * kVector;
    Filter filter = upto;
    if (position > last) filter.take(behind);
    if (!filter.any(x)) return;
    if constexpr (W == 8) {
      if (filter.one(x.x, x.y)) collector.take(span, element<W>(x, 0), position);
      if (filter.one(x.z, x.w)) collector.take(span, element<W>(x, 1), position + 1);
    } else {
      constexpr int each = W == 8 ? 1 : 4 / W;
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        const unsigned bits = word == 0 ? x.x : word == 1 ? x.y : word == 2 ? x.z : x.w;
        if (!filter.one(bits)) continue;
#pragma unroll
        for (int i = 0; i < each; ++i)
          collector.take(span, element<W>(x, word * each + i),
                         position + static_cast<unsigned>(word * each + i));
      }
    }
  };
  const int volatile* const found = collector.count;
  for (unsigned at = threadIdx.x; at < vectors; at += kUnroll * kThreads) {
    uint4 x[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (at + u * kThreads < vectors) x[u] = vector_at(span, at + u * kThreads);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (at + u * kThreads < vectors) test(x[u], at + u * kThreads);
    if (*found > collector.capacity) return;
  }
}

// One more for a digit; threads of a warp that have the same one add together.
__device__ inline void tally(unsigned* histogram, unsigned digit) {
  const unsigned same = __match_any_sync(__activemask(), digit);
  if (__ffs(static_cast<int>(same)) - 1 == lane_of()) atomicAdd(&histogram[digit], __popc(same));
}

// The digit, from the top or from the bottom, at which `need` are reached; how many are left to be
// found in it, and how many it has.
struct Digit {
  unsigned digit, need, has;
};
__device__ inline Digit digit_of(const BlockState& state, unsigned need, bool from_top) {
  for (unsigned i = 0; i < 255; ++i) {
    const unsigned digit = from_top ? 255 - i : i, has = state.histogram[digit];
    if (has >= need) return {digit, need, has};
    need -= has;
  }
  const unsigned digit = from_top ? 0 : 255;
  return {digit, need, state.histogram[digit]};
}

template <class Each>
__device__ Digit digit_among(BlockState& state, unsigned need, bool from_top, const Each& each) {
  for (unsigned i = threadIdx.x; i < 256; i += kThreads) state.histogram[i] = 0;
  __syncthreads();
  each();
  __syncthreads();
  const Digit found = digit_of(state, need, from_top);
  __syncthreads();
  return found;
}

// The bound that exactly k reach.
__device__ __noinline__ Item exact(const Span& span, int k, Raw flip, State& state) {
  Key key = 0;
  Digit found{0, static_cast<unsigned>(k), 0};
  for (int shift = kKeyBits - 8; shift >= 0; shift -= 8) {
    found = digit_among(state.block, found.need, true, [&] {
      for (unsigned i = threadIdx.x; i < span.n; i += kThreads) {
        const Key other = key_of(span.first[i], flip);
        if ((other >> shift >> 8) == (key >> shift >> 8))
          tally(state.block.histogram, static_cast<unsigned>(other >> shift) & 255);
      }
    });
    key |= static_cast<Key>(found.digit) << shift;
  }
  if (found.has <= found.need) return Candidate::make(key, 0);
  unsigned place = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    found = digit_among(state.block, found.need, false, [&] {
      for (unsigned i = threadIdx.x; i < span.n; i += kThreads) {
        const Item item = span.item(span.first[i], i, flip);
        const unsigned its = ~Candidate::back(item);
        if (Candidate::key(item) == key && (its >> shift >> 8) == (place >> shift >> 8))
          tally(state.block.histogram, its >> shift & 255);
      }
    });
    place |= found.digit << shift;
  }
  return Candidate::make(key, ~place);
}

// Collects at least k items, at most as many as there is room for; says how many.
__device__ int candidates(const Span& span, int k, const Sampling& sampling, Item* items, Raw flip,
                          unsigned salt, State& state, int& turn) {
  Item bound = Candidate::make(0, 0);
  if (sampling.low > 0) bound = sampled(span, sampling.low, sampling.high, flip, salt, state, turn);
  int count = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    __syncthreads();
    if (threadIdx.x == 0) state.block.count = 0;
    __syncthreads();
    const Collector collector{items, &state.block.count, sampling.capacity, bound, flip};
    collect<kSmallest>(span, collector);
    __syncthreads();
    count = state.block.count;
    if ((count >= k && count <= sampling.capacity) || attempt == 2) break;
    if (attempt == 0 && count > k) {
      Item own[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int at = i * kThreads + static_cast<int>(threadIdx.x);
        own[i] = at < sampling.capacity ? items[at] : Candidate::make(0, 0);
      }
      bound = bound_of(own, k, k + k / 8, 0, kKeyBits - 1, span.most, state.block, turn);
    } else if (attempt == 0) {
      const int low = 3 * sampling.low + 8;
      bound = sampled(span, low, low + low / 8, flip, salt ^ 0x5A5A5A5Au, state, turn);
    } else {
      bound = exact(span, k, flip, state);
    }
  }
  return count < sampling.capacity ? count : sampling.capacity;
}

}  // namespace
}  // namespace anydml::top_k

using namespace anydml::top_k;

extern "C" __global__ void __launch_bounds__(kThreads, 1024 / kThreads)
    top_k_long(const __grid_constant__ Rows rows, const __grid_constant__ Parts parts,
               const __grid_constant__ Sampling sampling) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ State state;
  Item* const items = reinterpret_cast<Item*>(shared);
  const Raw flip = static_cast<Raw>(rows.flip);
  const int k = static_cast<int>(rows.k);
  int turn = 0;
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
    Span span;
    span.first = keys_of(rows, row, at) + begin;
    span.n = static_cast<unsigned>(parts.length + (segment < parts.longer ? 1 : 0));
    span.places = nullptr;
    span.most = span.n;
    if (rows.places != nullptr && !rows.ordered) {
      span.places = static_cast<const unsigned*>(rows.places) + row * rows.n + begin;
      span.most = ~0u;
    }
    const unsigned misaligned =
        static_cast<unsigned>(reinterpret_cast<unsigned long long>(span.first) & 15) / W;
    span.head = misaligned == 0 ? 0 : kVector - misaligned;
    span.head = span.head < span.n ? span.head : span.n;
    span.vectors = (span.n - span.head) / kVector;
    const int count = candidates(span, k, sampling, items, flip,
                                 static_cast<unsigned>(task) * 7919u, state, turn);
    const auto on_axis = [&](const Item& item) -> long long {
      const unsigned place = ~Candidate::back(item);
      return span.places != nullptr ? place : place_of(rows, row, begin + place);
    };
    const bool ordered = parts.keys == nullptr || parts.ordered;
    finish<kEach>(items, count, k, ordered, span.most, state.block, turn,
                  [&](int r, const Item& item) {
                    const Key key = Candidate::key(item);
                    const long long place = on_axis(item);
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

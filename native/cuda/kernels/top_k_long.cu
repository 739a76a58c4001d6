// TOP_K of long rows, a block a row or a segment of one. A bound is found from a sample; one
// reading of the row collects what reaches it; what was collected is cut to k and put in order.
//
// The bound is a key and a place, as all items differ by place: ties change nothing about how many
// reach it. Sampled places are scattered by a hash, so that the order of the input changes nothing
// either. Where the sample misled, a second bound is made of what was collected; a third is exact,
// by counting digits: a bounded number of readings for every input.
#include "top_k_stream.cuh"

namespace anydml::top_k {
namespace {

// The bound that about `low` of the sample reach. The list gets those of the sample,
// to be checked again, that reach the least of the maxima of groups of threads: `low` groups at
// least, each of which has one.
__device__ __noinline__ Item sampled(int low, int high) {
  if (threadIdx.x == 0) state.count = 0;
  Item own[kSampled];
  const Item greatest = take_sample(own);
  int group = low > kThreads / 2 ? 0 : 32;
  while (group > 1 && kThreads / group < low) group /= 2;
  Item bound = Candidate::make(0, 0);
  if (group > 0) {
    bound = greatest;
#pragma unroll 1
    for (int step = 1; step < 32; step *= 2) {
      const Item other = Candidate::from_lane(bound, step);
      if (Candidate::above(other, bound) == (step < group)) bound = other;
    }
    if (lane_of() == 0) warp_bounds[threadIdx.x / 32] = bound;
    __syncthreads();
    for (int i = 0; i < kWarps; ++i)
      if (Candidate::above(bound, warp_bounds[i])) bound = warp_bounds[i];
  } else {
    __syncthreads();
  }
  if (__any_sync(kAll, !Candidate::above(bound, greatest))) {
#pragma unroll
    for (int i = 0; i < kSampled; ++i) {
      const bool taken = Candidate::back(own[i]) != 0 && !Candidate::above(bound, own[i]);
      const unsigned slot = slot_of(taken);
      if (taken) list()[slot] = own[i];
    }
  }
  __syncthreads();
  const int count = state.count;
  if (count <= high) return count < low ? Candidate::make(0, 0) : bound;
  return bound_of(count, low, high, span.place_limit);
}

template <class Tally>
__device__ Digit digit_among(unsigned need, bool from_top, const Tally& tally) {
  for (unsigned i = threadIdx.x; i < 256; i += kThreads) histogram[i] = 0;
  __syncthreads();
  tally();
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
    found = digit_among(found.need, true, [&] { tally_keys(key, shift); });
    key |= static_cast<Key>(found.digit) << shift;
  }
  if (found.has <= found.need) return Candidate::make(key, 0);
  unsigned place = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    found = digit_among(found.need, false, [&] { tally_places(key, place, shift); });
    place |= found.digit << shift;
  }
  return Candidate::make(key, ~place);
}

// Collects at least k items, at most as many as fit the list; returns the count.
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
      bound = bound_of(sampling.capacity, k, k + k / 8, span.place_limit);
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
    const bool done = (count >= k && count <= sampling.capacity) || attempt == 2;
    if (!done && threadIdx.x == 0) span.salt ^= 0x5A5A5A5Au;
    __syncthreads();  // all threads have read the count before the next attempt resets it
    if (done) break;
    low = 3 * low + 8;
    high = low + low / 8;
  }
  return count < sampling.capacity ? count : sampling.capacity;
}

// The host's plan (sampling_plan), for a row that is shorter than others.
__device__ Sampling sampling_of(unsigned n, int k, Sampling sampling) {
  const int vectors = static_cast<int>(n / kVector) - 1;
  const float size = static_cast<float>(kSampled * (vectors < kThreads ? vectors : kThreads));
  const float part = static_cast<float>(k) / static_cast<float>(n), expected = size * part;
  const float low = expected + 3.5f * sqrtf(expected * (1 - part)) + kSampled;
  const float high = low + fmaxf(2, low / 8);
  const float all = (high + 4 * sqrtf(high) + kSampled) * static_cast<float>(n) / size;
  sampling.low = static_cast<int>(low);
  sampling.high = static_cast<int>(high);
  if (n <= static_cast<unsigned>(sampling.capacity) &&
      (vectors < 1 || low > 0.8f * size || all > 0.9f * static_cast<float>(n)))
    sampling.low = sampling.high = 0;
  return sampling;
}

}  // namespace
}  // namespace anydml::top_k

using namespace anydml::top_k;

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    top_k_long(const __grid_constant__ Rows rows, const __grid_constant__ Parts parts,
               const __grid_constant__ Sampling sampling) {
  const Raw flip = static_cast<Raw>(rows.flip);
  const long long all = rows.rows * parts.segments;
  anydml::let_next_begin();
  anydml::await_previous();
  for (long long task = blockIdx.x; task < all; task += gridDim.x) {
    long long row = task, segment = 0;
    if (parts.segments > 1) {
      row = all >> 32 == 0 ? static_cast<unsigned>(task) / static_cast<unsigned>(parts.segments)
                           : task / parts.segments;
      segment = task - row * parts.segments;
    }
    const RowOffsets at = offsets_of(rows, row);
    long long length = parts.length, longer = parts.longer;
    int k = static_cast<int>(rows.k);
    if (rows.lengths != nullptr) {
      const long long most = at.length / rows.k;
      const long long used = most < 1 ? 1 : most < parts.segments ? most : parts.segments;
      k = at.length < k ? static_cast<int>(at.length) : k;
      length = at.length / used;
      longer = at.length - length * used;
      if (parts.lengths != nullptr && segment == 0 && threadIdx.x == 0)
        parts.lengths[row] = used * k;
      if (segment >= used) continue;
    }
    const long long begin = segment * length + (segment < longer ? segment : longer);
    const bool unordered = rows.places != nullptr && !rows.ordered;
    if (threadIdx.x == 0) {
      span.first = keys_of(rows, row, at) + begin;
      span.n = static_cast<unsigned>(length + (segment < longer ? 1 : 0));
      span.places =
          unordered ? static_cast<const unsigned*>(rows.places) + row * rows.n + begin : nullptr;
      span.base = 0;
      span.place_limit = unordered ? ~0u : span.n;
      const unsigned misaligned =
          static_cast<unsigned>(reinterpret_cast<unsigned long long>(span.first) & 15) / W;
      const unsigned head = misaligned == 0 ? 0 : kVector - misaligned;
      span.head = head < span.n ? head : span.n;
      span.vectors = (span.n - span.head) / kVector;
      span.salt = static_cast<unsigned>(task) * 7919u;
      span.flip = flip;
    }
    __syncthreads();
    int count = 0;
    if (k > 0)
      count = candidates(k, rows.lengths == nullptr ? sampling : sampling_of(span.n, k, sampling));
    const bool is_last = parts.keys == nullptr, ordered = is_last || parts.ordered;
    const auto index_of = [&](const Item& item) {
      const long long place = ~Candidate::back(item);
      return unordered ? place : place_of(rows, row, begin + place);
    };
    const auto write = [&](int r, const Item& item) {
      const Key key = Candidate::key(item);
      const long long place = index_of(item), to = task * rows.k + r;
      if (is_last) return write_result(rows, at, r, key, place, flip);
      static_cast<Raw*>(parts.keys)[to] = static_cast<Raw>(key);
      if (parts.wide_places)
        static_cast<long long*>(parts.places)[to] = place;
      else
        static_cast<unsigned*>(parts.places)[to] = static_cast<unsigned>(place);
    };
    finish(count, is_last ? static_cast<int>(rows.k) : k, ordered, !is_last || rows.sorted,
           span.place_limit, write, index_of);
  }
}

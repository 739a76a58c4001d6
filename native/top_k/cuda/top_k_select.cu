// TOP_K of long rows: one launch, in which a block has a row or several blocks share one.
//
//   sample   The k-th of all is about that of a sample: a bound that almost certainly k reach, and
//            few more. The digits of the sampled keys are counted in shared memory.
//   collect  The row is read, and what reaches the bound goes into a list, which is that of the
//            row's first block in the end.
//   count    Where too many or too few reach the bound, the digits of all keys are counted, in one
//            reading each, until what has the digits of the k-th fits the list. Where all digits
//            had to be counted, or the sample says that many are equal, exactly k items are taken:
//            each block knows how many equals of the k-th key it has, and takes its share of them
//            in the order of places.
//   order    The first block spreads the list over bins of equal width and ranks each item among
//            those of its bin. A crowded bin is spread in the same way.
//
// So every input takes a bounded number of readings. The blocks of a row are a cluster, which meets
// in the shared memory of its first block, or blocks of a cooperative launch, which meet in global
// memory. For k beyond the list, the items leave in the order of their places, to be sorted.
#include "top_k/cuda/top_k_gate.cuh"
#include "top_k/cuda/top_k_order.cuh"

namespace anydml::top_k {
namespace {

constexpr int kUnroll = 4;                           // vectors of 16 bytes of a thread at a time
constexpr int kSampled = kVector < 4 ? kVector : 4;  // elements of one vector a thread
using Mask = Bits<kUnroll * kVector <= 32 ? 4 : 8>::Unsigned;

__shared__ unsigned first_slot;

// The elements of a row that a block reads: `head` loose ones, whole vectors, and some more loose
// ones. Places in it count from its first element.
struct Part {
  const Raw* first;
  long long base;  // its place in the row
  unsigned size, head, vectors;
  float sampled;  // elements that all blocks of the row sample

  // The compiler cannot know that what shared memory points to is not shared memory.
  __device__ const Raw* elements() const {
    const Raw* const from = first;
    __builtin_assume(__isGlobal(from));
    return from;
  }
  __device__ unsigned place(unsigned vector) const { return head + vector * kVector; }
  __device__ unsigned loose_count() const { return size - vectors * kVector; }
  __device__ unsigned loose(unsigned i) const { return i < head ? i : i + vectors * kVector; }
};

// By one thread.
__device__ inline Part part_of(const Raw* row, Total n) {
  const unsigned misaligned =
      static_cast<unsigned>(reinterpret_cast<unsigned long long>(row) & 15) / W;
  Total head = misaligned == 0 ? 0 : kVector - misaligned;
  head = head < n ? head : n;
  const Total all = (n - head) / kVector, each = (all + team.blocks - 1) / team.blocks;
  const Total begin = each * team.rank < all ? each * team.rank : all;
  const Total end = begin + each < all ? begin + each : all;
  const bool is_first = team.rank == 0, is_last = team.rank + 1 == team.blocks;
  Part part;
  part.base = is_first ? 0 : static_cast<long long>(head + begin * kVector);
  part.first = row + part.base;
  part.head = is_first ? static_cast<unsigned>(head) : 0;
  part.vectors = static_cast<unsigned>(end - begin);
  part.size =
      static_cast<unsigned>((is_last ? n : head + end * kVector) - static_cast<Total>(part.base));
  // Where rows are divided, blocks sample as many but for the last one, whose vectors may be few.
  const Total most = static_cast<Total>(kThreads) * team.blocks;
  part.sampled = static_cast<float>(kSampled * (all < most ? all : most));
  return part;
}

// In shared memory, as the team.
__shared__ Part part;

// Gives each thread some vectors at a time: use(vectors, number of the first one, how many of them
// there are).
template <class Use>
__device__ inline void read(const Use& use) {
  const unsigned all = part.vectors;
  const uint4* const vectors = reinterpret_cast<const uint4*>(part.elements() + part.head);
  for (unsigned first = 0; first < all; first += kUnroll * kThreads) {
    const unsigned v = first + threadIdx.x;
    const uint4* const own = vectors + v;
    uint4 x[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (v + u * kThreads < all) x[u] = own[u * kThreads];
    use(x, v, v < all ? (all - v + kThreads - 1) / kThreads : 0);
  }
}
// use(bits) for each element of the block.
template <class Use>
__device__ inline void read_each(const Use& use) {
  for (unsigned i = threadIdx.x; i < part.loose_count(); i += kThreads)
    use(part.elements()[part.loose(i)]);
  read([&](const uint4(&x)[kUnroll], unsigned, unsigned count) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (u >= count) continue;
#pragma unroll
      for (int i = 0; i < kVector; ++i) use(element<W>(x[u], i));
    }
  });
}

__device__ inline unsigned hash(unsigned x) {
  x ^= x >> 16;
  x *= 0x7FEB352Du;
  x ^= x >> 15;
  x *= 0x846CA68Bu;
  return x ^ x >> 16;
}

// Reads the vector that this thread samples; false if the block has too few. Each eight threads
// read neighbouring vectors, at a random place in a stratum of their own.
__device__ inline bool sample(unsigned salt, uint4& x) {
  constexpr unsigned kStrata = kThreads / 8;
  const unsigned stratum = threadIdx.x / 8, all = part.vectors;
  const unsigned begin =
      static_cast<unsigned>(static_cast<unsigned long long>(all) * stratum / kStrata);
  const unsigned end =
      static_cast<unsigned>(static_cast<unsigned long long>(all) * (stratum + 1) / kStrata);
  const unsigned lines = (end - begin) / 8;
  const unsigned at = begin + __umulhi(hash(stratum + salt), lines) * 8 + threadIdx.x % 8;
  if (at >= end) return false;
  x = reinterpret_cast<const uint4*>(part.elements() + part.head)[at];
  return true;
}

// Counts the digit at `shift` of a key, if it agrees with `known` from bit `top` on.
__device__ inline void count_key(Key key, Key known, int top, int shift, unsigned* bins) {
  if (top < kKeyBits && key >> top != known >> top) return;
  atomicAdd(&bins[static_cast<unsigned>(key >> shift) & ((1u << (top - shift)) - 1)], 1u);
}

// Gives all that reaches the bound a slot, in any order: put(slot, key, place).
template <bool kSmallest, class Put>
__device__ void collect(const Flip& flip, Key bound, const Put& put) {
  for (unsigned i = threadIdx.x; i < part.loose_count(); i += kThreads) {
    const unsigned place = part.loose(i);
    const Key key = make_key(part.elements()[place], flip);
    if (key >= bound) put(atomicAdd(&meeting.listed, 1u), key, place);
  }
  const Gate<kSmallest> gate(bound, flip);
  read([&](const uint4(&x)[kUnroll], unsigned v, unsigned count) {
    unsigned reached = 0;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (gate.any(x[u])) reached |= 1u << u;
    reached &= (1u << count) - 1;
    if (reached == 0) return;
    Mask mask = 0;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if ((reached >> u & 1) != 0) mask |= static_cast<Mask>(gate.each(x[u])) << (u * kVector);
    const auto place_of_bit = [&] {
      const int bit = __ffsll(static_cast<long long>(mask)) - 1;
      return part.place(v + bit / kVector * kThreads) + bit % kVector;
    };
    if (gate.passes_nan) {
      Mask rest = mask;
      for (; mask != 0; mask &= mask - 1)
        if (make_key(part.elements()[place_of_bit()], flip) < bound) rest ^= mask & (~mask + 1);
      mask = rest;
      if (mask == 0) return;
    }
    unsigned slot = atomicAdd(&meeting.listed, static_cast<unsigned>(__popcll(mask)));
    for (; mask != 0; mask &= mask - 1) {
      // Read again: it is in a near cache, and registers cannot be indexed.
      const unsigned place = place_of_bit();
      put(slot++, make_key(part.elements()[place], flip), place);
    }
  });
}

// Of the row's equals of the k-th key, [first, last) are taken.
struct Equals {
  Total first, last;
  __device__ bool has(Total number) const { return number >= first && number < last; }
  __device__ Total before(Total number) const {
    return number <= first ? 0 : (number < last ? number : last) - first;
  }
};

// Takes all that is above the k-th key and the equals that are to be taken, in the order of places:
// put(slot, key, place). `above` and `same`: items of the blocks before this one.
template <class Put>
__device__ void collect_exactly(const Flip& flip, Key kth, const Equals& equals, Total above,
                                Total same, const Put& put) {
  // Some neighbouring elements of each thread, as bits.
  const auto take = [&](unsigned greater, unsigned equal, unsigned place) {
    unsigned all = 0;
    const unsigned before = sum_before(
        static_cast<unsigned>(__popc(greater)) | static_cast<unsigned>(__popc(equal)) << 16, &all);
    Total own_above = above + (before & 0xFFFF), own_same = same + (before >> 16);
    for (unsigned mask = greater | equal; mask != 0; mask &= mask - 1) {
      const int bit = __ffs(static_cast<int>(mask)) - 1;
      const bool is_equal = (equal >> bit & 1) != 0;
      const unsigned at = place + static_cast<unsigned>(bit);
      const Total slot = own_above + equals.before(own_same);
      if (!is_equal)
        put(slot, make_key(part.elements()[at], flip), at), ++own_above;
      else if (equals.has(own_same++))
        put(slot, kth, at);
    }
    above += all & 0xFFFF;
    same += all >> 16;
  };
  const auto take_loose = [&](unsigned first, unsigned size) {
    if (size == 0) return;
    const unsigned place = first + threadIdx.x;
    const bool is_valid = threadIdx.x < size;
    const Key key = is_valid ? make_key(part.elements()[place], flip) : 0;
    take(is_valid && key > kth ? 1 : 0, is_valid && key == kth ? 1 : 0, place);
  };
  take_loose(0, part.head);
  read([&](const uint4(&x)[kUnroll], unsigned v, unsigned count) {
    unsigned greater[kUnroll], equal[kUnroll], any = 0;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      greater[u] = equal[u] = 0;
      if (u >= count) continue;
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        const Key key = make_key(element<W>(x[u], i), flip);
        greater[u] |= key > kth ? 1u << i : 0u;
        equal[u] |= key == kth ? 1u << i : 0u;
      }
      any |= greater[u] | equal[u];
    }
    if (!__syncthreads_or(any != 0)) return;
#pragma unroll 1
    for (int u = 0; u < kUnroll; ++u) {
      // A register array takes no index that is not constant.
      unsigned its_greater = greater[0], its_equal = equal[0];
#pragma unroll
      for (int other = 1; other < kUnroll; ++other)
        if (u == other) its_greater = greater[other], its_equal = equal[other];
      take(its_greater, its_equal, part.place(v + u * kThreads));
    }
  });
  take_loose(part.place(part.vectors), part.loose_count() - part.head);
}

}  // namespace
}  // namespace anydml::top_k

using namespace anydml::top_k;

extern "C" __global__ void __launch_bounds__(kThreads, 1024 / kThreads)
    top_k_select(const __grid_constant__ Rows rows, const __grid_constant__ Selection selection) {
  unsigned* const bins = reinterpret_cast<unsigned*>(list() + selection.capacity);
  unsigned short* const order = reinterpret_cast<unsigned short*>(bins + kOrderBins);
  const long long own_row = kAlone ? blockIdx.x : blockIdx.x / selection.blocks;
  const long long row = selection.first_row + own_row;
  const Raw flip_bits = static_cast<Raw>(rows.flip);
  const Flip flip = flip_of(rows);
  anydml::await_previous();
  const RowOffsets at = offsets_of(rows, row);
  // A cluster's first block has no room for lists that leave.
  const bool emits = !kCluster && (selection.keys != nullptr || selection.by_place);
  const Total n = static_cast<Total>(at.length), capacity = selection.capacity;
  const Total k = static_cast<Total>(at.length < rows.k ? at.length : rows.k);
  if (threadIdx.x == 0) {
    team.begin(selection, own_row, reinterpret_cast<Total*>(bins + kBins), list());
    part = part_of(keys_of(rows, row, at), n);
  }
  __syncthreads();
  // Places are checked: if another stream changes the input meanwhile, the list may have gaps.
  const auto index_of = [&](long long place) {
    return place_of(rows, row, place < at.length ? place : 0);
  };
  const auto write = [&](long long r, Key key, long long index) {
    write_result(rows, at, r, key, index, flip_bits);
  };
  const auto item_of = [&](Key key, unsigned place) {
    const unsigned in_row = static_cast<unsigned>(part.base) + place;
    return Candidate::make(key, rows.last_first ? in_row : ~in_row);
  };
  // What is to be done: to list what reaches a key, to take exactly k where that is the k-th, or to
  // count digits first.
  enum { kList, kExactly, kCount } next = kCount;
  Key bound = 0;
  int level = 0;
  Counts around{};
  const float share = static_cast<float>(k) / static_cast<float>(n);
  const float expected = part.sampled * share;
  const float wanted = expected + 3.5f * sqrtf(expected * (1 - share)) + kSampled;
  if (!emits && n <= capacity) {
    if (kCluster) team.meet();
    next = kList;
  } else if (!emits && k > 0 && wanted < 0.8f * part.sampled) {
    uint4 x{};
    const bool is_valid = sample(blockIdx.x * 7919u, x);
    const auto for_sample = [&](const auto& body) {
#pragma unroll
      for (int i = 0; i < kSampled; ++i)
        if (is_valid) body(make_key(element<W>(x, i), flip));
    };
    int top = kKeyBits;
    if constexpr (!kFloat && W >= 4) {  // integers are small, often
      unsigned long long greatest = 0, complement = 0;
      for_sample([&](Key key) {
        greatest = key > greatest ? key : greatest;
        complement = static_cast<Key>(~key) > complement ? static_cast<Key>(~key) : complement;
      });
      const Range range = share_range(greatest, complement);
      top = 64 - __clzll(static_cast<long long>(range.greatest ^ range.least));
      if (top < kKeyBits) bound = range.greatest >> top << top;
    }
    Total need = static_cast<Total>(wanted);
    float reached = 0;
    for (; top > 0; ++level) {
      const int shift = top > kDigitBits ? top - kDigitBits : 0;
      find_digit(need, level, bins, [&](unsigned* counts) {
        for_sample([&](Key key) { count_key(key, bound, top, shift, counts); });
      });
      bound |= static_cast<Key>(found.digit) << shift;
      need -= found.before;
      reached += static_cast<float>(found.before);
      top = shift;
      const float all = reached + static_cast<float>(found.has);
      const float likely = (all + 4 * sqrtf(all) + kSampled) * static_cast<float>(n);
      if (likely > static_cast<float>(capacity) * part.sampled) continue;
      next = kList;
      if (!kAlone || all <= 1.5f * wanted) break;
    }
    if (next != kList) {
      // Many have one key, it seems.
      Total above = 0, equal = 0;
      read_each([&](Raw bits) {
        const Key key = make_key(bits, flip);
        above += key > bound ? 1 : 0;
        equal += key == bound ? 1 : 0;
      });
      around = share_counts(above, equal);
      if (around.above >= k && around.above <= capacity)
        next = kList, ++bound;
      else if (around.above < k && around.above + around.equal >= k)
        next = kExactly;
    }
  }
  Total listed = 0;  // items in the list: none, or at least k
  while (listed == 0 && k > 0) {
    if (next == kCount) {
      Total need = k, total = 0, above = 0;
      int top = kKeyBits;
      bound = 0;
      for (level = kLevels; top > 0; ++level) {
        const int shift = top > kDigitBits ? top - kDigitBits : 0;
        find_digit(need, level, bins, [&](unsigned* counts) {
          read_each([&](Raw bits) { count_key(make_key(bits, flip), bound, top, shift, counts); });
        });
        bound |= static_cast<Key>(found.digit) << shift;
        need -= found.before;
        total = k - need + found.has;
        top = shift;
        if (!emits && total <= capacity) break;
        for (unsigned i = found.digit + 1 + threadIdx.x; i < kBins; i += kThreads) above += bins[i];
      }
      next = kList;
      if (emits || total > capacity) {
        around = share_counts(above, threadIdx.x == 0 ? bins[found.digit] : 0);
        next = kExactly;
      }
    }
    if (next == kExactly) {
      const Total need = k - around.above, skipped = rows.last_first ? around.equal - need : 0;
      collect_exactly(flip, bound, {skipped, skipped + need}, around.above_before,
                      around.equal_before, [&](Total slot, Key key, unsigned place) {
                        if (slot >= k) return;
                        const long long in_row = part.base + place;
                        if (!emits) {
                          team.list[slot] = item_of(key, place);
                        } else if (selection.by_place) {
                          write(slot, key, index_of(in_row));
                        } else {
                          const long long to =
                              own_row * rows.k + (rows.last_first ? k - 1 - slot : slot);
                          static_cast<Raw*>(selection.keys)[to] = static_cast<Raw>(~key);
                          if (selection.wide_places)
                            static_cast<long long*>(selection.places)[to] = index_of(in_row);
                          else
                            static_cast<unsigned*>(selection.places)[to] =
                                static_cast<unsigned>(index_of(in_row));
                        }
                      });
      if (!emits) team.meet();
      listed = k;
      break;
    }
    const auto add = [&](unsigned slot, Key key, unsigned place) {
      if (slot < capacity) list()[slot] = item_of(key, place);
    };
    if (takes_smallest(flip))
      collect<kFloat>(flip, bound, add);
    else
      collect<false>(flip, bound, add);
    __syncthreads();
    const unsigned own = meeting.listed;
    listed = own;
    if constexpr (!kAlone) {
      unsigned first = 0;
      if constexpr (kCluster) {
        // Each block knows how many the others have: atomics on another block's memory take long.
        if (threadIdx.x < team.blocks) *in_block(&meeting.counts[team.rank], threadIdx.x) = own;
        team.meet();
        listed = 0;
        for (unsigned i = 0; i < team.blocks; ++i) {
          first += i < team.rank ? meeting.counts[i] : 0;
          listed += meeting.counts[i];
        }
      } else {
        if (threadIdx.x == 0) first_slot = atomicAdd(team.listed, own);
        __syncthreads();
        first = first_slot;
      }
      if (!kCluster || team.rank != 0)
        for (unsigned i = threadIdx.x; i < own && first + i < capacity && i < capacity;
             i += kThreads)
          team.list[first + i] = list()[i];
      team.meet();
      if (!kCluster) listed = Team::read(team.listed);
    }
    if (listed >= k && listed <= capacity) break;
    // Another attempt, with an empty list.
    listed = 0;
    next = kCount;
    __syncthreads();
    if (threadIdx.x == 0) {
      meeting.listed = 0;
      if (!kAlone && !kCluster) ++team.listed;
    }
    __syncthreads();
  }
  if (emits) {
    for (long long r = static_cast<long long>(k) + threadIdx.x; team.rank == 0 && r < rows.k;
         r += kThreads) {
      if (selection.by_place)
        write(r, 0, index_of(0));
      else
        static_cast<Raw*>(selection.keys)[own_row * rows.k + r] = kMaxRaw;
    }
    return;
  }
  if (team.rank != 0) return;
  const auto m = static_cast<unsigned>(listed), wanted_count = static_cast<unsigned>(k);
  if (!kAlone && !kCluster)
    for (unsigned i = threadIdx.x; i < m; i += kThreads) list()[i] = Team::read(team.list + i);
  __syncthreads();
  const auto length = static_cast<unsigned>(at.length);
  const auto index_in = [&](const Item& item) {
    return index_of(rows.last_first ? Candidate::back(item) : ~Candidate::back(item));
  };
  if (k > 0 && (rows.sorted || m > wanted_count))
    put_in_order(m, wanted_count, bound, length, bins, order);
  if (k > 0 && !rows.sorted) {
    // By position: the k that were found, ordered again by their positions alone.
    Item own[kListed];
#pragma unroll
    for (int j = 0; j < kListed; ++j) {
      const unsigned i = threadIdx.x + j * kThreads;
      if (i >= wanted_count) continue;
      const Item item = list()[m > wanted_count ? order[i] : i];
      own[j] = Candidate::make(0, ~static_cast<unsigned>(index_in(item)));
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kListed; ++j)
      if (threadIdx.x + j * kThreads < wanted_count) list()[threadIdx.x + j * kThreads] = own[j];
    __syncthreads();
    put_in_order(wanted_count, wanted_count, 0, length, bins, order);
  }
  for (unsigned r = threadIdx.x; r < rows.k; r += kThreads) {
    if (r >= wanted_count) {
      write(r, 0, index_of(0));
      continue;
    }
    const Item item = list()[order[r]];
    if (rows.sorted)
      write(r, Candidate::key(item), index_in(item));
    else
      write(r, 0, ~Candidate::back(item));
  }
}

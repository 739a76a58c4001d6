// Scatter into a long output: a stable partition of the updates by where they go.
//
// 1. The updates are cut into parts, one thread each. A part sends each of its updates, as a
//    16-bit place and its value, to the bucket (up to 64 K neighbouring elements) that it belongs
//    to. A group of 32 (64 of one byte) is gathered in the cache and then written whole, past the
//    cache where it would not stay, to pages that a bucket owns. Nothing is counted first: the
//    indices, often the largest tensor of all, are read once, and before any output is written.
// 2. Every bucket, one thread each: its piece of the input is copied to scratch that fits the
//    second cache, takes its updates part by part, hence in their order, and goes out past the
//    cache. Floats of 16 bits that are summed up are widened in scratch, or those alone that take
//    updates where these are few.
//
// O(updates + elements). Scratch: 2 bytes and the value for each update (at most 32 M at a time), a
// page for each bucket and part, a bucket for each thread. That may exceed a quarter of all
// operands (it is 0.3 of them for float32 and int64 indices): sending the position of a value
// instead would cost less memory and a random read for each value.

#include <algorithm>

#include "scatter/cpu/scatter_sums.hpp"

namespace anydml::scatter {
namespace {

constexpr Int kGroupsPerPage = 8;

// 256 KiB of output, which fits the second-level cache along with the updates that stream by.
int chosen_bits(int element_size) {
  switch (element_size) {
    case 8:
      return 15;
    case 16:
      return 14;
    default:
      return 16;
  }
}

// A group is its places and then its values, a whole number of cache lines.
template <int kSize>
struct Group {
  static constexpr int kCount = kSize == 1 ? 64 : 32;
  uint16_t places[kCount];
  unsigned char values[kCount * kSize];
};

struct Sixteen {
  uint64_t low, high;
};
template <int kSize>
struct Value {
  using Type = typename Bits<kSize>::Unsigned;
};
template <>
struct Value<16> {
  using Type = Sixteen;
};

// The location of the updates of one bucket in one part.
struct Chain {
  uint32_t first, last;  // pages
  Int count;
};

// The state that every part and bucket shares.
struct Work {
  const Buckets* job;
  int bits;
  Int buckets, parts;
  Int begin, end;  // updates of this round
  Int pages_per_part;
  bool streams;  // the groups would not stay in the cache
  char* pages;
  uint32_t* next;         // page after page
  Chain* chains;          // [part][bucket]
  char* staging;          // [part][bucket], groups being filled
  unsigned char* filled;  // [part][bucket], how far
  Int part_begin(Int part) const {
    // In steps of a piece, without overflow.
    const Int pieces = (end - begin + kPiece - 1) / kPiece;
    return std::min(
        end, begin + pieces / parts * part * kPiece + std::min(part, pieces % parts) * kPiece);
  }
};

template <int kSize>
void write_group(char* target, const char* group, bool streams) {
  if (streams)
    stream_copy(target, group, sizeof(Group<kSize>));
  else
    std::memcpy(target, group, sizeof(Group<kSize>));
}

// The group that receives the next updates of a chain.
template <int kSize>
char* next_group(const Work& work, Chain& chain, Int& free_page) {
  const Int groups = chain.count / Group<kSize>::kCount;
  if (groups % kGroupsPerPage == 0) {
    const uint32_t page = static_cast<uint32_t>(free_page++);
    if (groups == 0)
      chain.first = page;
    else
      work.next[chain.last] = page;
    chain.last = page;
  }
  return work.pages + (static_cast<Int>(chain.last) * kGroupsPerPage + groups % kGroupsPerPage) *
                          static_cast<Int>(sizeof(Group<kSize>));
}

// Returns the first bad index, or -1.
template <int kSize>
Int partition(const Work& work, Int part) {
  using T = typename Value<kSize>::Type;
  constexpr Int kGroupBytes = static_cast<Int>(sizeof(Group<kSize>));
  constexpr int kCount = Group<kSize>::kCount;
  const Buckets& job = *work.job;
  Chain* const chains = work.chains + part * work.buckets;
  char* const staging = work.staging + part * work.buckets * kGroupBytes;
  unsigned char* const filled = work.filled + part * work.buckets;
  Int free_page = part * work.pages_per_part;
  for (Int b = 0; b < work.buckets; ++b) chains[b] = {0, 0, 0};
  std::memset(filled, 0, static_cast<std::size_t>(work.buckets));
  const int bits = work.bits;
  const uint64_t mask = (uint64_t{1} << bits) - 1;

  alignas(64) Int keys[kPiece];
  alignas(64) char buffer[kPiece * kSize];
  const Int end = work.part_begin(part + 1);
  for (Int first = work.part_begin(part); first < end; first += kPiece) {
    const Int count = std::min(kPiece, end - first);
    const Int bad = job.keys(job.context, first, count, keys);
    if (bad >= 0) return bad;
    const char* const values = job.values(job.context, first, count, buffer);
    for (Int i = 0; i < count; ++i) {
      const uint64_t key = static_cast<uint64_t>(keys[i]);
      const Int b = static_cast<Int>(key >> bits);
      char* const group = staging + b * kGroupBytes;
      const unsigned place = filled[b];
      store(group + place * 2, static_cast<uint16_t>(key & mask));
      store(group + kCount * 2 + place * kSize, load<T>(values + i * kSize));
      if (place + 1 < static_cast<unsigned>(kCount)) {
        filled[b] = static_cast<unsigned char>(place + 1);
      } else {
        filled[b] = 0;
        write_group<kSize>(next_group<kSize>(work, chains[b], free_page), group, work.streams);
        chains[b].count += kCount;
      }
    }
  }
  for (Int b = 0; b < work.buckets; ++b) {
    if (filled[b] == 0) continue;
    write_group<kSize>(next_group<kSize>(work, chains[b], free_page), staging + b * kGroupBytes,
                       work.streams);
    chains[b].count += filled[b];
  }
  if (work.streams) stream_fence();
  return -1;
}

// Where an element lies in the output.
Int offset_of(const Buckets& job, Int element) {
  return job.layout == nullptr ? element * job.element_size : offset_at(*job.layout, element);
}

// Into a block of the bucket's elements, or into the sums of some in the output.
template <int kSize>
void apply(const Work& work, Int bucket, char* block, Sums* sums) {
  const Buckets& job = *work.job;
  const auto take = [&](const uint16_t* locals, const char* values, Int count) {
    if (sums == nullptr) return job.writer->scatter_block(block, locals, values, count);
    Int offsets[Group<kSize>::kCount];
    for (Int i = 0; i < count; ++i) offsets[i] = offset_of(job, (bucket << work.bits) + locals[i]);
    char* const located = sums->locate(job.output, offsets, count);
    job.writer->scatter(located, offsets, values, 0, kSize, 1, count);
  };
  constexpr Int kGroupBytes = static_cast<Int>(sizeof(Group<kSize>));
  constexpr Int kCount = Group<kSize>::kCount;
  for (Int part = 0; part < work.parts; ++part) {
    const Chain& chain = work.chains[part * work.buckets + bucket];
    uint32_t page = chain.first;
    for (Int left = chain.count; left > 0;) {
      const char* group = work.pages + static_cast<Int>(page) * kGroupsPerPage * kGroupBytes;
      const bool more = left > kGroupsPerPage * kCount;
      const uint32_t following = more ? work.next[page] : page;
      const char* prefetched =
          work.pages + static_cast<Int>(following) * kGroupsPerPage * kGroupBytes;
      for (Int g = 0; g < kGroupsPerPage && left > 0; ++g) {
        for (Int line = 0; line < kGroupBytes; line += 64) prefetch_read(prefetched + line);
        take(reinterpret_cast<const uint16_t*>(group), group + kCount * 2, std::min(left, kCount));
        left -= std::min(left, kCount);
        group += kGroupBytes;
        prefetched += kGroupBytes;
      }
      page = following;
    }
  }
}

template <int kSize>
Status run(const Buckets& job, int threads) {
  constexpr Int kGroupBytes = static_cast<Int>(sizeof(Group<kSize>));
  constexpr Int kCount = Group<kSize>::kCount;
  static_assert(kGroupBytes % 64 == 0);
  Work work;
  work.job = &job;
  work.bits = job.bucket_bits > 0 ? job.bucket_bits : chosen_bits(kSize);
  const Int bucket_elements = Int{1} << work.bits;
  work.buckets = (job.elements + bucket_elements - 1) >> work.bits;
  const Int round = job.writer->widen != nullptr ? job.updates : job.round;
  const Int max_updates = std::min(job.updates, round);
  // Parts cost a page for each bucket, which must stay small compared with the updates.
  const Int max_parts = threads <= 1 || max_updates < kParallelElements ? 1 : Int{2} * threads;
  work.parts =
      std::max<Int>(1, std::min(max_parts, max_updates / (work.buckets * kGroupsPerPage * kCount)));
  const Int pieces = (max_updates + kPiece - 1) / kPiece;
  const Int part_updates = (pieces / work.parts + 1) * kPiece;
  work.pages_per_part = part_updates / (kGroupsPerPage * kCount) + 1 + work.buckets;
  const Int pages = work.pages_per_part * work.parts;
  work.streams = max_updates * (2 + kSize) >= kStreamBytes;
  const Int cells = work.parts * work.buckets;
  const Int block_elements = std::min(bucket_elements, job.elements);
  const Int block_bytes = block_elements * job.writer->size_of(kSize);
  const Int workers = threads <= 1 || job.elements + max_updates < kParallelElements
                          ? 1
                          : std::min<Int>(threads, work.buckets);
  const bool widens = job.writer->widen != nullptr;
  const bool out_streams = !widens && job.elements * kSize >= kStreamBytes;
  Layout layout;
  layout.push(job.elements, kSize);
  if (job.layout != nullptr) layout = *job.layout;

  Scratch<char> page_memory(pages * kGroupsPerPage * kGroupBytes);
  Scratch<uint32_t> next(pages);
  Scratch<Chain> chains(cells);
  Scratch<char> staging(cells * kGroupBytes);
  Scratch<unsigned char> filled(cells);
  Scratch<char> blocks(workers * block_bytes);
  std::vector<Sums> sums;
  const Int few = block_elements / kFewUpdates;
  for (Int worker = 0; widens && worker < workers; ++worker)
    sums.emplace_back(*job.writer, few, block_elements);
  work.pages = page_memory.get();
  work.next = next.get();
  work.chains = chains.get();
  work.staging = staging.get();
  work.filled = filled.get();

  const char* source = job.input;
  for (work.begin = 0; work.begin < job.updates; work.begin = work.end) {
    work.end = work.begin + std::min(round, job.updates - work.begin);
    std::atomic<Int> first_bad{kNoBadIndex};
    parallel_chunks(work.parts, threads, [&](Int part) {
      const Int bad = partition<kSize>(work, part);
      if (bad >= 0) lower(first_bad, bad);
    });
    if (first_bad.load(std::memory_order_relaxed) != kNoBadIndex) return status_of(first_bad);
    parallel_items(
        work.buckets, workers, threads,
        [&](Int worker, Int bucket) {
          const Int from = bucket << work.bits;
          const Int elements = std::min(bucket_elements, job.elements - from);
          const std::size_t bytes = static_cast<std::size_t>(elements * kSize);
          Int updates = 0;
          for (Int part = 0; part < work.parts; ++part)
            updates += work.chains[part * work.buckets + bucket].count;
          if (updates == 0 && source == job.output) return;
          char* const target = job.output + from * kSize;
          const char* updated = source + from * kSize;
          char* const block = blocks.get() + worker * block_bytes;
          if (widens && updates > few) {
            widen(*job.writer, layout, source, from, elements, block);
            apply<kSize>(work, bucket, block, nullptr);
            return narrow(*job.writer, layout, job.output, from, elements, block);
          }
          if (updates > 0 && !widens) {
            std::memcpy(block, updated, bytes);
            apply<kSize>(work, bucket, block, nullptr);
            updated = block;
          }
          if (out_streams)
            stream_copy(target, updated, bytes);
          else if (updated != target)
            std::memcpy(target, updated, bytes);
          if (updates > 0 && widens) {
            Sums& own = sums[static_cast<std::size_t>(worker)];
            apply<kSize>(work, bucket, nullptr, &own);
            own.finish();
          }
        },
        [&](Int) {
          if (out_streams) stream_fence();
        });
    source = job.output;
  }
  return {};
}

}  // namespace

Status run_buckets(const Buckets& job, int threads) {
  switch (job.element_size) {
    case 1:
      return run<1>(job, threads);
    case 2:
      return run<2>(job, threads);
    case 4:
      return run<4>(job, threads);
    case 8:
      return run<8>(job, threads);
    default:
      return run<16>(job, threads);
  }
}

}  // namespace anydml::scatter

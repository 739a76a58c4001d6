// Every element of a bucket (scatter_buckets.cpp), from its updates in any order. For elements of
// ANYDML_SIZE bytes that are only moved (ANYDML_TYPE 0), a block keeps the last update of each
// element and its value in shared memory; for numbers of type ANYDML_TYPE, by a reduction that
// gives the same in any order, a word of each element (scatter_words.cuh).
#include "scatter/cuda/scatter_record.cuh"
#include "scatter/cuda/scatter_words.cuh"

namespace {

using namespace anydml::cuda;

#if ANYDML_TYPE == 0
using Element = Unit<ANYDML_SIZE>::Type;
constexpr bool kNumbered = ANYDML_SIZE == 8;
using Cell = unsigned;  // the order of the last update
#else
using Element = Number<ANYDML_TYPE>::Type;
constexpr bool kNumbered = ANYDML_SIZE == 8 || kIsAnyFloat<Element>;
using Cell = WordBits<Element, kNumbered>::Unsigned;
#endif
using Record = RecordOf<Element, kNumbered>;

constexpr unsigned kRead = 4;  // records of a thread at a time
constexpr unsigned kMaxThreads = max_bucket_threads(ANYDML_TYPE == 0, ANYDML_SIZE);
constexpr unsigned kBlocks = kMaxThreads < 1024 ? 2 : 1;  // of a multiprocessor, of these threads

// What a thread reads and writes of a bucket at a time.
constexpr unsigned kVector = ANYDML_SIZE == 1 ? 8 : 16 / ANYDML_SIZE;
struct alignas(ANYDML_SIZE == 1 ? 8 : 16) Vector {
  Element of[kVector];
};

struct Bucket {
  const Buckets& of;
  const char* updates;
  const Places& tuples;
  const Element* from;
  Element* to;
  unsigned number, size;
  bool aligned;

  __device__ Bucket(const Buckets& buckets, const char* changes, const Places& places,
                    const char* input, char* output, unsigned bucket)
      : of(buckets), updates(changes), tuples(places), number(bucket) {
    const unsigned first = bucket << of.bucket_log, left = of.slices - first;
    size = left < 1u << of.bucket_log ? left : 1u << of.bucket_log;
    from = reinterpret_cast<const Element*>(input) + first;
    to = reinterpret_cast<Element*>(output) + first;
    aligned =
        ((reinterpret_cast<unsigned long long>(from) | reinterpret_cast<unsigned long long>(to)) &
         (sizeof(Vector) - 1)) == 0;
  }
  __device__ unsigned begin() const { return __ldcg(of.offsets + number * of.epochs); }
  __device__ unsigned end_of_first() const { return __ldcg(of.offsets + number * of.epochs + 1); }
  __device__ unsigned end() const { return __ldcg(of.offsets + (number + 1) * of.epochs); }

  // Calls body with each record of a range, and its epoch.
  template <class Body>
  __device__ void for_each(unsigned first, unsigned last, const Body& body) const {
    const Record* const records = static_cast<const Record*>(of.records);
    for (unsigned epoch = 0; epoch < of.epochs; ++epoch) {
      const unsigned* const offsets = of.offsets + number * of.epochs + epoch;
      unsigned low = __ldcg(offsets), high = __ldcg(offsets + 1);
      low = low < first ? first : low;
      high = high < last ? high : last;
      for (unsigned i = low + threadIdx.x; i < high; i += kRead * blockDim.x) {
        Record record[kRead];
#pragma unroll
        for (unsigned k = 0; k < kRead; ++k)
          if (i + k * blockDim.x < high) record[k] = records[i + k * blockDim.x];
#pragma unroll
        for (unsigned k = 0; k < kRead; ++k)
          if (i + k * blockDim.x < high) body(record[k], epoch);
      }
    }
  }

  // The elements as they are, some of a thread: the first vectors are read before they are needed.
  __device__ Vector read_vector(unsigned first) const {
    Vector own{};
    if (aligned && first + kVector <= size) {
      own = *reinterpret_cast<const Vector*>(from + first);
    } else {
#pragma unroll
      for (unsigned i = 0; i < kVector; ++i)
        if (first + i < size) own.of[i] = from[first + i];
    }
    return own;
  }
  __device__ void write_vector(unsigned first, const Vector& own) const {
    if (aligned && first + kVector <= size) {
      *reinterpret_cast<Vector*>(to + first) = own;
    } else {
#pragma unroll
      for (unsigned i = 0; i < kVector; ++i)
        if (first + i < size) to[first + i] = own.of[i];
    }
  }

  // The value of an update by its order.
  __device__ Element update_of(unsigned order, unsigned place) const {
    unsigned i = order - 1;
    if constexpr (!kNumbered) {  // the group has one of this element
      const unsigned key = number << of.bucket_log | place;
      const uint4* const keys = reinterpret_cast<const uint4*>(of.keys) + i * 2;
      const uint4 low = keys[0], high = keys[1];
      const unsigned group[kGroup] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
      i *= kGroup;
#pragma unroll
      for (unsigned j = 1; j < kGroup; ++j) i += group[j] == key ? j : 0;
    }
    return read<Element>(updates + places_of(tuples, i).first);
  }
};

constexpr unsigned kAhead = kGroup / kVector;  // vectors of a thread that are read early
struct Ahead {
  Vector own[kAhead];
  __device__ explicit Ahead(const Bucket& bucket, bool reads) {
    if (!reads) return;
#pragma unroll
    for (unsigned j = 0; j < kAhead; ++j)
      own[j] = bucket.read_vector((j * blockDim.x + threadIdx.x) * kVector);
  }
};
// Writes all elements: change(vector, place) makes new ones of the old ones.
template <class Change>
__device__ inline void write_vectors(const Bucket& bucket, const Ahead* ahead,
                                     const Change& change) {
  const unsigned step = blockDim.x * kVector;
  unsigned first = threadIdx.x * kVector;
  const auto write = [&](Vector own) {
    if (first < bucket.size) {
      change(own, first);
      bucket.write_vector(first, own);
    }
    first += step;
  };
  if (ahead != nullptr) {
#pragma unroll
    for (unsigned j = 0; j < kAhead; ++j) write(ahead->own[j]);
  }
  while (first < bucket.size) write(bucket.read_vector(first));
}
// The same, one by one: change(element, place) is the new one.
template <class Change>
__device__ inline void write_all(const Bucket& bucket, const Ahead* ahead, const Change& change) {
  write_vectors(bucket, ahead, [&](Vector& own, unsigned first) {
#pragma unroll
    for (unsigned i = 0; i < kVector; ++i)
      if (first + i < bucket.size) own.of[i] = change(own.of[i], first + i);
  });
}

#if ANYDML_TYPE == 0

// No order.
__device__ void clear(const Bucket& bucket, Cell* words) {
  uint4* const lines = reinterpret_cast<uint4*>(words);
  for (unsigned i = threadIdx.x; i < (bucket.size + 3) / 4; i += blockDim.x)
    lines[i] = {0, 0, 0, 0};
}

// The last updates of a range of records.
__device__ void find_last(const Bucket& bucket, unsigned first, unsigned last, Cell* words) {
  clear(bucket, words);
  __syncthreads();
  const unsigned log = bucket.of.bucket_log;
  bucket.for_each(first, last, [&](const Record& record, unsigned epoch) {
    atomicMax(words + record.place(log), record.order(epoch, log));
  });
  __syncthreads();
}

// Words side by side in shared memory, in whole lines.
template <unsigned kCount>
__device__ inline void copy_words(const unsigned* from, unsigned (&to)[kCount]) {
  if constexpr (kCount == 2) {
    const uint2 x = *reinterpret_cast<const uint2*>(from);
    to[0] = x.x, to[1] = x.y;
  } else {
#pragma unroll
    for (unsigned i = 0; i < kCount; i += 4) {
      const uint4 x = reinterpret_cast<const uint4*>(from)[i / 4];
      to[i] = x.x, to[i + 1] = x.y, to[i + 2] = x.z, to[i + 3] = x.w;
    }
  }
}

__device__ void fill(const Bucket& bucket, const Ahead& ahead, unsigned begin, unsigned end,
                     Cell* words, int) {
  Element* const values = reinterpret_cast<Element*>(words + (1u << bucket.of.bucket_log));
  const unsigned log = bucket.of.bucket_log;
  // The first records of each thread are read once: they are of the first epoch.
  const unsigned first = begin + threadIdx.x;
  const unsigned first_end = bucket.of.epochs == 1 ? end : bucket.end_of_first();
  const unsigned kept_end = begin + kRead * blockDim.x;
  const unsigned rest = kept_end < first_end ? kept_end : first_end;
  const Record* const records = static_cast<const Record*>(bucket.of.records);
  Record kept[kRead];
#pragma unroll
  for (unsigned k = 0; k < kRead; ++k)
    if (first + k * blockDim.x < first_end) kept[k] = records[first + k * blockDim.x];
  __syncthreads();
  const auto for_all = [&](const auto& body) {
#pragma unroll
    for (unsigned k = 0; k < kRead; ++k)
      if (first + k * blockDim.x < first_end) body(kept[k], 0u);
    if (rest < end) bucket.for_each(rest, end, body);
  };
  for_all([&](const Record& record, unsigned epoch) {
    atomicMax(words + record.place(log), record.order(epoch, log));
  });
  __syncthreads();
  for_all([&](const Record& record, unsigned epoch) {
    const unsigned place = record.place(log);
    if (words[place] != record.order(epoch, log)) return;
    (bucket.of.in_place ? bucket.to : values)[place] = record.element();
  });
  if (bucket.of.in_place) return;
  __syncthreads();
  write_vectors(bucket, &ahead, [&](Vector& own, unsigned place) {
    const Vector changed = *reinterpret_cast<const Vector*>(values + place);
    unsigned order[kVector];
    copy_words<kVector>(words + place, order);
#pragma unroll
    for (unsigned i = 0; i < kVector; ++i) own.of[i] = order[i] != 0 ? changed.of[i] : own.of[i];
  });
}

__device__ void begin_map(const Bucket& bucket, Cell* map, int) {
  for (unsigned e = threadIdx.x; e < bucket.size; e += blockDim.x) map[e] = 0;
}
__device__ void add_piece(const Bucket& bucket, unsigned first, unsigned last, Cell* words,
                          Cell* map, int) {
  find_last(bucket, first, last, words);
  for (unsigned e = threadIdx.x; e < bucket.size; e += blockDim.x)
    if (words[e] != 0) atomicMax(map + e, words[e]);
}
__device__ void end_map(const Bucket& bucket, const Cell* map, int) {
  write_all(bucket, nullptr, [&](Element element, unsigned place) {
    const Cell order = __ldcg(map + place);
    return order != 0 ? bucket.update_of(order, place) : element;
  });
}

#else

// Numbers in words count updates from 1; 0 is the element itself.
template <Combine kCombine>
__device__ inline Cell word(Element element, unsigned number) {
  return word_of<kCombine, Element, Cell>(element, number);
}

template <Combine kCombine>
__device__ void add_records(const Bucket& bucket, unsigned first, unsigned last, Cell* words) {
  for (unsigned e = threadIdx.x; e < bucket.size; e += blockDim.x)
    words[e] = neutral<kCombine, Element, Cell>();
  __syncthreads();
  const unsigned log = bucket.of.bucket_log;
  bucket.for_each(first, last, [&](const Record& record, unsigned epoch) {
    const unsigned place = record.place(log);
    Cell update = word<kCombine>(record.element(), kNumbered ? record.order(epoch, log) : 0);
    // The warp first combines updates of the same element.
    const unsigned here = __activemask();
    if (here == kAllLanes && __all_sync(kAllLanes, place == __shfl_sync(kAllLanes, place, 0))) {
#pragma unroll
      for (int step = 16; step > 0; step /= 2)
        update = combine_words<kCombine, Element, Cell>(update,
                                                        __shfl_xor_sync(kAllLanes, update, step));
      if ((threadIdx.x & 31) != 0) return;
    }
    take<kCombine, Element>(words + place, update);
  });
  __syncthreads();
}

template <Combine kCombine>
__device__ inline Element element_from(const Bucket& bucket, Element element, unsigned place,
                                       Cell word) {
  return element_of<kCombine, Element>(word, [&](unsigned number) {
    return number == 0 ? element : bucket.update_of(number, place);
  });
}

__device__ void clear(const Bucket&, Cell*) {}

__device__ void fill(const Bucket& bucket, const Ahead& ahead, unsigned begin, unsigned end,
                     Cell* words, int reduction) {
  with_any_order<Element>(reduction, [&](auto constant) {
    constexpr Combine kCombine = decltype(constant)::value;
    add_records<kCombine>(bucket, begin, end, words);
    write_all(bucket, &ahead, [&](Element element, unsigned place) {
      return element_from<kCombine>(
          bucket, element, place,
          combine_words<kCombine, Element, Cell>(word<kCombine>(element, 0), words[place]));
    });
  });
}

__device__ void begin_map(const Bucket& bucket, Cell* map, int reduction) {
  with_any_order<Element>(reduction, [&](auto constant) {
    constexpr Combine kCombine = decltype(constant)::value;
    for (unsigned e = threadIdx.x; e < bucket.size; e += blockDim.x)
      map[e] = word<kCombine>(bucket.from[e], 0);
  });
}
__device__ void add_piece(const Bucket& bucket, unsigned first, unsigned last, Cell* words,
                          Cell* map, int reduction) {
  with_any_order<Element>(reduction, [&](auto constant) {
    constexpr Combine kCombine = decltype(constant)::value;
    add_records<kCombine>(bucket, first, last, words);
    for (unsigned e = threadIdx.x; e < bucket.size; e += blockDim.x)
      if (words[e] != neutral<kCombine, Element, Cell>())
        take<kCombine, Element>(map + e, words[e]);
  });
}
__device__ void end_map(const Bucket& bucket, const Cell* map, int reduction) {
  with_any_order<Element>(reduction, [&](auto constant) {
    constexpr Combine kCombine = decltype(constant)::value;
    write_all(bucket, nullptr, [&](Element element, unsigned place) {
      return element_from<kCombine>(bucket, element, place, __ldcg(map + place));
    });
  });
}

#endif

__device__ inline Cell* map_of(const Buckets& of, unsigned slot) {
  return static_cast<Cell*>(of.maps) + (static_cast<Offset>(slot) << of.bucket_log);
}

}  // namespace

// A block a bucket. Of crowded ones, the map is prepared.
extern "C" __global__ void __launch_bounds__(kMaxThreads, kBlocks)
    scatter_bucket(char* output, const char* input, const char* updates,
                   const __grid_constant__ Places tuples, const __grid_constant__ Buckets of,
                   int reduction, const __grid_constant__ BadIndexReport report) {
  extern __shared__ uint4 memory[];
  anydml::let_next_begin();
  const Bucket bucket(of, updates, tuples, input, output, blockIdx.x);
  const Ahead ahead(bucket, !of.in_place);
  Cell* const words = reinterpret_cast<Cell*>(memory);
  clear(bucket, words);
  anydml::await_previous();
  const unsigned begin = bucket.begin(), end = bucket.end();
  if (is_done(of.order, of.moves == 0) || bad_index_found(report)) return;
  if (end - begin <= kCrowded) return fill(bucket, ahead, begin, end, words, reduction);
  begin_map(bucket, map_of(of, __ldcg(of.slots + blockIdx.x)), reduction);
}

// Crowded buckets, a block a piece; the last one of a bucket writes it.
extern "C" __global__ void __launch_bounds__(kMaxThreads, kBlocks)
    scatter_crowded(char* output, const char* input, const char* updates,
                    const __grid_constant__ Places tuples, const __grid_constant__ Buckets of,
                    int reduction, const __grid_constant__ BadIndexReport report) {
  extern __shared__ uint4 memory[];
  __shared__ bool last;
  anydml::let_next_begin();
  anydml::await_previous();
  if (is_done(of.order, of.moves == 0) || bad_index_found(report)) return;
  for (unsigned i = blockIdx.x; i < of.state->pieces; i += gridDim.x) {
    const Piece piece = of.pieces[i];
    const Bucket bucket(of, updates, tuples, input, output, piece.bucket);
    Cell* const map = map_of(of, piece.slot);
    const unsigned first = bucket.begin() + piece.first, end = bucket.end();
    add_piece(bucket, first, end - first < kCrowded ? end : first + kCrowded,
              reinterpret_cast<Cell*>(memory), map, reduction);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicSub(of.left + piece.slot, 1u) == 1;
    __syncthreads();
    __threadfence();
    if (last) end_map(bucket, map, reduction);
    __syncthreads();
  }
}

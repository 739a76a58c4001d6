// Handling of indices out of range: kernels record the first one of a call in device memory, and a
// later kernel of the same call writes it to mapped host memory. Nothing waits for anything else.
#pragma once

#include "runtime/cuda/walk.cuh"

namespace anydml::cuda {

// The first bad index of a call; all zeros until there is one. Part i is the complement of the
// position, with bits [16 i, 16 i + 16) of the value below it: so each is found by a maximum, and
// no lock is needed. A position has 48 bits (layout.hpp). Where two threads read an index that
// changes in between, the value may be of both.
struct BadIndexSlot {
  static constexpr int kParts = 4;
  unsigned long long parts[kParts];
  unsigned done;  // blocks that have ended, in a kernel that ends its own call
  unsigned unused[7];
};

struct BadIndexEntry {
  unsigned long long number;  // from 1 on: written last, when everything else is written
  unsigned long long call;
  Offset position, value;
};

// In mapped host memory. Reports that do not fit are dropped: the host then has not polled for so
// long that it has an error to raise in any case.
struct BadIndexPage {
  static constexpr int kEntries = 256;
  unsigned long long taken;  // by the host
  BadIndexEntry entries[kEntries];
};

// Passed to kernels by value. Without a slot (indices that are clamped) there is nothing to report.
struct BadIndexReport {
  BadIndexSlot* slot;
  BadIndexPage* page;
  unsigned long long* published;  // how many entries, on the device
  unsigned long long call;
};

constexpr unsigned kPublishThreads = 1024;

#if defined(__CUDACC__)
// Whether a bad index has been found: reliable in kernels that run after those that check.
__device__ inline bool bad_index_found(const BadIndexReport& report) {
  return report.slot != nullptr &&
         *const_cast<const volatile unsigned long long*>(report.slot->parts) != 0;
}

// Called by any thread that finds a bad index, with its position in row-major order of the index
// tensor. Of the active threads of a warp only one reports.
__device__ inline void report_bad_index(const BadIndexReport& report, Offset position,
                                        Offset value) {
  const unsigned here = __activemask();
  const unsigned high = static_cast<unsigned>(position >> 32);
  const unsigned low = static_cast<unsigned>(position);
  const unsigned least_high = __reduce_min_sync(here, high);
  if (__reduce_min_sync(here, high == least_high ? low : ~0u) != low || high != least_high) return;
  const unsigned long long known =
      *const_cast<const volatile unsigned long long*>(report.slot->parts);
  if (known != 0 && static_cast<Offset>(~known >> 16) <= position) return;
#pragma unroll
  for (int i = 0; i < BadIndexSlot::kParts; ++i)
    atomicMax(report.slot->parts + i,
              ~(static_cast<unsigned long long>(position) << 16 |
                (static_cast<unsigned long long>(value) >> (16 * i) & 0xFFFFull)));
}

// Called by one thread, after all reports and all reads of them: publishes the report to the host
// and resets the slot.
__device__ inline void publish_bad_index(const BadIndexReport& report) {
  unsigned long long parts[BadIndexSlot::kParts], value = 0;
#pragma unroll
  for (int i = 0; i < BadIndexSlot::kParts; ++i) {
    parts[i] = atomicExch(report.slot->parts + i, 0ull);
    value |= (~parts[i] & 0xFFFFull) << (16 * i);
  }
  if (parts[0] == 0) return;
  const volatile unsigned long long* const taken = &report.page->taken;
  unsigned long long number = *const_cast<volatile unsigned long long*>(report.published);
  for (;;) {
    if (number - *taken >= BadIndexPage::kEntries) return;
    const unsigned long long found = atomicCAS(report.published, number, number + 1);
    if (found == number) break;
    number = found;
  }
  volatile BadIndexEntry& entry = report.page->entries[number % BadIndexPage::kEntries];
  entry.call = report.call;
  entry.position = static_cast<Offset>(~parts[0] >> 16);
  entry.value = static_cast<Offset>(value);
  __threadfence_system();
  entry.number = number + 1;
}

// Fills with zeros, by a whole block.
__device__ inline void clear_result(char* result, Offset bytes) {
  Offset head = -reinterpret_cast<Offset>(result) & 15;
  if (head > bytes) head = bytes;
  const Offset lines = (bytes - head) / 16, tail = head + lines * 16;
  if (threadIdx.x < head) result[threadIdx.x] = 0;
  if (tail + threadIdx.x < bytes) result[tail + threadIdx.x] = 0;
  uint4* const line = reinterpret_cast<uint4*>(result + head);
  for (Offset i = threadIdx.x; i < lines; i += blockDim.x) line[i] = {0, 0, 0, 0};
}

// Called by all blocks of the last kernel of a call, at their end. The last block does what
// bad_index_publish does.
__device__ inline void publish_report_by_last_block(const BadIndexReport& report, char* result,
                                                    Offset bytes) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&report.slot->done, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (threadIdx.x == 0) report.slot->done = 0;
  if (!bad_index_found(report)) return;
  clear_result(result, bytes);
  __syncthreads();
  if (threadIdx.x == 0) publish_bad_index(report);
}
#endif

}  // namespace anydml::cuda

// An update on its way to the bucket of its element (scatter_buckets.cpp): the element's place in
// the bucket, which update it is, and its value.
#pragma once

#include "runtime/cuda/order.cuh"
#include "scatter/cuda/scatter_device.cuh"

namespace anydml::cuda {

// Numbered: by its number among all updates. Else by its group among those of its epoch, which is
// enough where no two of a group name one element, in the bits that the place leaves.
template <class Element, bool kNumbered>
struct RecordOf {
  unsigned bits, value;

  static __device__ RecordOf make(unsigned place, unsigned, unsigned in_epoch, unsigned bucket_log,
                                  Element element) {
    RecordOf record{in_epoch / kGroup << bucket_log | place, 0};
    *reinterpret_cast<Element*>(&record.value) = element;
    return record;
  }
  __device__ unsigned place(unsigned bucket_log) const { return bits & ((1u << bucket_log) - 1); }
  // The greater, the later; not 0.
  __device__ unsigned order(unsigned epoch, unsigned bucket_log) const {
    return (epoch << (32 - bucket_log) | bits >> bucket_log) + 1;
  }
  __device__ Element element() const { return *reinterpret_cast<const Element*>(&value); }
};
template <class Element>
struct alignas(16) RecordOf<Element, true> {
  unsigned in_bucket, number;
  unsigned long long value;

  static __device__ RecordOf make(unsigned place, unsigned number, unsigned, unsigned,
                                  Element element) {
    RecordOf record{place, number, 0};
    *reinterpret_cast<Element*>(&record.value) = element;
    return record;
  }
  __device__ unsigned place(unsigned) const { return in_bucket; }
  __device__ unsigned order(unsigned, unsigned) const { return number + 1; }
  __device__ Element element() const { return *reinterpret_cast<const Element*>(&value); }
};

}  // namespace anydml::cuda

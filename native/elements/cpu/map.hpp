// Elementwise kernels: the walk over two layouts that all of them share.
#pragma once

#include "runtime/plans.hpp"

namespace anydml {

// The maximum count of elements in one call of a map.
constexpr Int kMapBlock = 1024;

// Makes `count` packed elements of the output from as many packed elements of the input, which do
// not overlap unless they are the same and of one size.
class ElementMap {
 public:
  virtual ~ElementMap() = default;
  virtual void run(const char* source, char* target, Int count) const = 0;
};

// Output and input have the same sizes; they do not overlap unless they are the very same elements.
// Large outputs go past the cache.
void map_elements(const ElementMap& map, const Tensor& output, void* target, const Tensor& input,
                  const void* source, int threads);

}  // namespace anydml

// Separate from the pool, because the fuzzer replaces it by blocks of exactly the requested size.
#include "runtime/cpu/memory.hpp"

namespace anydml {

void* scratch_acquire(Int count, std::size_t element_size) {
  std::size_t bytes;
  if (count < 0 || __builtin_mul_overflow(static_cast<std::size_t>(count), element_size, &bytes))
    bytes = ~std::size_t{0};
  void* const block = pool_acquire(bytes);
  if (block == nullptr) throw AllocationFailed(bytes, "scratch");
  return block;
}

}  // namespace anydml

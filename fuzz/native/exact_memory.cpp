// The kernels' scratch without any slack: of exactly the size asked for, so that the address
// sanitizer sees the first byte beyond it, and full of a pattern, so that what is read before it is
// written gives a wrong result.
#include <cstdlib>
#include <cstring>

#include "runtime/cpu/memory.hpp"

namespace anydml {

void* pool_acquire(std::size_t bytes) {
  void* block = nullptr;
  if (bytes > (std::size_t{1} << 30) || posix_memalign(&block, 64, bytes) != 0) return nullptr;
  std::memset(block, 0xA5, bytes);
  return block;
}

void pool_release(void* block) { std::free(block); }

}  // namespace anydml

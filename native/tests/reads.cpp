// An empty test hook for reads that another thread could change (ANYDML_TEST_READS), for the tests
// that do not define their own.
#include "common/layout.hpp"

namespace anydml {

[[gnu::weak]] void on_read(const char*, char*, Int) {}

namespace top_k {
[[gnu::weak]] void before_reading(const void*, Int, Int, int) {}
}  // namespace top_k

}  // namespace anydml

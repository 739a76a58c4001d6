// The fuzzer of the native entry points: the first byte chooses a kernel, the others decide
// everything about a call of it, whose result is compared with plain loops.
#include "case.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace anydml::fuzz;
  void (*const families[])(Bytes&) = {fuzz_top_k,      fuzz_nonzero,         fuzz_scatter,
                                      fuzz_scatter_nd, fuzz_slabs,           fuzz_copy,
                                      fuzz_gather,     fuzz_gather_elements, fuzz_gather_nd};
  Bytes bytes(data, size);
  families[bytes.number(8)](bytes);
  return 0;
}

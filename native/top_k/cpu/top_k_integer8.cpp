// TOP_K of integers of 64 bits, signed and unsigned, greatest and smallest.
#include "top_k/cpu/top_k_run.hpp"

namespace anydml::top_k {

void run_integer8(const Job& job) { Rows<IntegerOrder<8>>(job).run(); }

}  // namespace anydml::top_k

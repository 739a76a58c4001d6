// TOP_K of floats of 64 bits.
#include "top_k/cpu/top_k_run.hpp"

namespace anydml::top_k {

void run_float8(const Job& job) { Rows<FloatOrder<8>>(job).run(); }

}  // namespace anydml::top_k

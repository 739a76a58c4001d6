// TOP_K of floats of 16 bits.
#include "top_k/cpu/top_k_run.hpp"

namespace anydml::top_k {

void run_float2(const Job& job) { Rows<FloatOrder<2>>(job).run(); }

}  // namespace anydml::top_k

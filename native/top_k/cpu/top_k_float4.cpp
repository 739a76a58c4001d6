// TOP_K of floats of 32 bits.
#include "top_k/cpu/top_k_run.hpp"

namespace anydml::top_k {

void run_float4(const Job& job) { Rows<FloatOrder<4>>(job).run(); }

}  // namespace anydml::top_k

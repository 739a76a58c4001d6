// TOP_K of bfloat16.
#include "top_k/cpu/top_k_run.hpp"

namespace anydml::top_k {

void run_bfloat(const Job& job) { Rows<FloatOrder<2, kBfloatInfinity>>(job).run(); }

}  // namespace anydml::top_k

// TOP_K of floats.
#include "top_k_run.hpp"

namespace anydml::top_k {

void run_float2(const Job& job) { Rows<FloatOrder<2>>(job).run(); }
void run_float4(const Job& job) { Rows<FloatOrder<4>>(job).run(); }
void run_float8(const Job& job) { Rows<FloatOrder<8>>(job).run(); }

}  // namespace anydml::top_k

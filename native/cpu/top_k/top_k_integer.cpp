// TOP_K of integers: signed, unsigned, greatest and smallest are one kernel for each width.
#include "top_k_run.hpp"

namespace anydml::top_k {

void run_integer1(const Job& job) { Rows<IntegerOrder<1>>(job).run(); }
void run_integer2(const Job& job) { Rows<IntegerOrder<2>>(job).run(); }
void run_integer4(const Job& job) { Rows<IntegerOrder<4>>(job).run(); }
void run_integer8(const Job& job) { Rows<IntegerOrder<8>>(job).run(); }

}  // namespace anydml::top_k

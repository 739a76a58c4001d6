// Kernels of the movers on operands that Python has checked.
#include <string>

#include "calls.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

Operand operand(nb::handle object, const char* name, bool output) {
  Operand found;
  if (!operand_of(object.ptr(), found) || (output && !PyArray_ISWRITEABLE(found.array)))
    raise_argument(std::string(name) + ": expected " + (output ? "a writable" : "an") +
                   " ndarray of a supported type");
  return found;
}

void same_sizes(const char* call, const Tensor& a, const Tensor& b) {
  bool same = a.layout.rank == b.layout.rank;
  for (int i = 0; same && i < a.layout.rank; ++i) same = a.layout.sizes[i] == b.layout.sizes[i];
  if (!same) raise_argument(std::string(call) + ": expected operands of the same sizes");
}

void known(const char* call, const Tensor& tensor) {
  if (tensor.type == DataType::unknown)
    raise_argument(std::string(call) + ": expected operands of types with numbers");
}

void cast(nb::handle input, nb::handle output, int threads) {
  const Operand in = operand(input, "input", false), out = operand(output, "output", true);
  same_sizes("cast", in.tensor, out.tensor);
  known("cast", in.tensor);
  known("cast", out.tensor);
  const CastPlan plan{in.tensor, out.tensor};
  unlocked(in.tensor.layout.count(), [&] { plan.run(in.data, out.data, threads); });
}

}  // namespace

void bind_movers(nb::module_& module) { module.def("cast", named("cast", &cast)); }

}  // namespace anydml::python

#include <limits>

#include "python/shape_rules.hpp"
#include "runtime/cuda/plans.hpp"

namespace anydml::python {
namespace {

// ---- reverse_subsequences

const char* reverse_shape(const Call& call, Results& results) {
  const Operand& in = call.operands[0];
  const Tensor& lengths = call.operands[1].tensor;
  const Layout& layout = in.tensor.layout;
  const int axis = to_axis(call.numbers[0]);
  if (!has(axis, layout)) return kAxis;
  if (lengths.layout.rank != layout.rank) return kRank;
  if (!is_index_type(lengths.type)) return "lengths of another type than indices have";
  if (!same_sizes(lengths.layout, layout, axis) || lengths.layout.sizes[axis] != 1) return kSizes;
  same_as(results, in);
  return nullptr;
}

ReversePlan reverse_of(const Call& call) {
  return {call.operands[0].tensor, call.operands[1].tensor, call.operands[2].tensor,
          to_axis(call.numbers[0])};
}

// Array functions reject negative lengths, which the kernel takes as 0.
Int reverse_run(const Call& call) {
  const bool declined =
      call.may_decline && !all_within(call.operands[1], std::numeric_limits<Int>::max());
  return declined ? kDeclined : planned<reverse_of, cuda::reverse_subsequences>().run(call);
}

const Registration reverse_subsequences{{
    .name = "reverse_subsequences",
    .inputs = 2,
    .outputs = 1,
    .attributes = {{"axis"}},
    .shape = reverse_shape,
    .runs = {reverse_run, planned<reverse_of, cuda::reverse_subsequences>().enqueue},
    .arguments = {{Argument::integer}},
    .attribute_numbers = axis_numbers<1>,
    .variants = cuda::image_variants,
}};

// ---- upsample

const Words kInterpolations{
#define ANYDML_INTERPOLATION(name) #name,
#include "common/modes.def"
};

// numbers: mode, height, width.
const char* upsample_shape(const Call& call, Results& results) {
  const Operand& in = call.operands[0];
  const Layout& layout = in.tensor.layout;
  if (layout.rank < 2) return kRank;
  if (call.numbers[0] != 0 && in.tensor.type != DataType::float32 &&
      in.tensor.type != DataType::float16)
    return "input: expected float32 or float16 for interpolation";
  same_as(results, in);
  for (int i = layout.rank - 2; i < layout.rank; ++i) {
    const Int scale = call.numbers[i - layout.rank + 3];
    Int expected;
    if (scale < 1 || scale > Int{1} << 32 ||
        __builtin_mul_overflow(scale, layout.sizes[i], &expected))
      return "scales: expected 1 or more, and a result within 2^63 elements on an axis";
    results.one[0].dims[i] = expected;
  }
  return nullptr;
}

UpsamplePlan upsample_of(const Call& call) {
  return {call.operands[0].tensor, call.operands[1].tensor, call.numbers[1], call.numbers[2],
          call.numbers[0] != 0};
}

const Registration upsample{{
    .name = "upsample",
    .inputs = 1,
    .outputs = 1,
    .attributes = {{"mode", &kInterpolations}, {"height"}, {"width"}},
    .shape = upsample_shape,
    .runs = planned<upsample_of, cuda::upsample>(),
    .variants = cuda::image_variants,
}};

}  // namespace
}  // namespace anydml::python

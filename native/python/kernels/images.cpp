#include "../../cpu/runtime/read_once.hpp"
#include "../fit.hpp"

namespace anydml::python {
namespace {

// ---- reverse_subsequences

// numbers: axis.
const char* reverse_misfit(const Call& call) {
  const Tensor &in = call.operands[0].tensor, &lengths = call.operands[1].tensor,
               &out = call.operands[2].tensor;
  if (call.number_count != 1) return kNumbers;
  const int axis = small(call.numbers[0]);
  if (!has(axis, in.layout)) return kAxis;
  if (out.layout.rank != in.layout.rank || lengths.layout.rank != in.layout.rank) return kRank;
  if (!same_element(in, out)) return kElements;
  if (!is_index(lengths.type)) return "lengths of another type than indices have";
  if (!same_sizes(out.layout, in.layout) || !same_sizes(lengths.layout, in.layout, axis) ||
      lengths.layout.sizes[axis] != 1)
    return kSizes;
  return nullptr;
}

ReversePlan reverse_of(const Call& call) {
  return {call.operands[0].tensor, call.operands[1].tensor, call.operands[2].tensor,
          small(call.numbers[0])};
}

// Array functions refuse negative lengths, which the kernel takes for 0.
template <class T>
bool any_negative(const Operand& lengths) {
  const Layout& layout = lengths.tensor.layout;
  const char* const data = static_cast<const char*>(lengths.data);
  const Int count = layout.count();
  for (Int i = 0; i < count; ++i)
    if (read_once<T>(data + offset_at(layout, i)) < 0) return true;
  return false;
}
bool has_negative(const Operand& lengths) {
  if (lengths.tensor.type == DataType::int32) return any_negative<std::int32_t>(lengths);
  return lengths.tensor.type == DataType::int64 && any_negative<std::int64_t>(lengths);
}

Int reverse_run(const Call& call) {
  const Operand &in = call.operands[0], &lengths = call.operands[1], &out = call.operands[2];
  if (call.output_is_private && has_negative(lengths)) return kDeclined;
  const ReversePlan plan = reverse_of(call);
  without_gil(out.tensor.layout.count(),
              [&] { plan.run(in.data, lengths.data, out.data, call.threads); });
  return -1;
}

void reverse_enqueue(const Call& call, cuda::Queue& queue) {
  cuda::reverse_subsequences(reverse_of(call), call.operands[0].data, call.operands[1].data,
                             call.operands[2].data, queue);
}

// arguments: axis.
bool reverse_shape(const Quick& quick, Int* numbers, Results& results) {
  const Operand &in = quick.inputs[0], &lengths = quick.inputs[1];
  const Layout &layout = in.tensor.layout, &given = lengths.tensor.layout;
  int axis = 0;
  if (!axis_in(quick.arguments[0], layout, axis) || !is_index(lengths.tensor.type) ||
      !same_sizes(given, layout, axis) || given.sizes[axis] != 1)
    return false;
  begin(results.one[0], "the result", in);
  push(results.one[0], layout, 0, layout.rank);
  numbers[0] = axis;
  return true;
}

const Registration reverse_subsequences{{
    .name = "reverse_subsequences",
    .inputs = 2,
    .outputs = 1,
    .attributes = {{"axis"}},
    .misfit = reverse_misfit,
    .run = reverse_run,
    .arguments = {{Argument::integer}},
    .shape = reverse_shape,
    .enqueue = reverse_enqueue,
}};

// ---- upsample

const Words kInterpolations{"nearest_neighbor", "linear"};

// numbers: mode, height, width.
const char* upsample_misfit(const Call& call) {
  const Tensor &in = call.operands[0].tensor, &out = call.operands[1].tensor;
  const int rank = in.layout.rank;
  if (call.number_count != 3) return kNumbers;
  if (rank < 2 || out.layout.rank != rank) return kRank;
  if (!same_element(in, out)) return kElements;
  if (call.numbers[0] != 0 && in.type != DataType::float32 && in.type != DataType::float16)
    return "a type without means";
  for (int i = 0; i < rank; ++i) {
    const Int scale = i < rank - 2 ? 1 : call.numbers[i - rank + 3];
    Int wanted;
    if (scale < 1 || scale > Int{1} << 32 ||
        __builtin_mul_overflow(scale, in.layout.sizes[i], &wanted) || out.layout.sizes[i] != wanted)
      return "an output of other sizes than input and scales";
  }
  return nullptr;
}

UpsamplePlan upsample_of(const Call& call) {
  return {call.operands[0].tensor, call.operands[1].tensor, call.numbers[1], call.numbers[2],
          call.numbers[0] != 0};
}

void upsample_enqueue(const Call& call, cuda::Queue& queue) {
  cuda::upsample(upsample_of(call), call.operands[0].data, call.operands[1].data, queue);
}

Int upsample_run(const Call& call) {
  const Operand &in = call.operands[0], &out = call.operands[1];
  const UpsamplePlan plan = upsample_of(call);
  without_gil(out.tensor.layout.count(), [&] { plan.run(in.data, out.data, call.threads); });
  return -1;
}

const Registration upsample{{
    .name = "upsample",
    .inputs = 1,
    .outputs = 1,
    .attributes = {{"mode", &kInterpolations}, {"height"}, {"width"}},
    .misfit = upsample_misfit,
    .run = upsample_run,
    .enqueue = upsample_enqueue,
}};

}  // namespace
}  // namespace anydml::python

#include <algorithm>
#include <bit>

#include "../../cpu/runtime/copy.hpp"
#include "../fit.hpp"

namespace anydml::python {
namespace {

const char* same_shape(const Call& call) {
  const Tensor &in = call.operands[0].tensor, &out = call.operands[1].tensor;
  if (out.layout.rank != in.layout.rank) return kRank;
  return same_sizes(out.layout, in.layout) ? nullptr : kSizes;
}

const char* cast_misfit(const Call& call) {
  for (int i = 0; i < 2; ++i)
    if (call.operands[i].tensor.type == DataType::unknown) return "a type without numbers";
  return same_shape(call);
}

CastPlan cast_of(const Call& call) { return {call.operands[0].tensor, call.operands[1].tensor}; }

Int cast_run(const Call& call) {
  const Operand &in = call.operands[0], &out = call.operands[1];
  without_gil(in.tensor.layout.count(),
              [&] { cast_of(call).run(in.data, out.data, call.threads); });
  return -1;
}

void cast_enqueue(const Call& call, cuda::Queue& queue) {
  cuda::cast(cast_of(call), call.operands[0].data, call.operands[1].data, queue);
}

// arguments: the type.
bool cast_shape(const Quick& quick, Int*, Results& results) {
  const Operand& in = quick.inputs[0];
  auto* const to = reinterpret_cast<PyArray_Descr*>(quick.arguments[0]);
  DataType type;
  int size;
  if (in.tensor.type == DataType::unknown || !element_of(to, type, size) ||
      type == DataType::unknown)
    return false;
  begin(results.one[0], "the result", in);
  results.one[0].descr = to;
  push(results.one[0], in.tensor.layout, 0, in.tensor.layout.rank);
  return true;
}

const Registration cast{{
    .name = "cast",
    .inputs = 1,
    .outputs = 1,
    .attributes = {},
    .misfit = cast_misfit,
    .run = cast_run,
    .arguments = {{Argument::type}},
    .shape = cast_shape,
    .enqueue = cast_enqueue,
}};

// numbers: whether scaled, scale, bias.
const char* identity_misfit(const Call& call) {
  const Tensor &in = call.operands[0].tensor, &out = call.operands[1].tensor;
  if (call.number_count != 3) return kNumbers;
  if (call.numbers[0] != 0 && (in.type == DataType::unknown || in.type == DataType::bfloat16))
    return "a type without numbers";
  return same_element(in, out) ? same_shape(call) : kElements;
}

IdentityPlan identity_of(const Call& call) {
  return {call.operands[0].tensor, call.operands[1].tensor, call.numbers[0] != 0,
          std::bit_cast<double>(call.numbers[1]), std::bit_cast<double>(call.numbers[2])};
}

void identity_enqueue(const Call& call, cuda::Queue& queue) {
  cuda::identity(identity_of(call), call.operands[0].data, call.operands[1].data, queue);
}

Int identity_run(const Call& call) {
  const Operand &in = call.operands[0], &out = call.operands[1];
  const IdentityPlan plan = identity_of(call);
  without_gil(in.tensor.layout.count(), [&] { plan.run(in.data, out.data, call.threads); });
  return -1;
}

const Registration identity{{
    .name = "identity",
    .inputs = 1,
    .outputs = 1,
    .attributes = {{"scaled"}, {"scale"}, {"bias"}},
    .misfit = identity_misfit,
    .run = identity_run,
    .enqueue = identity_enqueue,
}};

// numbers: start, delta; of a float by the bits of a double.
const char* sequence_misfit(const Call& call) {
  const DataType type = call.operands[0].tensor.type;
  if (call.number_count != 2) return kNumbers;
  const bool made = is_integer_type(type) || type == DataType::float32 || type == DataType::float16;
  return made ? nullptr : "a type without sequences";
}

SequencePlan sequence_of(const Call& call) {
  return {call.operands[0].tensor, static_cast<uint64_t>(call.numbers[0]),
          static_cast<uint64_t>(call.numbers[1]), std::bit_cast<double>(call.numbers[0]),
          std::bit_cast<double>(call.numbers[1])};
}

void sequence_enqueue(const Call& call, cuda::Queue& queue) {
  cuda::sequence(sequence_of(call), call.operands[0].data, queue);
}

Int sequence_run(const Call& call) {
  const Operand& out = call.operands[0];
  const SequencePlan plan = sequence_of(call);
  without_gil(out.tensor.layout.count(), [&] { plan.run(out.data, call.threads); });
  return -1;
}

const Registration fill_sequence{{
    .name = "fill_sequence",
    .inputs = 0,
    .outputs = 1,
    .attributes = {{"start"}, {"delta"}},
    .misfit = sequence_misfit,
    .run = sequence_run,
    .enqueue = sequence_enqueue,
}};

// numbers: the two halves of the value.
const char* fill_misfit(const Call& call) { return call.number_count == 2 ? nullptr : kNumbers; }

constexpr Int kNoStarts[kMaxRank] = {};

// A constant is the padding of nothing, in the order of the output's memory.
PaddingPlan filling_of(const Call& call, void*& data) {
  const Operand& out = call.operands[0];
  Tensor to = out.tensor, nothing = out.tensor;
  Int to_shift = 0, from_shift = 0;
  order_by_target(to.layout, to_shift, nothing.layout, from_shift);
  if (to.layout.rank == 0) to.layout.push(1, to.element_size);
  nothing.layout = to.layout;
  std::fill_n(nothing.layout.sizes, to.layout.rank, 0);
  data = static_cast<char*>(out.data) + to_shift;
  return {nothing,
          to,
          kNoStarts,
          PaddingMode::constant,
          {static_cast<uint64_t>(call.numbers[0]), static_cast<uint64_t>(call.numbers[1])}};
}

void fill_enqueue(const Call& call, cuda::Queue& queue) {
  if (call.operands[0].tensor.layout.count() == 0) return;
  void* data;
  const PaddingPlan plan = filling_of(call, data);
  cuda::pad(plan, data, data, queue);
}

Int fill_run(const Call& call) {
  void* data;
  const PaddingPlan plan = filling_of(call, data);
  without_gil(plan.output.layout.count(), [&] { plan.run(data, data, call.threads); });
  return -1;
}

const Registration fill_constant{{
    .name = "fill_constant",
    .inputs = 0,
    .outputs = 1,
    .attributes = {{"value"}},
    .misfit = fill_misfit,
    .run = fill_run,
    .enqueue = fill_enqueue,
}};

// numbers: the repeats.
const char* tile_misfit(const Call& call) {
  const Tensor &in = call.operands[0].tensor, &out = call.operands[1].tensor;
  const int rank = in.layout.rank;
  if (call.number_count != static_cast<std::size_t>(rank)) return kNumbers;
  if (out.layout.rank != rank) return kRank;
  if (!same_element(in, out)) return kElements;
  for (int i = 0; i < rank; ++i) {
    Int wanted;
    if (call.numbers[i] < 0 || __builtin_mul_overflow(call.numbers[i], in.layout.sizes[i], &wanted))
      return "repeats below 0 or too many";
    if (out.layout.sizes[i] != wanted) return "an output of other sizes than input and repeats";
  }
  return nullptr;
}

// The input again and again is its padding from the other end.
PaddingPlan tiling_of(const Call& call) {
  return {call.operands[0].tensor, call.operands[1].tensor, kNoStarts, PaddingMode::wrap};
}

void tile_enqueue(const Call& call, cuda::Queue& queue) {
  cuda::pad(tiling_of(call), call.operands[0].data, call.operands[1].data, queue);
}

Int tile_run(const Call& call) {
  const Operand &in = call.operands[0], &out = call.operands[1];
  const PaddingPlan plan = tiling_of(call);
  without_gil(out.tensor.layout.count(), [&] { plan.run(in.data, out.data, call.threads); });
  return -1;
}

// arguments: the repeats, for the last axes.
bool tile_shape(const Quick& quick, Int* numbers, Results& results) {
  const Operand& in = quick.inputs[0];
  const Layout& layout = in.tensor.layout;
  const Integers& repeats = quick.integers[0];
  const int without = layout.rank - repeats.count;
  if (without < 0 || (repeats.depth != Integers::number && repeats.depth != Integers::list))
    return false;
  begin(results.one[0], "the result", in);
  for (int i = 0; i < layout.rank; ++i) {
    numbers[i] = 1;
    Int wanted;
    if ((i >= without && !repeats.get(i - without, numbers[i])) || numbers[i] < 0 ||
        __builtin_mul_overflow(numbers[i], layout.sizes[i], &wanted))
      return false;
    results.one[0].dims[results.one[0].rank++] = wanted;
  }
  return true;
}

const Registration tile{{
    .name = "tile",
    .inputs = 1,
    .outputs = 1,
    .attributes = {{"repeats"}},
    .misfit = tile_misfit,
    .run = tile_run,
    .arguments = {{Argument::integers}},
    .shape = tile_shape,
    .enqueue = tile_enqueue,
}};

const Words kModes{"constant", "edge", "reflection", "symmetric", "wrap"};

// numbers: mode, the two halves of the value, starts, ends.
const char* pad_misfit(const Call& call) {
  const Tensor &in = call.operands[0].tensor, &out = call.operands[1].tensor;
  const int rank = in.layout.rank;
  if (call.number_count != 3 + 2 * static_cast<std::size_t>(rank)) return kNumbers;
  if (out.layout.rank != rank) return kRank;
  if (!same_element(in, out)) return kElements;
  const Int* const starts = call.numbers + 3;
  for (int i = 0; i < rank; ++i) {
    const Int start = starts[i], end = starts[rank + i], size = in.layout.sizes[i];
    Int sum;
    if (start < 0 || end < 0 || __builtin_add_overflow(start, end, &sum) ||
        __builtin_add_overflow(sum, size, &sum) || out.layout.sizes[i] != sum)
      return "an output of other sizes than input and paddings";
    if (size == 0 && sum > 0 && call.numbers[0] != 0) return "no element to pad with";
  }
  return nullptr;
}

PaddingPlan padding_of(const Call& call) {
  return {call.operands[0].tensor,
          call.operands[1].tensor,
          call.numbers + 3,
          static_cast<PaddingMode>(call.numbers[0]),
          {static_cast<uint64_t>(call.numbers[1]), static_cast<uint64_t>(call.numbers[2])}};
}

void pad_enqueue(const Call& call, cuda::Queue& queue) {
  cuda::pad(padding_of(call), call.operands[0].data, call.operands[1].data, queue);
}

Int pad_run(const Call& call) {
  const Operand &in = call.operands[0], &out = call.operands[1];
  const PaddingPlan plan = padding_of(call);
  without_gil(out.tensor.layout.count(), [&] { plan.run(in.data, out.data, call.threads); });
  return -1;
}

const Words kModesOfCalls{"constant", "edge", "reflection", "symmetric", "wrap", "reflect"};
constexpr Int kReflection = 2, kReflect = 5;

// arguments: how many elements, mode, value.
bool pad_shape(const Quick& quick, Int* numbers, Results& results) {
  const Operand& in = quick.inputs[0];
  const Layout& layout = in.tensor.layout;
  const Integers& width = quick.integers[0];
  const int rank = layout.rank;
  const bool fits = width.depth == Integers::number ||
                    (width.depth == Integers::list && width.count == 2) ||
                    (width.depth == Integers::pairs && width.count == 2 * rank);
  if (!fits) return false;
  numbers[0] = quick.arguments[1] == kReflect ? kReflection : quick.arguments[1];
  numbers[1] = quick.arguments[2];
  numbers[2] = 0;
  begin(results.one[0], "the result", in);
  for (int i = 0; i < rank; ++i) {
    const int own = width.depth == Integers::pairs ? 2 * i : 0;
    const Int size = layout.sizes[i];
    Int start = 0, end = 0, sum;
    if (!width.get(own, start) || !width.get(width.depth == Integers::number ? 0 : own + 1, end) ||
        start < 0 || end < 0 || __builtin_add_overflow(start, end, &sum) ||
        (size == 0 && sum > 0 && numbers[0] != 0) || __builtin_add_overflow(sum, size, &sum))
      return false;
    numbers[3 + i] = start;  // what is behind the input, its size and the output's tell
    results.one[0].dims[results.one[0].rank++] = sum;
  }
  return true;
}

const Registration pad{{
    .name = "pad",
    .inputs = 1,
    .outputs = 1,
    .attributes = {{"mode", &kModes}, {"value"}, {"starts"}, {"ends"}},
    .misfit = pad_misfit,
    .run = pad_run,
    .arguments = {{Argument::integers}, {Argument::word, &kModesOfCalls}, {Argument::constant}},
    .shape = pad_shape,
    .enqueue = pad_enqueue,
}};

}  // namespace
}  // namespace anydml::python

#include <algorithm>
#include <bit>

#include "python/shape_rules.hpp"
#include "runtime/cpu/copy.hpp"
#include "runtime/cuda/plans.hpp"

namespace anydml::python {
namespace {

const char* cast_shape(const Call& call, Results& results) {
  const Operand& in = call.operands[0];
  if (in.tensor.type == DataType::unknown) return "result: expected a type of numbers";
  begin(results.one[0], "the result", Results::number);
  push(results.one[0], in.tensor.layout, 0, in.tensor.layout.rank);
  return nullptr;
}

bool no_numbers(const FunctionCall&, Int*, Results&) { return true; }

CastPlan cast_of(const Call& call) { return {call.operands[0].tensor, call.operands[1].tensor}; }

const Registration cast{{
    .name = "cast",
    .inputs = 1,
    .outputs = 1,
    .attributes = {},
    .shape = cast_shape,
    .runs = planned<cast_of, cuda::cast>(),
    .arguments = {{Argument::type}},
    .attribute_numbers = no_numbers,
    .variants = cuda::data_movement_variants,
}};

// numbers: whether scaled, scale, bias.
const char* identity_shape(const Call& call, Results& results) {
  const DataType type = call.operands[0].tensor.type;
  if (call.numbers[0] != 0 && (type == DataType::unknown || type == DataType::bfloat16))
    return "result: expected a type of numbers";
  same_as(results, call.operands[0]);
  return nullptr;
}

IdentityPlan identity_of(const Call& call) {
  return {call.operands[0].tensor, call.operands[1].tensor, call.numbers[0] != 0,
          std::bit_cast<double>(call.numbers[1]), std::bit_cast<double>(call.numbers[2])};
}

const Registration identity{{
    .name = "identity",
    .inputs = 1,
    .outputs = 1,
    .attributes = {{"scaled"}, {"scale"}, {"bias"}},
    .shape = identity_shape,
    .runs = planned<identity_of, cuda::identity>(),
    .variants = cuda::data_movement_variants,
}};

// numbers: start, delta; of a float by the bits of a double.
const char* sequence_shape(const Call&, Results& results) {
  begin(results.one[0], "the result", Results::sequence);
  results.one[0].rank = kAnyRank;
  return nullptr;
}

SequencePlan sequence_of(const Call& call) {
  return {call.operands[0].tensor, static_cast<uint64_t>(call.numbers[0]),
          static_cast<uint64_t>(call.numbers[1]), std::bit_cast<double>(call.numbers[0]),
          std::bit_cast<double>(call.numbers[1])};
}

const Registration fill_sequence{{
    .name = "fill_sequence",
    .inputs = 0,
    .outputs = 1,
    .attributes = {{"start"}, {"delta"}},
    .shape = sequence_shape,
    .runs = planned<sequence_of, cuda::sequence>(),
    .variants = cuda::data_movement_variants,
}};

// numbers: the two halves of the value.
const char* fill_shape(const Call&, Results& results) {
  begin(results.one[0], "the result", Results::any);
  results.one[0].rank = kAnyRank;
  return nullptr;
}

constexpr Int kNoStarts[kMaxRank] = {};

// A constant is the padding of an empty input, in the order of the output's memory.
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
  without_gil(plan.output.layout.count(), [&] { run_plan(plan, data, data, call.threads); });
  return -1;
}

const Registration fill_constant{{
    .name = "fill_constant",
    .inputs = 0,
    .outputs = 1,
    .attributes = {{"value", nullptr, Attribute::two}},
    .shape = fill_shape,
    .runs = {fill_run, fill_enqueue},
    .variants = cuda::data_movement_variants,
}};

// numbers: the repeats.
const char* tile_shape(const Call& call, Results& results) {
  same_as(results, call.operands[0]);
  for (int i = 0; i < results.one[0].rank; ++i) {
    Int expected;
    if (call.numbers[i] < 0 ||
        __builtin_mul_overflow(call.numbers[i], results.one[0].dims[i], &expected))
      return "repeats: expected 0 or more, and a result within 2^63 elements on an axis";
    results.one[0].dims[i] = expected;
  }
  return nullptr;
}

// Repeating the input is wrap-around padding at its end.
PaddingPlan tiling_of(const Call& call) {
  return {call.operands[0].tensor, call.operands[1].tensor, kNoStarts, PaddingMode::wrap};
}

// arguments: the repeats, for the last axes.
bool tile_numbers(const FunctionCall& call, Int* numbers, Results&) {
  const int rank = call.inputs[0].tensor.layout.rank;
  const Integers& repeats = call.integers[0];
  const int without = rank - repeats.count;
  if (without < 0 || (repeats.depth != Integers::number && repeats.depth != Integers::list))
    return false;
  for (int i = 0; i < rank; ++i) {
    numbers[i] = 1;
    if (i >= without && !repeats.get(i - without, numbers[i])) return false;
  }
  return true;
}

const Registration tile{{
    .name = "tile",
    .inputs = 1,
    .outputs = 1,
    .attributes = {{"repeats", nullptr, Attribute::per_axis}},
    .shape = tile_shape,
    .runs = planned<tiling_of, cuda::pad>(),
    .arguments = {{Argument::integers}},
    .attribute_numbers = tile_numbers,
    .variants = cuda::data_movement_variants,
}};

const Words kModes{
#define ANYDML_PADDING_MODE(name) #name,
#include "common/modes.def"
};

// numbers: mode, the two halves of the value, starts, ends.
const char* pad_shape(const Call& call, Results& results) {
  same_as(results, call.operands[0]);
  const int rank = results.one[0].rank;
  const Int *const starts = call.numbers + 3, *const ends = starts + rank;
  for (int i = 0; i < rank; ++i) {
    const Int size = results.one[0].dims[i];
    Int sum;
    if (starts[i] < 0 || ends[i] < 0 || __builtin_add_overflow(starts[i], ends[i], &sum) ||
        __builtin_add_overflow(sum, size, &sum))
      return "padding: expected 0 or more, and a result within 2^63 elements on an axis";
    if (size == 0 && sum > 0 && call.numbers[0] != static_cast<Int>(PaddingMode::constant))
      return "input: there is no element to pad with";
    results.one[0].dims[i] = sum;
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

// The users' words: NumPy's word for a reflection comes after the kernel's own.
const Words kModesOfCalls{
#define ANYDML_PADDING_MODE(name) #name,
#include "common/modes.def"
    "reflect"};
const Int kReflection = static_cast<Int>(PaddingMode::reflection);

// arguments: pad widths, mode, value.
bool pad_numbers(const FunctionCall& call, Int* numbers, Results&) {
  const Integers& width = call.integers[0];
  const int rank = call.inputs[0].tensor.layout.rank;
  const bool fits = width.depth == Integers::number ||
                    (width.depth == Integers::list && width.count == 2) ||
                    (width.depth == Integers::pairs && width.count == 2 * rank);
  if (!fits) return false;
  numbers[0] =
      call.arguments[1] == static_cast<Int>(kModes.size()) ? kReflection : call.arguments[1];
  numbers[1] = call.arguments[2];
  numbers[2] = 0;
  for (int i = 0; i < rank; ++i) {
    const int own = width.depth == Integers::pairs ? 2 * i : 0;
    if (!width.get(own, numbers[3 + i]) ||
        !width.get(width.depth == Integers::number ? 0 : own + 1, numbers[3 + rank + i]))
      return false;
  }
  return true;
}

const Registration pad{{
    .name = "pad",
    .inputs = 1,
    .outputs = 1,
    .attributes = {{"mode", &kModes},
                   {"value", nullptr, Attribute::two},
                   {"starts", nullptr, Attribute::per_axis},
                   {"ends", nullptr, Attribute::per_axis}},
    .shape = pad_shape,
    .runs = planned<padding_of, cuda::pad>(),
    .arguments = {{Argument::integers}, {Argument::word, &kModesOfCalls}, {Argument::constant}},
    .attribute_numbers = pad_numbers,
    .variants = cuda::data_movement_variants,
}};

}  // namespace
}  // namespace anydml::python

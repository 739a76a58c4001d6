// Conversions between all types.
//
// Where the level has vectors for a pair of types, a conversion is one pass over them (lanes.hpp);
// elsewhere it is a loop that the compiler vectorizes. FLOAT16 then takes two, with FLOAT32 between
// them: the first step is exact (FLOAT16 to FLOAT32, an integer below 2^24), overflows FLOAT16 in
// any case (an integer above), or keeps what the second needs to round once (FLOAT64). bfloat16
// takes two as well; for it, integers of 32 and 64 bits keep that too.
#include "elements/cpu/cast.hpp"

#include "elements/cpu/convert.hpp"
#include "elements/cpu/lanes.hpp"
#include "runtime/cpu/copy.hpp"
#include "runtime/cpu/with_type.hpp"

namespace anydml {
namespace {

using Step = CastMap::Step;

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<From, Half>)
    return half_to_float(value.bits);
  else if constexpr (std::is_same_v<From, Bfloat>)
    return canonical(bfloat_to_float(value.bits));
  else if constexpr (std::is_same_v<To, Bfloat>)
    return {float_to_bfloat(value)};
  else if constexpr (std::is_same_v<To, Half>)
    return {float_to_half(value)};
  else if constexpr (std::is_floating_point_v<From> && std::is_floating_point_v<To>)
    return canonical(static_cast<To>(value));
  else if constexpr (std::is_floating_point_v<From>)
    return to_integer<To>(value);
  else if constexpr (std::is_floating_point_v<To>)
    return to_float<To>(value);
  else
    return static_cast<To>(value);
}

template <class To, class From>
void convert_elements(const char* __restrict source, char* __restrict target, Int count) {
  if constexpr (kLanes<To, From> != 0)
    for_lanes<kLanes<To, From>, To, From>(source, target, count, lanes::convert<To, From>);
  else
    for (Int i = 0; i < count; ++i)
      store(target + i * Int{sizeof(To)}, convert<To>(load<From>(source + i * Int{sizeof(From)})));
}

// To FLOAT32 with rounding to odd, so that a second rounding gives what one would.
void floats_rounded_to_odd(const char* __restrict source, char* __restrict target, Int count) {
  for (Int i = 0; i < count; ++i) store(target + i * 4, to_odd(load<double>(source + i * 8)));
}

template <class From>
void integers_rounded_to_odd(const char* __restrict source, char* __restrict target, Int count) {
  for (Int i = 0; i < count; ++i)
    store(target + i * 4, to_odd_float(load<From>(source + i * Int{sizeof(From)})));
}

// Whether `convert_elements` has a direct loop for a pair of types.
template <class To, class From>
constexpr bool kDirect = kLanes<To, From> != 0 || (!kIsShortFloat<To> && !kIsShortFloat<From>) ||
                         (kIsShortFloat<To> && std::is_same_v<From, float>) ||
                         (std::is_same_v<To, float> && kIsShortFloat<From>);

// Null if the conversion takes two steps.
Step step_between(DataType from, DataType to) {
  return with_type<Half, Bfloat>(from, [&]<class From>(From) {
    return with_type<Half, Bfloat>(to, []<class To>(To) -> Step {
      if constexpr (std::is_same_v<To, From> || !kDirect<To, From>)
        return nullptr;
      else
        return &convert_elements<To, From>;
    });
  });
}

// The first of two steps: to FLOAT32.
Step first_step(DataType from, DataType to) {
  if (from == DataType::float64) return &floats_rounded_to_odd;
  if (to != DataType::bfloat16) return step_between(from, DataType::float32);
  return with_type<Half, Bfloat>(from, [&]<class From>(From) {
    if constexpr (std::is_integral_v<From> && sizeof(From) >= 4)
      return Step{&integers_rounded_to_odd<From>};
    else
      return step_between(from, DataType::float32);
  });
}

}  // namespace

CastMap::CastMap(DataType from, DataType to) : last_(step_between(from, to)) {
  if (last_ != nullptr) return;
  first_ = first_step(from, to);
  last_ = step_between(DataType::float32, to);
}

void CastMap::run(const char* source, char* target, Int count) const {
  if (first_ == nullptr) return last_(source, target, count);
  alignas(64) char floats[kMapBlock * 4];
  first_(source, floats, count);
  last_(floats, target, count);
}

void CastPlan::run(const void* from, void* to, int threads) const {
  // Integers of one size have the same bits.
  const bool both_integers = is_integer_type(input.type) && is_integer_type(output.type) &&
                             input.element_size == output.element_size;
  if (both_integers || input.type == output.type)
    return copy_elements(output.layout, to, input.layout, from, input.element_size, threads);
  map_elements(CastMap(input.type, output.type), output, to, input, from, threads);
}

}  // namespace anydml

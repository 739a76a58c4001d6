// Every type as every other one.
//
// A conversion is one step, or two with FLOAT32 between them: from and to FLOAT16, where the first
// step is exact (FLOAT16 to FLOAT32, an integer below 2^24), overflows FLOAT16 in any case (an
// integer above), or keeps what the second needs to round once (FLOAT64). The steps are loops over
// blocks in the nearest cache; FLOAT16 is converted by the processor where the level has that.
#include "cast.hpp"

#include "../runtime/copy.hpp"
#include "convert.hpp"

namespace anydml {
namespace {

using Step = CastMap::Step;

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_floating_point_v<To>)
    return canonical(static_cast<To>(value));
  else if constexpr (std::is_floating_point_v<From>)
    return to_integer<To>(value);
  else if constexpr (std::is_floating_point_v<To>)
    return to_float<To>(value);
  else
    return static_cast<To>(value);
}

template <class To, class From>
void each(const char* __restrict source, char* __restrict target, Int count) {
  for (Int i = 0; i < count; ++i)
    store(target + i * Int{sizeof(To)}, convert<To>(load<From>(source + i * Int{sizeof(From)})));
}

void odd_floats(const char* __restrict source, char* __restrict target, Int count) {
  for (Int i = 0; i < count; ++i) store(target + i * 4, to_odd(load<double>(source + i * 8)));
}

void halves_to_floats(const char* __restrict source, char* __restrict target, Int count) {
  Int i = 0;
#if defined(__F16C__) && defined(__AVX__)
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000));
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i * 2));
    const __m256 floats = _mm256_cvtph_ps(halves);
    const __m256 unordered = _mm256_cmp_ps(floats, floats, _CMP_UNORD_Q);
    _mm256_storeu_ps(reinterpret_cast<float*>(target + i * 4),
                     _mm256_blendv_ps(floats, nan, unordered));
  }
#endif
  for (; i < count; ++i) store(target + i * 4, half_to_float(load<uint16_t>(source + i * 2)));
}

void floats_to_halves(const char* __restrict source, char* __restrict target, Int count) {
  Int i = 0;
#if defined(__F16C__) && defined(__AVX__)
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000));
  for (; i + 8 <= count; i += 8) {
    const __m256 floats = _mm256_loadu_ps(reinterpret_cast<const float*>(source + i * 4));
    const __m256 unordered = _mm256_cmp_ps(floats, floats, _CMP_UNORD_Q);
    const __m128i halves = _mm256_cvtps_ph(_mm256_blendv_ps(floats, nan, unordered),
                                           _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target + i * 2), halves);
  }
#endif
  for (; i < count; ++i) store(target + i * 2, float_to_half(load<float>(source + i * 4)));
}

// Calls body(T{}) with the C++ type; FLOAT16 has none.
template <class Body>
Step with_type(DataType type, Body&& body) {
  switch (type) {
    case DataType::float64:
      return body(double{});
    case DataType::float32:
      return body(float{});
    case DataType::int64:
      return body(int64_t{});
    case DataType::uint64:
      return body(uint64_t{});
    case DataType::int32:
      return body(int32_t{});
    case DataType::uint32:
      return body(uint32_t{});
    case DataType::int16:
      return body(int16_t{});
    case DataType::uint16:
      return body(uint16_t{});
    case DataType::int8:
      return body(int8_t{});
    default:
      return body(uint8_t{});
  }
}

Step step_between(DataType from, DataType to) {
  return with_type(from, [&](auto source) {
    return with_type(
        to, [&](auto target) -> Step { return &each<decltype(target), decltype(source)>; });
  });
}

bool is_integer(DataType type) {
  return type != DataType::float64 && type != DataType::float32 && type != DataType::float16;
}

}  // namespace

CastMap::CastMap(DataType from, DataType to) {
  if (to == DataType::float16) {
    first_ = from == DataType::float32   ? nullptr
             : from == DataType::float64 ? &odd_floats
                                         : step_between(from, DataType::float32);
    last_ = &floats_to_halves;
  } else if (from == DataType::float16) {
    if (to != DataType::float32) first_ = &halves_to_floats;
    last_ = first_ == nullptr ? &halves_to_floats : step_between(DataType::float32, to);
  } else {
    last_ = step_between(from, to);
  }
}

void CastMap::run(const char* source, char* target, Int count) const {
  if (first_ == nullptr) return last_(source, target, count);
  alignas(64) char floats[kMapBlock * 4];
  first_(source, floats, count);
  last_(floats, target, count);
}

void CastPlan::run(const void* from, void* to, int threads) const {
  // Integers of one size have the same bits.
  const bool alike = is_integer(input.type) && is_integer(output.type) &&
                     input.element_size == output.element_size;
  if (alike || input.type == output.type)
    return copy_elements(output.layout, to, input.layout, from, input.element_size, threads);
  map_elements(CastMap(input.type, output.type), output, to, input, from, threads);
}

}  // namespace anydml

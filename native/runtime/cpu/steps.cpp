#include "runtime/cpu/steps.hpp"

#include "runtime/cpu/copy.hpp"

namespace anydml {

#if defined(__SSSE3__)

StepPacker::StepPacker(Int step, int size) : size_(size), step_(step) {
  const Int distance = step < 0 ? -step : step;
  if (distance <= 0 || distance > kMaxLoads * kLong || step == size || size > 8) return;
  bool wide = false;
#if defined(__AVX512BW__)
  wide = size > 1 && step % size == 0;
#endif
  width_ = wide ? 64 : 16;
  const int count = width_ / size;
  const Int loads = ((count - 1) * distance + size + width_ - 1) / width_;
  // Loads and shuffles must be fewer than the scalar moves.
  if (loads > kMaxLoads || loads >= count) return;
  loads_ = static_cast<int>(loads);
  // The element with the lowest address is the first byte of the first vector.
  const Int first = step < 0 ? (count - 1) * distance : 0;
  for (int k = 0; k < loads_; ++k) {
    taken_[k] = 0;
    for (int i = 0; i < count; ++i) {
      const Int at = first + i * step - k * width_;
      if (wide) {
        const bool here = at >= 0 && at < width_;
        taken_[k] |= uint32_t{here} << i;
        const uint64_t place = here ? static_cast<uint64_t>(at / size) : 0;
        std::memcpy(order_[k] + i * size, &place, static_cast<std::size_t>(size));
      } else {
        for (int byte = 0; byte < size; ++byte) {
          const bool here = at + byte >= 0 && at + byte < width_;
          order_[k][i * size + byte] = here ? static_cast<unsigned char>(at + byte) : 0x80;
        }
      }
    }
  }
}

template <int Loads>
void StepPacker::pack_vectors(char* target, const char* source, Int vectors) const {
  const Int forth = step_ < 0 ? -width_ : width_;
  const Int advance = width_ / size_ * (step_ < 0 ? -step_ : step_);
#if defined(__AVX512BW__)
  const auto in_order = [&](auto permute) {
    __m512i order[Loads];
    for (int k = 0; k < Loads; ++k) order[k] = _mm512_load_si512(order_[k]);
    uint32_t taken[Loads];
    for (int k = 0; k < Loads; ++k) taken[k] = taken_[k];
    for (Int i = 0; i < vectors; ++i, target += forth, source += advance) {
      __m512i result = _mm512_setzero_si512();
      for (int k = 0; k < Loads; ++k)
        result = permute(result, taken[k], order[k], _mm512_loadu_si512(source + k * 64));
      _mm512_storeu_si512(target, result);
    }
  };
  using V = __m512i;
  if (width_ == 64) {
    if (size_ == 2)
      in_order([](V result, uint32_t taken, V order, V from) {
        return _mm512_mask_permutexvar_epi16(result, taken, order, from);
      });
    else if (size_ == 4)
      in_order([](V result, uint32_t taken, V order, V from) {
        return _mm512_mask_permutexvar_epi32(result, static_cast<__mmask16>(taken), order, from);
      });
    else
      in_order([](V result, uint32_t taken, V order, V from) {
        return _mm512_mask_permutexvar_epi64(result, static_cast<__mmask8>(taken), order, from);
      });
    return;
  }
#endif
  __m128i order[Loads];
  for (int k = 0; k < Loads; ++k)
    order[k] = _mm_load_si128(reinterpret_cast<const __m128i*>(order_[k]));
  for (Int i = 0; i < vectors; ++i, target += forth, source += advance) {
    const auto part = [&](int k) {
      const __m128i from = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + k * 16));
      return _mm_shuffle_epi8(from, order[k]);
    };
    __m128i result = part(0);
    for (int k = 1; k < Loads; ++k) result = _mm_or_si128(result, part(k));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target), result);
  }
}

Int StepPacker::pack(char* target, const char* source, Int count, Int more) const {
  if (loads_ == 0) return 0;
  // The bytes covered by the input vectors of an output vector must lie within the elements.
  const Int distance = step_ < 0 ? -step_ : step_;
  const Int covered = Int{loads_} * width_, all = (count - 1 + more) * distance + size_;
  const Int elements_per_vector = width_ / size_;
  if (covered > all || count < elements_per_vector) return 0;
  const Int vectors =
      std::min(count / elements_per_vector, (all - covered) / (elements_per_vector * distance) + 1);
  if (step_ < 0) {
    source += (count - 1) * step_;
    target += count * size_ - width_;
  }
  switch (loads_) {
    case 1:
      pack_vectors<1>(target, source, vectors);
      break;
    case 2:
      pack_vectors<2>(target, source, vectors);
      break;
    case 3:
      pack_vectors<3>(target, source, vectors);
      break;
    case 4:
      pack_vectors<4>(target, source, vectors);
      break;
    case 5:
      pack_vectors<5>(target, source, vectors);
      break;
    case 6:
      pack_vectors<6>(target, source, vectors);
      break;
    case 7:
      pack_vectors<7>(target, source, vectors);
      break;
    default:
      pack_vectors<8>(target, source, vectors);
      break;
  }
  return vectors * elements_per_vector;
}

#else  // no byte shuffles at this level

StepPacker::StepPacker(Int step, int size) : size_(size), step_(step) {}

Int StepPacker::pack(char*, const char*, Int, Int) const { return 0; }

#endif

}  // namespace anydml

#include "moving/cpu/row_shuffle.hpp"

namespace anydml {

#if defined(__SSSE3__)

bool RowShuffle::finish() {
#if defined(__AVX512BW__)
  if (unit_ > 1 && from_bytes_ >= 64 && order_vectors(64, 64)) return true;
  if (order_vectors(64, 16)) return true;
#endif
#if defined(__AVX2__)
  if (order_vectors(32, 16)) return true;
#endif
  return order_vectors(16, 16);
}

bool RowShuffle::order_vectors(int width, int window) {
  width_ = width;
  window_ = window;
  count_ = 0;
  if (bytes_ < width_) return false;
  // The last vector ends with the row, even if it overlaps the previous one.
  for (Int at = 0; at < bytes_; at += width_) {
    const Int to = std::min(at, bytes_ - width_);
    const int16_t* const units = from_ + to / unit_;
    const auto [low, high] = std::minmax_element(units, units + width_ / unit_);
    const Int from = std::clamp<Int>(from_bytes_ - window_, 0, *low);
    if (*high + unit_ > from + window_) return false;
    unsigned char* const order = order_ + count_ * width_;
    for (int i = 0; i < width_ / unit_; ++i) {
      if (window_ == 64) {  // places of units
        const uint64_t place = static_cast<uint64_t>((units[i] - from) / unit_);
        std::memcpy(order + i * unit_, &place, static_cast<std::size_t>(unit_));
      } else {
        for (int byte = 0; byte < unit_; ++byte)
          order[i * unit_ + byte] = static_cast<unsigned char>(units[i] - from + byte);
      }
    }
    vectors_[count_++] = {static_cast<int16_t>(to), static_cast<int16_t>(from)};
  }
  return true;
}

template <int N>
void RowShuffle::run_vectors(int first, char* target, Int to_step, const char* source,
                             Int from_step, Int count) const {
  const unsigned char* const order = order_ + first * width_;
  Vector vectors[N];
  for (int v = 0; v < N; ++v) vectors[v] = vectors_[first + v];
  const auto bytes_16 = [](const char* at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  };
#if defined(__AVX512BW__)
  const auto in_order = [&](auto permuted) {
    __m512i places[N];
    for (int v = 0; v < N; ++v) places[v] = _mm512_load_si512(order + v * 64);
    for (Int i = 0; i < count; ++i, target += to_step, source += from_step)
      for (int v = 0; v < N; ++v)
        _mm512_storeu_si512(target + vectors[v].to, permuted(places[v], source + vectors[v].from));
  };
  if (width_ == 64) {
    const auto load_vector = [](const char* at) { return _mm512_loadu_si512(at); };
    if (window_ == 16)
      in_order([&](__m512i order_of, const char* at) {
        return _mm512_maskz_shuffle_epi8(
            ~__mmask64{0}, _mm512_maskz_broadcast_i32x4(0xFFFF, bytes_16(at)), order_of);
      });
    else if (unit_ == 2)
      in_order([&](__m512i order_of, const char* at) {
        return _mm512_maskz_permutexvar_epi16(~__mmask32{0}, order_of, load_vector(at));
      });
    else if (unit_ == 4)
      in_order([&](__m512i order_of, const char* at) {
        return _mm512_maskz_permutexvar_epi32(0xFFFF, order_of, load_vector(at));
      });
    else
      in_order([&](__m512i order_of, const char* at) {
        return _mm512_maskz_permutexvar_epi64(0xFF, order_of, load_vector(at));
      });
    return;
  }
#endif
#if defined(__AVX2__)
  if (width_ == 32) {
    __m256i places[N];
    for (int v = 0; v < N; ++v)
      places[v] = _mm256_load_si256(reinterpret_cast<const __m256i*>(order + v * 32));
    for (Int i = 0; i < count; ++i, target += to_step, source += from_step)
      for (int v = 0; v < N; ++v)
        _mm256_storeu_si256(
            reinterpret_cast<__m256i*>(target + vectors[v].to),
            _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes_16(source + vectors[v].from)),
                                places[v]));
    return;
  }
#endif
  __m128i places[N];
  for (int v = 0; v < N; ++v)
    places[v] = _mm_load_si128(reinterpret_cast<const __m128i*>(order + v * 16));
  for (Int i = 0; i < count; ++i, target += to_step, source += from_step)
    for (int v = 0; v < N; ++v)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(target + vectors[v].to),
                       _mm_shuffle_epi8(bytes_16(source + vectors[v].from), places[v]));
}

void RowShuffle::run_all(char* target, Int to_step, const char* source, Int from_step,
                         Int count) const {
  // As many vectors of a row at a time as share the cost of a loop.
  int first = 0;
  for (; first + 4 <= count_; first += 4)
    run_vectors<4>(first, target, to_step, source, from_step, count);
  switch (count_ - first) {
    case 1:
      return run_vectors<1>(first, target, to_step, source, from_step, count);
    case 2:
      return run_vectors<2>(first, target, to_step, source, from_step, count);
    case 3:
      return run_vectors<3>(first, target, to_step, source, from_step, count);
    default:
      return;
  }
}

void RowShuffle::run(char* target, Int to_step, const char* source, Int from_step, Int count,
                     Int more) const {
  const Int beyond =
      window_ - from_bytes_;  // bytes of the next rows that the read of a shorter row includes
  if (beyond <= 0) return run_all(target, to_step, source, from_step, count);
  // The last ones have no rows after them, and rows that go backwards are few.
  const Int behind = from_step > 0 ? (beyond + from_step - 1) / from_step : 0;
  const Int alone = from_step > 0 ? std::clamp<Int>(behind - more, 0, count) : count;
  Int row = count - alone;
  run_all(target, to_step, source, from_step, row);
  for (; row < count; ++row) {
    char padded[64] = {};  // of any width, for the compiler
    std::memcpy(padded, source + row * from_step, static_cast<std::size_t>(from_bytes_));
    run_all(target + row * to_step, 0, padded, 0, 1);
  }
}

#else  // no byte shuffles at this level

bool RowShuffle::finish() { return false; }

void RowShuffle::run(char*, Int, const char*, Int, Int, Int) const {}

#endif

}  // namespace anydml

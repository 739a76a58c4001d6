// Lane masks of AVX-512 as numbers: the one place where a mask becomes wider than it is.
//
// GCC 12 turns a comparison and the widening of its mask of 8, 16 or 32 bits into one instruction
// that writes the low part of a wide register, as a mask register is cleared above its mask. Where
// that register is spilled, only the mask's own bytes are stored, and all bytes of the wide type
// are read back. So the compiler never widens a mask: it is moved to a general register by an
// instruction that clears the rest of it, which no optimization takes apart.
// scripts/check_mask_spills.py finds the fault in what was compiled.
#pragma once

#include <cstdint>

namespace anydml {

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__)
#define ANYDML_MASK_BITS 1

// One bit a lane, zeros above.
template <class Mask>
inline uint64_t mask_bits(Mask mask) {
  static_assert(static_cast<Mask>(-1) > 0, "a mask, not the result of integer promotion");
  if constexpr (sizeof(Mask) == 8) {
    return mask;  // as wide as it gets: the compiler may test it where it is
  } else {
    uint64_t bits;
    if constexpr (sizeof(Mask) == 1)
      asm("kmovb {%1, %k0|%k0, %1}" : "=r"(bits) : "k"(mask));
    else if constexpr (sizeof(Mask) == 2)
      asm("kmovw {%1, %k0|%k0, %1}" : "=r"(bits) : "k"(mask));
    else
      asm("kmovd {%1, %k0|%k0, %1}" : "=r"(bits) : "k"(mask));
    return bits;
  }
}
#endif

}  // namespace anydml

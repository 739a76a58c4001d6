// Stable sorts of the candidates of TOP_K.
#pragma once

#include <cstdint>

#include "../common/layout.hpp"

namespace anydml::top_k {

constexpr int kMostDigitBits = 11;
constexpr int kMostParts = 64;

// Scratch of sort_packed().
Int sort_scratch_bytes(Int count, int parts);

// Sorts by the upper 32 bits, which are below 2^bits, ascending and stable: a radix sort from the
// lowest digit up. Uses `other` as its second half and returns which of the two holds the result.
// `parts` threads. `scratch` is aligned to 64 bytes and was sized for at least this count.
uint64_t* sort_packed(uint64_t* items, uint64_t* other, Int count, int bits, int parts,
                      void* scratch);

}  // namespace anydml::top_k

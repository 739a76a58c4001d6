// Elements that are float32 while they take updates: sums and products of floats of 16 bits, where
// the writer widens (Writer::widen). Where many elements take updates, a packed block of them is
// widened and narrowed; where few do, only these are.
#pragma once

#include "scatter/cpu/scatter_parts.hpp"

namespace anydml::scatter {

// Elements, per update, from which on few take updates.
constexpr Int kFewUpdates = 16;

// `count` elements of a layout in row-major order, to packed float32 and back.
void widen(const Writer& writer, const Layout& layout, const char* elements, Int first, Int count,
           char* sums);
void narrow(const Writer& writer, const Layout& layout, char* elements, Int first, Int count,
            const char* sums);

// Numbers the places of an output that updates name. Meanwhile each begins with its number, and the
// number with its place: so nothing is cleared or searched. Scratch: 10 bytes a place.
class Named {
 public:
  static constexpr Int kMost = Int{1} << 16;
  // Whether the updates, or the places that they can name, are few enough to be numbered.
  static bool apply(Int updates, Int places) {
    return std::min(updates, places) <= kMost && updates < UINT32_MAX;
  }

  Named(Int updates, Int places);
  // Offsets from `base` become numbers.
  void number(char* base, Int* offsets, Int count);
  Int count() const { return count_; }
  char* place(Int number) const { return places_[number]; }
  // What each began with before.
  const char* bits() const { return reinterpret_cast<const char*>(bits_.get()); }
  // Ends the numbering. Gives the places what they began with.
  void restore();
  void clear() { count_ = 0; }

 private:
  Int capacity_, count_ = 0;
  Scratch<char*> places_;
  Scratch<uint16_t> bits_;
};

// Float32 of the elements that updates name.
class Sums {
 public:
  Sums(const Writer& writer, Int updates, Int elements);
  // Offsets of elements from `base` become those of their float32 from the result.
  char* locate(char* base, Int* offsets, Int count);
  // Writes the elements. Then none is named.
  void finish();

 private:
  const Writer* writer_;
  Named named_;
  Scratch<char> sums_;
};

}  // namespace anydml::scatter

#include "scatter/cpu/scatter_sums.hpp"

#include <algorithm>

namespace anydml::scatter {
namespace {

// Calls body(offset, stride, done, chunk) for each row of the elements.
template <class Body>
void for_rows(Layout layout, Int first, Int count, Body&& body) {
  Layout* only[] = {&layout};
  collapse(only);
  const int rows = std::max(layout.rank - 1, 0);
  const Int length = layout.rank == 0 ? 1 : layout.sizes[rows];
  const Int stride = layout.rank == 0 ? 0 : layout.strides[rows];
  const Layout* const walked[] = {&layout};
  Walker<1> walker(walked, rows);
  walker.start(first / length);
  Int column = first % length;
  for (Int done = 0; done < count; walker.next(), column = 0) {
    const Int chunk = std::min(count - done, length - column);
    body(walker.offset[0] + column * stride, stride, done, chunk);
    done += chunk;
  }
}

}  // namespace

void widen(const Writer& writer, const Layout& layout, const char* elements, Int first, Int count,
           char* sums) {
  for_rows(layout, first, count, [&](Int offset, Int stride, Int done, Int chunk) {
    writer.widen(sums + done * 4, elements + offset, stride, chunk);
  });
}

void narrow(const Writer& writer, const Layout& layout, char* elements, Int first, Int count,
            const char* sums) {
  for_rows(layout, first, count, [&](Int offset, Int stride, Int done, Int chunk) {
    writer.narrow(elements + offset, stride, sums + done * 4, chunk);
  });
}

Named::Named(Int updates, Int places)
    : capacity_(std::min({updates, places, kMost})), places_(capacity_), bits_(capacity_) {}

void Named::number(char* base, Int* offsets, Int count) {
  char** const places = places_.get();
  uint16_t* const all_bits = bits_.get();
  const Int capacity = capacity_;
  Int taken = count_;
  for (Int i = 0; i < count; ++i) {
    char* const place = base + offsets[i];
    const uint16_t bits = load<uint16_t>(place);
    Int number = bits;
    if (number >= taken || places[number] != place) {
      number = 0;
      if (taken < capacity) {  // always, unless another thread writes to the output
        number = taken++;
        places[number] = place;
        all_bits[number] = bits;
        store(place, static_cast<uint16_t>(number));
      }
    }
    offsets[i] = number;
  }
  count_ = taken;
}

void Named::restore() {
  for (Int number = 0; number < count_; ++number) store(places_[number], bits_[number]);
}

Sums::Sums(const Writer& writer, Int updates, Int elements)
    : writer_(&writer),
      named_(updates, elements),
      sums_(std::min({updates, elements, Named::kMost}) * 4) {}

char* Sums::locate(char* base, Int* offsets, Int count) {
  const Int first = named_.count();
  named_.number(base, offsets, count);
  writer_->widen(sums_.get() + first * 4, named_.bits() + first * 2, 2, named_.count() - first);
  for (Int i = 0; i < count; ++i) offsets[i] *= 4;
  return sums_.get();
}

void Sums::finish() {
  char elements[kPiece * 2];
  for (Int from = 0; from < named_.count(); from += kPiece) {
    const Int chunk = std::min(kPiece, named_.count() - from);
    writer_->narrow(elements, 2, sums_.get() + from * 4, chunk);
    for (Int i = 0; i < chunk; ++i) store(named_.place(from + i), load<uint16_t>(elements + i * 2));
  }
  named_.clear();
}

}  // namespace anydml::scatter

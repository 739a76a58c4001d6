#include "shape_rules.hpp"

#include "runtime/cpu/read_once.hpp"

namespace anydml::python {

bool same_sizes(const Layout& a, const Layout& b, int but) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i)
    if (i != but && a.sizes[i] != b.sizes[i]) return false;
  return true;
}

bool fits_except(const Layout& a, const Layout& limits, int axis) {
  for (int i = 0; i < a.rank; ++i)
    if (i != axis && a.sizes[i] > limits.sizes[i]) return false;
  return true;
}

bool begins_with(const Layout& to, int at, const Layout& from, int count) {
  if (to.rank < at + count) return false;
  for (int i = 0; i < count; ++i)
    if (to.sizes[at + i] != from.sizes[i]) return false;
  return true;
}

bool ends_with(const Layout& to, int at, const Layout& from, int first) {
  if (to.rank - at != from.rank - first) return false;
  for (int i = first; i < from.rank; ++i)
    if (to.sizes[at + i - first] != from.sizes[i]) return false;
  return true;
}

bool all_within(const Operand& numbers, Int last) {
  const Layout& layout = numbers.tensor.layout;
  const Layout* const layouts[1] = {&layout};
  Walker<1> walker(layouts, layout.rank);
  walker.start(0);
  const Int count = layout.count();
  for (Int i = 0; i < count; ++i, walker.next()) {
    const char* const from = static_cast<const char*>(numbers.data) + walker.offset[0];
    const Int number = index_once(numbers.tensor.type, from);
    if (number < 0 || number > last) return false;
  }
  return true;
}

}  // namespace anydml::python

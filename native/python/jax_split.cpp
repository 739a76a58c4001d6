#include "jax_split.hpp"

#include <algorithm>
#include <array>
#include <memory>

namespace nb = nanobind;

namespace anydml::python::jax {
namespace {

constexpr Int kOften = 1000;   // calls before a program is made
constexpr Int kBytes = 4096;   // from here on the kernels' copies are worth DLPack's time
constexpr int kMostParts = 8;  // of a program
constexpr int kRanks = 6;
constexpr std::size_t kSlots = 256;  // programs at most

// The type's number, the axis, the sizes of the array behind its rank, those of the parts behind
// their number.
using Key = std::array<Int, 2 + 1 + kRanks + 1 + kMostParts>;

struct Slot {
  Key key{};
  Int calls = 0;
  PyObject* program = nullptr;  // kept for the life of the process
};

PyObject* maker = nullptr;
std::unique_ptr<Slot[]> slots;

bool key_of(const Operand& whole, const Results& results, Key& key) {
  const Layout& layout = whole.tensor.layout;
  const Int parts = results.equal;
  if (layout.rank > kRanks || parts < 2 || parts > kMostParts ||
      layout.count() * whole.tensor.element_size > kBytes)
    return false;
  key[0] = whole.descr->type_num;
  key[1] = results.axis;
  key[2] = layout.rank;
  std::copy_n(layout.sizes, layout.rank, &key[3]);
  Int* const sizes = &key[3 + kRanks];
  sizes[0] = parts;
  for (Int i = 0; i < parts; ++i)
    sizes[1 + i] = results.sizes != nullptr ? results.sizes[i] : results.one[0].dims[results.axis];
  return true;
}

// Another split takes a slot over as long as no program is in it.
Slot* slot_of(const Key& key) {
  if (slots == nullptr) slots = std::make_unique<Slot[]>(kSlots);
  uint64_t hash = 0;
  for (const Int number : key) hash = (hash ^ static_cast<uint64_t>(number)) * 0x9E3779B97F4A7C15u;
  Slot& slot = slots[hash >> 56];
  if (slot.key == key) return &slot;
  if (slot.program != nullptr) return nullptr;
  slot = {key, 0, nullptr};
  return &slot;
}

// An exception other than JAX's is the caller's: an interrupt, say.
nb::object without_error() {
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw nb::python_error();
  PyErr_Clear();
  return nb::object();
}

void compile(PyObject* array, const Key& key) {
  nb::list sizes;
  const Int* const parts = &key[3 + kRanks];
  for (Int i = 0; i < parts[0]; ++i) sizes.append(parts[1 + i]);
  const nb::object axis = nb::int_(key[1]);
  PyObject* const arguments[] = {array, sizes.ptr(), axis.ptr()};
  nb::object made = nb::steal(PyObject_Vectorcall(maker, arguments, 3, nullptr));
  if (!made.is_valid()) {
    without_error();
    return;
  }
  // Python has run meanwhile: the slot may be another's now, or have its program.
  Slot* const slot = slot_of(key);
  if (slot != nullptr && slot->program == nullptr && !made.is_none())
    slot->program = made.release().ptr();
}

}  // namespace

void take_split_maker(nb::object made) {
  if (maker == nullptr) maker = made.release().ptr();
}

nb::object kept_split(PyObject* array, const Operand& whole, const Results& results) {
  Key key{};
  if (maker == nullptr || !key_of(whole, results, key)) return nb::object();
  Slot* slot = slot_of(key);
  if (slot == nullptr) return nb::object();
  if (slot->program == nullptr) {
    if (++slot->calls == kOften) compile(array, key);
    return nb::object();
  }
  const nb::object program = nb::borrow(slot->program);
  PyObject* const arguments[] = {array};
  nb::object parts = nb::steal(PyObject_Vectorcall(program.ptr(), arguments, 1, nullptr));
  if (!parts.is_valid()) return without_error();
  if (!PyTuple_CheckExact(parts.ptr()) || PyTuple_GET_SIZE(parts.ptr()) != results.equal)
    return nb::object();
  return parts;
}

}  // namespace anydml::python::jax

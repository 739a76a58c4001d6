// The fast path of compiled operators: bindings that are plain NumPy arrays of the descriptor's
// sizes and types are checked and run without leaving native code.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "library.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

// One tensor of the descriptor.
struct Slot {
  nb::object name;    // interned
  int list_position;  // in a tensor list, or -1
  bool output;
  int type;  // DataType
  std::vector<Int> sizes;
  int padding;  // leading dimensions that the kernel does not see
};

class CompiledCall {
 public:
  using Fields = std::tuple<nb::str, int, bool, int, std::vector<Int>, int>;  // as in Slot

  // operator_name: for messages; tensors: inputs first; in_place: the output may share the first
  // input's memory. Raises ArgumentError if the tensors do not fit together. Every dispatch binds
  // arrays of exactly these sizes, so the checks here need not be repeated.
  CompiledCall(std::string operator_name, const std::string& kernel,
               const std::vector<Fields>& tensors, const nb::dict& attributes, bool in_place)
      : operator_name_(std::move(operator_name)),
        kernel_(find_kernel(kernel)),
        numbers_(numbers_of(kernel_, attributes)),
        in_place_(in_place) {
    for (const auto& [name, list_position, output, type, sizes, padding] : tensors) {
      PyObject* interned = name.inc_ref().ptr();
      PyUnicode_InternInPlace(&interned);
      slots_.push_back({nb::steal(interned), list_position, output, type, sizes, padding});
      if (list_position <= 0) ++names_;
      (list_position >= 0 ? list_count_ : operand_count_) += 1;
    }
    if (const char* const wrong = check()) raise_argument(operator_name_ + ": " + wrong);
  }

  // Dispatches, or returns None if a binding is unusual or wrong; otherwise returns the first bad
  // index, or -1.
  nb::object dispatch(nb::dict bindings, int threads) const {
    return translate_exceptions(operator_name_.c_str(),
                                [&] { return dispatched(bindings, threads); });
  }

 private:
  nb::object dispatched(const nb::dict& bindings, int threads) const {
    if (static_cast<std::size_t>(PyDict_GET_SIZE(bindings.ptr())) != names_) return nb::none();
    const std::size_t count = slots_.size();
    if (count > kMaxOperands) return nb::none();
    Operand operands[kMaxOperands];
    Extent extents[kMaxOperands];
    // References are held: another thread or a finalizer may remove arrays from a tensor list
    // meanwhile.
    nb::object held[kMaxOperands];
    for (std::size_t i = 0; i < count; ++i) {
      const Slot& slot = slots_[i];
      PyObject* bound = PyDict_GetItemWithError(bindings.ptr(), slot.name.ptr());
      if (bound == nullptr) {
        if (PyErr_Occurred() != nullptr) throw nb::python_error();
        return nb::none();
      }
      if (slot.list_position >= 0 && !member(bound, slot)) return nb::none();
      held[i] = nb::borrow(bound);
      if (!take(slot, bound, operands[i])) return nb::none();
      extents[i] = extent_of(operands[i]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (!slots_[i].output) continue;
      for (std::size_t j = 0; j < count; ++j) {
        if (i == j || !overlap(extents[i], extents[j])) continue;
        const bool same = in_place_ && j == 0 && operands[i].data == operands[0].data &&
                          PyArray_IS_C_CONTIGUOUS(operands[0].array);
        if (!same) return nb::none();
      }
    }
    return nb::int_(kernel_.runs.run(call(operands, threads)));
  }

  // The members of the list are contiguous: all are inputs, or all are outputs.
  Call call(const Operand* operands, int threads) const {
    Call result{operands, {}, numbers_.data(), numbers_.size(), false, threads};
    if (kernel_.list == Lists::none) return result;
    result.list = {operands, nullptr, list_count_};
    if (kernel_.list == Lists::inputs)
      result.operands += list_count_;
    else
      result.list.operands += operand_count_;
    return result;
  }

  // Returns what does not fit together, or null. A list too long for this path takes the general
  // one.
  const char* check() const {
    if (operand_count_ != static_cast<std::size_t>(kernel_.inputs + kernel_.outputs) ||
        (list_count_ > 0) != (kernel_.list != Lists::none))
      return "wrong number of tensors";
    for (const Slot& slot : slots_)
      if (slot.list_position >= static_cast<int>(list_count_))
        return "a position beyond the end of its list";
    if (slots_.size() > kMaxOperands) return nullptr;  // checked at every dispatch
    Operand operands[kMaxOperands];
    for (std::size_t i = 0; i < slots_.size(); ++i)
      if (!describe(slots_[i], operands[i])) return "expected sizes and types that arrays can have";
    return validate(kernel_, call(operands, 1));
  }

  // The tensor of a slot, as a packed array binds it.
  static bool describe(const Slot& slot, Operand& operand) {
    const std::size_t rank = slot.sizes.size();
    const TypeFacts facts = facts_of(static_cast<DataType>(slot.type));
    if (!facts.in_numpy || facts.kind == 'c' || rank > std::size_t{kMaxRank}) return false;
    if (slot.padding < 0 || static_cast<std::size_t>(slot.padding) > rank) return false;
    operand.tensor.type = facts.type;
    operand.tensor.element_size = facts.size;
    const auto padding = slot.sizes.begin() + slot.padding;
    return std::all_of(slot.sizes.begin(), padding, [](Int size) { return size == 1; }) &&
           set_packed_layout(slot.sizes.end() - padding, slot.sizes.data() + slot.padding,
                             operand) == nullptr;
  }

  bool member(PyObject*& bound, const Slot& slot) const {
    if (!PyList_CheckExact(bound) && !PyTuple_CheckExact(bound)) return false;
    if (static_cast<std::size_t>(PySequence_Fast_GET_SIZE(bound)) != list_count_) return false;
    bound = PySequence_Fast_GET_ITEM(bound, slot.list_position);
    return true;
  }

  static bool take(const Slot& slot, PyObject* bound, Operand& operand) {
    if (!operand_of(bound, operand, slot.padding)) return false;
    if (static_cast<int>(operand.tensor.type) != slot.type) return false;
    const std::size_t rank = slot.sizes.size();
    if (static_cast<std::size_t>(PyArray_NDIM(operand.array)) != rank) return false;
    for (std::size_t i = 0; i < rank; ++i)
      if (PyArray_DIMS(operand.array)[i] != slot.sizes[i]) return false;
    if (!PyArray_ISALIGNED(operand.array)) return false;
    return !slot.output ||
           (PyArray_ISWRITEABLE(operand.array) && PyArray_IS_C_CONTIGUOUS(operand.array));
  }

  std::string operator_name_;
  const Kernel& kernel_;
  std::vector<Slot> slots_;
  std::vector<Int> numbers_;
  bool in_place_;
  std::size_t names_ = 0, operand_count_ = 0, list_count_ = 0;
};

}  // namespace

void bind_compiled_call(nb::module_& module) {
  nb::class_<CompiledCall>(module, "CompiledCall")
      .def(nb::init<std::string, const std::string&, const std::vector<CompiledCall::Fields>&,
                    const nb::dict&, bool>())
      .def("dispatch", &CompiledCall::dispatch);
}

}  // namespace anydml::python

// The quick door of compiled operators: bindings that are plain NumPy arrays of the descriptor's
// sizes and types, checked and run without leaving native code.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "calls.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

enum class Kernel {
  top_k,
  nonzero,
  scatter,
  scatter_nd,
  split,
  join,
  gather,
  gather_elements,
  gather_nd
};

Kernel kernel_of(const std::string& name) {
  static const char* const names[] = {
      "top_k", "nonzero_coordinates", "scatter_elements", "scatter_nd", "split",
      "join",  "gather",              "gather_elements",  "gather_nd"};
  for (int i = 0; i < 9; ++i)
    if (name == names[i]) return static_cast<Kernel>(i);
  throw nb::value_error("unknown kernel");
}

// One tensor of the descriptor.
struct Slot {
  nb::object name;    // interned
  int list_position;  // in a tensor list, or -1
  bool output;
  int type;  // DataType
  std::vector<Int> sizes;
  std::vector<int> drop;  // leading dimensions that the kernel does not see
};

class Binder {
 public:
  // tensors: (name, list_position, output, data_type, sizes, dropped) for each; numbers: what the
  // kernel takes besides (axis, k, largest …), in its own order.
  Binder(const std::string& kernel, nb::sequence tensors, std::vector<Int> numbers, bool in_place)
      : kernel_(kernel_of(kernel)), numbers_(std::move(numbers)), in_place_(in_place) {
    for (nb::handle item : tensors) {
      nb::tuple fields = nb::cast<nb::tuple>(item);
      Slot slot;
      PyObject* name = fields[0].inc_ref().ptr();
      PyUnicode_InternInPlace(&name);
      slot.name = nb::steal(name);
      slot.list_position = nb::cast<int>(fields[1]);
      slot.output = nb::cast<bool>(fields[2]);
      slot.type = nb::cast<int>(fields[3]);
      for (nb::handle size : nb::cast<nb::sequence>(fields[4]))
        slot.sizes.push_back(nb::cast<Int>(size));
      for (nb::handle axis : nb::cast<nb::sequence>(fields[5]))
        slot.drop.push_back(nb::cast<int>(axis));
      if (slot.list_position <= 0) ++names_;
      slots_.push_back(std::move(slot));
    }
  }

  // The dispatch, or None when a binding is unusual or wrong; else the first bad index, or -1.
  nb::object dispatch(nb::dict bindings, int threads) const {
    if (static_cast<std::size_t>(PyDict_GET_SIZE(bindings.ptr())) != names_) return nb::none();
    constexpr std::size_t kMost = 8;  // longer tensor lists take the general path
    const std::size_t count = slots_.size();
    if (count > kMost) return nb::none();
    Operand operands[kMost];
    Extent extents[kMost];
    Int elements = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Slot& slot = slots_[i];
      PyObject* bound = PyDict_GetItemWithError(bindings.ptr(), slot.name.ptr());
      if (bound == nullptr) {
        if (PyErr_Occurred() != nullptr) throw nb::python_error();
        return nb::none();
      }
      if (slot.list_position >= 0 && !member(bound, slot, count)) return nb::none();
      if (!take(slot, bound, operands[i])) return nb::none();
      extents[i] = extent_of(operands[i]);
      elements += operands[i].tensor.layout.count();
      drop(slot, operands[i].tensor.layout);
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (!slots_[i].output) continue;
      for (std::size_t j = 0; j < count; ++j) {
        if (i == j || !meet(extents[i], extents[j])) continue;
        const bool same = in_place_ && j == 0 && operands[i].data == operands[0].data &&
                          PyArray_IS_C_CONTIGUOUS(operands[0].array);
        if (!same) return nb::none();
      }
    }
    // Another thread may take the arrays out of a tensor list while the lock is given up.
    nb::object held[kMost];
    if (elements >= kUnlockElements)
      for (std::size_t i = 0; i < count; ++i)
        held[i] = nb::borrow(reinterpret_cast<PyObject*>(operands[i].array));
    return nb::int_(run(operands, count, elements, threads));
  }

 private:
  bool member(PyObject*& bound, const Slot& slot, std::size_t count) const {
    if (!PyList_CheckExact(bound) && !PyTuple_CheckExact(bound)) return false;
    // Every other slot of a kernel with a list is a single tensor: the list is the rest.
    if (static_cast<std::size_t>(PySequence_Fast_GET_SIZE(bound)) != count - 1) return false;
    bound = PySequence_Fast_GET_ITEM(bound, slot.list_position);
    return true;
  }

  static bool take(const Slot& slot, PyObject* bound, Operand& operand) {
    if (!operand_of(bound, operand)) return false;
    if (static_cast<int>(operand.tensor.type) != slot.type) return false;
    const Layout& layout = operand.tensor.layout;
    if (layout.rank != static_cast<int>(slot.sizes.size())) return false;
    for (int i = 0; i < layout.rank; ++i)
      if (layout.sizes[i] != slot.sizes[static_cast<std::size_t>(i)]) return false;
    if (!PyArray_ISALIGNED(operand.array)) return false;
    return !slot.output ||
           (PyArray_ISWRITEABLE(operand.array) && PyArray_IS_C_CONTIGUOUS(operand.array));
  }

  static void drop(const Slot& slot, Layout& layout) {
    if (slot.drop.empty()) return;
    Layout kept;
    std::size_t next = 0;
    for (int i = 0; i < layout.rank; ++i) {
      if (next < slot.drop.size() && slot.drop[next] == i)
        ++next;
      else
        kept.push(layout.sizes[i], layout.strides[i]);
    }
    layout = kept;
  }

  Int number(std::size_t i) const { return numbers_[i]; }
  int axis() const { return static_cast<int>(numbers_[0]); }

  Int run(const Operand* o, std::size_t count, Int elements, int threads) const {
    Status status;
    const auto go = [&](auto&& body) { unlocked(elements, body); };
    switch (kernel_) {
      case Kernel::top_k: {
        const TopKPlan plan{o[0].tensor, o[1].tensor, o[2].tensor,
                            axis(),      number(1),   number(2) != 0};
        go([&] { plan.run(o[0].data, o[1].data, o[2].data, threads); });
        break;
      }
      case Kernel::nonzero: {
        const NonzeroPlan plan{o[0].tensor, axis()};
        go([&] {
          const NonzeroPlan::Found found = plan.scan(o[0].data, threads);
          store(o[1].data, static_cast<uint32_t>(found.count));
          plan.write(found, o[2].tensor, o[2].data, threads);
        });
        break;
      }
      case Kernel::scatter: {
        const ScatterPlan plan{o[0].tensor, o[1].tensor, o[2].tensor, o[3].tensor, axis()};
        go([&] { status = plan.run(o[0].data, o[1].data, o[2].data, o[3].data, false, threads); });
        break;
      }
      case Kernel::scatter_nd: {
        const ScatterNdPlan plan{o[0].tensor, o[1].tensor, o[2].tensor, o[3].tensor};
        go([&] { status = plan.run(o[0].data, o[1].data, o[2].data, o[3].data, false, threads); });
        break;
      }
      case Kernel::split:
      case Kernel::join: {
        SlabsPlan plan{o[0].tensor, {}, axis()};
        std::vector<void*> parts;
        for (std::size_t i = 1; i < count; ++i) {
          plan.parts.push_back(o[i].tensor);
          parts.push_back(o[i].data);
        }
        go([&] {
          if (kernel_ == Kernel::split)
            plan.split(o[0].data, parts.data(), threads);
          else
            plan.join(parts.data(), o[0].data, threads);
        });
        break;
      }
      case Kernel::gather:
        status = gather<GatherPlan>(o, go, threads);
        break;
      case Kernel::gather_elements:
        status = gather<GatherElementsPlan>(o, go, threads);
        break;
      case Kernel::gather_nd:
        status = gather<GatherNdPlan>(o, go, threads);
        break;
    }
    return status.bad_index;
  }

  template <class Plan, class Go>
  Status gather(const Operand* o, const Go& go, int threads) const {
    const Plan plan{o[0].tensor, o[1].tensor, o[2].tensor, axis(),
                    number(1) != 0 ? OutOfRange::clamp : OutOfRange::raise};
    Status status;
    go([&] { status = plan.run(o[0].data, o[1].data, o[2].data, false, threads); });
    return status;
  }

  Kernel kernel_;
  std::vector<Slot> slots_;
  std::vector<Int> numbers_;
  bool in_place_;
  std::size_t names_ = 0;
};

}  // namespace

void bind_binder(nb::module_& module) {
  nb::class_<Binder>(module, "Binder")
      .def(nb::init<const std::string&, nb::sequence, std::vector<Int>, bool>())
      .def("dispatch", &Binder::dispatch);
}

}  // namespace anydml::python

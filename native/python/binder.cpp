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
      "top_k",  "nonzero_coordinates", "scatter_elements", "scatter_nd", "split", "join",
      "gather", "gather_elements",     "gather_nd"};
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
  // operator_name: for messages; tensors: (name, list_position, output, data_type, sizes, dropped)
  // for each; numbers: what the kernel takes besides (axis, k, largest …), in its own order. An
  // ArgumentError when they do not fit together: every dispatch binds arrays of just these sizes,
  // so that what is checked here need not be checked again.
  Binder(std::string operator_name, const std::string& kernel, nb::sequence tensors,
         std::vector<Int> numbers, bool in_place)
      : operator_name_(std::move(operator_name)),
        kernel_(kernel_of(kernel)),
        numbers_(std::move(numbers)),
        in_place_(in_place) {
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
    if (const char* const misfit = check()) raise_argument(operator_name_ + ": " + misfit);
  }

  // The dispatch, or None when a binding is unusual or wrong; else the first bad index, or -1.
  nb::object dispatch(nb::dict bindings, int threads) const {
    return told(operator_name_.c_str(), [&] { return dispatched(bindings, threads); });
  }

 private:
  nb::object dispatched(const nb::dict& bindings, int threads) const {
    if (static_cast<std::size_t>(PyDict_GET_SIZE(bindings.ptr())) != names_) return nb::none();
    const std::size_t count = slots_.size();
    if (count > kMost) return nb::none();
    Operand operands[kMost];
    Extent extents[kMost];
    // Held: another thread, or a finalizer, may take the arrays out of a tensor list meanwhile.
    nb::object held[kMost];
    Int elements = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Slot& slot = slots_[i];
      PyObject* bound = PyDict_GetItemWithError(bindings.ptr(), slot.name.ptr());
      if (bound == nullptr) {
        if (PyErr_Occurred() != nullptr) throw nb::python_error();
        return nb::none();
      }
      if (slot.list_position >= 0 && !member(bound, slot, count)) return nb::none();
      held[i] = nb::borrow(bound);
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
    return nb::int_(run(operands, count, elements, threads));
  }

  // What does not fit together, or null; a list that is too long for this door only in its numbers.
  const char* check() const {
    const std::size_t wanted[] = {3, 1, 1, 0, 1, 1, 2, 2, 2};
    if (numbers_.size() != wanted[static_cast<int>(kernel_)]) return "other numbers than it takes";
    for (const Int number : numbers_)
      if (number < 0 || number > Int{0xFFFFFFFF}) return "a number outside 0..2^32 - 1";
    if (!numbers_.empty() && kernel_ != Kernel::top_k && number(0) > kMaxRank)
      return "an axis or rank above 64";
    const std::size_t count = slots_.size();
    if (count > kMost) return nullptr;  // the general path checks, at every dispatch
    const std::size_t tensors[] = {3, 3, 4, 4, 2, 2, 3, 3, 3};
    const bool list = kernel_ == Kernel::split || kernel_ == Kernel::join;
    if (list ? count < 2 : count != tensors[static_cast<int>(kernel_)])
      return "other tensors than it takes";
    Operand operands[kMost];
    for (std::size_t i = 0; i < count; ++i)
      if (!describe(slots_[i], operands[i].tensor)) return "a tensor that no array can be";
    return check(operands, count);
  }

  const char* check(const Operand* o, std::size_t count) const {
    switch (kernel_) {
      case Kernel::top_k:
        return number(0) > kMaxRank ? "an axis above 64" : misfit(top_k(o));
      case Kernel::nonzero: {
        const NonzeroPlan plan = nonzero(o);
        if (const char* const first = misfit(plan)) return first;
        if (o[1].tensor.type != DataType::uint32 || o[1].tensor.layout.count() != 1)
          return "a count that is not one uint32";
        return misfit(plan, o[0].tensor.layout.count(), o[2].tensor);
      }
      case Kernel::scatter:
        return misfit(scatter(o));
      case Kernel::scatter_nd:
        return misfit(scatter_nd(o));
      case Kernel::split:
      case Kernel::join: {
        SlabsPlan plan(o[0].tensor, axis());
        for (std::size_t i = 1; i < count; ++i) {
          if (const char* const part = misfit(plan, o[i].tensor)) return part;
          plan.add(o[i].tensor.layout);
        }
        return misfit(plan);
      }
      case Kernel::gather:
        return misfit(gather_plan<GatherPlan>(o));
      case Kernel::gather_elements:
        return misfit(gather_plan<GatherElementsPlan>(o));
      case Kernel::gather_nd:
        return misfit(gather_plan<GatherNdPlan>(o));
    }
    return "unknown kernel";
  }

  // The tensor of a slot as a packed array binds it.
  static bool describe(const Slot& slot, Tensor& tensor) {
    static const int sizes[] = {0, 4, 2, 4, 2, 1, 4, 2, 1, 8, 8, 8};  // by DataType
    if (slot.type < 1 || slot.type > 11 || slot.sizes.size() > std::size_t{kMaxRank}) return false;
    tensor.type = static_cast<DataType>(slot.type);
    tensor.element_size = sizes[slot.type];
    for (const Int size : slot.sizes) tensor.layout.push(size, 0);
    if (!tensor.layout.settle(tensor.element_size)) return false;
    set_packed_strides(tensor.layout, tensor.element_size);
    drop(slot, tensor.layout);
    return true;
  }
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

  TopKPlan top_k(const Operand* o) const {
    return {o[0].tensor, o[1].tensor, o[2].tensor, axis(), number(1), number(2) != 0};
  }
  NonzeroPlan nonzero(const Operand* o) const { return {o[0].tensor, axis()}; }
  ScatterPlan scatter(const Operand* o) const {
    return {o[0].tensor, o[1].tensor, o[2].tensor, o[3].tensor, axis()};
  }
  ScatterNdPlan scatter_nd(const Operand* o) const {
    return {o[0].tensor, o[1].tensor, o[2].tensor, o[3].tensor};
  }
  template <class Plan>
  Plan gather_plan(const Operand* o) const {
    return {o[0].tensor, o[1].tensor, o[2].tensor, axis(),
            number(1) != 0 ? OutOfRange::clamp : OutOfRange::raise};
  }

  Int run(const Operand* o, std::size_t count, Int elements, int threads) const {
    Status status;
    const auto go = [&](auto&& body) { unlocked(elements, body); };
    switch (kernel_) {
      case Kernel::top_k: {
        const TopKPlan plan = top_k(o);
        go([&] { plan.run(o[0].data, o[1].data, o[2].data, threads); });
        break;
      }
      case Kernel::nonzero: {
        const NonzeroPlan plan = nonzero(o);
        go([&] {
          const NonzeroPlan::Found found = plan.scan(o[0].data, threads);
          store(o[1].data, static_cast<uint32_t>(found.count));
          plan.write(found, o[2].tensor, o[2].data, threads);
        });
        break;
      }
      case Kernel::scatter: {
        const ScatterPlan plan = scatter(o);
        go([&] { status = plan.run(o[0].data, o[1].data, o[2].data, o[3].data, false, threads); });
        break;
      }
      case Kernel::scatter_nd: {
        const ScatterNdPlan plan = scatter_nd(o);
        go([&] { status = plan.run(o[0].data, o[1].data, o[2].data, o[3].data, false, threads); });
        break;
      }
      case Kernel::split:
      case Kernel::join: {
        SlabsPlan plan(o[0].tensor, axis());
        void* parts[kMost];
        for (std::size_t i = 1; i < count; ++i) {
          plan.add(o[i].tensor.layout);
          parts[i - 1] = o[i].data;
        }
        go([&] {
          if (kernel_ == Kernel::split)
            plan.split(o[0].data, parts, threads);
          else
            plan.join(parts, o[0].data, threads);
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
    const Plan plan = gather_plan<Plan>(o);
    Status status;
    go([&] { status = plan.run(o[0].data, o[1].data, o[2].data, false, threads); });
    return status;
  }

  static constexpr std::size_t kMost = 8;  // tensors; longer lists take the general path
  std::string operator_name_;
  Kernel kernel_;
  std::vector<Slot> slots_;
  std::vector<Int> numbers_;
  bool in_place_;
  std::size_t names_ = 0;
};

}  // namespace

void bind_binder(nb::module_& module) {
  nb::class_<Binder>(module, "Binder")
      .def(nb::init<std::string, const std::string&, nb::sequence, std::vector<Int>, bool>())
      .def("dispatch", &Binder::dispatch);
}

}  // namespace anydml::python

// Kernels on operands that Python has checked. What could have changed since, or has been checked
// wrongly, is looked at again in shapes.cpp: nothing is read or written out of bounds.
#include <string>

#include "calls.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

Operand checked(nb::handle object, const char* name) {
  Operand operand;
  if (operand_of(object.ptr(), operand)) return operand;
  DataType type;
  int size;
  if (PyArray_CheckExact(object.ptr()) &&
      element_of(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(object.ptr())), type, size))
    raise_argument(std::string(name) +
                   ": expected at most 2^48 elements, within the address space");
  raise_argument(std::string(name) + ": expected an ndarray of a supported type");
}

Operand checked_output(nb::handle object, const char* name) {
  const Operand operand = checked(object, name);
  if (!PyArray_ISWRITEABLE(operand.array))
    raise_argument(std::string(name) + ": expected a writable array, got a read-only one");
  return operand;
}

void fit(const char* call, const char* misfit) {
  if (misfit != nullptr) raise_argument(std::string(call) + ": " + misfit);
}

void top_k(nb::handle input, nb::handle values, nb::handle indices, int axis, Int k, bool largest,
           int threads) {
  const Operand in = checked(input, "input"), v = checked_output(values, "values"),
                i = checked_output(indices, "indices");
  const TopKPlan plan{in.tensor, v.tensor, i.tensor, axis, k, largest};
  fit("top_k", misfit(plan));
  unlocked(in.tensor.layout.count(), [&] { plan.run(in.data, v.data, i.data, threads); });
}

// Where the non-zero elements of an input are.
struct Nonzero {
  NonzeroPlan plan;
  NonzeroPlan::Found found;
};

Nonzero nonzero_scan(nb::handle input, int columns, int threads) {
  const Operand in = checked(input, "input");
  Nonzero result{{in.tensor, columns}, {}};
  fit("nonzero_coordinates", misfit(result.plan));
  unlocked(in.tensor.layout.count(), [&] { result.found = result.plan.scan(in.data, threads); });
  return result;
}

void nonzero_write(const Nonzero& scanned, nb::handle rows, int threads) {
  const Operand out = checked_output(rows, "rows");
  fit("nonzero_coordinates", misfit(scanned.plan, scanned.found.count, out.tensor));
  unlocked(scanned.found.count,
           [&] { scanned.plan.write(scanned.found, out.tensor, out.data, threads); });
}

Int scatter(nb::handle input, nb::handle indices, nb::handle updates, nb::handle output, int axis,
            int reduction, bool fresh, int threads) {
  const Operand in = checked(input, "input"), idx = checked(indices, "indices"),
                upd = checked(updates, "updates"), out = checked_output(output, "output");
  const ScatterPlan plan{in.tensor,  idx.tensor, upd.tensor,
                         out.tensor, axis,       static_cast<Reduction>(reduction)};
  fit("scatter_elements", misfit(plan));
  Status status;
  unlocked(out.tensor.layout.count() + idx.tensor.layout.count(),
           [&] { status = plan.run(in.data, idx.data, upd.data, out.data, fresh, threads); });
  return status.bad_index;
}

Int scatter_nd(nb::handle input, nb::handle indices, nb::handle updates, nb::handle output,
               int reduction, bool fresh, int threads) {
  const Operand in = checked(input, "input"), idx = checked(indices, "indices"),
                upd = checked(updates, "updates"), out = checked_output(output, "output");
  const ScatterNdPlan plan{in.tensor, idx.tensor, upd.tensor, out.tensor,
                           static_cast<Reduction>(reduction)};
  fit("scatter_nd", misfit(plan));
  Status status;
  unlocked(out.tensor.layout.count() + upd.tensor.layout.count(),
           [&] { status = plan.run(in.data, idx.data, upd.data, out.data, fresh, threads); });
  return status.bad_index;
}

// The parts of a plan: added to it, and held here while the lock is given up.
struct Parts {
  nb::object held;
  std::vector<void*> data;
};

Parts checked_parts(const char* call, SlabsPlan& plan, nb::handle list, bool outputs) {
  Parts parts;
  parts.held = nb::steal(PySequence_Tuple(list.ptr()));
  if (!parts.held.is_valid()) raise_set(call, kUncounted, "the list of arrays");
  const Py_ssize_t count = PyTuple_GET_SIZE(parts.held.ptr());
  plan.reserve(count, plan.whole.layout.rank);
  parts.data.reserve(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    const nb::handle item = PyTuple_GET_ITEM(parts.held.ptr(), i);
    const Operand part = outputs ? checked_output(item, "parts") : checked(item, "parts");
    fit(call, misfit(plan, part.tensor));
    plan.add(part.tensor.layout);
    parts.data.push_back(part.data);
  }
  fit(call, misfit(plan));
  return parts;
}

void split(nb::handle whole, nb::handle list, int axis, int threads) {
  const Operand in = checked(whole, "whole");
  SlabsPlan plan(in.tensor, axis);
  const Parts parts = checked_parts("split", plan, list, true);
  unlocked(in.tensor.layout.count(), [&] { plan.split(in.data, parts.data.data(), threads); });
}

void join(nb::handle list, nb::handle whole, int axis, int threads) {
  const Operand out = checked_output(whole, "whole");
  SlabsPlan plan(out.tensor, axis);
  const Parts parts = checked_parts("join", plan, list, false);
  unlocked(out.tensor.layout.count(), [&] { plan.join(parts.data.data(), out.data, threads); });
}

template <class Plan>
Int gather_any(const char* call, nb::handle input, nb::handle indices, nb::handle output, int axis,
               bool clamp, bool fresh, int threads) {
  const Operand in = checked(input, "input"), idx = checked(indices, "indices"),
                out = checked_output(output, "output");
  const Plan plan{in.tensor, idx.tensor, out.tensor, axis,
                  clamp ? OutOfRange::clamp : OutOfRange::raise};
  fit(call, misfit(plan));
  Status status;
  unlocked(out.tensor.layout.count() + idx.tensor.layout.count(),
           [&] { status = plan.run(in.data, idx.data, out.data, fresh, threads); });
  return status.bad_index;
}

Int gather(nb::handle input, nb::handle indices, nb::handle output, int axis, bool clamp,
           bool fresh, int threads) {
  return gather_any<GatherPlan>("gather", input, indices, output, axis, clamp, fresh, threads);
}

Int gather_elements(nb::handle input, nb::handle indices, nb::handle output, int axis, bool clamp,
                    bool fresh, int threads) {
  return gather_any<GatherElementsPlan>("gather_elements", input, indices, output, axis, clamp,
                                        fresh, threads);
}

Int gather_nd(nb::handle input, nb::handle indices, nb::handle output, int batch_dims, bool clamp,
              bool fresh, int threads) {
  return gather_any<GatherNdPlan>("gather_nd", input, indices, output, batch_dims, clamp, fresh,
                                  threads);
}

void copy(nb::handle target, nb::handle source, int threads) {
  const Operand out = checked_output(target, "target"), in = checked(source, "source");
  fit("copy", misfit_of_copy(out.tensor, in.tensor));
  unlocked(out.tensor.layout.count(), [&] {
    copy_elements(out.tensor.layout, out.data, in.tensor.layout, in.data, out.tensor.element_size,
                  threads);
  });
}

// An array of a result: `call` and `purpose` are for the message when there is no memory for it.
nb::object empty(nb::tuple shape, nb::handle dtype, const char* call, const char* purpose) {
  PyArray_Descr* descr = nullptr;
  if (PyArray_DescrConverter(dtype.ptr(), &descr) == NPY_FAIL) throw nb::python_error();
  const nb::object owner = nb::steal(reinterpret_cast<PyObject*>(descr));
  if (shape.size() > static_cast<std::size_t>(kMaxRank))
    raise_argument(std::string(call) + ": expected at most 64 axes of " + purpose + ", got " +
                   std::to_string(shape.size()));
  npy_intp dims[kMaxRank];
  int rank = 0;
  for (nb::handle size : shape) {
    const Py_ssize_t number = PyLong_AsSsize_t(size.ptr());
    if (number < 0) {
      if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_OverflowError) == 0)
        throw nb::python_error();
      PyErr_Clear();
      raise_allocation(call, shape, descr, purpose);
    }
    dims[rank++] = number;
  }
  return allocated(call, purpose, rank, dims, descr);
}

}  // namespace

void bind_checked_calls(nb::module_& module) {
  nb::class_<Nonzero>(module, "Nonzero").def_prop_ro("count", [](const Nonzero& self) {
    return self.found.count;
  });
  module.def("top_k", named("top_k", &top_k));
  module.def("nonzero_scan", named("nonzero_coordinates", &nonzero_scan));
  module.def("nonzero_write", named("nonzero_coordinates", &nonzero_write));
  module.def("scatter", named("scatter_elements", &scatter));
  module.def("scatter_nd", named("scatter_nd", &scatter_nd));
  module.def("split", named("split", &split));
  module.def("join", named("join", &join));
  module.def("gather", named("gather", &gather));
  module.def("gather_elements", named("gather_elements", &gather_elements));
  module.def("gather_nd", named("gather_nd", &gather_nd));
  module.def("copy", named("copy", &copy));
  module.def("empty", &empty);
}

}  // namespace anydml::python

#include <string>

#include "calls.hpp"

namespace nb = nanobind;

namespace anydml::python {

Operand checked(nb::handle object, const char* name, int skip) {
  Operand operand;
  if (!operand_of(object.ptr(), operand, skip))
    throw nb::type_error((std::string(name) + ": expected an ndarray of a supported type").c_str());
  return operand;
}

namespace {

struct Operands {
  std::vector<Operand> items;
  std::vector<Tensor> tensors;
  std::vector<void*> data;
  Int elements = 0;
};

Operands checked_list(nb::handle list, const char* name) {
  Operands operands;
  for (nb::handle item : nb::cast<nb::sequence>(list)) {
    operands.items.push_back(checked(item, name));
    operands.tensors.push_back(operands.items.back().tensor);
    operands.data.push_back(operands.items.back().data);
    operands.elements += operands.items.back().tensor.layout.count();
  }
  return operands;
}

void top_k(nb::handle input, nb::handle values, nb::handle indices, int axis, Int k, bool largest,
           int threads) {
  const Operand in = checked(input, "input"), v = checked(values, "values"),
                i = checked(indices, "indices");
  const TopKPlan plan{in.tensor, v.tensor, i.tensor, axis, k, largest};
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
  unlocked(in.tensor.layout.count(), [&] { result.found = result.plan.scan(in.data, threads); });
  return result;
}

void nonzero_write(const Nonzero& scanned, nb::handle rows, int threads) {
  const Operand out = checked(rows, "rows");
  unlocked(scanned.found.count,
           [&] { scanned.plan.write(scanned.found, out.tensor, out.data, threads); });
}

Int scatter(nb::handle input, nb::handle indices, nb::handle updates, nb::handle output, int axis,
            int reduction, bool fresh, int threads) {
  const Operand in = checked(input, "input"), idx = checked(indices, "indices"),
                upd = checked(updates, "updates"), out = checked(output, "output");
  const ScatterPlan plan{in.tensor,  idx.tensor, upd.tensor,
                         out.tensor, axis,       static_cast<Reduction>(reduction)};
  Status status;
  unlocked(out.tensor.layout.count() + idx.tensor.layout.count(),
           [&] { status = plan.run(in.data, idx.data, upd.data, out.data, fresh, threads); });
  return status.bad_index;
}

Int scatter_nd(nb::handle input, nb::handle indices, nb::handle updates, nb::handle output,
               int reduction, bool fresh, int threads) {
  const Operand in = checked(input, "input"), idx = checked(indices, "indices"),
                upd = checked(updates, "updates"), out = checked(output, "output");
  const ScatterNdPlan plan{in.tensor, idx.tensor, upd.tensor, out.tensor,
                           static_cast<Reduction>(reduction)};
  Status status;
  unlocked(out.tensor.layout.count() + upd.tensor.layout.count(),
           [&] { status = plan.run(in.data, idx.data, upd.data, out.data, fresh, threads); });
  return status.bad_index;
}

void split(nb::handle whole, nb::handle parts, int axis, int threads) {
  const Operand in = checked(whole, "whole");
  const Operands out = checked_list(parts, "parts");
  const SlabsPlan plan{in.tensor, out.tensors, axis};
  unlocked(in.tensor.layout.count(), [&] { plan.split(in.data, out.data.data(), threads); });
}

void join(nb::handle parts, nb::handle whole, int axis, int threads) {
  const Operand out = checked(whole, "whole");
  const Operands in = checked_list(parts, "parts");
  const SlabsPlan plan{out.tensor, in.tensors, axis};
  unlocked(out.tensor.layout.count(), [&] { plan.join(in.data.data(), out.data, threads); });
}

template <class Plan>
Int gather_any(nb::handle input, nb::handle indices, nb::handle output, int axis, bool clamp,
               bool fresh, int threads) {
  const Operand in = checked(input, "input"), idx = checked(indices, "indices"),
                out = checked(output, "output");
  const Plan plan{in.tensor, idx.tensor, out.tensor, axis,
                  clamp ? OutOfRange::clamp : OutOfRange::raise};
  Status status;
  unlocked(out.tensor.layout.count() + idx.tensor.layout.count(),
           [&] { status = plan.run(in.data, idx.data, out.data, fresh, threads); });
  return status.bad_index;
}

void copy(nb::handle target, nb::handle source, int threads) {
  const Operand out = checked(target, "target"), in = checked(source, "source");
  unlocked(out.tensor.layout.count(), [&] {
    copy_elements(out.tensor.layout, out.data, in.tensor.layout, in.data, out.tensor.element_size,
                  threads);
  });
}

nb::object empty(nb::handle shape, nb::handle dtype) {
  PyArray_Descr* descr = nullptr;
  if (PyArray_DescrConverter(dtype.ptr(), &descr) == NPY_FAIL) throw nb::python_error();
  const nb::object owner = nb::steal(reinterpret_cast<PyObject*>(descr));
  npy_intp dims[kMaxRank];
  int rank = 0;
  for (nb::handle size : nb::cast<nb::sequence>(shape)) {
    if (rank == kMaxRank) throw nb::value_error("shape: more than 64 dimensions");
    dims[rank++] = nb::cast<npy_intp>(size);
  }
  return steal(new_array(rank, dims, descr));
}

}  // namespace

void bind_checked_calls(nb::module_& module) {
  nb::class_<Nonzero>(module, "Nonzero").def_prop_ro("count", [](const Nonzero& self) {
    return self.found.count;
  });
  module.def("top_k", &top_k);
  module.def("nonzero_scan", &nonzero_scan);
  module.def("nonzero_write", &nonzero_write);
  module.def("scatter", &scatter);
  module.def("scatter_nd", &scatter_nd);
  module.def("split", &split);
  module.def("join", &join);
  module.def("gather", &gather_any<GatherPlan>);
  module.def("gather_elements", &gather_any<GatherElementsPlan>);
  module.def("gather_nd", &gather_any<GatherNdPlan>);
  module.def("copy", &copy);
  module.def("empty", &empty);
}

}  // namespace anydml::python

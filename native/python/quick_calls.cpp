#include <limits>

#include "calls.hpp"

namespace nb = nanobind;

namespace anydml::python {
namespace {

// An exact Python int (a bool is none); false for anything else, which the general path judges.
bool whole(nb::handle object, Int& number) {
  if (!PyLong_CheckExact(object.ptr())) return false;
  int overflow = 0;
  number = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  return overflow == 0;
}

// An axis as arrays count it; false when it is none of the rank's.
bool axis_of(nb::handle object, int rank, int& axis) {
  Int number = 0;
  if (!whole(object, number)) return false;
  if (number < 0) number += rank;
  if (number < 0 || number >= rank) return false;
  axis = static_cast<int>(number);
  return true;
}

bool same_element(const Operand& a, const Operand& b) {
  return PyArray_DESCR(a.array) == PyArray_DESCR(b.array) ||
         PyArray_EquivTypes(PyArray_DESCR(a.array), PyArray_DESCR(b.array)) != 0;
}

constexpr Int kLongest = std::numeric_limits<Int>::max();  // of an axis

// New output with the operand's type on the given sizes.
struct Output {
  nb::object object;
  Operand operand;
};

Output output(const char* call, const char* purpose, int rank, const npy_intp* dims,
              PyArray_Descr* descr) {
  Output out;
  out.object = allocated(call, purpose, rank, dims, descr);
  // None is larger than what a kernel multiplies: memory is not.
  if (!operand_of(out.object.ptr(), out.operand)) throw AllocationFailed(kUncounted, purpose);
  return out;
}

// Borrowed: NumPy keeps its own types for ever.
PyArray_Descr* uint32_descr() {
  static PyArray_Descr* const descr = PyArray_DescrFromType(NPY_UINT32);
  return descr;
}

nb::object top_k(nb::handle result, nb::handle x, nb::handle k_given, nb::handle axis_given,
                 bool largest, int threads) {
  Operand in;
  if (!operand_of(x.ptr(), in) || in.tensor.type == DataType::unknown) return nb::none();
  const int rank = in.tensor.layout.rank;
  int axis = 0;
  Int k = 0;
  if (!axis_of(axis_given, rank, axis) || !whole(k_given, k)) return nb::none();
  const Int size = in.tensor.layout.sizes[axis];
  if (k < 0 || k > size || size > Int{0xFFFFFFFF}) return nb::none();
  npy_intp dims[kMaxRank];
  for (int i = 0; i < rank; ++i) dims[i] = in.tensor.layout.sizes[i];
  dims[axis] = k;
  const Output values = output("top_k", "the values", rank, dims, PyArray_DESCR(in.array));
  const Output indices = output("top_k", "the indices", rank, dims, uint32_descr());
  const TopKPlan plan{in.tensor, values.operand.tensor, indices.operand.tensor, axis, k, largest};
  unlocked(in.tensor.layout.count(),
           [&] { plan.run(in.data, values.operand.data, indices.operand.data, threads); });
  // A named tuple: made by its own class's __new__, without the keyword handling of a call.
  const nb::object pair = nb::make_tuple(values.object, indices.object);
  PyObject* const arguments = PyTuple_Pack(1, pair.ptr());
  if (arguments == nullptr) throw nb::python_error();
  PyObject* const named =
      PyTuple_Type.tp_new(reinterpret_cast<PyTypeObject*>(result.ptr()), arguments, nullptr);
  Py_DECREF(arguments);
  if (named == nullptr) throw nb::python_error();
  return nb::steal(named);
}

nb::object nonzero_coordinates(nb::handle x, int threads) {
  Operand in;
  if (!operand_of(x.ptr(), in)) return nb::none();
  if (in.tensor.type == DataType::unknown && PyArray_DESCR(in.array)->kind != 'b')
    return nb::none();
  const Layout& layout = in.tensor.layout;
  for (int i = 0; i < layout.rank; ++i)
    if (layout.sizes[i] > Int{0xFFFFFFFF}) return nb::none();
  const NonzeroPlan plan{in.tensor, layout.rank};
  NonzeroPlan::Found found;
  unlocked(layout.count(), [&] { found = plan.scan(in.data, threads); });
  const npy_intp dims[2] = {static_cast<npy_intp>(found.count), layout.rank};
  const Output rows = output("nonzero_coordinates", "the coordinates", 2, dims, uint32_descr());
  unlocked(found.count,
           [&] { plan.write(found, rows.operand.tensor, rows.operand.data, threads); });
  return rows.object;
}

nb::object scatter_elements(nb::handle x, nb::handle indices, nb::handle updates,
                            nb::handle axis_given, int reduction, int threads) {
  Operand in, idx, upd;
  if (!operand_of(x.ptr(), in) || !operand_of(indices.ptr(), idx) ||
      !operand_of(updates.ptr(), upd))
    return nb::none();
  const Layout &data = in.tensor.layout, &lookup = idx.tensor.layout;
  const int rank = data.rank;
  int axis = 0;
  if (!axis_of(axis_given, rank, axis) || lookup.rank != rank || upd.tensor.layout.rank != rank ||
      !is_index(idx.tensor.type) || !same_element(in, upd) ||
      (reduction != 0 && in.tensor.type == DataType::unknown))
    return nb::none();
  for (int i = 0; i < rank; ++i)
    if (lookup.sizes[i] != upd.tensor.layout.sizes[i] ||
        (i != axis && lookup.sizes[i] > data.sizes[i]))
      return nb::none();
  const Output out = output("scatter_elements", "the result", rank, PyArray_DIMS(in.array),
                            PyArray_DESCR(in.array));
  const ScatterPlan plan{in.tensor,          idx.tensor, upd.tensor,
                         out.operand.tensor, axis,       static_cast<Reduction>(reduction)};
  Status status;
  unlocked(data.count() + lookup.count(), [&] {
    status = plan.run(in.data, idx.data, upd.data, out.operand.data, true, threads);
  });
  return status.ok() ? out.object : nb::none();
}

nb::object scatter_nd(nb::handle x, nb::handle indices, nb::handle updates, int reduction,
                      int threads) {
  Operand in, idx, upd;
  if (!operand_of(x.ptr(), in) || !operand_of(indices.ptr(), idx) ||
      !operand_of(updates.ptr(), upd))
    return nb::none();
  const Layout &data = in.tensor.layout, &lookup = idx.tensor.layout, &values = upd.tensor.layout;
  if (lookup.rank == 0 || !is_index(idx.tensor.type) || !same_element(in, upd) ||
      (reduction != 0 && in.tensor.type == DataType::unknown))
    return nb::none();
  const Int tuple = lookup.sizes[lookup.rank - 1];
  if (tuple > data.rank) return nb::none();
  const int outer = lookup.rank - 1;
  if (values.rank != outer + data.rank - static_cast<int>(tuple)) return nb::none();
  for (int i = 0; i < values.rank; ++i)
    if (values.sizes[i] !=
        (i < outer ? lookup.sizes[i] : data.sizes[i - outer + static_cast<int>(tuple)]))
      return nb::none();
  const Output out = output("scatter_nd", "the result", data.rank, PyArray_DIMS(in.array),
                            PyArray_DESCR(in.array));
  const ScatterNdPlan plan{in.tensor, idx.tensor, upd.tensor, out.operand.tensor,
                           static_cast<Reduction>(reduction)};
  Status status;
  unlocked(data.count() + values.count(), [&] {
    status = plan.run(in.data, idx.data, upd.data, out.operand.data, true, threads);
  });
  return status.ok() ? out.object : nb::none();
}

nb::object split(nb::handle x, nb::handle sections_given, nb::handle axis_given, int threads) {
  Operand in;
  if (!operand_of(x.ptr(), in)) return nb::none();
  const Layout& layout = in.tensor.layout;
  int axis = 0;
  Int sections = 0;
  if (!axis_of(axis_given, layout.rank, axis) || !whole(sections_given, sections) || sections < 1 ||
      layout.sizes[axis] % sections != 0)
    return nb::none();
  npy_intp dims[kMaxRank];
  Layout piece = layout;
  piece.sizes[axis] = layout.sizes[axis] / sections;
  for (int i = 0; i < layout.rank; ++i) dims[i] = piece.sizes[i];
  set_packed_strides(piece, in.tensor.element_size);
  if (!piece.settle(in.tensor.element_size)) return nb::none();
  SlabsPlan plan(in.tensor, axis);
  plan.reserve(sections, layout.rank);
  std::vector<void*> data(static_cast<std::size_t>(sections));
  nb::object parts = nb::steal(PyTuple_New(sections));
  if (!parts.is_valid()) raise_set("split", kUncounted, "the list of slabs");
  ArrayMaker maker(layout.rank, dims, PyArray_DESCR(in.array), sections);
  for (Int i = 0; i < sections; ++i) {
    PyArrayObject* const part = maker.make();
    if (part == nullptr) {
      const Int each = bytes_of(layout.rank, dims, PyArray_DESCR(in.array));
      raise_set("split", static_cast<unsigned long long>(each), "a slab");
    }
    plan.add(piece);
    data[static_cast<std::size_t>(i)] = PyArray_DATA(part);
    PyTuple_SET_ITEM(parts.ptr(), i, reinterpret_cast<PyObject*>(part));
  }
  unlocked(layout.count(), [&] { plan.split(in.data, data.data(), threads); });
  return parts;
}

// The members of a list or tuple, held: another thread, or a finalizer that runs in between, may
// take arrays out of the list.
class Held {
 public:
  explicit Held(PyObject* list) : count_(PySequence_Fast_GET_SIZE(list)) {
    if (count_ <= kFew) {
      PyObject** const items = PySequence_Fast_ITEMS(list);
      for (Py_ssize_t i = 0; i < count_; ++i) few_[i] = Py_NewRef(items[i]);
      return;
    }
    many_ = nb::steal(PySequence_Tuple(list));
    if (!many_.is_valid()) raise_set("join", kUncounted, "the list of arrays");
    count_ = PyTuple_GET_SIZE(many_.ptr());
  }
  ~Held() {
    if (!many_.is_valid())
      for (Py_ssize_t i = 0; i < count_; ++i) Py_DECREF(few_[i]);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  Py_ssize_t count() const { return count_; }
  PyObject* operator[](Py_ssize_t i) const {
    return many_.is_valid() ? PyTuple_GET_ITEM(many_.ptr(), i) : few_[i];
  }

 private:
  static constexpr Py_ssize_t kFew = 16;
  Py_ssize_t count_;
  PyObject* few_[kFew];
  nb::object many_;
};

nb::object join(nb::handle list, nb::handle axis_given, int threads) {
  if (!PyList_CheckExact(list.ptr()) && !PyTuple_CheckExact(list.ptr())) return nb::none();
  const Held held(list.ptr());
  const Py_ssize_t count = held.count();
  if (count == 0) return nb::none();
  Operand first;
  int axis = 0;
  if (!operand_of(held[0], first) || !axis_of(axis_given, first.tensor.layout.rank, axis))
    return nb::none();
  SlabsPlan plan(first.tensor, axis);
  const int rank = first.tensor.layout.rank;
  plan.reserve(count, rank);
  std::vector<const void*> data;
  data.reserve(static_cast<std::size_t>(count));
  npy_intp dims[kMaxRank];
  for (int i = 0; i < rank; ++i) dims[i] = first.tensor.layout.sizes[i];
  Int elements = 0;
  for (Py_ssize_t n = 0; n < count; ++n) {
    Operand part;
    if (!operand_of(held[n], part) || !same_element(first, part) || part.tensor.layout.rank != rank)
      return nb::none();
    for (int i = 0; i < rank; ++i)
      if (i != axis && part.tensor.layout.sizes[i] != dims[i]) return nb::none();
    elements += part.tensor.layout.count();
    // Of 2^48 each, with an axis of up to 2^62 where they are empty.
    if (elements > kMostElements || part.tensor.layout.sizes[axis] > kLongest - plan.total())
      return nb::none();
    plan.add(part.tensor.layout);
    data.push_back(part.data);
  }
  dims[axis] = plan.total();
  const Output out = output("join", "the result", rank, dims, PyArray_DESCR(first.array));
  plan.whole = out.operand.tensor;
  unlocked(elements, [&] { plan.join(data.data(), out.operand.data, threads); });
  return out.object;
}

template <class Plan>
nb::object gathered(const char* call, const Operand& in, const Operand& idx, int rank,
                    const npy_intp* dims, int axis, bool clamp, int threads) {
  const Output out = output(call, "the result", rank, dims, PyArray_DESCR(in.array));
  const Plan plan{in.tensor, idx.tensor, out.operand.tensor, axis,
                  clamp ? OutOfRange::clamp : OutOfRange::raise};
  Status status;
  unlocked(out.operand.tensor.layout.count() + idx.tensor.layout.count(),
           [&] { status = plan.run(in.data, idx.data, out.operand.data, true, threads); });
  return status.ok() ? out.object : nb::none();
}

nb::object gather(nb::handle x, nb::handle indices, nb::handle axis_given, bool clamp,
                  int threads) {
  Operand in, idx;
  if (!operand_of(x.ptr(), in) || !operand_of(indices.ptr(), idx)) return nb::none();
  const Layout &data = in.tensor.layout, &lookup = idx.tensor.layout;
  int axis = 0;
  if (!axis_of(axis_given, data.rank, axis) || !is_index(idx.tensor.type) ||
      data.rank - 1 + lookup.rank > kMaxRank || data.sizes[axis] == 0)
    return nb::none();
  npy_intp dims[2 * kMaxRank];
  int rank = 0;
  for (int i = 0; i < axis; ++i) dims[rank++] = data.sizes[i];
  for (int i = 0; i < lookup.rank; ++i) dims[rank++] = lookup.sizes[i];
  for (int i = axis + 1; i < data.rank; ++i) dims[rank++] = data.sizes[i];
  return gathered<GatherPlan>("gather", in, idx, rank, dims, axis, clamp, threads);
}

nb::object gather_elements(nb::handle x, nb::handle indices, nb::handle axis_given, bool clamp,
                           int threads) {
  Operand in, idx;
  if (!operand_of(x.ptr(), in) || !operand_of(indices.ptr(), idx)) return nb::none();
  const Layout &data = in.tensor.layout, &lookup = idx.tensor.layout;
  int axis = 0;
  if (!axis_of(axis_given, data.rank, axis) || lookup.rank != data.rank ||
      !is_index(idx.tensor.type) || data.sizes[axis] == 0)
    return nb::none();
  for (int i = 0; i < data.rank; ++i)
    if (i != axis && lookup.sizes[i] > data.sizes[i]) return nb::none();
  return gathered<GatherElementsPlan>("gather_elements", in, idx, lookup.rank,
                                      PyArray_DIMS(idx.array), axis, clamp, threads);
}

nb::object gather_nd(nb::handle x, nb::handle indices, nb::handle batch_given, bool clamp,
                     int threads) {
  Operand in, idx;
  if (!operand_of(x.ptr(), in) || !operand_of(indices.ptr(), idx)) return nb::none();
  const Layout &data = in.tensor.layout, &lookup = idx.tensor.layout;
  Int number = 0;
  if (!whole(batch_given, number) || number < 0 || number >= lookup.rank) return nb::none();
  const int batch = static_cast<int>(number);
  if (batch > data.rank || !is_index(idx.tensor.type)) return nb::none();
  const Int tuple = lookup.sizes[lookup.rank - 1];
  if (tuple > data.rank - batch) return nb::none();
  for (int i = 0; i < data.rank; ++i)
    if (data.sizes[i] == 0 || (i < batch && data.sizes[i] != lookup.sizes[i])) return nb::none();
  if (lookup.rank - 1 + data.rank - batch - static_cast<int>(tuple) > kMaxRank) return nb::none();
  npy_intp dims[2 * kMaxRank];
  int rank = 0;
  for (int i = 0; i < lookup.rank - 1; ++i) dims[rank++] = lookup.sizes[i];
  for (int i = batch + static_cast<int>(tuple); i < data.rank; ++i) dims[rank++] = data.sizes[i];
  return gathered<GatherNdPlan>("gather_nd", in, idx, rank, dims, batch, clamp, threads);
}

}  // namespace

void bind_quick_calls(nb::module_& module) {
  nb::module_ quick = module.def_submodule("quick");
  quick.def("top_k", named("top_k", &top_k));
  quick.def("nonzero_coordinates", named("nonzero_coordinates", &nonzero_coordinates));
  quick.def("scatter_elements", named("scatter_elements", &scatter_elements));
  quick.def("scatter_nd", named("scatter_nd", &scatter_nd));
  quick.def("split", named("split", &split));
  quick.def("join", named("join", &join));
  quick.def("gather", named("gather", &gather));
  quick.def("gather_elements", named("gather_elements", &gather_elements));
  quick.def("gather_nd", named("gather_nd", &gather_nd));
}

}  // namespace anydml::python

#include "../../cuda/tables.hpp"
#include "../shape_rules.hpp"

namespace anydml::python {
namespace {

// numbers: the axis, its size, whether the indices lack the axis.
const char* shape(const Call& call, Results& results) {
  const Operand &indices = call.operands[0], &values = call.operands[1];
  const Layout& lookup = indices.tensor.layout;
  const int inserts = call.numbers[2] != 0, rank = lookup.rank + inserts;
  const int axis = to_axis(call.numbers[0]);
  if (axis < 0 || axis >= rank) return kAxis;
  if (rank > kMaxRank) return kRank;
  if (!is_index_type(indices.tensor.type)) return kIndices;
  if (call.numbers[1] < 0) return "depth: expected 0 or more";
  if (inserts == 0 && lookup.sizes[axis] != 1) return kSizes;
  if (values.tensor.layout.count() < 2) return "values: expected two elements";
  Results::One& one = results.one[0];
  begin(one, "the result", values);
  push(one, lookup, 0, axis);
  one.dims[one.rank++] = call.numbers[1];
  push(one, lookup, axis + 1 - inserts, lookup.rank);
  return nullptr;
}

// Arguments: the depth, the axis of the result.
bool attribute_numbers(const FunctionCall& call, Int* numbers, Results&) {
  const int rank = call.inputs[0].tensor.layout.rank + 1;
  const Int axis = call.arguments[1];
  numbers[0] = axis < 0 ? axis + rank : axis;
  numbers[1] = call.arguments[0];
  numbers[2] = 1;
  return true;
}

// ---- on a GPU -----------------------------------------------------------------------------------

constexpr Int kThreads = 256, kUnroll = 4;

std::vector<cuda::Variant> variants() {
  std::vector<cuda::Variant> all;
  for (const DataType index : kIndexTypes)
    for (const Int size : {1, 2, 4, 8, 16})
      all.push_back({"one_hot",
                     {{"SIZE", size},
                      {"INDEX", static_cast<Int>(index)},
                      {"THREADS", kThreads},
                      {"UNROLL", kUnroll}}});
  return all;
}

// A part of the output, and the indices for it, at stride 0 on the axis.
struct Part {
  Layout to, from;
  char* target;
  const char* lookup;
  Int begin = 0;  // on the axis
};

struct Job {
  cuda::Function& function;
  const void *off, *on;
  int axis;
  Int size;
};

void launch(const Job& job, Part part, cuda::Queue& queue) {
  const Int count = part.to.count();
  if (count > cuda::kMaxUnits) {  // the longest dimension in two parts
    const int rank = part.to.rank;
    const int longest =
        static_cast<int>(std::max_element(part.to.sizes, part.to.sizes + rank) - part.to.sizes);
    Part second = part;
    const Int half = part.to.sizes[longest] / 2;
    part.to.sizes[longest] = part.from.sizes[longest] = half;
    second.to.sizes[longest] -= half;
    second.from.sizes[longest] -= half;
    second.target += half * part.to.strides[longest];
    second.lookup += half * part.from.strides[longest];
    if (longest == job.axis) second.begin += half;
    launch(job, part, queue);
    launch(job, second, queue);
    return;
  }
  queue.launch(job.function, {cuda::blocks_for(count, kThreads * kUnroll)},
               {static_cast<unsigned>(kThreads)}, 0, part.target, part.lookup, job.off, job.on,
               cuda::walk_of(part.to, part.from, 0, part.to.rank), job.axis, part.begin, job.size,
               static_cast<unsigned>(count));
}

void enqueue(const Call& call, cuda::Queue& queue) {
  const Operand &indices = call.operands[0], &values = call.operands[1], &out = call.operands[2];
  if (out.tensor.layout.count() == 0) return;
  const int axis = to_axis(call.numbers[0]), inserts = call.numbers[2] != 0;
  const Layout &to = out.tensor.layout, &lookup = indices.tensor.layout;
  Part part;
  const auto add = [&](int begin, int end, int shift) {  // dimensions that behave as one are one
    Layout places = to.slice(begin, end), from = lookup.slice(begin - shift, end - shift);
    Layout* both[2] = {&places, &from};
    collapse(both);
    for (int i = 0; i < places.rank; ++i) {
      part.to.push(places.sizes[i], places.strides[i]);
      part.from.push(from.sizes[i], from.strides[i]);
    }
  };
  add(0, axis, 0);
  const int own = part.to.rank;
  part.to.push(to.sizes[axis], to.strides[axis]);
  part.from.push(to.sizes[axis], 0);
  add(axis + 1, to.rank, inserts);
  part.target = static_cast<char*>(out.data);
  part.lookup = static_cast<const char*>(indices.data);
  cuda::Function& function = queue.function("one_hot", "one_hot",
                                            {{"SIZE", out.tensor.element_size},
                                             {"INDEX", static_cast<Int>(indices.tensor.type)},
                                             {"THREADS", kThreads},
                                             {"UNROLL", kUnroll}});
  const char* const table = static_cast<const char*>(values.data);
  launch({function, table, table + offset_at(values.tensor.layout, 1), own, to.sizes[axis]}, part,
         queue);
}

const Registration one_hot{{
    .name = "one_hot",
    .inputs = 2,
    .outputs = 1,
    .attributes = {{"axis"}, {"depth"}, {"inserts"}},
    .shape = shape,
    .runs = {run_work<kernels::one_hot, 3>, enqueue},
    .arguments = {{Argument::integer}, {Argument::integer}},
    .attribute_numbers = attribute_numbers,
    .variants = variants,
}};

}  // namespace
}  // namespace anydml::python

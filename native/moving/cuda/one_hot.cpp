// ONE_HOT. A thread takes some elements of the output.
#include "runtime/cuda/plans.hpp"
#include "runtime/cuda/tables.hpp"

namespace anydml::cuda {
namespace {

constexpr Int kThreads = 256, kUnroll = 4;

// A part of the output, and the indices for it, at stride 0 on the axis.
struct Part {
  Layout to, from;
  char* target;
  const char* lookup;
  Int begin = 0;  // on the axis
};

struct Job {
  Function& function;
  const void *off, *on;
  int axis;
  Int size;
};

void launch(const Job& job, Part part, Queue& queue) {
  const Int count = part.to.count();
  if (count > kMaxUnits) {  // the longest dimension in two parts
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
  queue.launch(job.function, {blocks_for(count, kThreads * kUnroll)},
               {static_cast<unsigned>(kThreads)}, 0, part.target, part.lookup, job.off, job.on,
               walk_of(part.to, part.from, 0, part.to.rank), job.axis, part.begin, job.size,
               static_cast<unsigned>(count));
}

}  // namespace

void one_hot(const OneHotPlan& plan, const void* indices, const void* values, void* output,
             Queue& queue) {
  const Layout &to = plan.output.layout, &lookup = plan.indices.layout;
  if (to.count() == 0) return;
  const int axis = plan.axis, inserts = plan.inserts;
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
  part.target = static_cast<char*>(output);
  part.lookup = static_cast<const char*>(indices);
  Function& function = queue.function("one_hot", "one_hot",
                                      {{"SIZE", plan.output.element_size},
                                       {"INDEX", static_cast<Int>(plan.indices.type)},
                                       {"THREADS", kThreads},
                                       {"UNROLL", kUnroll}});
  const char* const table = static_cast<const char*>(values);
  launch({function, table, table + offset_at(plan.values.layout, 1), own, to.sizes[axis]}, part,
         queue);
}

std::vector<Variant> one_hot_variants() {
  std::vector<Variant> all;
  for (const DataType index : kIndexTypes)
    for (const Int size : {1, 2, 4, 8, 16})
      all.push_back({"one_hot",
                     {{"SIZE", size},
                      {"INDEX", static_cast<Int>(index)},
                      {"THREADS", kThreads},
                      {"UNROLL", kUnroll}}});
  return all;
}

}  // namespace anydml::cuda

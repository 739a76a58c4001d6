// SCATTER (SCATTER_ELEMENTS) on the processor: which algorithm runs, and why.
//
// Lines along the axis never meet, and within a line the order of the indices is the order along
// the axis. So lines may be taken in any order and by any thread, and the last update of a line
// still wins; the result does not depend on the threads.
//
//   few updates, or little output  direct   copy, then write into the output
//   lines that fit a cache         blocks   rows, or strips of columns, through packed scratch
//   longer ones                    buckets  a stable partition by where the updates go
//
// Floats of 16 bits that are summed up are widened first, a block at a time, or those alone that
// take updates where these are few (scatter_sums.hpp).
//
// All are O(output + updates). Scratch is described where each is written. A private output is
// written while the indices are checked; otherwise they are all checked before, except where the
// algorithm reads all of them before it writes (buckets, one plane).

#include "scatter/cpu/scatter.hpp"

#include "scatter/cpu/scatter_mean.hpp"

#include <algorithm>
#include <utility>

namespace anydml {
namespace scatter {
namespace {

void make_problem(const ScatterPlan& plan, bool in_place, Problem& problem) {
  const Layout& input = in_place ? plan.output.layout : plan.input.layout;
  const Layout* const layouts[kTensors] = {&input, &plan.output.layout, &plan.indices.layout,
                                           &plan.updates.layout};
  const int rank = plan.output.layout.rank;
  const int axis = plan.axis;
  problem.element_size = plan.output.element_size;
  problem.full = true;
  problem.axis_size = rank == 0 ? 1 : plan.output.layout.sizes[axis];
  problem.length = rank == 0 ? 1 : plan.indices.layout.sizes[axis];
  for (int t = 0; t < kTensors; ++t) problem.axis[t] = rank == 0 ? 0 : layouts[t]->strides[axis];
  for (int d = 0; d < rank; ++d) {
    if (d == axis) continue;
    const Int size = plan.indices.layout.sizes[d];
    if (size != plan.output.layout.sizes[d]) problem.full = false;
    if (size == 1) continue;
    // Sorted by the output's strides, largest first.
    int at = problem.rest[kOut].rank;
    for (int t = 0; t < kTensors; ++t) problem.rest[t].push(size, layouts[t]->strides[d]);
    const Layout& out = problem.rest[kOut];
    for (; at > 0 && std::abs(out.strides[at - 1]) < std::abs(out.strides[at]); --at)
      for (int t = 0; t < kTensors; ++t) {
        Layout& rest = problem.rest[t];
        std::swap(rest.sizes[at - 1], rest.sizes[at]);
        std::swap(rest.strides[at - 1], rest.strides[at]);
      }
  }
  Layout* all[] = {&problem.rest[kOut], &problem.rest[kIn], &problem.rest[kIndex],
                   &problem.rest[kUpdate]};
  collapse(all);
  const auto take_last = [&problem](Int(&strides)[kTensors]) -> Int {
    const int last = problem.rest[kOut].rank - 1;
    if (last < 0) {
      for (Int& stride : strides) stride = 0;
      return 1;
    }
    for (int t = 0; t < kTensors; ++t) {
      strides[t] = problem.rest[t].strides[last];
      --problem.rest[t].rank;
    }
    return problem.rest[kOut].sizes[last];
  };
  const Layout& out = problem.rest[kOut];
  const bool across =
      out.rank > 0 && std::abs(out.strides[out.rank - 1]) < std::abs(problem.axis[kOut]);
  problem.columns = 1;
  for (Int& stride : problem.column) stride = 0;
  if (across) problem.columns = take_last(problem.column);
  problem.groups = take_last(problem.group);
  problem.rest_count = out.count();  // 1 where there is one group
}

// Keys and values of one plane for the partition.
struct Plane {
  const Problem* problem;
  const char* indices;
  const char* updates;

  static Int keys(const void* context, Int first, Int count, Int* keys) {
    const Plane& plane = *static_cast<const Plane*>(context);
    const Problem& problem = *plane.problem;
    const Int columns = problem.columns;
    Int row = first / columns, column = first - row * columns;
    while (count > 0) {
      const Int chunk = std::min(count, columns == 1 ? count : columns - column);
      const Int stride = columns == 1 ? problem.axis[kIndex] : problem.column[kIndex];
      if (!problem.reader->convert(
              plane.indices + row * problem.axis[kIndex] + column * problem.column[kIndex], stride,
              chunk, problem.axis_size, columns, column, columns == 1 ? 0 : 1, keys))
        return 0;
      keys += chunk;
      count -= chunk;
      column = 0;
      ++row;
    }
    return -1;
  }

  static const char* values(const void* context, Int first, Int count, char* buffer) {
    const Plane& plane = *static_cast<const Plane*>(context);
    const Problem& problem = *plane.problem;
    const Int columns = problem.columns;
    const Int size = problem.element_size;
    const Int row_stride = problem.axis[kUpdate];
    const Int stride = columns == 1 ? row_stride : problem.column[kUpdate];
    if (stride == size && (columns == 1 || row_stride == columns * size))
      return plane.updates + first * size;
    const Int row = first / columns, column = first - row * columns;
    if (columns == 1) {
      copy_steps(buffer, size, plane.updates + row * row_stride, stride, count,
                 problem.element_size);
      return buffer;
    }
    const char* from = plane.updates + row * row_stride;
    Int at = column;
    for (Int done = 0; done < count;) {
      const Int chunk = std::min(count - done, columns - at);
      copy_steps(buffer + done * size, size, from + at * stride, stride, chunk,
                 problem.element_size);
      done += chunk;
      at = 0;
      from += row_stride;
    }
    return buffer;
  }
};

bool packed_planes(const Problem& problem, int tensor) {
  const Int size = problem.element_size;
  return problem.axis[tensor] == problem.columns * size &&
         (problem.columns == 1 || problem.column[tensor] == size);
}

// `input` is the output, or packed as this is. Planes that are not packed must be widened.
bool run_planes(const Problem& problem, const char* input, const char* indices, const char* updates,
                char* output, int threads, const Tuning& tuning) {
  bool good = true;
  Layout plane_layout;
  plane_layout.push(problem.axis_size, problem.axis[kOut]);
  plane_layout.push(problem.columns, problem.column[kOut]);
  for (Int at = 0; at < problem.rest_count; ++at) {
    for (Int g = 0; g < problem.groups; ++g) {
      const auto moved = [&](int tensor) {
        return offset_at(problem.rest[tensor], at) + g * problem.group[tensor];
      };
      Plane plane{&problem, indices + moved(kIndex), updates + moved(kUpdate)};
      Buckets job;
      job.keys = Plane::keys;
      job.values = Plane::values;
      job.context = &plane;
      job.updates = problem.length * problem.columns;
      job.input = input + moved(kIn);
      job.output = output + moved(kOut);
      job.layout = packed_planes(problem, kOut) ? nullptr : &plane_layout;
      job.elements = problem.axis_size * problem.columns;
      job.element_size = problem.element_size;
      job.writer = problem.writer;
      job.bucket_bits = tuning.bucket_bits;
      job.round = tuning.round;
      good &= run_buckets(job, threads).ok();
    }
  }
  return good;
}

Method choose(const Problem& problem, bool in_place, int threads, const Tuning& tuning) {
  const bool widens = problem.writer->widen != nullptr;
  const bool sparse = problem.length < problem.axis_size / (widens ? kFewUpdates : 8);
  const Int planes = problem.rest_count * problem.groups;
  const Int plane_bytes = problem.axis_size * problem.columns * problem.element_size;
  const Int updates = planes * problem.columns * problem.length;
  if (shares_apply(problem, threads, tuning)) return Method::shares;
  const bool small = planes * plane_bytes <= (Int{128} << 10);
  if (widens && (small || sparse)) return sparse ? Method::direct : Method::blocks;
  // An update costs a cache line at most, and copying a line about as much as 16 bytes of it.
  if (small || updates <= planes * plane_bytes / 1024) return Method::direct;
  const Int line_bytes = problem.axis_size * problem.target_size;
  if (problem.columns == 1) {
    if (line_bytes <= tuning.row_bytes || (line_bytes <= tuning.max_bytes && planes >= threads)) {
      const bool direct = in_place && !widens && line_bytes <= tuning.row_bytes;
      return direct ? Method::direct : Method::blocks;
    }
  } else {
    const Int wide = std::min(problem.columns * problem.target_size, tuning.strip_bytes);
    if (problem.axis_size * wide <= tuning.max_bytes)
      return in_place && sparse ? Method::direct : Method::blocks;
  }
  return widens || packed_planes(problem, kOut) ? Method::buckets : Method::direct;
}

}  // namespace

Status run_scatter(const ScatterPlan& plan, const void* input, const void* indices,
                   const void* updates, void* output, bool output_is_private, int threads,
                   Method method, const Tuning& tuning) {
  const bool in_place = input == output;
  if (plan.indices.layout.count() == 0) {
    if (!in_place) copy_input(plan.input, input, plan.output, output, threads);
    return {};
  }
  Problem problem;
  make_problem(plan, in_place, problem);
  if (problem.axis_size == 0) return {0};
  problem.reader = &index_reader(plan.indices.type);
  problem.writer = &writer(plan.reduction, plan.output.type, problem.element_size);
  problem.target_size = problem.writer->size_of(problem.element_size);
  problem.reduction = plan.reduction;
  problem.any_order = plan.reduction != Reduction::none && is_integer_type(plan.output.type);

  const bool widens = problem.writer->widen != nullptr;
  if (method == Method::automatic) method = choose(problem, in_place, threads, tuning);
  if (method == Method::buckets && !widens && !packed_planes(problem, kOut))
    method = Method::direct;
  if (method == Method::shares && !shares_apply(problem, threads, tuning)) method = Method::direct;
  if (method == Method::direct && widens && !Named::apply(problem.length, problem.axis_size))
    method = Method::buckets;
  // Whether the output is written by the method alone.
  const auto fuses = [&](Method chosen) {
    return problem.full &&
           (chosen == Method::blocks || (chosen == Method::buckets && packed_planes(problem, kIn) &&
                                         packed_planes(problem, kOut)));
  };
  const bool one_plane = method == Method::buckets && problem.groups == 1 &&
                         (widens || problem.length * problem.columns <= tuning.round) &&
                         (in_place || fuses(method));
  const auto check = [&] {
    return check_indices(*problem.reader, plan.indices.layout, indices, problem.axis_size, threads);
  };
  if (!output_is_private && !one_plane) {
    const Status status = check();
    if (!status.ok()) return status;
  }

  const auto execute = [&](Method chosen) {
    const char* source = static_cast<const char*>(input);
    const char* const index = static_cast<const char*>(indices);
    const char* const update = static_cast<const char*>(updates);
    char* const target = static_cast<char*>(output);
    if (!in_place && !fuses(chosen)) {
      copy_input(plan.input, input, plan.output, output, threads);
      source = target;
      problem.axis[kIn] = problem.axis[kOut];
      problem.column[kIn] = problem.column[kOut];
      problem.group[kIn] = problem.group[kOut];
      problem.rest[kIn] = problem.rest[kOut];
    }
    switch (chosen) {
      case Method::blocks:
        return run_blocks(problem, source, index, update, target, threads, tuning);
      case Method::shares:
        return run_shares(problem, index, update, target, threads);
      case Method::buckets:
        return run_planes(problem, source, index, update, target, threads, tuning);
      default:
        return run_direct(problem, index, update, target, threads);
    }
  };
  if (execute(method)) return {};
  // Some index is bad: find the first one in order. There may be none, if another thread has
  // changed them meanwhile. A piece with a bad index was skipped then, and what the partition has
  // not written still has to be written.
  const Status status = output_is_private || one_plane ? check() : Status{};
  if (status.ok() && method == Method::buckets && !in_place) execute(Method::direct);
  return status;
}

}  // namespace scatter

Status ScatterPlan::run(const void* source, const void* positions, const void* values, void* target,
                        bool output_is_private, int threads) const {
  if (mean != Mean::no)
    return scatter::run_mean(*this, source, positions, values, target, output_is_private, threads);
  return scatter::run_scatter(*this, source, positions, values, target, output_is_private, threads,
                              scatter::Method::automatic, scatter::Tuning{});
}

}  // namespace anydml

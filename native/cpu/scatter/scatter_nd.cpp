// SCATTER_ND on the processor: which algorithm runs, and why.
//
//   few updates, or little output  direct   copy, then write into the output, on one thread: the
//                                           order of the updates is what makes the last one win
//   slices of a few elements       buckets  a stable partition by where the updates go
//   longer slices                  rows     which updates a slice takes, then the output in order
//
// All are O(output + updates). A bad index is found before anything is written, except where a
// private output takes updates directly.

#include "scatter_nd.hpp"
#include "scatter_mean.hpp"

#include <algorithm>

namespace anydml {
namespace scatter {

Int NdProblem::read(const char* indices, Int first, Int count, const Int* scales,
                    Int* offsets) const {
  if (index_batch.rank <= 1) {
    const Int stride = index_batch.rank == 0 ? 0 : index_batch.strides[0];
    const Int bad = reader->tuples(indices + first * stride, stride, coordinate_stride,
                                   tuple_length, count, sizes, scales, offsets);
    return bad < 0 ? -1 : first * tuple_length + bad;
  }
  const int last = index_batch.rank - 1;
  const Int length = index_batch.sizes[last], stride = index_batch.strides[last];
  const Layout* const walked[] = {&index_batch};
  Walker<1> walker(walked, last);
  Int row = first / length;
  Int column = first - row * length;
  walker.start(row);
  for (Int done = 0; done < count;) {
    const Int chunk = std::min(count - done, length - column);
    const Int bad =
        reader->tuples(indices + walker.offset[0] + column * stride, stride, coordinate_stride,
                       tuple_length, chunk, sizes, scales, offsets + done);
    if (bad >= 0) return (first + done) * tuple_length + bad;
    done += chunk;
    column = 0;
    walker.next();
  }
  return -1;
}

void NdProblem::combine(char* target, Int target_step, const char* update, Int count) const {
  if (update_step == element_size || target_step != element_size)
    return writer->combine_row(target, target_step, update, update_step, count);
  // Packed first: from there elements are combined a vector at a time.
  alignas(64) char buffer[2048];
  const Int piece = Int{sizeof(buffer)} / element_size;
  for (Int at = 0; at < count; at += piece) {
    const Int chunk = std::min(piece, count - at);
    copy_steps(buffer, element_size, update + at * update_step, update_step, chunk, element_size);
    writer->combine_row(target + at * element_size, element_size, buffer, element_size, chunk);
  }
}

void NdProblem::write_slice(char* target, const char* update) const {
  if (contiguous) {
    if (reduction == Reduction::none)
      std::memcpy(target, update, static_cast<std::size_t>(slice_bytes));
    else
      writer->combine_row(target, element_size, update, element_size, slice_elements);
    return;
  }
  if (stepped) {
    if (reduction == Reduction::none)
      copy_steps(target, out_step, update, update_step, slice_elements, element_size);
    else
      combine(target, out_step, update, slice_elements);
    return;
  }
  const int last = slice_out.rank - 1;
  const Int length = slice_out.sizes[last];
  const Layout* const walked[] = {&slice_out, &slice_update};
  Walker<2> walker(walked, last);
  walker.start(0);
  for (Int row = slice_elements / length; row > 0; --row, walker.next())
    writer->combine_row(target + walker.offset[0], slice_out.strides[last],
                        update + walker.offset[1], slice_update.strides[last], length);
}

namespace {

// The most elements of a slice that are taken one by one, moved and combined: short rows cost more.
constexpr Int kShortMove = 3, kShortRow = 8;

void make_problem(const ScatterNdPlan& plan, bool in_place, NdProblem& problem) {
  const Layout& output = plan.output.layout;
  const Layout& input = in_place ? output : plan.input.layout;
  const Layout& indices = plan.indices.layout;
  const Layout& updates = plan.updates.layout;
  const int batch = indices.rank - 1;
  const int length = static_cast<int>(indices.sizes[batch]);
  const Int size = plan.output.element_size;
  problem.element_size = plan.output.element_size;
  problem.tuple_length = length;
  problem.coordinate_stride = indices.strides[batch];
  problem.reduction = plan.reduction;
  problem.reader = &index_reader(plan.indices.type);

  problem.index_batch = indices.slice(0, batch);
  problem.update_batch = updates.slice(0, batch);
  problem.tuples = problem.index_batch.count();
  problem.outer_in = input.slice(0, length);
  problem.outer_out = output.slice(0, length);
  problem.slices = problem.outer_out.count();
  problem.slice_in = input.slice(length, output.rank);
  problem.slice_out = output.slice(length, output.rank);
  problem.slice_update = updates.slice(batch, updates.rank);
  problem.slice_elements = problem.slice_out.count();
  problem.slice_bytes = problem.slice_elements * size;
  Int scale = 1;
  for (int d = length - 1; d >= 0; --d) {
    problem.sizes[d] = output.sizes[d];
    problem.byte_scales[d] = output.strides[d];
    problem.slice_scales[d] = scale;
    scale *= output.sizes[d];
  }

  Layout* slices[] = {&problem.slice_in, &problem.slice_out, &problem.slice_update};
  collapse(slices);
  Layout* tuples[] = {&problem.index_batch, &problem.update_batch};
  collapse(tuples);
  Layout* outers[] = {&problem.outer_in, &problem.outer_out};
  collapse(outers);
  problem.contiguous = problem.slice_out.rank == 0;
  if (problem.slice_out.rank == 1) {
    problem.contiguous = true;
    for (const Layout* slice : slices)
      problem.contiguous = problem.contiguous && slice->strides[0] == size;
  }
  problem.stepped = problem.slice_out.rank <= 1;
  problem.in_step = problem.out_step = problem.update_step = 0;
  if (problem.slice_out.rank == 1) {
    problem.in_step = problem.slice_in.strides[0];
    problem.out_step = problem.slice_out.strides[0];
    problem.update_step = problem.slice_update.strides[0];
  }
  // Bits that are only moved may be moved as fewer, larger elements.
  if (problem.contiguous && plan.reduction == Reduction::none)
    while (problem.element_size < 16 && problem.slice_bytes % (2 * problem.element_size) == 0) {
      problem.element_size *= 2;
      problem.slice_elements /= 2;
    }
  if (problem.contiguous)
    problem.in_step = problem.out_step = problem.update_step = problem.element_size;
  problem.packed_in = input.packed(size);
  problem.packed_out = output.packed(size);
  problem.writer = &writer(plan.reduction, plan.output.type, problem.element_size);
}

Status check_tuples(const NdProblem& problem, const char* indices, int threads) {
  std::atomic<Int> first_bad{kNoBadIndex};
  parallel_ranges(problem.tuples, kParallelElements, threads, [&](Int begin, Int end) {
    Int offsets[kPiece];
    for (Int at = begin; at < end; at += kPiece) {
      const Int bad =
          problem.read(indices, at, std::min(kPiece, end - at), problem.slice_scales, offsets);
      if (bad >= 0) {
        lower(first_bad, bad);
        return;
      }
    }
  });
  return status_of(first_bad);
}

// Writes the updates [first, first + count) at `offsets`.
void write_updates(const NdProblem& problem, const char* updates, char* output, Int first,
                   Int count, const Int* offsets, bool far) {
  const Layout& batch = problem.update_batch;
  if (far)
    for (Int i = 0; i < count; ++i) prefetch_write(output + offsets[i]);
  if (problem.slice_elements == 1 && batch.rank <= 1) {
    const Int stride = batch.rank == 0 ? 0 : batch.strides[0];
    problem.writer->scatter(output, offsets, updates + first * stride, 0, stride, 1, count);
    return;
  }
  for (Int i = 0; i < count; ++i)
    problem.write_slice(output + offsets[i], updates + problem.update_offset(first + i));
}

// Handling of a bad index. A call that has written nothing is rejected; a private output that has
// been written fails. If the indices were good before, another thread has changed them, and the bad
// one is skipped.
enum class Bad { refused, fails, left_out };

// On one thread.
Status run_direct(const ScatterNdPlan& plan, const NdProblem& problem, const void* input,
                  const char* indices, const char* updates, void* output, bool in_place, Bad on_bad,
                  int threads) {
  char* const target = static_cast<char*>(output);
  Int offsets[kPiece];
  if (problem.tuples <= kPiece && on_bad != Bad::left_out) {  // this single reading is the check
    const Int bad = problem.read(indices, 0, problem.tuples, problem.byte_scales, offsets);
    if (bad >= 0) return {bad};
    if (!in_place) copy_input(plan.input, input, plan.output, output, threads);
    write_updates(problem, updates, target, 0, problem.tuples, offsets, false);
    return {};
  }
  if (on_bad == Bad::refused) {
    const Status status = check_tuples(problem, indices, threads);
    if (!status.ok()) return status;
  }
  if (!in_place) copy_input(plan.input, input, plan.output, output, threads);
  const bool far = problem.slices * problem.slice_bytes >= kPrefetchBytes;
  for (Int first = 0; first < problem.tuples; first += kPiece) {
    const Int count = std::min(kPiece, problem.tuples - first);
    const Int bad = problem.read(indices, first, count, problem.byte_scales, offsets);
    if (bad < 0)
      write_updates(problem, updates, target, first, count, offsets, far);
    else if (on_bad == Bad::fails)
      return {bad};
  }
  return {};
}

// Keys and values for the partition: the elements of all updates, in order.
struct Elements {
  const NdProblem* problem;
  const char* indices;
  const char* updates;

  static Int keys(const void* context, Int first, Int count, Int* keys) {
    const Elements& elements = *static_cast<const Elements*>(context);
    const NdProblem& problem = *elements.problem;
    const Int slice = problem.slice_elements;
    if (slice == 1) return problem.read(elements.indices, first, count, problem.slice_scales, keys);
    Int tuple = first / slice, within = first - tuple * slice;
    Int numbers[kPiece];
    const Int tuples = (within + count + slice - 1) / slice;
    const Int bad = problem.read(elements.indices, tuple, tuples, problem.slice_scales, numbers);
    if (bad >= 0) return bad;
    const Int* number = numbers;
    for (Int i = 0; i < count; ++number, within = 0)
      for (; within < slice && i < count; ++within, ++i) keys[i] = *number * slice + within;
    return -1;
  }

  static const char* values(const void* context, Int first, Int count, char* buffer) {
    const Elements& elements = *static_cast<const Elements*>(context);
    const NdProblem& problem = *elements.problem;
    const Layout& batch = problem.update_batch;
    const Int size = problem.element_size, slice = problem.slice_elements;
    if (batch.rank == 1 && problem.contiguous && batch.strides[0] == slice * size)
      return elements.updates + first * size;
    if (slice == 1 && batch.rank == 1) {
      copy_steps(buffer, size, elements.updates + first * batch.strides[0], batch.strides[0], count,
                 problem.element_size);
      return buffer;
    }
    for (Int i = 0; i < count; ++i) {
      const Int tuple = (first + i) / slice, within = first + i - tuple * slice;
      std::memcpy(
          buffer + i * size,
          elements.updates + problem.update_offset(tuple) +
              (problem.contiguous ? within * size : NdProblem::begin(problem.slice_update, within)),
          static_cast<std::size_t>(size));
    }
    return buffer;
  }
};

Status run_elements(const NdProblem& problem, const char* input, const char* indices,
                    const char* updates, char* output, int threads, const NdTuning& tuning) {
  Elements elements{&problem, indices, updates};
  Buckets job;
  job.keys = Elements::keys;
  job.values = Elements::values;
  job.context = &elements;
  job.updates = problem.tuples * problem.slice_elements;
  job.input = input;
  job.output = output;
  job.elements = problem.slices * problem.slice_elements;
  job.element_size = problem.element_size;
  job.writer = problem.writer;
  job.bucket_bits = tuning.bucket_bits;
  job.round = tuning.round;
  return run_buckets(job, threads);
}

NdMethod choose(const NdProblem& problem, bool in_place, const NdTuning& tuning) {
  const Int out_bytes = problem.slices * problem.slice_bytes;
  const Int write_bytes = problem.tuples * std::max<Int>(64, problem.slice_bytes);
  if (out_bytes + problem.tuples * problem.slice_bytes <= tuning.small_bytes)
    return NdMethod::direct;
  const bool mapped = problem.slices < UINT32_MAX && problem.tuples < UINT32_MAX;
  const bool writes_little = in_place
                                 ? write_bytes <= (Int{1} << 20) || write_bytes < problem.slices
                                 : write_bytes <= out_bytes / 16;
  if (writes_little) return NdMethod::direct;
  if (problem.slice_elements <= (problem.reduction == Reduction::none ? kShortMove : kShortRow))
    return problem.packed_out && out_bytes > (Int{128} << 10) ? NdMethod::buckets
                                                              : NdMethod::direct;
  return mapped ? NdMethod::rows : NdMethod::direct;
}

}  // namespace

Status run_scatter_nd(const ScatterNdPlan& plan, const void* input, const void* indices,
                      const void* updates, void* output, bool output_is_private, int threads,
                      NdMethod method, const NdTuning& tuning) {
  const bool in_place = input == output;
  NdProblem problem;
  make_problem(plan, in_place, problem);
  const char* const index = static_cast<const char*>(indices);
  const char* const update = static_cast<const char*>(updates);
  if (problem.tuples == 0 || problem.slice_elements == 0 || problem.slices == 0) {
    // Nothing to write, but indices may still be bad, where the output has no element.
    const bool none = problem.tuples == 0 || problem.tuple_length == 0;
    const Status status = none ? Status{} : check_tuples(problem, index, threads);
    if (!in_place) copy_input(plan.input, input, plan.output, output, threads);
    return status;
  }
  if (method == NdMethod::automatic) method = choose(problem, in_place, tuning);
  if (method == NdMethod::buckets && !problem.packed_out) method = NdMethod::direct;
  if (method == NdMethod::direct)
    return run_direct(plan, problem, input, index, update, output, in_place,
                      output_is_private ? Bad::fails : Bad::refused, threads);

  const char* source = static_cast<const char*>(input);
  char* const target = static_cast<char*>(output);
  if (method == NdMethod::rows)
    return run_nd_rows(problem, source, index, update, target, threads, tuning);
  const bool checked = problem.tuples * problem.slice_elements > tuning.round || !problem.packed_in;
  if (!output_is_private && checked) {
    const Status status = check_tuples(problem, index, threads);
    if (!status.ok()) return status;
  }
  if (!problem.packed_in) {
    copy_input(plan.input, input, plan.output, output, threads);
    source = target;
  }
  const Status status = run_elements(problem, source, index, update, target, threads, tuning);
  // A later round, or one after the check, finds a bad index only if another thread has changed the
  // indices. It is skipped, and the rest is still written.
  if (!status.ok() && !output_is_private && checked)
    return run_direct(plan, problem, input, index, update, output, in_place, Bad::left_out,
                      threads);
  return status;
}

}  // namespace scatter

Status ScatterNdPlan::run(const void* source, const void* positions, const void* values,
                          void* target, bool output_is_private, int threads) const {
  if (mean != Mean::no)
    return scatter::run_mean(*this, source, positions, values, target, output_is_private, threads);
  return scatter::run_scatter_nd(*this, source, positions, values, target, output_is_private,
                                 threads, scatter::NdMethod::automatic, scatter::NdTuning{});
}

}  // namespace anydml

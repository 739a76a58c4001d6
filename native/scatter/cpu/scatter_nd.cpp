// SCATTER_ND on the processor: which algorithm runs, and why.
//
//   few updates, or little output  direct   copy, then write into the output, on one thread: the
//                                           order of the updates is what makes the last one win
//   slices of a few elements       buckets  a stable partition by where the updates go
//   longer slices                  rows     which updates a slice takes, then the output in order
//
// All are O(output + updates). A bad index is found before anything is written, except where a
// private output takes updates directly.

#include "scatter/cpu/scatter_nd.hpp"
#include "scatter/cpu/scatter_mean.hpp"

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

void NdProblem::combine(char* target, Int target_step, const char* update, Int step,
                        Int count) const {
  if (step == element_size || target_step != writer->size_of(element_size))
    return writer->combine_row(target, target_step, update, step, count);
  // Packed first: from there elements are combined a vector at a time.
  alignas(64) char buffer[2048];
  const Int piece = Int{sizeof(buffer)} / element_size;
  for (Int at = 0; at < count; at += piece) {
    const Int chunk = std::min(piece, count - at);
    copy_steps(buffer, element_size, update + at * step, step, chunk, element_size);
    writer->combine_row(target + at * target_step, target_step, buffer, element_size, chunk);
  }
}

void NdProblem::write_slice(char* target, const char* update) const {
  if (reduction == Reduction::none && contiguous) {
    std::memcpy(target, update, static_cast<std::size_t>(slice_bytes));
  } else if (reduction == Reduction::none && stepped) {
    copy_steps(target, out_step, update, update_step, slice_elements, element_size);
  } else if (stepped) {
    combine(target, out_step, update, update_step, slice_elements);
  } else {
    const int last = slice_out.rank - 1;
    const Int length = slice_out.sizes[last];
    const Layout* const walked[] = {&slice_out, &slice_update};
    Walker<2> walker(walked, last);
    walker.start(0);
    for (Int row = slice_elements / length; row > 0; --row, walker.next())
      writer->combine_row(target + walker.offset[0], slice_out.strides[last],
                          update + walker.offset[1], slice_update.strides[last], length);
  }
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

namespace {

// The most elements of a slice that are taken one by one, moved and combined: short rows cost more.
constexpr Int kShortMove = 3, kShortRow = 8;

// Elements that are widened in the time that it takes to find the row of an update.
constexpr Int kRowCost = 128;

// The most bytes of an output in float32 that takes updates as a whole.
constexpr Int kDenseBytes = Int{512} << 10;

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

// Writes the updates [first, first + count) at `offsets`.
void write_updates(const NdProblem& problem, const char* updates, char* output, Int first,
                   Int count, const Int* offsets) {
  const Layout& batch = problem.update_batch;
  if (problem.slice_elements == 1 && batch.rank <= 1) {
    const Int stride = batch.rank == 0 ? 0 : batch.strides[0];
    problem.writer->scatter(output, offsets, updates + first * stride, 0, stride, 1, count);
    return;
  }
  for (Int i = 0; i < count; ++i)
    problem.write_slice(output + offsets[i], updates + problem.update_offset(first + i));
}

// On one thread.
Status run_direct(const NdCall& call, Bad on_bad, int threads) {
  return for_pieces(call, on_bad, threads, [&](Int first, Int count, Int* offsets) {
    write_updates(call.problem, call.updates, call.output, first, count, offsets);
  });
}

// The same where elements are float32 while they take updates: all of them, or those of few
// updates.
Status run_sums(const NdCall& call, Bad on_bad, int threads) {
  const NdProblem& problem = call.problem;
  const Writer& writer = *problem.writer;
  const Int slice = problem.slice_elements, elements = problem.slices * slice;
  const Int few = slice > 1 ? slice + kRowCost : kFewUpdates;
  if (elements * 4 > kDenseBytes || elements > problem.tuples * few) {
    if (slice > 1) return run_nd_few(call, on_bad, threads);
    Sums sums(writer, problem.tuples, problem.slices);
    const Status status =
        for_pieces(call, on_bad, threads, [&](Int first, Int count, Int* offsets) {
          char* const located = sums.locate(call.output, offsets, count);
          write_updates(problem, call.updates, located, first, count, offsets);
        });
    sums.finish();
    return status;
  }
  Scratch<char> sums(elements * 4);
  NdProblem block = problem;
  set_packed_strides(block.slice_out, 4);
  block.out_step = 4;
  for (int d = 0; d < problem.tuple_length; ++d)
    block.byte_scales[d] = problem.slice_scales[d] * slice * 4;
  const bool in_place = call.input == call.output;
  widen(writer, (in_place ? call.plan.output : call.plan.input).layout, call.input, 0, elements,
        sums.get());
  const NdCall summed{call.plan, block, sums.get(), call.indices, call.updates, sums.get()};
  const Status status = run_direct(summed, on_bad, threads);
  if (status.ok()) narrow(writer, call.plan.output.layout, call.output, 0, elements, sums.get());
  return status;
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

Status run_elements(const NdProblem& problem, const Layout& layout, const char* input,
                    const char* indices, const char* updates, char* output, int threads,
                    const NdTuning& tuning) {
  Elements elements{&problem, indices, updates};
  Buckets job;
  job.keys = Elements::keys;
  job.values = Elements::values;
  job.context = &elements;
  job.updates = problem.tuples * problem.slice_elements;
  job.input = input;
  job.output = output;
  job.layout = problem.packed_out ? nullptr : &layout;
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
  const bool slotted = !problem.widens() || Named::apply(problem.tuples, problem.slices);
  const bool small = out_bytes + problem.tuples * problem.slice_bytes <= tuning.small_bytes;
  const bool writes_little = in_place
                                 ? write_bytes <= (Int{1} << 20) || write_bytes < problem.slices
                                 : write_bytes <= out_bytes / 16;
  if (slotted && (small || writes_little)) return NdMethod::direct;
  const bool mapped = problem.slices < UINT32_MAX && problem.tuples < UINT32_MAX;
  if (problem.slice_elements > (problem.reduction == Reduction::none ? kShortMove : kShortRow))
    return mapped ? NdMethod::rows : problem.widens() ? NdMethod::buckets : NdMethod::direct;
  const bool partitioned = problem.packed_out && out_bytes > (Int{128} << 10);
  return partitioned || !slotted ? NdMethod::buckets : NdMethod::direct;
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
  const bool widens = problem.widens();
  if (method == NdMethod::automatic) method = choose(problem, in_place, tuning);
  if (method == NdMethod::buckets && !problem.packed_out && !widens) method = NdMethod::direct;
  if (method == NdMethod::direct && widens && !Named::apply(problem.tuples, problem.slices))
    method = NdMethod::buckets;
  const char* source = static_cast<const char*>(input);
  char* const target = static_cast<char*>(output);
  const NdCall call{plan, problem, source, index, update, target};
  const auto direct = [&](Bad on_bad) {
    return widens ? run_sums(call, on_bad, threads) : run_direct(call, on_bad, threads);
  };
  if (method == NdMethod::direct) return direct(output_is_private ? Bad::fails : Bad::refused);
  if (method == NdMethod::rows)
    return run_nd_rows(problem, source, index, update, target, threads, tuning);
  const bool copies = !problem.packed_in || !problem.packed_out;
  const bool checked =
      copies || (!widens && problem.tuples * problem.slice_elements > tuning.round);
  if (!output_is_private && checked) {
    const Status status = check_tuples(problem, index, threads);
    if (!status.ok()) return status;
  }
  if (copies && !in_place) copy_input(plan.input, input, plan.output, output, threads);
  if (copies) source = target;
  const Status status =
      run_elements(problem, plan.output.layout, source, index, update, target, threads, tuning);
  // A later round, or one after the check, finds a bad index only if another thread has changed the
  // indices. It is skipped, and the rest is still written.
  if (!status.ok() && !output_is_private && checked) return direct(Bad::left_out);
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

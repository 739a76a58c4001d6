// SCATTER and SCATTER_ND against one loop over the updates, by every algorithm.
#include <cstring>

#include "case.hpp"
#include "scatter/cpu/scatter.hpp"
#include "scatter/cpu/scatter_nd.hpp"

namespace anydml::fuzz {
namespace {

using test::Expected;
using test::kTypes;
using test::same_element;

struct ScatterCall {
  TypeInfo type;
  DataType index_type;
  Reduction reduction;
  bool in_place, output_is_private;
  int threads;

  explicit ScatterCall(Bytes& bytes) {
    const Reduction reductions[] = {Reduction::none, Reduction::none, Reduction::add,
                                    Reduction::mul,  Reduction::min,  Reduction::max};
    reduction = bytes.pick(reductions);
    if (reduction == Reduction::none)
      type = {DataType::unknown, 1 << bytes.number(4)};
    else
      type = bytes.pick(kTypes);
    index_type = bytes.pick(kIndexTypes);
    in_place = bytes.chance(64);
    output_is_private = !in_place && bytes.chance(128);
    threads = 1 + bytes.number(2);
  }
};

struct ScatterOperands {
  Operand input, indices, updates, other;
  Operand& output;

  ScatterOperands(Bytes& bytes, const ScatterCall& call, const Sizes& in, const Sizes& at,
                  const Sizes& values)
      : input(bytes, in, call.type.size, call.in_place ? Role::output : Role::input,
              call.type.type),
        indices(bytes, at, facts_of(call.index_type).size, Role::input, call.index_type),
        updates(bytes, values, call.type.size, Role::input, call.type.type),
        other(bytes, call.in_place ? Sizes{} : in, call.type.size, Role::output, call.type.type),
        output(call.in_place ? input : other) {
    for (Operand* operand : {&input, &updates}) {
      operand->fill(bytes);
      if (call.reduction != Reduction::none && bytes.chance(192)) operand->tame(bytes);
    }
  }

  void remember() {
    for (Operand* operand : {&input, &indices, &updates, &other}) operand->remember();
  }
  std::string text() const {
    return output.text() + " <- " + input.text() + " at " + indices.text() + " from " +
           updates.text();
  }
};

void check_scatter(const ScatterOperands& o, const ScatterCall& call, const Status& status,
                   Int first_bad, const std::vector<unsigned char>& expected,
                   const std::string& what) {
  REQUIRE(status.bad_index == first_bad, "%s: bad index %lld, not %lld; %s", what.c_str(),
          status.bad_index, first_bad, o.text().c_str());
  REQUIRE(o.indices.unchanged() && o.updates.unchanged(), "%s: %s", what.c_str(), o.text().c_str());
  REQUIRE(call.in_place || o.input.unchanged(), "%s: %s", what.c_str(), o.text().c_str());
  REQUIRE(o.output.gaps_intact(), "%s: %s", what.c_str(), o.text().c_str());
  if (first_bad >= 0) {
    REQUIRE(call.output_is_private || o.output.unchanged(), "%s: %s", what.c_str(),
            o.text().c_str());
    return;
  }
  const std::vector<unsigned char> got = o.output.elements();
  const std::size_t size = static_cast<std::size_t>(call.type.size);
  for (std::size_t i = 0; i < got.size(); i += size)
    REQUIRE(same_element(o.input.tensor, &got[i], &expected[i]),
            "%s: element %zu, reduction %d, threads %d, in place %d; %s", what.c_str(), i / size,
            static_cast<int>(call.reduction), call.threads, call.in_place, o.text().c_str());
}

}  // namespace

void fuzz_scatter(Bytes& bytes) {
  using scatter::Method;
  const ScatterCall call(bytes);
  const Method methods[] = {Method::automatic, Method::direct, Method::blocks, Method::buckets,
                            Method::shares};
  const Method method = bytes.pick(methods);
  scatter::Tuning tuning;
  Int limit = any_limit(bytes);
  // A partition takes scratch for each plane, and shipped tuning leaves it planes of megabytes.
  if (method == Method::buckets) limit = std::min<Int>(limit, 2000);
  if (bytes.chance(192)) {
    limit = std::min<Int>(limit, 9000);
    tuning.block_bytes = Int{1} << (5 + bytes.number(7));
    tuning.row_bytes = Int{1} << (5 + bytes.number(7));
    tuning.max_bytes = Int{1} << (8 + bytes.number(6));
    tuning.strip_bytes = Int{64} << bytes.number(2);
    tuning.small_bytes = Int{1} << (4 + bytes.number(8));
    tuning.stream_bytes = bytes.chance(128) ? 0 : kStreamBytes;
    tuning.share_updates = bytes.between(1, 1000);
    tuning.bucket_bits = 3 + bytes.number(7);
    if (bytes.chance(128)) tuning.round = bytes.between(100, 2000);
  }
  const int rank = bytes.number(6);
  const Sizes in = any_sizes(bytes, rank, limit);
  const int axis = rank == 0 ? 0 : bytes.number(rank - 1);
  const Int size = rank == 0 ? 1 : in[static_cast<std::size_t>(axis)];
  const Sizes at = any_lookup(bytes, in, axis, limit);
  ScatterOperands o(bytes, call, in, at, at);
  fill_indices(bytes, o.indices, {size});
  o.remember();

  Int first_bad = -1;
  for (Int i = 0; i < o.indices.count() && first_bad < 0; ++i)
    if (position_of(o.indices, i, size) < 0) first_bad = i;
  Expected expected{o.input.tensor, call.reduction, o.input.elements()};
  for (Int i = 0; i < o.indices.count() && first_bad < 0; ++i) {
    Sizes place = unravel(i, at);
    if (rank > 0) place[static_cast<std::size_t>(axis)] = position_of(o.indices, i, size);
    expected.take(static_cast<std::size_t>(ravel(place, in)), o.updates.at(i));
  }
  const ScatterPlan plan{o.input.tensor, o.indices.tensor, o.updates.tensor, o.output.tensor,
                         axis,           call.reduction};
  const Status status =
      scatter::run_scatter(plan, o.input.data(), o.indices.data(), o.updates.data(),
                           o.output.data(), call.output_is_private, call.threads, method, tuning);
  check_scatter(
      o, call, status, first_bad, expected.elements,
      "scatter by " + std::to_string(static_cast<int>(method)) + " on " + std::to_string(axis));
}

void fuzz_scatter_nd(Bytes& bytes) {
  using scatter::NdMethod;
  const ScatterCall call(bytes);
  const NdMethod methods[] = {NdMethod::automatic, NdMethod::direct, NdMethod::rows,
                              NdMethod::buckets};
  const NdMethod method = bytes.pick(methods);
  scatter::NdTuning tuning;
  if (bytes.chance(192)) {
    if (bytes.chance(128)) tuning.small_bytes = 0;
    tuning.piece_bytes = Int{1} << (5 + bytes.number(10));
    tuning.stream_bytes = bytes.chance(128) ? 0 : kStreamBytes;
    tuning.bucket_bits = 3 + bytes.number(7);
    if (bytes.chance(128)) tuning.round = bytes.between(100, 2000);
  }
  const Int limit = any_limit(bytes);
  const int rank = bytes.number(6);
  const Sizes in = any_sizes(bytes, rank, limit);
  const int width = bytes.number(rank);
  const Sizes limits(in.begin(), in.begin() + width), block(in.begin() + width, in.end());
  const Int slice = product(block);
  const Sizes tuples =
      any_sizes(bytes, bytes.number(3), std::max<Int>(1, 2 * limit / std::max<Int>(1, slice)));
  Sizes at = tuples, values = tuples;
  at.push_back(width);
  values.insert(values.end(), block.begin(), block.end());
  ScatterOperands o(bytes, call, in, at, values);
  fill_indices(bytes, o.indices, limits);
  o.remember();

  const auto size_of = [&](Int flat) { return limits[static_cast<std::size_t>(flat % width)]; };
  Int first_bad = -1;
  for (Int i = 0; i < o.indices.count() && first_bad < 0; ++i)
    if (position_of(o.indices, i, size_of(i)) < 0) first_bad = i;
  Expected expected{o.input.tensor, call.reduction, o.input.elements()};
  for (Int i = 0; i < product(tuples) && first_bad < 0 && slice > 0; ++i) {
    Int target = 0;
    for (int d = 0; d < width; ++d)
      target = target * size_of(d) + position_of(o.indices, i * width + d, size_of(d));
    for (Int e = 0; e < slice; ++e)
      expected.take(static_cast<std::size_t>(target * slice + e), o.updates.at(i * slice + e));
  }
  const ScatterNdPlan plan{o.input.tensor, o.indices.tensor, o.updates.tensor, o.output.tensor,
                           call.reduction};
  const Status status = scatter::run_scatter_nd(
      plan, o.input.data(), o.indices.data(), o.updates.data(), o.output.data(),
      call.output_is_private, call.threads, method, tuning);
  check_scatter(o, call, status, first_bad, expected.elements,
                "scatter_nd by " + std::to_string(static_cast<int>(method)));
}

}  // namespace anydml::fuzz

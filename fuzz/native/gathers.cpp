// GATHER, GATHER_ELEMENTS and GATHER_ND against every element's place, computed on its own.
#include <cstring>

#include "case.hpp"
#include "gather/cpu/gather_elements.hpp"

namespace anydml::fuzz {
namespace {

constexpr int kElementSizes[] = {1, 2, 4, 8, 16};

struct GatherCall {
  int element_size, threads;
  DataType index_type;
  OutOfRange mode;
  bool output_is_private;

  explicit GatherCall(Bytes& bytes)
      : element_size(bytes.pick(kElementSizes)),
        threads(1 + bytes.number(2)),
        index_type(bytes.pick(kIndexTypes)),
        mode(bytes.chance(64) ? OutOfRange::clamp : OutOfRange::raise),
        output_is_private(bytes.chance(128)) {}
};

struct GatherOperands {
  Operand input, indices, output;

  GatherOperands(Bytes& bytes, const GatherCall& call, const Sizes& in, const Sizes& at,
                 const Sizes& out)
      : input(bytes, in, call.element_size, Role::input),
        indices(bytes, at, facts_of(call.index_type).size, Role::input, call.index_type),
        output(bytes, out, call.element_size, Role::output) {}

  std::string text() const {
    return output.text() + " <- " + input.text() + " at " + indices.text();
  }
};

// The position of an index, and the first that has none.
struct Positions {
  const Operand& indices;
  OutOfRange mode;
  Int first_bad = -1;

  Int at(Int flat, Int size) {
    const Int position = mode == OutOfRange::clamp ? clamped_position(indices, flat, size)
                                                   : position_of(indices, flat, size);
    if (position < 0 && (first_bad < 0 || flat < first_bad)) first_bad = flat;
    return std::max<Int>(position, 0);
  }
};

// `source`: where every output element comes from, when no index is bad.
void check_gather(const GatherOperands& o, const GatherCall& call, const Status& status,
                  Int first_bad, const Sizes& source, const char* what) {
  REQUIRE(status.bad_index == first_bad, "%s: bad index %lld, not %lld; %s", what, status.bad_index,
          first_bad, o.text().c_str());
  REQUIRE(o.input.unchanged() && o.indices.unchanged() && o.output.gaps_intact(), "%s: %s", what,
          o.text().c_str());
  if (first_bad >= 0) {
    REQUIRE(call.output_is_private || o.output.unchanged(), "%s: %s", what, o.text().c_str());
    return;
  }
  for (Int i = 0; i < o.output.count(); ++i)
    REQUIRE(std::memcmp(o.output.at(i), o.input.at(source[static_cast<std::size_t>(i)]),
                        static_cast<std::size_t>(call.element_size)) == 0,
            "%s: element %lld, threads %d; %s", what, i, call.threads, o.text().c_str());
}

}  // namespace

void fuzz_gather(Bytes& bytes) {
  const GatherCall call(bytes);
  const Int limit = any_limit(bytes);
  const int rank = 1 + bytes.number(5);
  const Sizes in = any_sizes(bytes, rank, limit);
  const int axis = bytes.number(rank - 1);
  const Int size = in[static_cast<std::size_t>(axis)];
  const Sizes before(in.begin(), in.begin() + axis), behind(in.begin() + axis + 1, in.end());
  const Int around = std::max<Int>(1, product(before)) * std::max<Int>(1, product(behind));
  const Sizes at = any_sizes(bytes, bytes.number(3), std::max<Int>(1, 2 * limit / around));
  Sizes out = before;
  out.insert(out.end(), at.begin(), at.end());
  out.insert(out.end(), behind.begin(), behind.end());
  GatherOperands o(bytes, call, in, at, out);
  o.input.fill(bytes);
  fill_indices(bytes, o.indices, {size});
  o.input.remember();
  o.indices.remember();

  Positions positions{o.indices, call.mode};
  const bool nothing = product(out) == 0;
  const Int count = product(at), inner = product(behind);
  Sizes places, source;
  if (!nothing || call.mode == OutOfRange::raise)
    for (Int i = 0; i < count; ++i) places.push_back(positions.at(i, size));
  if (!nothing && positions.first_bad < 0)
    for (Int row = 0; row < product(before); ++row)
      for (Int place : places)
        for (Int i = 0; i < inner; ++i) source.push_back((row * size + place) * inner + i);
  const GatherPlan plan{o.input.tensor, o.indices.tensor, o.output.tensor, axis, call.mode};
  const Status status = plan.run(o.input.data(), o.indices.data(), o.output.data(),
                                 call.output_is_private, call.threads);
  check_gather(o, call, status, positions.first_bad, source, "gather");
}

void fuzz_gather_elements(Bytes& bytes) {
  const GatherCall call(bytes);
  const GatherElementsMethod methods[] = {
      GatherElementsMethod::choose, GatherElementsMethod::direct, GatherElementsMethod::strips};
  const GatherElementsMethod method = bytes.pick(methods);
  const Int limit = any_limit(bytes);
  const int rank = 1 + bytes.number(5);
  const Sizes in = any_sizes(bytes, rank, limit);
  const int axis = bytes.number(rank - 1);
  const Sizes at = any_lookup(bytes, in, axis, limit);
  const Int size = in[static_cast<std::size_t>(axis)];
  GatherOperands o(bytes, call, in, at, at);
  o.input.fill(bytes);
  fill_indices(bytes, o.indices, {size});
  o.input.remember();
  o.indices.remember();

  Positions positions{o.indices, call.mode};
  Sizes source;
  for (Int i = 0; i < o.indices.count(); ++i) {
    Sizes place = unravel(i, at);
    place[static_cast<std::size_t>(axis)] = positions.at(i, size);
    source.push_back(ravel(place, in));
  }
  const GatherElementsPlan plan{o.input.tensor, o.indices.tensor, o.output.tensor, axis, call.mode};
  Status status;
  if (!gather_elements_by(plan, method, o.input.data(), o.indices.data(), o.output.data(),
                          call.output_is_private, call.threads, status)) {
    REQUIRE(method != GatherElementsMethod::choose && o.output.unchanged(), "%s", o.text().c_str());
    return;
  }
  check_gather(o, call, status, positions.first_bad, source, "gather_elements");
}

void fuzz_gather_nd(Bytes& bytes) {
  const GatherCall call(bytes);
  const Int limit = any_limit(bytes);
  const int rank = bytes.number(6);
  const Sizes in = any_sizes(bytes, rank, limit);
  const int batch = bytes.chance(128) ? 0 : bytes.number(rank);
  const int width = bytes.number(rank - batch);
  const Sizes limits(in.begin() + batch, in.begin() + batch + width);
  const Sizes block(in.begin() + batch + width, in.end());
  Sizes tuples(in.begin(), in.begin() + batch);
  const Int tuple_elements = std::max<Int>(1, product(tuples)) * std::max<Int>(1, product(block));
  const Sizes more =
      any_sizes(bytes, bytes.number(2), std::max<Int>(1, 2 * limit / tuple_elements));
  tuples.insert(tuples.end(), more.begin(), more.end());
  Sizes at = tuples, out = tuples;
  at.push_back(width);
  out.insert(out.end(), block.begin(), block.end());
  GatherOperands o(bytes, call, in, at, out);
  o.input.fill(bytes);
  fill_indices(bytes, o.indices, limits);
  o.input.remember();
  o.indices.remember();

  Positions positions{o.indices, call.mode};
  Sizes source;
  const Int slice = product(block);
  const bool nothing = product(out) == 0;
  for (Int i = 0; i < product(tuples) && (!nothing || call.mode == OutOfRange::raise); ++i) {
    const Sizes place = unravel(i, tuples);
    Int flat = 0;
    for (int k = 0; k < batch; ++k)
      flat = flat * in[static_cast<std::size_t>(k)] + place[static_cast<std::size_t>(k)];
    for (int k = 0; k < width; ++k) {
      const Int size = limits[static_cast<std::size_t>(k)];
      flat = flat * size + positions.at(i * width + k, size);
    }
    for (Int k = 0; k < slice; ++k) source.push_back(flat * slice + k);
  }
  const GatherNdPlan plan{o.input.tensor, o.indices.tensor, o.output.tensor, batch, call.mode};
  const Status status = plan.run(o.input.data(), o.indices.data(), o.output.data(),
                                 call.output_is_private, call.threads);
  check_gather(o, call, status, positions.first_bad, source, "gather_nd");
}

}  // namespace anydml::fuzz

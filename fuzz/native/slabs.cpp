// SPLIT, JOIN and the copy that they and others stand on, against element by element.
#include "moving/cpu/slabs.hpp"

#include <cstring>

#include "case.hpp"

namespace anydml::fuzz {

constexpr int kMovedSizes[] = {1, 2, 4, 8, 16, 3, 12, 24};

void fuzz_copy(Bytes& bytes) {
  const int element_size = bytes.pick(kMovedSizes), threads = 1 + bytes.number(2);
  const Sizes sizes = any_sizes(bytes, bytes.number(6), any_limit(bytes));
  Operand source(bytes, sizes, element_size, Role::input);
  Operand target(bytes, sizes, element_size, Role::output);
  copy_elements(target.tensor.layout, target.data(), source.tensor.layout, source.data(),
                element_size, threads);
  REQUIRE(source.unchanged() && target.gaps_intact(), "%s <- %s", target.text().c_str(),
          source.text().c_str());
  REQUIRE(target.elements() == source.elements(), "%s <- %s", target.text().c_str(),
          source.text().c_str());
}

void fuzz_slabs(Bytes& bytes) {
  const SlabMethod methods[] = {SlabMethod::choose, SlabMethod::layouts, SlabMethod::rows,
                                SlabMethod::blocks, SlabMethod::tiles};
  const SlabMethod method = bytes.pick(methods);
  const bool splitting = bytes.chance(128);
  const int element_size = bytes.pick(kMovedSizes), threads = 1 + bytes.number(2);
  const Int limit = any_limit(bytes);
  const int rank = 1 + bytes.number(5);
  Sizes sizes = any_sizes(bytes, rank, limit);
  const int axis = bytes.number(rank - 1);
  const std::size_t split_axis = static_cast<std::size_t>(axis);
  sizes[split_axis] = 1;
  const Int longest = std::max<Int>(1, limit / std::max<Int>(1, product(sizes)));
  // Equal parts, which have ways of their own, or any; their sum is what the whole has.
  const int count = 1 + (bytes.chance(64) ? bytes.number(150) : bytes.number(5));
  const Int equal = bytes.chance(96) ? bytes.between(1, 9) : 0;
  Sizes lengths;
  Int total = 0;
  for (int p = 0; p < count && total < longest; ++p) {
    lengths.push_back(equal > 0 ? equal : any_size(bytes, longest - total));
    total += lengths.back();
  }
  sizes[split_axis] = total;
  const Role joined_role = splitting ? Role::input : Role::output;
  const Role part_role = splitting ? Role::output : Role::input;
  Operand joined(bytes, sizes, element_size, joined_role);
  SlabsPlan plan(joined.tensor, axis);
  std::vector<std::unique_ptr<Operand>> parts;
  std::vector<void*> pointers;
  for (Int length : lengths) {
    sizes[split_axis] = length;
    parts.push_back(std::make_unique<Operand>(bytes, sizes, element_size, part_role));
    plan.add(parts.back()->tensor.layout);
    pointers.push_back(parts.back()->data());
  }
  const bool ran = splitting ? split_by(plan, method, joined.data(), pointers.data(), threads)
                             : join_by(plan, method, pointers.data(), joined.data(), threads);
  const std::string what = std::string(splitting ? "split" : "join") + " by " +
                           std::to_string(static_cast<int>(method)) + " on " +
                           std::to_string(axis) + ", threads " + std::to_string(threads) + "; " +
                           joined.text();
  if (!ran) {
    REQUIRE(method != SlabMethod::choose && method != SlabMethod::layouts, "%s", what.c_str());
    REQUIRE(joined.unchanged(), "%s", what.c_str());
    for (const auto& part : parts) REQUIRE(part->unchanged(), "%s", what.c_str());
    return;
  }
  REQUIRE(splitting ? joined.unchanged() : joined.gaps_intact(), "%s", what.c_str());
  Int inner = element_size;
  for (int i = axis + 1; i < rank; ++i) inner *= sizes[static_cast<std::size_t>(i)];
  const std::vector<unsigned char> all = joined.elements();
  Int start = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Operand& part = *parts[p];
    REQUIRE(splitting ? part.gaps_intact() : part.unchanged(), "part %zu, %s; %s", p,
            part.text().c_str(), what.c_str());
    const std::vector<unsigned char> own = part.elements();
    const Int piece = lengths[p] * inner;
    const Int rows = piece > 0 ? static_cast<Int>(own.size()) / piece : 0;
    for (Int row = 0; row < rows; ++row)
      REQUIRE(std::memcmp(own.data() + row * piece, all.data() + row * total * inner + start,
                          static_cast<std::size_t>(piece)) == 0,
              "row %lld of part %zu, %s; %s", row, p, part.text().c_str(), what.c_str());
    start += piece;
  }
}

}  // namespace anydml::fuzz

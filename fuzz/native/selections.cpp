// TOP_K against a stable sort of numbers, NONZERO_COORDINATES against a walk over all elements.
#include <cmath>
#include <cstring>
#include <numeric>

#include "case.hpp"
#include "nonzero/cpu/nonzero.hpp"
#include "top_k/cpu/top_k.hpp"

namespace anydml::fuzz {
namespace {

using test::half_value;
using test::kTypes;

// An element as a number of the widest type of its kind; a double holds every float exactly.
struct Number {
  double real = 0;
  Int integer = 0;
  uint64_t natural = 0;
};

enum class Kind { real, integer, natural };

Kind kind_of(DataType type) {
  switch (type) {
    case DataType::float16:
    case DataType::bfloat16:
    case DataType::float32:
    case DataType::float64:
      return Kind::real;
    case DataType::int8:
    case DataType::int16:
    case DataType::int32:
    case DataType::int64:
      return Kind::integer;
    default:
      return Kind::natural;
  }
}

Number number_at(const char* at, DataType type, int size) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<std::size_t>(std::min(size, 8)));
  const int unused = 64 - 8 * std::min(size, 8);
  Number number;
  switch (type) {
    case DataType::float16:
      number.real = half_value(static_cast<uint16_t>(bits));
      break;
    case DataType::bfloat16:
      number.real = test::bfloat_value(static_cast<uint16_t>(bits));
      break;
    case DataType::float32:
      number.real = static_cast<double>(load<float>(at));
      break;
    case DataType::float64:
      number.real = load<double>(at);
      break;
    default:
      number.natural = bits;
      number.integer = static_cast<Int>(bits << unused) >> unused;
  }
  return number;
}

// Whether `a` goes before `b`: NaN is the greatest, and ties are for the stable sort.
bool before(Kind kind, const Number& a, const Number& b, bool largest) {
  if (kind == Kind::real) {
    const bool a_nan = std::isnan(a.real), b_nan = std::isnan(b.real);
    if (a_nan || b_nan) return a_nan != b_nan && a_nan == largest;
    return largest ? a.real > b.real : a.real < b.real;
  }
  if (kind == Kind::integer) return largest ? a.integer > b.integer : a.integer < b.integer;
  return largest ? a.natural > b.natural : a.natural < b.natural;
}

Int any_k(Bytes& bytes, Int n) {
  switch (bytes.number(4)) {
    case 0:
      return bytes.between(0, std::min<Int>(n, 8));
    case 1:
      return n;
    case 2:
      return n / 16;
    case 3:
      return n - bytes.between(0, std::min<Int>(n, 3));
    default:
      return bytes.between(0, n);
  }
}

}  // namespace

void fuzz_top_k(Bytes& bytes) {
  const TopKAlgorithm algorithms[] = {TopKAlgorithm::automatic, TopKAlgorithm::rank,
                                      TopKAlgorithm::maxima,    TopKAlgorithm::threshold,
                                      TopKAlgorithm::sample,    TopKAlgorithm::sort,
                                      TopKAlgorithm::vertical,  TopKAlgorithm::wide};
  const TopKAlgorithm algorithm = bytes.pick(algorithms);
  const TypeInfo type = bytes.pick(kTypes);
  const DataType index_types[] = {DataType::uint32, DataType::uint64, DataType::int64};
  const DataType index_type = bytes.pick(index_types);
  const bool largest = bytes.chance(128);
  const int threads = 1 + bytes.number(2);
  const int rank = bytes.number(5);
  const Int limit = algorithm == TopKAlgorithm::sample ? 9000 : any_limit(bytes);
  const Sizes in = any_sizes(bytes, rank, limit);
  const int axis = rank == 0 ? 0 : bytes.number(rank - 1);
  const Int n = rank == 0 ? 1 : in[static_cast<std::size_t>(axis)];
  const Int k = any_k(bytes, n);
  Sizes out = in;
  if (rank > 0) out[static_cast<std::size_t>(axis)] = k;
  const int index_size = index_type == DataType::uint32 ? 4 : 8;
  Operand input(bytes, in, type.size, Role::input, type.type);
  Operand values(bytes, out, type.size, Role::output, type.type);
  Operand indices(bytes, out, index_size, Role::output, index_type);
  input.fill(bytes);
  input.remember();

  const TopKPlan plan{input.tensor, values.tensor, indices.tensor, axis, k, largest};
  top_k::run(plan, input.data(), values.data(), indices.data(), threads, algorithm);

  const std::string what = "top_k by " + std::to_string(static_cast<int>(algorithm)) + ", k " +
                           std::to_string(k) + ", axis " + std::to_string(axis) + ", largest " +
                           std::to_string(largest) + ", threads " + std::to_string(threads) + "; " +
                           input.text() + " to " + values.text() + " and " + indices.text();
  REQUIRE(input.unchanged() && values.gaps_intact() && indices.gaps_intact(), "%s", what.c_str());
  if (values.count() == 0) return;
  const Kind kind = kind_of(type.type);
  Int inner = 1;
  for (int i = axis + 1; i < rank; ++i) inner *= in[static_cast<std::size_t>(i)];
  std::vector<Int> order(static_cast<std::size_t>(n));
  std::vector<Number> row(static_cast<std::size_t>(n));
  for (Int r = 0; r < input.count() / n; ++r) {
    const Int base = r / inner * n * inner + r % inner, target = r / inner * k * inner + r % inner;
    for (Int i = 0; i < n; ++i)
      row[static_cast<std::size_t>(i)] =
          number_at(input.at(base + i * inner), type.type, type.size);
    std::iota(order.begin(), order.end(), Int{0});
    std::stable_sort(order.begin(), order.end(), [&](Int a, Int b) {
      return before(kind, row[static_cast<std::size_t>(a)], row[static_cast<std::size_t>(b)],
                    largest);
    });
    for (Int j = 0; j < k; ++j) {
      const Int expected = order[static_cast<std::size_t>(j)], at = target + j * inner;
      uint64_t got = 0;
      std::memcpy(&got, indices.at(at), static_cast<std::size_t>(index_size));
      REQUIRE(got == static_cast<uint64_t>(expected), "row %lld, place %lld: %llu, not %lld; %s", r,
              j, static_cast<unsigned long long>(got), expected, what.c_str());
      REQUIRE(std::memcmp(values.at(at), input.at(base + expected * inner),
                          static_cast<std::size_t>(type.size)) == 0,
              "row %lld, place %lld: wrong bits; %s", r, j, what.c_str());
    }
  }
}

void fuzz_nonzero(Bytes& bytes) {
  using nonzero::Scan;
  using nonzero::Write;
  const Scan scans[] = {Scan::automatic, Scan::packed, Scan::gathered, Scan::transposed};
  const Write writes[] = {Write::automatic, Write::direct, Write::streamed, Write::grouped,
                          Write::strided};
  const Scan scan_mode = bytes.pick(scans);
  const Write write_mode = bytes.pick(writes);
  TypeInfo type = bytes.pick(kTypes);
  if (bytes.chance(64)) type = {DataType::unknown, 1 << bytes.number(4)};
  const int value_size = bytes.chance(128) ? 4 : 8, threads = 1 + bytes.number(2);
  const int rank = bytes.number(6);
  const Sizes in = any_sizes(bytes, rank, any_limit(bytes));
  const int columns = bytes.number(rank);
  Operand input(bytes, in, type.size, Role::input, type.type);
  input.fill(bytes);
  input.remember();
  const NonzeroPlan plan{input.tensor, columns};
  const NonzeroPlan::Found found = nonzero::scan(plan, input.data(), threads, scan_mode);

  Sizes flats;
  const Kind kind = kind_of(type.type);
  for (Int i = 0; i < input.count(); ++i) {
    const char* const at = input.at(i);
    const bool zero = kind == Kind::real
                          ? number_at(at, type.type, type.size).real == 0
                          : std::all_of(at, at + type.size, [](char byte) { return byte == 0; });
    if (!zero) flats.push_back(i);
  }
  const Int count = static_cast<Int>(flats.size());
  const std::string what = "nonzero by " + std::to_string(static_cast<int>(scan_mode)) + " and " +
                           std::to_string(static_cast<int>(write_mode)) + ", threads " +
                           std::to_string(threads) + "; " + input.text();
  REQUIRE(found.count == count, "%lld, not %lld; %s", found.count, count, what.c_str());
  REQUIRE(input.unchanged(), "%s", what.c_str());

  const Int spare = bytes.number(3);
  Operand rows(bytes, {count + spare, columns}, value_size, Role::output,
               value_size == 4 ? DataType::uint32 : DataType::uint64);
  const std::vector<unsigned char> old = rows.elements();
  nonzero::write(plan, found, rows.tensor, rows.data(), threads, write_mode);
  REQUIRE(rows.gaps_intact(), "%s to %s", what.c_str(), rows.text().c_str());
  for (Int row = 0; row < count && columns > 0; ++row) {
    const Sizes at = unravel(flats[static_cast<std::size_t>(row)], in);
    for (int i = 0; i < columns; ++i) {
      uint64_t got = 0;
      std::memcpy(&got, rows.at(row * columns + i), static_cast<std::size_t>(value_size));
      const Int expected = at[static_cast<std::size_t>(rank - columns + i)];
      REQUIRE(got == static_cast<uint64_t>(expected),
              "row %lld, column %d: %llu, not %lld; %s to %s", row, i,
              static_cast<unsigned long long>(got), expected, what.c_str(), rows.text().c_str());
    }
  }
  const std::vector<unsigned char> now = rows.elements();
  const auto used = static_cast<std::ptrdiff_t>(count * columns * value_size);
  REQUIRE(std::equal(old.begin() + used, old.end(), now.begin() + used), "spare rows; %s to %s",
          what.c_str(), rows.text().c_str());
}

}  // namespace anydml::fuzz

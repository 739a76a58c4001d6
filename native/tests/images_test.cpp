// Reversed subsequences and larger images against plain loops.
#include "fenced.hpp"
#include "numbers.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

Int passed = 0;

// Coordinates of an element, in row-major order of the sizes.
std::vector<Int> place_of(Int flat, const std::vector<Int>& sizes) {
  std::vector<Int> place(sizes.size());
  for (std::size_t i = sizes.size(); i-- > 0;) {
    place[i] = flat % sizes[i];
    flat /= sizes[i];
  }
  return place;
}

const char* element(const Buffer& buffer, const std::vector<Int>& place) {
  const char* at = buffer.data();
  for (std::size_t i = 0; i < place.size(); ++i) at += place[i] * buffer.tensor.layout.strides[i];
  return at;
}

// ---- REVERSE_SUBSEQUENCES

constexpr DataType kLengths[] = {DataType::uint32, DataType::int32, DataType::uint64,
                                 DataType::int64};

// Negative lengths mean none; unsigned ones beyond the signed range mean all.
Int length_of(const char* at, DataType type) {
  if (type == DataType::uint32) return load<uint32_t>(at);
  if (type == DataType::int32) return std::max(load<int32_t>(at), 0);
  const Int length = load<Int>(at);
  if (length >= 0) return length;
  return type == DataType::int64 ? 0 : Int{1} << 62;
}

void check_reverse(Random& random, int element_size, const std::vector<Int>& sizes, int axis,
                   Strides to, Strides from, bool shared, int threads) {
  const std::size_t dimension = static_cast<std::size_t>(axis);
  std::vector<Int> counts = sizes;
  counts[dimension] = 1;
  Buffer source(random, sizes, element_size, from, Role::input);
  Buffer target(random, sizes, element_size, to, Role::output);
  const DataType type = kLengths[random.between(0, 3)];
  Buffer lengths(random, counts, size_of(type), shared ? Strides::packed : random_strides(random),
                 Role::input, type);
  if (shared)  // of everything behind the axis
    for (std::size_t i = dimension + 1; i < sizes.size(); ++i) lengths.relaid().strides[i] = 0;
  for (Int i = 0; i < lengths.count(); ++i)
    set_bits(lengths, i,
             random.chance(0.1) ? random.bits()
                                : static_cast<uint64_t>(random.between(-1, sizes[dimension] + 1)));
  target.remember();
  lengths.remember();
  const ReversePlan plan{source.tensor, lengths.tensor, target.tensor, axis};
  plan.run(source.data(), lengths.data(), target.data(), threads);
  for (Int i = 0; i < target.count(); ++i) {
    std::vector<Int> place = place_of(i, sizes), which = place;
    which[dimension] = 0;
    const Int length = std::min(sizes[dimension], length_of(element(lengths, which), type));
    if (place[dimension] < length) place[dimension] = length - 1 - place[dimension];
    EXPECT(std::memcmp(target.at(i), element(source, place),
                       static_cast<std::size_t>(element_size)) == 0,
           "elements of %d bytes, axis %d, at %lld of %lld", element_size, axis, i, target.count());
  }
  EXPECT(target.gaps_intact(), "gaps");
  EXPECT(source.unchanged() && lengths.unchanged(), "inputs");
  ++passed;
}

// Nothing outside of three blocks of memory without spare bytes is touched.
void check_exact_reverse(Random& random, Int lines, Int row) {
  std::vector<int32_t> source(static_cast<std::size_t>(lines * row)), target = source;
  std::vector<int64_t> counts(static_cast<std::size_t>(row));
  for (int32_t& value : source) value = static_cast<int32_t>(random.bits());
  for (int64_t& count : counts) count = random.between(0, lines);
  ReversePlan plan;
  plan.axis = 0;
  for (const Int size : {lines, row}) {
    plan.input.layout.push(size, 4);
    plan.lengths.layout.push(size, 8);
  }
  plan.input.element_size = 4;
  plan.input.layout.strides[0] = 4 * row;
  plan.lengths.layout.sizes[0] = 1;
  plan.lengths.type = DataType::int64;
  plan.lengths.element_size = 8;
  plan.output = plan.input;
  plan.run(source.data(), counts.data(), target.data(), 1);
  for (Int i = 0; i < lines * row; ++i) {
    const Int at = i / row, count = counts[static_cast<std::size_t>(i % row)];
    const Int from = at < count ? count - 1 - at : at;
    EXPECT(target[static_cast<std::size_t>(i)] ==
               source[static_cast<std::size_t>(from * row + i % row)],
           "row %lld of %lld, element %lld", at, lines, i % row);
  }
  ++passed;
}

// Rows with lengths of their own, between pages that cannot be touched: side by side, with gaps,
// the last one first, all the same one.
void check_reversed(Random& random, const Fenced& in, const Fenced& out, int size, Int count,
                    Int rows, Int from_gap, Int to_gap, int threads) {
  const Int row = count * size, to_step = row + to_gap;
  const Int from_step = from_gap == -1 ? -row : from_gap == -2 ? 0 : row + from_gap;
  const Int span = std::abs(from_step) * (rows - 1) + row, to_span = to_step * (rows - 1) + row;
  const bool low = random.chance(0.5);
  char* const memory = low ? in.first(span) : in.last(span);
  const FencedTarget result(out, random.chance(0.5), to_span);
  char* const target = result.data();
  random.fill(reinterpret_cast<unsigned char*>(memory), static_cast<std::size_t>(span));
  const char* const source = from_step < 0 ? memory - from_step * (rows - 1) : memory;
  std::vector<Int> lengths;
  for (Int i = 0; i < rows; ++i)
    lengths.push_back(rows > count ? i % (count + 2) : random.between(-1, count + 1));
  ReversePlan plan{};
  plan.axis = 1;
  plan.input.element_size = plan.output.element_size = size;
  plan.lengths.element_size = 8;
  plan.lengths.type = DataType::int64;
  plan.input.layout.push(rows, from_step);
  plan.input.layout.push(count, size);
  plan.output.layout.push(rows, to_step);
  plan.output.layout.push(count, size);
  plan.lengths.layout.push(rows, 8);
  plan.lengths.layout.push(1, 8);
  plan.run(source, lengths.data(), target, threads);
  for (Int i = 0; i < rows; ++i) {
    const Int length = std::clamp<Int>(lengths[static_cast<std::size_t>(i)], 0, count);
    for (Int n = 0; n < count; ++n)
      EXPECT(same_bytes(target + i * to_step + n * size,
                        source + i * from_step + (n < length ? length - 1 - n : n) * size,
                        static_cast<std::size_t>(size)),
             "rows of %lld elements of %d bytes, gaps %lld and %lld, %lld of length %lld at %lld",
             count, size, from_gap, to_gap, i, length, n);
    for (Int n = row; n < to_step && i + 1 < rows; ++n)
      EXPECT(target[i * to_step + n] == FencedTarget::kUntouched, "behind row %lld", i);
  }
  EXPECT(result.intact(), "beside the rows");
  ++passed;
}

void test_reversed(Random& random) {
  const Fenced in(Int{1} << 20), out(Int{1} << 20);
  for (const int size : {1, 2, 4, 8, 16}) {
    const Int longest = 8192 / size;
    // Every prefix of every short row is reversed.
    for (Int count = 1; count <= 192 / size + 2; ++count)
      check_reversed(random, in, out, size, count, count + 2, random.between(-2, 3),
                     random.chance(0.7) ? 0 : random.between(1, 70), 1);
    for (const Int count : {longest - 1, longest, longest + 1})
      check_reversed(random, in, out, size, count, 5, random.between(-2, 1), random.between(0, 1),
                     1);
  }
  // Past the cache, in shares.
  const Int all = kStreamBytes + 5000, capacity = (all + 131072) / 65536 * 65536;
  const Fenced much(capacity), more(capacity);
  for (const int size : {1, 4})
    for (const Int row : {24, 8192})
      if (has_turn())
        check_reversed(random, much, more, size, row / size, all / row, 0, 0, kMinThreads + 2);
}

void test_reverse(Random& random) {
  for (const Int row : {1, 7, 40, 512, 515}) check_exact_reverse(random, 5, row);
  const int element_sizes[] = {1, 2, 4, 8, 16};
  for (int n = 0; n < cases(1500, 200); ++n) {
    std::vector<Int> sizes;
    Int limit = 600;
    for (Int i = random.between(1, 5); i > 0; --i) {
      sizes.push_back(random.chance(0.03) ? 0 : random.between(1, random.chance(0.3) ? limit : 6));
      limit = std::max<Int>(1, limit / std::max<Int>(1, sizes.back()));
    }
    check_reverse(random, element_sizes[random.between(0, 4)], sizes,
                  static_cast<int>(random.between(0, static_cast<Int>(sizes.size()) - 1)),
                  random_strides(random), random_strides(random), random.chance(0.4),
                  static_cast<int>(random.between(1, 4)));
  }
  // Sizes around the chunk of a thread and the columns of a strip; streamed lines with gaps.
  for (const Int more : {-1, 0, 1})
    check_reverse(random, 1, {65536 + more}, 0, Strides::packed, Strides::packed, true, 1);
  for (const Int more : {-1, 0, 1})
    check_reverse(random, 16, {3, 128 + more}, 0, Strides::packed, Strides::packed, false, 1);
  for (int n = 0; n < 12; ++n)
    check_reverse(random, 8, {20, 300}, 1, Strides::any, Strides::packed, true, 1);
  // Past the cache: a long line in pieces, rows, blocks, strips.
  const Int k = shortening() == 0 ? 1 : 4 * std::min(8, shortening());
  for (int threads : {1, 3})
    for (bool shared : {false, true}) {
      check_reverse(random, 8, {1200000 / k}, 0, Strides::packed, Strides::packed, shared, threads);
      check_reverse(random, 4, {3000 / k, 801}, 1, Strides::packed, Strides::packed, shared,
                    threads);
      check_reverse(random, 2, {20, 90 / k, 3001}, 1, Strides::packed, Strides::packed, shared,
                    threads);
      check_reverse(random, 1, {700 / k, 5003}, 0, Strides::packed, Strides::packed, shared,
                    threads);
    }
}

// ---- UPSAMPLE_2D

struct Between {
  Int first;
  float part;
};

// Where the middle of an output element lies, counted in elements of the output.
Between between(Int at, Int scale, Int size) {
  const Int middle = std::max<Int>(0, 2 * at + 1 - scale);
  const Int first = middle / (2 * scale), rest = middle - first * 2 * scale;
  if (first >= size - 1) return {size - 1, 0};
  return {first, static_cast<float>(static_cast<double>(rest) / static_cast<double>(2 * scale))};
}

float mean(float a, float b, float part) {
  if (part == 0) return a;
  const volatile float rest = 1.0F - part, one = a * rest, two = b * part, sum = one + two;
  return sum;
}

void check_upsample(Random& random, DataType type, std::vector<Int> sizes, Int height, Int width,
                    bool linear, Strides to, Strides from, int threads) {
  const std::size_t rank = sizes.size();
  Buffer source(random, sizes, size_of(type), from, Role::input, type);
  for (Int i = 0; i < source.count(); ++i)
    set_bits(source, i,
             random.chance(0.2)
                 ? odd_bits(random, type)
                 : nearest_bits(static_cast<long double>(random.between(-999, 999)) / 64, type));
  source.remember();
  std::vector<Int> scaled = sizes;
  scaled[rank - 2] *= height;
  scaled[rank - 1] *= width;
  Buffer target(random, scaled, size_of(type), to, Role::output, type);
  const UpsamplePlan plan{source.tensor, target.tensor, height, width, linear};
  plan.run(source.data(), target.data(), threads);
  const std::size_t bytes = static_cast<std::size_t>(size_of(type));
  for (Int i = 0; i < target.count(); ++i) {
    std::vector<Int> place = place_of(i, scaled);
    const Between down = between(place[rank - 2], height, sizes[rank - 2]);
    const Between right = between(place[rank - 1], width, sizes[rank - 1]);
    place[rank - 2] /= height;
    place[rank - 1] /= width;
    uint64_t expected = 0, got = 0;
    std::memcpy(&got, target.at(i), bytes);
    std::memcpy(&expected, element(source, place), bytes);
    if (linear) {
      float rows[2] = {};
      for (Int r = 0; r < (down.part == 0 ? 1 : 2); ++r) {
        float pair[2] = {};
        for (Int c = 0; c < (right.part == 0 ? 1 : 2); ++c) {
          place[rank - 2] = down.first + r;
          place[rank - 1] = right.first + c;
          uint64_t bits = 0;
          std::memcpy(&bits, element(source, place), bytes);
          pair[c] = static_cast<float>(number_of(bits, type));
        }
        rows[r] = mean(pair[0], pair[1], right.part);
      }
      expected = nearest_bits(static_cast<long double>(mean(rows[0], rows[1], down.part)), type);
    }
    EXPECT(got == expected, "type %d, %lld times %lld, at %lld of %lld: %llx, not %llx",
           static_cast<int>(type), height, width, i, target.count(),
           static_cast<unsigned long long>(got), static_cast<unsigned long long>(expected));
  }
  EXPECT(target.gaps_intact(), "gaps");
  EXPECT(source.unchanged(), "source");
  ++passed;
}

void test_upsample(Random& random) {
  for (DataType type : {DataType::float32, DataType::float16})
    for (bool linear : {false, true}) {
      for (int n = 0; n < cases(400, 60); ++n) {
        std::vector<Int> sizes;
        for (Int i = random.between(2, 5); i > 0; --i)
          sizes.push_back(random.chance(0.02) ? 0 : random.between(1, i > 2 ? 3 : 9));
        check_upsample(random, type, sizes, random.between(1, random.chance(0.2) ? 40 : 4),
                       random.between(1, random.chance(0.2) ? 40 : 4), linear,
                       random_strides(random), random_strides(random),
                       static_cast<int>(random.between(1, 4)));
      }
      // One more than a piece of a row; rows with gaps past the cache.
      check_upsample(random, type, {1, 205}, 2, 5, linear, Strides::packed, Strides::packed, 1);
      for (int n = 0; n < 6; ++n)
        check_upsample(random, type, {8, 13, 14}, 3, 4, linear, Strides::any, Strides::any, 1);
      // Several pieces of a row, and past the cache.
      const Int k = shortening() == 0 ? 1 : 4 * std::min(8, shortening());
      for (int threads : {1, 3}) {
        for (Int width : {1, 2, 3, 4, 5, 1700})
          check_upsample(random, type, {2, 2100 / width + 1}, 2, width, linear, Strides::packed,
                         Strides::stepped, threads);
        check_upsample(random, type, {3, 300 / k, 401}, 4, 5, linear, Strides::packed,
                       Strides::packed, threads);
        check_upsample(random, type, {900 / k, 33, 35}, 2, 3, linear, Strides::packed,
                       Strides::packed, threads);
      }
    }
}

}  // namespace

int main() {
  Random random(15);
  test_reversed(random);
  test_reverse(random);
  test_upsample(random);
  std::printf("%lld passed, 0 failed\n", passed);
  return 0;
}

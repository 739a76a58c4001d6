// Reversed subsequences and larger images against plain loops.
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

// Below zero none, beyond what a signed number holds all.
Int length_of(const char* at, DataType type) {
  if (type == DataType::uint32) return load<uint32_t>(at);
  if (type == DataType::int32) return std::max(load<int32_t>(at), 0);
  const Int length = load<Int>(at);
  if (length >= 0) return length;
  return type == DataType::int64 ? 0 : Int{1} << 62;
}

void check_reverse(Random& random, int element_size, const std::vector<Int>& sizes, int axis,
                   Strides to, Strides from, bool shared, int threads) {
  const std::size_t along = static_cast<std::size_t>(axis);
  std::vector<Int> counts = sizes;
  counts[along] = 1;
  Buffer source(random, sizes, element_size, from, Role::input);
  Buffer target(random, sizes, element_size, to, Role::output);
  const DataType type = kLengths[random.between(0, 3)];
  Buffer lengths(random, counts, size_of(type), shared ? Strides::packed : random_strides(random),
                 Role::input, type);
  if (shared)  // of everything behind the axis
    for (std::size_t i = along + 1; i < sizes.size(); ++i) lengths.relaid().strides[i] = 0;
  for (Int i = 0; i < lengths.count(); ++i)
    set_bits(lengths, i,
             random.chance(0.1) ? random.bits()
                                : static_cast<uint64_t>(random.between(-1, sizes[along] + 1)));
  target.remember();
  lengths.remember();
  const ReversePlan plan{source.tensor, lengths.tensor, target.tensor, axis};
  plan.run(source.data(), lengths.data(), target.data(), threads);
  for (Int i = 0; i < target.count(); ++i) {
    std::vector<Int> place = place_of(i, sizes), which = place;
    which[along] = 0;
    const Int length = std::min(sizes[along], length_of(element(lengths, which), type));
    if (place[along] < length) place[along] = length - 1 - place[along];
    EXPECT(std::memcmp(target.at(i), element(source, place),
                       static_cast<std::size_t>(element_size)) == 0,
           "elements of %d bytes, axis %d, at %lld of %lld", element_size, axis, i, target.count());
  }
  EXPECT(target.gaps_intact(), "gaps");
  EXPECT(source.unchanged() && lengths.unchanged(), "inputs");
  ++passed;
}

void test_reverse(Random& random) {
  const int element_sizes[] = {1, 2, 4, 8, 16};
  for (int n = 0; n < cases(1500, 200); ++n) {
    std::vector<Int> sizes;
    Int most = 600;
    for (Int i = random.between(1, 5); i > 0; --i) {
      sizes.push_back(random.chance(0.03) ? 0 : random.between(1, random.chance(0.3) ? most : 6));
      most = std::max<Int>(1, most / std::max<Int>(1, sizes.back()));
    }
    check_reverse(random, element_sizes[random.between(0, 4)], sizes,
                  static_cast<int>(random.between(0, static_cast<Int>(sizes.size()) - 1)),
                  random_strides(random), random_strides(random), random.chance(0.4),
                  static_cast<int>(random.between(1, 4)));
  }
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
    uint64_t wanted = 0, got = 0;
    std::memcpy(&got, target.at(i), bytes);
    std::memcpy(&wanted, element(source, place), bytes);
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
      wanted = nearest_bits(static_cast<long double>(mean(rows[0], rows[1], down.part)), type);
    }
    EXPECT(got == wanted, "type %d, %lld times %lld, at %lld of %lld: %llx, not %llx",
           static_cast<int>(type), height, width, i, target.count(),
           static_cast<unsigned long long>(got), static_cast<unsigned long long>(wanted));
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
  test_reverse(random);
  test_upsample(random);
  std::printf("%lld passed, 0 failed\n", passed);
  return 0;
}

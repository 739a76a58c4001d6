// The mean of updates, as SCATTER and SCATTER_ND compute it, against plain loops.

#include <cmath>

#include "scatter/cpu/scatter.hpp"
#include "scatter/cpu/scatter_nd.hpp"
#include "scatter_reference.hpp"

namespace anydml::test {
namespace {

int passed = 0;

// The updates of an element, and the divisor of their sum.
template <class T>
void means(Random& random, DataType type) {
  for (int n = 0; n < 40; ++n) {
    const Int size = random.between(1, 90), count = random.between(1, 300);
    std::vector<T> input(static_cast<std::size_t>(size)), updates(static_cast<std::size_t>(count));
    std::vector<Int> indices(static_cast<std::size_t>(count));
    for (T& value : input) value = static_cast<T>(random.between(-9, 9));
    for (T& value : updates) value = static_cast<T>(random.between(-9, 9));
    for (Int& index : indices) index = random.between(-size, size - 1);
    const bool bad = random.chance(0.2), in_place = random.chance(0.5);
    if (bad) indices.back() = size;
    const bool output_is_private = random.chance(0.5);
    const auto line = [](Int length, Int bytes, DataType of) {
      Tensor tensor;
      tensor.layout.push(length, bytes);
      tensor.type = of;
      tensor.element_size = static_cast<int>(bytes);
      return tensor;
    };
    const Tensor target = line(size, sizeof(T), type), values = line(count, sizeof(T), type);
    for (const Mean mean : {Mean::with_element, Mean::of_updates})
      for (const bool nd : {false, true}) {
        std::vector<T> output = in_place ? input : std::vector<T>(input.size());
        const std::vector<T> before = output;
        const void* const from = in_place ? output.data() : input.data();
        Status status;
        if (nd) {
          Tensor tuples = line(count, 8, DataType::int64);
          tuples.layout.push(1, 8);
          const ScatterNdPlan plan{target, tuples, values, target, Reduction::add, mean};
          status =
              plan.run(from, indices.data(), updates.data(), output.data(), output_is_private, 2);
        } else {
          const ScatterPlan plan{
              target, line(count, 8, DataType::int64), values, target, 0, Reduction::add, mean};
          status =
              plan.run(from, indices.data(), updates.data(), output.data(), output_is_private, 2);
        }
        EXPECT(status.bad_index == (bad ? count - 1 : -1), "bad index %lld", status.bad_index);
        if (bad) EXPECT(output_is_private || output == before, "written");
        for (Int i = 0; !bad && i < size; ++i) {
          const T element = input[static_cast<std::size_t>(i)];
          Int sum = mean == Mean::with_element ? static_cast<Int>(element) : 0, update_count = 0;
          for (std::size_t u = 0; u < indices.size(); ++u) {
            if (indices[u] != i && indices[u] != i - size) continue;
            sum += static_cast<Int>(updates[u]);
            ++update_count;
          }
          const Int by = update_count + (mean == Mean::with_element ? 1 : 0);
          const T expected = update_count == 0 ? element
                             : std::is_integral_v<T>
                                 ? static_cast<T>(std::floor(static_cast<double>(sum) / by))
                                 : static_cast<T>(sum) / static_cast<T>(by);
          EXPECT(output[static_cast<std::size_t>(i)] == expected, "mean %lld of %lld", i, size);
        }
        ++passed;
      }
  }
}

}  // namespace
}  // namespace anydml::test

int main() {
  using namespace anydml::test;
  Random random(20241124);
  means<float>(random, anydml::DataType::float32);
  means<int8_t>(random, anydml::DataType::int8);
  std::printf("%d passed, 0 failed\n", passed);
  return 0;
}

// Elements and runs of bytes from one stride to another, between pages that must not be touched.
#include "runtime/cpu/copy.hpp"

#if defined(__linux__)
#include <dirent.h>
#endif

#include <algorithm>

#include "runtime/cpu/steps.hpp"
#include "runtime/plans.hpp"

#include "fenced.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

Int passed = 0;
constexpr Int kMax = Int{64} << 10;

Int span(Int step, Int count, Int size) { return std::abs(step) * (count - 1) + size; }

void check(Random& random, const Fenced& from, const Fenced& to, int size, Int to_step,
           Int from_step, Int count) {
  const Int from_span = span(from_step, count, size), to_span = span(to_step, count, size);
  for (const bool end : {false, true}) {
    char* const source = end ? from.last(from_span) : from.first(from_span);
    char* const target = end ? to.last(to_span) : to.first(to_span);
    for (Int i = 0; i < from_span; ++i) source[i] = static_cast<char>(random.bits());
    for (Int i = 0; i < to_span; ++i) target[i] = static_cast<char>(random.bits());
    const auto place = [&](char* base, Int step, Int i) {
      return base + (step < 0 ? -step * (count - 1) : 0) + step * i;
    };
    std::vector<char> expected(target, target + to_span);
    for (Int i = 0; i < count; ++i)
      std::memcpy(expected.data() + (place(target, to_step, i) - target),
                  place(source, from_step, i), static_cast<std::size_t>(size));
    copy_steps(place(target, to_step, 0), to_step, place(source, from_step, 0), from_step, count,
               size);
    EXPECT(std::equal(expected.begin(), expected.end(), target),
           "%lld elements of %d from step %lld to step %lld", count, size, from_step, to_step);
    ++passed;
  }
}

// Elements that a packer packs are right, and those after them untouched; returns how many it
// packed.
Int check_packer(Random& random, const Fenced& from, const Fenced& to, int size, Int step,
                 Int count) {
  const Int from_span = span(step, count, size), to_span = count * size;
  Int done = 0;
  for (const bool end : {false, true}) {
    char* const source = end ? from.last(from_span) : from.first(from_span);
    char* const target = end ? to.last(to_span) : to.first(to_span);
    for (Int i = 0; i < from_span; ++i) source[i] = static_cast<char>(random.bits());
    for (Int i = 0; i < to_span; ++i) target[i] = static_cast<char>(random.bits());
    std::vector<char> expected(target, target + to_span);
    char* const first = source + (step < 0 ? from_span - size : 0);
    done = StepPacker(step, size).pack(target, first, count);
    EXPECT(done >= 0 && done <= count, "%lld of %lld", done, count);
    for (Int n = 0; n < done; ++n) {
      const Int i = step < 0 ? count - 1 - n : n;
      std::memcpy(expected.data() + i * size, first + i * step, static_cast<std::size_t>(size));
    }
    EXPECT(std::equal(expected.begin(), expected.end(), target),
           "%lld of %lld elements of %d at step %lld packed", done, count, size, step);
    ++passed;
  }
  return done;
}

void check_pieces(Random& random, const Fenced& from, const Fenced& to, Int bytes, Int to_step,
                  Int from_step, Int count) {
  const Int from_span = span(from_step, count, static_cast<int>(bytes)),
            to_span = span(to_step, count, static_cast<int>(bytes));
  for (const bool end : {false, true}) {
    char* const source = end ? from.last(from_span) : from.first(from_span);
    char* const target = end ? to.last(to_span) : to.first(to_span);
    for (Int i = 0; i < from_span; ++i) source[i] = static_cast<char>(random.bits());
    for (Int i = 0; i < to_span; ++i) target[i] = static_cast<char>(random.bits());
    std::vector<char> expected(target, target + to_span);
    const char* const first = source + (from_step < 0 ? from_span - bytes : 0);
    for (Int i = 0; i < count; ++i)
      std::memcpy(expected.data() + i * to_step, first + i * from_step,
                  static_cast<std::size_t>(bytes));
    copy_pieces(target, to_step, first, from_step, bytes, count);
    EXPECT(std::equal(expected.begin(), expected.end(), target), "%lld runs of %lld bytes", count,
           bytes);
    ++passed;
  }
}

// A streamed row at a stride, with nothing after its last byte.
void check_long(Random& random, const Fenced& from, int size, Int step) {
  const Int count = kStreamBytes / size + 64, all = span(step, count, size);  // whole vectors
  char* const source = from.last(all);
  for (Int i = 0; i < all; i += 8) store(source + std::min(i, all - 8), random.bits());
  const char* const first = source + (step < 0 ? all - size : 0);
  std::vector<char> target(static_cast<std::size_t>(count * size));
  Layout to, in;
  to.push(count, size);
  in.push(count, step);
  copy_elements(to, target.data(), in, first, size, 1);
  for (Int i = 0; i < count; ++i)
    EXPECT(std::memcmp(target.data() + i * size, first + i * step,
                       static_cast<std::size_t>(size)) == 0,
           "element %lld of %d bytes at step %lld", i, size, step);
  ++passed;
}

// A transposed copy of few rows, past the cache: every line of a tile has to be a whole one. `rows`
// are the output's, which lie `step` bytes apart from `begin` on.
void check_transposed(Random& random, int size, Int rows, Int columns, Int begin, Int step) {
  std::vector<char> source(static_cast<std::size_t>(rows * columns * size));
  for (char& byte : source) byte = static_cast<char>(random.bits());
  std::vector<char> memory(static_cast<std::size_t>(rows * step + begin + 64), 'x');
  char* const target =
      memory.data() + begin + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  std::vector<char> expected = memory;
  char* const expected_target = expected.data() + (target - memory.data());
  Layout to, from;
  to.push(rows, step);
  to.push(columns, size);
  from.push(rows, size);
  from.push(columns, rows * size);
  for (Int r = 0; r < rows; ++r)
    for (Int c = 0; c < columns; ++c)
      std::memcpy(expected_target + r * step + c * size, source.data() + (c * rows + r) * size,
                  static_cast<std::size_t>(size));
  CopyPlan(to, from, size).run(target, source.data(), 2, true);
  EXPECT(memory == expected, "%lld rows of %lld elements of %d, transposed", rows, columns, size);
  ++passed;
}

// One row past the cache, by a plan and by a writer that begins within a line.
void check_row(Random& random, const Fenced& from, int size, Int step, Int count) {
  const Int all = span(step, count, size), bytes = count * size, begin = random.between(0, 63);
  char* const source = from.last(all);
  random.fill(reinterpret_cast<unsigned char*>(source), static_cast<std::size_t>(all));
  const char* const first = source + (step < 0 ? all - size : 0);
  std::vector<char> result(static_cast<std::size_t>(bytes + 192), 'x'), expected = result;
  const Int into = (64 - static_cast<Int>(reinterpret_cast<uintptr_t>(result.data()) % 64)) + begin;
  for (Int i = 0; i < count; ++i)
    std::memcpy(expected.data() + into + i * size, first + i * step,
                static_cast<std::size_t>(size));
  Layout to, in;
  to.push(count, size);
  in.push(count, step);
  CopyPlan(to, in, size).run(result.data() + into, first, 1, true);
  EXPECT(result == expected, "%lld elements of %d at step %lld", count, size, step);
  std::fill(result.begin(), result.end(), 'x');
  {
    LineWriter writer(result.data() + into);
    append_steps(writer, first, step, count / 3, size);
    append_steps(writer, first + count / 3 * step, step, count - count / 3, size);
  }
  stream_fence();
  EXPECT(result == expected, "%lld elements of %d at step %lld appended", count, size, step);
  ++passed;
}

void check_rows(Random& random) {
  constexpr Int piece = Int{1} << 18;  // bytes of a row that one thread takes at a time
  const Fenced from(Int{2} << 20);
  for (const int size : {1, 2, 4, 8, 16})
    for (const Int step : {Int{0}, Int{1}, Int{-1}, Int{size}, -2 * Int{size}, 3 * Int{size},
                           200 * Int{size} + 1, -200 * Int{size}})
      for (const Int count : {1, 33, 600, 4096 / size - 1, 4096 / size, 4096 / size + 1})
        if (span(step, count, size) < Int{2} << 20) check_row(random, from, size, step, count);
  for (const Int more : {-1, 0, 1})
    for (const int size : {1, 4}) {
      check_row(random, from, size, -2 * size, piece / size + more);
      check_row(random, from, size, size, piece / size + more);
    }
}

// The properties of a plan, by which others choose their paths.
void check_plans() {
  struct Expectation {
    Layout to, from;
    bool contiguous, single, packs;
  };
  const auto layout = [](std::initializer_list<std::pair<Int, Int>> dims) {
    Layout result;
    for (const auto& [size, stride] : dims) result.push(size, stride);
    return result;
  };
  const Layout packed = layout({{20, 4}});
  const Expectation all[] = {
      {packed, packed, true, true, true},
      {layout({{5, 4}, {4, 20}}), layout({{5, 4}, {4, 20}}), true, true, true},
      {layout({{2, 4}}), layout({{2, 4}}), true, false, false},
      {layout({{20, -4}}), layout({{20, -4}}), false, true, false},
      {packed, layout({{20, -4}}), false, true, true},
      {packed, layout({{20, 8}}), false, true, true},
      {layout({{20, 8}}), packed, false, true, false},
      {layout({{3, 100}, {5, 4}}), layout({{3, 100}, {5, 4}}), false, false, false},
      {layout({{3, -100}, {5, 4}}), layout({{3, 20}, {5, 4}}), false, false, false}};
  for (const Expectation& expectation : all) {
    const CopyPlan plan(expectation.to, expectation.from, 4);
    EXPECT(plan.contiguous() == expectation.contiguous, "case %td", &expectation - all);
    EXPECT(plan.single() == expectation.single, "case %td", &expectation - all);
    EXPECT(plan.packs() == expectation.packs, "case %td", &expectation - all);
    EXPECT(plan.bytes() == expectation.to.count() * 4, "case %td", &expectation - all);
    ++passed;
  }
  const CopyPlan::Steps steps = CopyPlan(layout({{20, -8}}), packed, 4).steps();
  EXPECT(steps.to == -19 * 8 && steps.to_step == 8 && steps.from == 19 * 4 &&
             steps.from_step == -4 && steps.count == 20 && steps.size == 4,
         "steps");
  // The maximum number of dimensions.
  Layout largest;
  for (int i = 0; i < kMaxRank; ++i) largest.push(i % 9 == 0 ? 2 : 1, 3 << (i / 9));
  std::vector<char> source(2000), target(2000), expected(2000);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i * 7);
  for (Int i = 0; i < largest.count(); ++i)
    expected[static_cast<std::size_t>(offset_at(largest, i))] =
        source[static_cast<std::size_t>(offset_at(largest, i))];
  copy_elements(largest, target.data(), largest, source.data(), 1, 1);
  EXPECT(target == expected, "%d dimensions", kMaxRank);
  ++passed;
}

// A call of one thread starts no other. (A sanitizer may have one.)
void check_one_thread() {
#if defined(__linux__)
  const auto running = [] {
    DIR* const tasks = opendir("/proc/self/task");
    EXPECT(tasks != nullptr, "the threads of the process");
    int count = 0;
    while (readdir(tasks) != nullptr) ++count;
    closedir(tasks);
    return count;
  };
  const Int rows = 2, bytes = Int{3} << 19;
  std::vector<char> source(static_cast<std::size_t>(rows * (bytes + 1))), target = source;
  Layout layout;
  layout.push(rows, bytes + 1);
  layout.push(bytes, 1);
  const auto before = running();
  for (const bool stream : {false, true})
    CopyPlan(layout, layout, 1).run(target.data(), source.data(), 1, stream);
  EXPECT(running() == before, "a second thread");
#endif
  ++passed;
}

}  // namespace

int main() {
  Random random(7);
  check_one_thread();
  check_plans();
  check_rows(random);
  for (const int size : {1, 2, 4, 8, 16})
    for (Int rows = 1; rows < 160; rows += rows < 70 ? 1 : 13) {
      const Int line = 64 / size, columns = line * random.between(5, 24);
      check_transposed(random, size, rows, columns, 0, columns * size);
      check_transposed(random, size, columns, rows, 0, (rows * size + 63) / 64 * 64);
      check_transposed(random, size, rows, columns + 1, random.between(0, 63),
                       (columns + 1) * size);
      check_transposed(random, size, rows, columns + 1, 0, (columns + 1) * size);
      check_transposed(random, size, rows, columns, rows % 2 == 0 ? 1 : random.between(0, 63),
                       columns * size);
    }
  const Fenced from(kMax), to(kMax);
  constexpr Int page = 65536;  // or less
  const Fenced large((4 * (kStreamBytes + 256) + page - 1) / page * page);
  for (const Int times : {-3, -2, -1, 2, 3, 4}) {
    check_long(random, large, 1, times);
    check_long(random, large, 4, 4 * times);
  }
  for (const int size : {1, 2, 4, 8, 16})
    for (Int count = 1; count < 300; count += count < 140 ? 1 : 37)
      for (Int times = -9; times <= 9; ++times)
        for (const Int more : {0, 1}) {
          const Int step = times * size + more;
          const Int done = check_packer(random, from, to, size, step, count);
#if defined(__SSSE3__)
          if (count >= 48 && size <= 2 && (times == 2 || times == -2))
            EXPECT(done > 0, "nothing packed of %lld of %d at %lld", count, size, step);
#else
          (void)done;
#endif
        }
  for (Int bytes = 1; bytes < 1200; bytes += bytes < 140 ? 1 : bytes == 140 ? 53 : 131)
    for (const Int count : {1, 2, 7}) {
      check_pieces(random, from, to, bytes, bytes, bytes, count);
      check_pieces(random, from, to, bytes, bytes + 5, 2 * bytes + 1, count);
      check_pieces(random, from, to, bytes, bytes, 0, count);
      check_pieces(random, from, to, bytes, bytes + 1, -bytes, count);
    }
  for (const int size : {1, 2, 4, 8, 16})
    for (Int count = 1; count < 300; count += count < 140 ? 1 : 37)
      for (const Int step : {0, 1, 2, 3, 7, -1, -2, -3}) {
        check(random, from, to, size, size, step * size, count);
        check(random, from, to, size, size, step * size + (step < 0 ? -1 : 1), count);
        if (step != 0) check(random, from, to, size, step * size, 2 * size, count);
      }
  std::printf("%lld passed, 0 failed\n", passed);
  return 0;
}

// GATHER_ELEMENTS of rows: a bad index at every place of a vector, and a row that ends where
// readable memory does.
#include <sys/mman.h>
#include <unistd.h>

#include "../cpu/gather/gather_elements.hpp"
#include "harness.hpp"

namespace {

using namespace anydml;
using namespace anydml::test;

Tensor packed(Int rows, Int columns, int size, DataType type = DataType::unknown) {
  Tensor tensor;
  tensor.type = type;
  tensor.element_size = size;
  tensor.layout.push(rows, 0);
  tensor.layout.push(columns, 0);
  set_packed_strides(tensor.layout, size);
  return tensor;
}

void put(std::vector<char>& bytes, Int at, int size, Int value) {
  if (size == 8)
    store(bytes.data() + at * 8, value);
  else
    store(bytes.data() + at * 4, static_cast<int>(value));
}

// Two rows of elements of `size` bytes, the last one before a page that cannot be read.
void rows(int size, DataType type, bool output_is_private) {
  const int index_size = type == DataType::int64 || type == DataType::uint64 ? 8 : 4;
  const Int columns = 301, reads = 275, page = sysconf(_SC_PAGESIZE);
  const Int room = (2 * columns * size + page - 1) / page * page;
  char* const memory =
      static_cast<char*>(mmap(nullptr, static_cast<std::size_t>(room + page),
                              PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  EXPECT(memory != MAP_FAILED, "mmap");
  EXPECT(mprotect(memory + room, static_cast<std::size_t>(page), PROT_NONE) == 0, "mprotect");
  char* const input = memory + room - 2 * columns * size;
  for (Int i = 0; i < 2 * columns * size; ++i) input[i] = static_cast<char>(i * 7 + i / 256);
  const GatherElementsPlan plan{packed(2, columns, size), packed(2, reads, index_size, type),
                                packed(2, reads, size), 1};
  std::vector<char> indices(static_cast<std::size_t>(2 * reads * index_size));
  std::vector<char> output(static_cast<std::size_t>(2 * reads * size));
  const auto place = [&](Int i) { return i % 5 == 0 ? columns - 1 : i * 31 % columns; };
  for (Int i = 0; i < 2 * reads; ++i) put(indices, i, index_size, place(i));
  const auto run = [&] {
    return plan.run(input, indices.data(), output.data(), output_is_private, 1).bad_index;
  };
  EXPECT(run() == -1, "good indices, size %d", size);
  for (Int i = 0; i < 2 * reads; ++i)
    EXPECT(std::memcmp(output.data() + i * size, input + (i / reads * columns + place(i)) * size,
                       static_cast<std::size_t>(size)) == 0,
           "size %d, element %lld", size, i);
  const bool sign = type == DataType::int64 || type == DataType::int32;
  for (Int bad = 0; bad < 2 * reads; ++bad)
    for (const Int value : {columns, sign ? -columns - 1 : Int{INT32_MAX}}) {
      put(indices, bad, index_size, value);
      EXPECT(run() == bad, "size %d, a bad index at %lld", size, bad);
      put(indices, bad, index_size, place(bad));
    }
  munmap(memory, static_cast<std::size_t>(room + page));
}

}  // namespace

int main() {
  for (const int size : {1, 2, 4, 8, 16})
    for (const DataType type :
         {DataType::int64, DataType::int32, DataType::uint64, DataType::uint32})
      for (const bool output_is_private : {true, false}) rows(size, type, output_is_private);
  std::printf("passed, 0 failed\n");
  return 0;
}

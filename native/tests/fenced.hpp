// Memory between guard pages.
#pragma once

#include <vector>

#include "harness.hpp"

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#include <unistd.h>
#define ANYDML_GUARDS 1
#else
#define ANYDML_GUARDS 0
#endif

namespace anydml::test {

// Memory between two pages that end the program when they are touched, on systems that support it.
class Fenced {
 public:
  explicit Fenced(Int bytes) : size_(bytes) {
#if ANYDML_GUARDS
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* const all = mmap(nullptr, static_cast<std::size_t>(size_) + 2 * page,
                           PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(all != MAP_FAILED, "mmap");
    begin_ = static_cast<char*>(all) + page;
    EXPECT(mprotect(all, page, PROT_NONE) == 0 && mprotect(begin_ + size_, page, PROT_NONE) == 0,
           "mprotect");
#else
    bytes_.resize(static_cast<std::size_t>(size_));
    begin_ = bytes_.data();
#endif
  }
  // Bytes that touch one of the guard pages.
  char* first(Int) const { return begin_; }
  char* last(Int bytes) const { return begin_ + size_ - bytes; }
  Int size() const { return size_; }

 private:
  std::vector<char> bytes_;
  Int size_;
  char* begin_;
};

// Memory for a result that touches a guard page at one end. The bytes on its other side must not
// change.
class FencedTarget {
 public:
  FencedTarget(const Fenced& memory, bool first, Int bytes)
      : data_(first ? memory.first(bytes) : memory.last(bytes)),
        guard_(first ? data_ + bytes : data_ - kGuardBytes) {
    std::memset(data_, kUntouched, static_cast<std::size_t>(bytes));
    std::memset(guard_, kUntouched, kGuardBytes);
  }
  static constexpr char kUntouched = 'x';
  static constexpr int kGuardBytes = 128;
  char* data() const { return data_; }
  bool intact() const {
    return std::all_of(guard_, guard_ + kGuardBytes, [](char c) { return c == kUntouched; });
  }

 private:
  char *data_, *guard_;
};

}  // namespace anydml::test

// The limits of containers, read from folders laid out like Linux's.
#include "runtime/cpu/control_groups.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <string>

#include "harness.hpp"
#include "runtime/cpu/memory.hpp"

namespace anydml::test {
namespace {

Int passed = 0;

// A folder that is deleted at the end.
class Folder {
 public:
  Folder() {
    const char* const where = std::getenv("TMPDIR");
    path_ = std::string(where != nullptr ? where : "/tmp") + "/anydml-XXXXXX";
    EXPECT(mkdtemp(path_.data()) != nullptr, "%s", path_.c_str());
  }
  ~Folder() {
    for (; !created_.empty(); created_.pop_back()) std::remove(created_.back().c_str());
    rmdir(path_.c_str());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void write(const std::string& name, const char* text) {
    for (std::size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1))
      if (mkdir(path(name.substr(0, at)).c_str(), 0700) == 0)
        created_.push_back(path(name.substr(0, at)));
    std::FILE* const file = std::fopen(path(name).c_str(), "w");
    EXPECT(file != nullptr, "%s", path(name).c_str());
    std::fputs(text, file);
    std::fclose(file);
    created_.push_back(path(name));
  }
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  std::vector<std::string> created_;
};

struct Files {
  const char* membership;
  std::vector<std::pair<const char*, const char*>> contents;  // below the root
};

void expect(const Files& files, int processors, std::size_t memory) {
  Folder folder;
  if (files.membership != nullptr) folder.write("membership", files.membership);
  for (const auto& [name, text] : files.contents) folder.write(name, text);
  const std::string root = folder.path("root"), membership = folder.path("membership");
  const ControlGroups groups{root.c_str(), membership.c_str()};
  EXPECT(processor_limit(groups) == processors, "%d, not %d", processor_limit(groups), processors);
  for (const std::size_t machine : {SIZE_MAX, std::size_t{400}}) {
    const std::size_t got = memory_limit(machine, groups);
    EXPECT(got == std::min(machine, memory), "%zu, not %zu", got, memory);
  }
  ++passed;
}

void limits() {
  expect({nullptr, {}}, INT_MAX, SIZE_MAX);
  expect({"0::/\n", {}}, INT_MAX, SIZE_MAX);
  expect({"0::/a\n", {{"root/a/cpu.max", "max 100000\n"}, {"root/a/memory.max", "max\n"}}}, INT_MAX,
         SIZE_MAX);
  expect({"0::/a\n", {{"root/a/cpu.max", "150000 100000\n"}, {"root/a/memory.max", "12345\n"}}}, 2,
         12345);
  expect({"0::/a\n", {{"root/a/cpu.max", "200000 100000\n"}, {"root/a/memory.max", "0\n"}}}, 2, 0);
  expect({"0::/a\n", {{"root/a/cpu.max", "1 1\n"}}}, 1, SIZE_MAX);
  expect({"0::/a\n", {{"root/a/cpu.max", "nonsense\n"}, {"root/a/memory.max", ""}}}, INT_MAX,
         SIZE_MAX);
  for (const char* const odd : {"0 100000\n", "-1 100000\n", "100000 0\n", "100000 -1\n"})
    expect({"no colon\none:\n0::/a\n", {{"root/a/cpu.max", odd}}}, INT_MAX, SIZE_MAX);
  // The lowest limit of the group and all groups above it.
  expect({"0::/a/b\n",
          {{"root/a/b/memory.max", "500\n"},
           {"root/a/memory.max", "300\n"},
           {"root/memory.max", "max\n"},
           {"root/a/b/cpu.max", "100000 100000\n"},
           {"root/a/cpu.max", "300000 100000\n"}}},
         1, 300);
  expect({"0::/a/b\n", {{"root/a/b/memory.max", "200\n"}, {"root/a/memory.max", "300\n"}}}, INT_MAX,
         200);
  // The limit of a sibling group does not apply.
  expect({"0::/a\n", {{"root/b/memory.max", "1\n"}, {"root/a/c/memory.max", "2\n"}}}, INT_MAX,
         SIZE_MAX);
  // Version 1, alone and beside version 2; in a container the group's path may be the host's.
  expect({"5:cpuset,memory:/a\n0::/\n", {{"root/memory/a/memory.limit_in_bytes", "700\n"}}},
         INT_MAX, 700);
  expect({"4:memory:/host/path\n", {{"root/memory/memory.limit_in_bytes", "800\n"}}}, INT_MAX, 800);
  expect({"4:memory:/a\n0::/a\n",
          {{"root/memory/a/memory.limit_in_bytes", "700\n"}, {"root/a/memory.max", "600\n"}}},
         INT_MAX, 600);
  expect({"4:nomemory:/a\n", {{"root/memory/a/memory.limit_in_bytes", "700\n"}}}, INT_MAX,
         SIZE_MAX);
}

void pool_limits() {
  constexpr std::size_t giga = std::size_t{1} << 30;
  EXPECT(pool_limit_for(SIZE_MAX) == giga, "%zu", pool_limit_for(SIZE_MAX));
  EXPECT(pool_limit_for(64 * giga) == giga, "%zu", pool_limit_for(64 * giga));
  EXPECT(pool_limit_for(8 * giga) == giga, "%zu", pool_limit_for(8 * giga));
  EXPECT(pool_limit_for(2 * giga) == giga / 4, "%zu", pool_limit_for(2 * giga));
  EXPECT(pool_limit_for(0) == 0, "%zu", pool_limit_for(0));
  const std::size_t own = pool_state().limit;
  EXPECT(own > 0 && own <= pool_limit_for(memory_limit(SIZE_MAX)), "%zu", own);
  ++passed;
}

}  // namespace
}  // namespace anydml::test

int main() {
  using namespace anydml::test;
  limits();
  pool_limits();
  std::printf("%lld passed, 0 failed\n", passed);
  return 0;
}

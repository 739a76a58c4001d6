#include "runtime/cpu/control_groups.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace anydml {
namespace {

// The path of this process's group in the hierarchy of a controller; "" is that of version 2.
// Lines are number:controllers:path, with commas between controllers.
std::string group_of(const char* membership, const std::string& controller) {
  std::string group;
  std::FILE* const file = std::fopen(membership, "r");
  if (file == nullptr) return group;
  std::string expected(1, ',');
  expected.append(controller).push_back(',');
  char line[4096];
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    const char* const names = std::strchr(line, ':');
    const char* const path = names != nullptr ? std::strchr(names + 1, ':') : nullptr;
    if (path == nullptr) continue;
    std::string controllers(1, ',');
    controllers.append(names + 1, path).push_back(',');
    if (controllers.find(expected) != std::string::npos)
      group.assign(path + 1, std::strcspn(path + 1, "\n"));
  }
  std::fclose(file);
  return group;
}

// Calls read(file) with the key's file of the group and of all its ancestors, up to the root: in a
// container the path may be the host's, of which only the root can be seen.
template <class Read>
void for_each_group(const std::string& root, std::string group, const char* key, Read&& read) {
  for (;;) {
    while (!group.empty() && group.back() == '/') group.pop_back();
    if (std::FILE* const file = std::fopen((root + group + key).c_str(), "r")) {
      read(file);
      std::fclose(file);
    }
    const std::size_t parent = group.rfind('/');
    if (parent == std::string::npos) return;
    group.resize(parent);
  }
}

}  // namespace

int processor_limit(const ControlGroups& groups) {
  int limit = INT_MAX;
  for_each_group(groups.root, group_of(groups.membership, ""), "/cpu.max", [&](std::FILE* file) {
    long long quota = 0, period = 0;
    if (std::fscanf(file, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0)
      limit = static_cast<int>(
          std::min<long long>(limit, quota / period + (quota % period != 0 ? 1 : 0)));
  });
  return limit;
}

std::size_t memory_limit(std::size_t machine, const ControlGroups& groups) {
  std::size_t limit = machine;
  const auto lower = [&](std::FILE* file) {
    unsigned long long bytes = 0;  // "max" is not a number
    if (std::fscanf(file, "%llu", &bytes) == 1) limit = std::min<std::size_t>(limit, bytes);
  };
  const std::string root = groups.root;
  for_each_group(root, group_of(groups.membership, ""), "/memory.max", lower);
  for_each_group(root + "/memory", group_of(groups.membership, "memory"), "/memory.limit_in_bytes",
                 lower);
  return limit;
}

}  // namespace anydml

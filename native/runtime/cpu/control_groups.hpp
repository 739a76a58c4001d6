// Resource limits of containers: the limits of Linux's control groups.
#pragma once

#include <cstddef>

namespace anydml {

// The folders in which the system reports them; tests use their own.
struct ControlGroups {
  const char* root = "/sys/fs/cgroup";
  const char* membership = "/proc/self/cgroup";
};

// The lowest limit of this process's group and of all groups above it.

// Processors, rounded up (version 2); INT_MAX without a limit.
int processor_limit(const ControlGroups& groups = {});
// Bytes of memory (versions 2 and 1), or `machine`, the machine's memory, if there is no lower
// limit.
std::size_t memory_limit(std::size_t machine, const ControlGroups& groups = {});

}  // namespace anydml

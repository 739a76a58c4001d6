// What a container allows its processes: the limits of Linux's control groups.
#pragma once

#include <cstddef>

namespace anydml {

// The folders in which the system reports them; tests use their own.
struct ControlGroups {
  const char* root = "/sys/fs/cgroup";
  const char* membership = "/proc/self/cgroup";
};

// The least limit of the group that this process is in and of all groups above it.

// Processors, rounded up (version 2); INT_MAX without a limit.
int processor_limit(const ControlGroups& groups = {});
// Bytes of memory (versions 2 and 1); `machine`, what there is, without a lower limit.
std::size_t memory_limit(std::size_t machine, const ControlGroups& groups = {});

}  // namespace anydml

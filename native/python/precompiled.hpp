// What nearly every file of the extension module reads, compiled once: half of the module's build.
// Not for module.cpp, which imports NumPy's API in another way.
#pragma once

#include "kernel.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>

#include "../cuda/host/device.hpp"

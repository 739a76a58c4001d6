// Headers that nearly every file of the extension module includes, compiled once; this halves the
// build time of the module. Not for module.cpp, which imports NumPy's API differently.
#pragma once

#include "kernel.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>

#include "runtime/cuda/device.hpp"

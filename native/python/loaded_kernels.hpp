// The library of kernels that the module has loaded.
#pragma once

namespace anydml::python {

// Loads a library of kernels, before anything else is called, and returns its level; ImportError
// for one that was not built with this module. A second call changes nothing.
const char* load_kernels(const char* path);

}  // namespace anydml::python

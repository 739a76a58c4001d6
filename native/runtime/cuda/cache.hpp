// Compiled kernels on disk: a folder that only the user can write, files that are either complete
// or absent, and contents that are verified before use.
#pragma once

#include <optional>
#include <string>

namespace anydml::cuda {

// 128 bits of a hash in hexadecimal: a name, not a protection against someone who may write here.
std::string digest_of(const std::string& text);

// The contents stored under a key, if a complete file of this user exists.
std::optional<std::string> cache_load(const std::string& folder, const std::string& key);

// Stores the contents if possible; a cache that cannot be written is not an error.
void cache_store(const std::string& folder, const std::string& key, const std::string& contents);

}  // namespace anydml::cuda

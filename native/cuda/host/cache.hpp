// Compiled kernels on disk: a folder of the user's alone, files that are complete or not there, and
// contents that are checked before they are believed.
#pragma once

#include <optional>
#include <string>

namespace anydml::cuda {

// 128 bits of a text, in hexadecimal: a name, no protection against someone who may write here.
std::string digest_of(const std::string& text);

// The contents stored under a key, if there are any that are complete and owned by this user.
std::optional<std::string> cache_load(const std::string& folder, const std::string& key);

// Stores the contents if possible; a cache that cannot be written is not an error.
void cache_store(const std::string& folder, const std::string& key, const std::string& contents);

}  // namespace anydml::cuda

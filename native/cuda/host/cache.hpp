// Compiled kernels on disk: a folder of the user's alone, files that are complete or not there, and
// contents that are checked before they are believed.
#pragma once

#include <optional>
#include <string>

namespace anydml::cuda {

// 128 bits of a text, in hexadecimal: a name, no protection against someone who may write here.
std::string digest_of(const std::string& text);

// What was kept under a key; nothing when there is none, or none that is whole and this user's own.
std::optional<std::string> cache_load(const std::string& folder, const std::string& key);

// Keeps it, as far as the system lets it: a cache that cannot be written is none.
void cache_store(const std::string& folder, const std::string& key, const std::string& contents);

}  // namespace anydml::cuda

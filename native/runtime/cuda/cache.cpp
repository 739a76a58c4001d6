#include "runtime/cuda/cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace anydml::cuda {
namespace {

constexpr char kMagic[] = "anydml cubin 1\n";
constexpr off_t kLargest = off_t{64} << 20;

uint64_t fnv(const std::string& text, uint64_t state) {
  for (const unsigned char c : text) state = (state ^ c) * 0x100000001B3ull;
  // FNV's upper bits depend little on the last bytes.
  state ^= state >> 32;
  state *= 0xD6E8FEB86659FD93ull;
  return state ^ (state >> 32);
}

// Owns a file descriptor.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

// Whether the open file belongs to this user and no other user can write it.
bool own(int descriptor, mode_t kind, struct stat& facts) {
  return fstat(descriptor, &facts) == 0 && (facts.st_mode & S_IFMT) == kind &&
         facts.st_uid == geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool make_folders(const std::string& folder) {
  for (std::size_t at = 1; at <= folder.size(); ++at) {
    if (at < folder.size() && folder[at] != '/') continue;
    if (mkdir(folder.substr(0, at).c_str(), 0700) != 0 && errno != EEXIST) return false;
  }
  return true;
}

int open_folder(const std::string& folder) {
  const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat facts;
  if (opened < 0 || own(opened, S_IFDIR, facts)) return opened;
  close(opened);
  return -1;
}

std::string header_of(const std::string& key, const std::string& contents) {
  return kMagic + key + "\n" + digest_of(contents) + "\n";
}

bool write_all(int descriptor, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = write(descriptor, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

std::string digest_of(const std::string& text) {
  const uint64_t first = fnv(text, 0xCBF29CE484222325ull);
  const uint64_t second = fnv(text, first ^ 0x9E3779B97F4A7C15ull);
  char name[33];
  std::snprintf(name, sizeof name, "%016llx%016llx", static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(second));
  return name;
}

std::optional<std::string> cache_load(const std::string& folder, const std::string& key) {
  const File place(open_folder(folder));
  if (!place.open()) return std::nullopt;
  const std::string name = digest_of(key) + ".cubin";
  const File file(
      openat(place.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat facts;
  if (!file.open() || !own(file.get(), S_IFREG, facts) || facts.st_size > kLargest)
    return std::nullopt;
  std::string bytes(static_cast<std::size_t>(facts.st_size), '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = read(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    done += static_cast<std::size_t>(count);
  }
  const std::size_t header = sizeof kMagic - 1 + key.size() + 1 + 32 + 1;
  if (bytes.size() <= header) return std::nullopt;
  std::string contents = bytes.substr(header);
  if (bytes.compare(0, header, header_of(key, contents)) != 0) return std::nullopt;
  return contents;
}

void cache_store(const std::string& folder, const std::string& key, const std::string& contents) {
  if (!make_folders(folder)) return;
  const File place(open_folder(folder));
  if (!place.open()) return;
  const std::string name = digest_of(key) + ".cubin";
  static std::atomic<unsigned> drafts{0};  // threads may store the same kernel at once
  const std::string draft =
      name + "." + std::to_string(getpid()) + "." + std::to_string(drafts++) + ".new";
  unlinkat(place.get(), draft.c_str(), 0);
  bool is_written = false;
  {
    const File file(openat(place.get(), draft.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    is_written = file.open() && write_all(file.get(), header_of(key, contents)) &&
                 write_all(file.get(), contents) && fsync(file.get()) == 0;
  }
  if (!is_written || renameat(place.get(), draft.c_str(), place.get(), name.c_str()) != 0)
    unlinkat(place.get(), draft.c_str(), 0);
}

}  // namespace anydml::cuda

#include "runtime/cuda/compiler.hpp"

#include <dlfcn.h>

#include <mutex>

#include "runtime/cuda/cache.hpp"

namespace anydml::cuda {
namespace {

using Program = void*;

// NVRTC's own names; it returns 0 for success.
struct Nvrtc {
  const char* (*error)(int) = nullptr;
  int (*create)(Program*, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*log_size)(Program, std::size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*cubin_size)(Program, std::size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;

  void check(int result, const char* what) const {
    if (result != 0) throw DeviceFailed(std::string("NVRTC: ") + what + ": " + error(result));
  }
};

template <class Result, class... Arguments>
bool find(void* library, const char* symbol, Result (*&function)(Arguments...)) {
  function = reinterpret_cast<Result (*)(Arguments...)>(dlsym(library, symbol));
  return function != nullptr;
}

Nvrtc load_nvrtc() {
  for (const std::string& path : compiler_places().libraries) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    Nvrtc found;
    if (find(library, "nvrtcGetErrorString", found.error) &&
        find(library, "nvrtcCreateProgram", found.create) &&
        find(library, "nvrtcDestroyProgram", found.destroy) &&
        find(library, "nvrtcCompileProgram", found.compile) &&
        find(library, "nvrtcGetProgramLogSize", found.log_size) &&
        find(library, "nvrtcGetProgramLog", found.log) &&
        find(library, "nvrtcGetCUBINSize", found.cubin_size) &&
        find(library, "nvrtcGetCUBIN", found.cubin))
      return found;
  }
  throw DeviceFailed(
      "kernels are compiled for the GPU at hand by NVRTC, which is not installed: "
      "pip install nvidia-cuda-nvrtc");
}

const Nvrtc& nvrtc() {
  static const Nvrtc loaded = load_nvrtc();  // tried again at the next use when it throws
  return loaded;
}

const Source& find_source(const std::string& name) {
  for (std::size_t i = 0; i < kSourceCount; ++i)
    if (kSources[i].name == name) return kSources[i];
  throw DeviceFailed("no CUDA source of the name " + name);
}

// Everything that decides what the compiler makes: every text, because any may be included.
const std::string& digest_of_sources() {
  static const std::string digest = [] {
    std::string all;
    for (std::size_t i = 0; i < kSourceCount; ++i)
      all += std::string(kSources[i].name) + "\n" + kSources[i].text + "\n";
    return digest_of(all);
  }();
  return digest;
}

std::string compile(const std::string& name, const std::vector<std::string>& options) {
  const Nvrtc& compiler = nvrtc();
  std::vector<const char*> texts, names, arguments;
  for (std::size_t i = 0; i < kSourceCount; ++i) {
    texts.push_back(kSources[i].text);
    names.push_back(kSources[i].name);
  }
  for (const std::string& option : options) arguments.push_back(option.c_str());
  Program program = nullptr;
  const std::string file = name + ".cu";
  compiler.check(compiler.create(&program, find_source(file).text, file.c_str(),
                                 static_cast<int>(texts.size()), texts.data(), names.data()),
                 "create");
  struct Held {
    const Nvrtc& compiler;
    Program program;
    ~Held() { compiler.destroy(&program); }
  } const held{compiler, program};
  if (compiler.compile(program, static_cast<int>(arguments.size()), arguments.data()) != 0) {
    std::size_t size = 0;
    std::string log;
    if (compiler.log_size(program, &size) == 0 && size > 1) {
      log.resize(size);
      compiler.log(program, log.data());
    }
    throw DeviceFailed("NVRTC: " + file + " does not compile: " + log.c_str());
  }
  std::size_t size = 0;
  compiler.check(compiler.cubin_size(program, &size), "size of the machine code");
  std::string cubin(size, '\0');
  compiler.check(compiler.cubin(program, cubin.data()), "machine code");
  return cubin;
}

}  // namespace

void (*announce_compilation)() = nullptr;

std::vector<std::string> options_of(const std::vector<Define>& defines) {
  std::vector<std::string> options;
  for (const Define& define : defines)
    options.push_back("-DANYDML_" + std::string(define.name) + "=" + std::to_string(define.value));
  return options;
}

CompilerPlaces& compiler_places() {
  static CompilerPlaces places;
  return places;
}

std::string cubin_of(const std::string& source, const std::string& architecture, int driver_version,
                     const std::vector<std::string>& defines, bool* compiled) {
  std::vector<std::string> options = {"-arch=" + architecture, "-std=c++17", "-default-device",
                                      "-fmad=false", "-lineinfo"};
  options.insert(options.end(), defines.begin(), defines.end());
  const CompilerPlaces& places = compiler_places();
  std::string key = places.version + " " + digest_of_sources() + " driver " +
                    std::to_string(driver_version) + " " + source;
  for (const std::string& option : options) key += " " + option;
  if (compiled != nullptr) *compiled = false;
  if (!places.cache.empty())
    if (std::optional<std::string> cached = cache_load(places.cache, key))
      return *std::move(cached);
  static std::once_flag once;
  if (announce_compilation != nullptr) std::call_once(once, announce_compilation);
  if (compiled != nullptr) *compiled = true;
  std::string cubin = compile(source, options);
  if (!places.cache.empty()) cache_store(places.cache, key, cubin);
  return cubin;
}

}  // namespace anydml::cuda

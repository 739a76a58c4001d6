// The inputs that the fuzzer of the kernels has kept, at this build's level and with its
// sanitizers.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "../../fuzz/native/case.cpp"
#include "../../fuzz/native/gathers.cpp"
#include "../../fuzz/native/native.cpp"
#include "../../fuzz/native/scatters.cpp"
#include "../../fuzz/native/selections.cpp"
#include "../../fuzz/native/slabs.cpp"

int main(int, char** arguments) {
  namespace fs = std::filesystem;
  // The build has unpacked the archive beside this program.
  const fs::path corpus = fs::path(arguments[0]).parent_path() / "corpus";
  const fs::path findings =
      fs::path(__FILE__).parent_path() / ".." / ".." / "fuzz" / "findings" / "native";
  std::vector<fs::path> files;
  for (const fs::path& folder : {corpus, findings})
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  EXPECT(files.size() > 100, "%zu inputs in %s", files.size(), corpus.c_str());
  const std::size_t step = static_cast<std::size_t>(std::max(1, anydml::test::shortening()));
  for (std::size_t at = 0; at < files.size(); at += step) {
    const fs::path& file = files[at];
    std::ifstream stream(file, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
    // Which input is at fault shows in the last line.
    std::fprintf(stderr, "\r%s", file.filename().c_str());
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("\n%zu passed, 0 failed\n", files.size());
  return 0;
}

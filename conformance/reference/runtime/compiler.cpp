// SPDX-License-Identifier: Apache-2.0
#include "compiler.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "compile_cache.hpp"

extern char** environ;

namespace reference {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  return bool(file << text << std::flush);
}

// A folder for one compilation, gone with it.
struct WorkFolder {
  fs::path path;
  WorkFolder() {
    std::string name = (fs::temp_directory_path() / "tenon-reference-XXXXXX").string();
    if (mkdtemp(name.data())) path = name;
  }
  ~WorkFolder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

// Runs the compiler; what it says goes to `log`. Its exit status; 127: it is not there.
int run_compiler(std::vector<std::string> words, const fs::path& log) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child;
  const int failed =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) return 127;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

const std::string& compiler_version() {
  static const std::string version = [] {
    WorkFolder work;
    return run_compiler({"cc", "--version"}, work.path / "log") == 0 ? read_file(work.path / "log")
                                                                     : std::string();
  }();
  return version;
}

Result failed(std::string_view name, const std::string& text) {
  return {TENON_INVALID_ARGUMENT, "reference: " + std::string(name) + ": " + text.substr(0, 4000)};
}

// `floating` results are those of IEEE 754, integers wrap, and device memory has no one type.
const std::vector<std::string> kOptions = {"-O2",
                                           "-fPIC",
                                           "-shared",
                                           "-fvisibility=hidden",
                                           "-fwrapv",
                                           "-w",
                                           "-fno-strict-aliasing",
                                           "-fno-math-errno",
                                           "-ffp-contract=off"};

}  // namespace

Result compile_kernels(std::string_view name, std::string_view source,
                       std::shared_ptr<KernelLibrary>* out) {
  if (compiler_version().empty())
    return {TENON_UNAVAILABLE,
            "reference: expected a C compiler named `cc` to compile kernels with; install one"};
  const std::string text = with_prelude(name, source);
  const CompileCache cache(text + compiler_version());
  if ((*out = cache.find())) return {};

  const WorkFolder work;
  const fs::path log = work.path / "log", library = work.path / "kernels.so";
  if (work.path.empty() || !write_file(work.path / "kernels.c", text))
    return {TENON_UNAVAILABLE, "reference: no room for files in the temporary folder"};
  if (run_compiler({"cc", "-E", "-o", work.path / "kernels.i", work.path / "kernels.c"}, log) != 0)
    return failed(name, read_file(log));
  std::string why;
  const std::string finished = finish_kernel_text(read_file(work.path / "kernels.i"), &why);
  if (!why.empty()) return failed(name, why);
  if (!write_file(work.path / "kernels.i", finished))
    return {TENON_UNAVAILABLE, "reference: no room for files in the temporary folder"};
  std::vector<std::string> words = {"cc"};
  words.insert(words.end(), kOptions.begin(), kOptions.end());
  words.insert(words.end(),
               {"-x", "cpp-output", work.path / "kernels.i", "-x", "none", "-o", library, "-lm"});
  if (run_compiler(words, log) != 0) return failed(name, read_file(log));
  *out = KernelLibrary::open(cache.keep(library));
  if (!*out)
    return {TENON_INTERNAL,
            "reference: " + std::string(name) + ": the compiled library cannot be opened"};
  return {};
}

std::shared_ptr<KernelLibrary> KernelLibrary::open(const std::string& path) {
  std::shared_ptr<KernelLibrary> library(new KernelLibrary);
  library->handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library->handle_) return nullptr;
  library->entries_ = static_cast<const KernelEntry*>(dlsym(library->handle_, "tk_entries"));
  return library->entries_ ? library : nullptr;
}

KernelLibrary::~KernelLibrary() {
  if (handle_) dlclose(handle_);
}

const KernelEntry* KernelLibrary::find(std::string_view name) const {
  for (const KernelEntry* entry = entries_; entry->name; ++entry)
    if (entry->name == name) return entry;
  return nullptr;
}

}  // namespace reference

// SPDX-License-Identifier: Apache-2.0
#include "compile.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "flags.hpp"
#include "source.hpp"

extern char** environ;

namespace simulated {
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

// A folder for one compilation, removed with it.
struct WorkFolder {
  fs::path path;
  WorkFolder() {
    std::string name = (fs::temp_directory_path() / "simulated-XXXXXX").string();
    if (mkdtemp(name.data())) path = name;
  }
  ~WorkFolder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

// The exit status; 127: the program is not there.
int run(std::vector<std::string> words, const fs::path& log) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char*> variables;
  for (char** each = environ; *each; ++each) variables.push_back(*each);
  static char kPlainMessages[] = "LC_ALL=C";
  variables.insert(variables.end(), {kPlainMessages, nullptr});
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child;
  const int failed =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed) return 127;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

std::string compiler() {
  const char* chosen = std::getenv("SIMULATED_COMPILER");
  return chosen && *chosen ? chosen : SIMULATED_COMPILER;
}

// The folder of the precompiled header, which depends on the width of a warp.
fs::path language_folder(bool is_hip) {
  return fs::path(SIMULATED_LANGUAGE_DIR) / (is_hip ? "hip" : "cuda");
}

uint64_t hash(const std::string& text, uint64_t from) {  // FNV-1a
  for (unsigned char c : text) from = (from ^ c) * 0x100000001b3u;
  return from;
}

// Whether inline PTX is understood, which is off unless a test asks for it: it is slow, and the device says what it does
// without kernels of its own.
bool runs_ptx() {
  const char* chosen = std::getenv("SIMULATED_TENSOR_CORES");
  return chosen && *chosen == '1';
}

// The cache knows a program by all that it was made from. The precompiled header is made from the
// emulation and by this compiler, so its size and date stand for both.
fs::path cached_path(const Compilation& request) {
  const char* chosen = std::getenv("SIMULATED_CACHE");
  fs::path folder;
  if (chosen && *chosen) {
    folder = chosen;
  } else {
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    if (cache && *cache == '/')
      folder = fs::path(cache) / "simulated_gpu";
    else if (home && *home == '/')
      folder = fs::path(home) / ".cache/simulated_gpu";
    else
      return {};
  }
  std::string key = std::string(SIMULATED_FLAGS) + '\n' + compiler() + '\n';
  if (runs_ptx()) key += "PTX\n";
  for (const fs::directory_entry& file : fs::directory_iterator(language_folder(request.is_hip)))
    if (file.path().extension() == ".hpp") key += read_file(file.path());
  for (const std::string& option : request.options) key += option + '\n';
  for (const std::string& expression : request.expressions) key += expression + '\n';
  for (const auto& [name, text] : request.headers) key += name + '\n' + text + '\n';
  key += request.name + '\n' + request.source;
  char name[48];
  std::snprintf(name, sizeof name, "%016llx%016llx.so",
                static_cast<unsigned long long>(hash(key, 0xcbf29ce484222325u)),
                static_cast<unsigned long long>(hash(key, 0x84222325cbf29ce4u)));
  return folder / name;
}

// Compiled code is run: only a file of this user counts.
bool is_own_file(const fs::path& path) {
  struct stat about;
  return stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid();
}

void keep(const fs::path& path, const std::string& image) {
  static std::atomic<unsigned> counter{0};
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const fs::path draft =
      path.string() + "." + std::to_string(getpid()) + "." + std::to_string(counter++);
  if (write_file(draft, image)) fs::rename(draft, path, error);
  if (error) fs::remove(draft, error);
}

struct Options {
  std::string architecture;
  std::vector<std::string> preprocessor;
};

// Options of NVRTC and HIPRTC: those for the preprocessor are passed on, those that choose an
// architecture are understood, all others make no difference here.
bool read_options(const Compilation& request, Options* out) {
  out->architecture = request.is_hip ? "gfx90a" : "sm_75";
  const auto& options = request.options;
  for (size_t i = 0; i < options.size(); ++i) {
    const std::string& option = options[i];
    if (option.empty() || option[0] != '-') return false;
    const std::string two = option.substr(0, 2);
    const bool long_macro = option.starts_with("--define-macro=");
    if (two == "-D" || two == "-U" || two == "-I") {
      out->preprocessor.push_back(option);
      if (option.size() == 2 && i + 1 < options.size()) out->preprocessor.push_back(options[++i]);
    } else if (long_macro) {
      out->preprocessor.push_back("-D" + option.substr(option.find('=') + 1));
    } else if (option.starts_with("--gpu-architecture=") || option.starts_with("-arch=") ||
               option.starts_with("--offload-arch=")) {
      out->architecture = option.substr(option.find('=') + 1);
    }
  }
  const std::string wanted = request.is_hip ? "gfx" : "sm_";
  std::string& architecture = out->architecture;
  if (!request.is_hip && architecture.starts_with("compute_"))
    architecture = "sm_" + architecture.substr(8);
  return architecture.starts_with(wanted);
}

std::vector<std::string> macros(const Options& options, bool is_hip) {
  if (is_hip) {
    const std::string chip = options.architecture.substr(0, options.architecture.find(':'));
    return {"-D__HIPCC__=1",
            "-D__HIPCC_RTC__=1",
            "-D__HIP_DEVICE_COMPILE__=1",
            "-D__HIP_PLATFORM_AMD__=1",
            "-D__AMDGCN__=1",
            "-D__" + chip + "__=1"};
  }
  const std::string digits = options.architecture.substr(3);
  return {"-D__CUDACC__=1", "-D__CUDACC_RTC__=1",
          "-D__CUDA_ARCH__=" + std::to_string(std::atoi(digits.c_str()) * 10),
          "-D__CUDACC_VER_MAJOR__=13", "-D__CUDACC_VER_MINOR__=0"};
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

Outcome build(const Compilation& request, const Options& options, std::string* image,
              std::string* log) {
  const WorkFolder work;
  const fs::path source = work.path / "program.cpp", plain = work.path / "program.ii",
                 library = work.path / "program.so", said = work.path / "log";
  const fs::path language = language_folder(request.is_hip);
  *log = "the temporary folder cannot be written to";
  if (work.path.empty() ||
      !write_file(source, "#line 1 \"" + request.name + "\"\n" + request.source))
    return Outcome::kNoCompiler;
  for (const auto& [name, text] : request.headers) {
    const fs::path path = work.path / "headers" / name;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (!write_file(path, text)) return Outcome::kNoCompiler;
  }

  std::vector<std::string> words = {compiler(),
                                    "-E",
                                    "-x",
                                    "c++",
                                    "-std=gnu++20",
                                    "-nostdinc",
                                    "-I" + (work.path / "headers").string(),
                                    "-I" + (language / "include").string()};
  for (const std::string& macro : macros(options, request.is_hip)) words.push_back(macro);
  words.insert(words.end(), options.preprocessor.begin(), options.preprocessor.end());
  words.insert(words.end(), {source, "-o", plain});
  int status = run(words, said);
  if (status == 127) {
    *log = "expected a C++ compiler named " + compiler() + "; install it or set SIMULATED_COMPILER";
    return Outcome::kNoCompiler;
  }
  *log = read_file(said);
  if (status != 0) return Outcome::kFailed;

  const DeviceSource device = read_device_source(read_file(plain), runs_ptx() && !request.is_hip);
  const fs::path finished = work.path / "finished.cpp";
  const std::string table = kernel_table(device, request.expressions, options.architecture);
  if (!write_file(finished, shared_section(device) + device.text + table))
    return Outcome::kNoCompiler;
  words = {compiler()};
  for (const std::string& flag : words_of(SIMULATED_FLAGS)) words.push_back(flag);
  words.insert(words.end(), {request.is_hip ? "-DSIMULATED_WARP=64" : "-DSIMULATED_WARP=32",
                             "-include", (language / "language.hpp").string(), finished.string(),
                             "-pipe", "-shared", "-nostdlib",
                             "-Wl,-Bsymbolic",  // a kernel may have the name of a function of libc
                             "-o", library.string(), "-lgcc"});
  status = run(words, said);
  *log = read_file(said);
  if (status != 0) return Outcome::kFailed;
  *image = read_file(library);
  log->clear();
  return Outcome::kDone;
}

}  // namespace

Outcome compile(const Compilation& request, std::string* image, std::string* log) {
  Options options;
  if (!read_options(request, &options)) return Outcome::kInvalidOption;
  const fs::path cached = cached_path(request);
  if (!cached.empty() && is_own_file(cached)) {
    *image = read_file(cached);
    log->clear();
    return Outcome::kDone;
  }
  const Outcome outcome = build(request, options, image, log);
  if (outcome == Outcome::kDone && !cached.empty()) keep(cached, *image);
  return outcome;
}

}  // namespace simulated

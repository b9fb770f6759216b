// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <dlfcn.h>

#include <string>
#include <vector>

#include <tenon/plugin.hpp>
#include <tenon/shared_libraries.hpp>

namespace tenon::onednn {
namespace {

constexpr const char* kVariable = "TENON_ONEDNN";
constexpr const char* kFix =
    "install oneDNN 2.6 to 3.x (apt-get install libdnnl2, or pip install onednn), or set "
    "TENON_ONEDNN to the path of its library";

// The wheel onednn puts its library into the folder lib of the environment of this package.
std::vector<std::string> paths_to_try() {
  const std::string named = environment_text(kVariable);
  if (!named.empty()) return {named};
  std::vector<std::string> paths =
      files_in(folders_above(reinterpret_cast<void*>(&paths_to_try)), {"lib/libdnnl.so.3"});
  paths.insert(paths.end(), {"libdnnl.so.3", "libdnnl.so.2"});
  return paths;
}

bool find_symbols(void* library, CommonSymbols& symbols, std::string* problem) {
  TENON_ONEDNN_COMMON(TENON_ONEDNN_FIND)
  return true;
}

struct Library {
  std::unique_ptr<Api> api;
  std::string name, problem;
  int (*omp_get_max_threads)() = nullptr;
  void (*omp_set_num_threads)(int) = nullptr;

  Library() {
    open();
    const std::string& text = problem.empty() ? name : problem;
    const bool is_named = !environment_text(kVariable).empty();
    const int32_t level = problem.empty() ? 0 : is_named ? 2 : 1;
    host->log(level, text.data(), text.size());
  }

 private:
  void open() {
    std::string reasons;
    void* library = open_first_library(paths_to_try(), &reasons);
    if (!library) {
      problem = "onednn: expected a library of oneDNN, got none (" + reasons + "); " + kFix;
      return;
    }
    const auto find = [&](const char* symbol) { return ::dlsym(library, symbol); };
    const auto version_of = reinterpret_cast<const Version* (*)()>(find("dnnl_version"));
    if (!version_of) {
      problem = "onednn: expected a library with dnnl_version, got one that is not oneDNN; " +
                std::string(kFix);
      return;
    }
    const Version& version = *version_of();
    const std::string number = std::to_string(version.major) + "." + std::to_string(version.minor) +
                               "." + std::to_string(version.patch);
    const bool has_structures = version.major == 2 && version.minor >= 6;
    if (!has_structures && version.major != 3) {
      problem = "onednn: expected oneDNN 2.6 to 3.x, got " + number + "; " + kFix;
      return;
    }
    CommonSymbols common;
    std::string missing;
    if (find_symbols(library, common, &missing))
      api = has_structures ? Api::open2(library, common, &missing)
                           : Api::open3(library, common, &missing);
    if (!api) {
      problem = "onednn: expected " + (missing.empty() ? "an engine for processors" : missing) +
                " in oneDNN " + number + ", got a library without it; " + kFix;
      return;
    }
    name = "oneDNN " + number;
    omp_get_max_threads = reinterpret_cast<int (*)()>(find("omp_get_max_threads"));
    omp_set_num_threads = reinterpret_cast<void (*)(int)>(find("omp_set_num_threads"));
  }
};

// Never destroyed, and the library never closed: its threads may run until the process ends.
const Library& library() {
  static const Library* instance = new Library;
  return *instance;
}

}  // namespace

const Api* api() { return library().api.get(); }
const char* library_name() { return api() ? library().name.c_str() : nullptr; }
const char* library_problem() { return api() ? nullptr : library().problem.c_str(); }

ThreadScope::ThreadScope() {
  const Library& self = library();
  if (!self.omp_get_max_threads || !self.omp_set_num_threads) return;
  const int wanted = host->thread_count(), now = self.omp_get_max_threads();
  if (wanted == now) return;
  before_ = now;
  self.omp_set_num_threads(wanted);
}

ThreadScope::~ThreadScope() {
  if (before_ > 0) library().omp_set_num_threads(before_);
}

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
// A vendor's libraries, opened at run time, so that a plugin builds and loads where they are not
// installed.
#pragma once

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

namespace tenon {

// The text of an environment variable that a user set; "" in a process with another user's rights.
inline std::string environment_text(const char* variable) {
  const char* text = secure_getenv(variable);
  return text ? text : "";
}

// Opens a library by its path, or by a name that the loader finds. nullptr: `problem` has the
// loader's reason behind those of earlier calls. It stays open for the life of the process: the
// threads and exit handlers of such libraries do not survive an unmapping.
inline void* open_shared_library(const std::string& path, std::string* problem) {
  if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return library;
  const char* reason = dlerror();
  *problem += (problem->empty() ? "" : "; ") + (reason ? reason : path + ": no reason given");
  return nullptr;
}

// Opens the first of `paths` that opens; the others' reasons are in `problem`.
inline void* open_first_library(const std::vector<std::string>& paths, std::string* problem) {
  for (const std::string& path : paths)
    if (void* library = open_shared_library(path, problem)) return library;
  return nullptr;
}

// The folders that hold the plugin with the function at `address`, the nearest first and six at
// most: for a plugin inside of a Python package these are tenon/plugins, tenon, site-packages, and
// those of the environment, in which pip installs libraries of vendors.
inline std::vector<std::filesystem::path> folders_above(const void* address) {
  namespace fs = std::filesystem;
  constexpr int kMaxDepth = 6;
  std::vector<fs::path> folders;
  Dl_info plugin;
  if (!dladdr(address, &plugin) || !plugin.dli_fname) return folders;
  std::error_code problem;
  fs::path folder = fs::canonical(plugin.dli_fname, problem).parent_path();
  for (int depth = 0; depth < kMaxDepth && folder.has_relative_path(); ++depth) {
    folders.push_back(folder);
    folder = folder.parent_path();
  }
  return folders;
}

// Those of `files` that lie in one of `folders`.
inline std::vector<std::string> files_in(const std::vector<std::filesystem::path>& folders,
                                         std::initializer_list<const char*> files) {
  std::vector<std::string> found;
  std::error_code problem;
  for (const std::filesystem::path& folder : folders)
    for (const char* file : files)
      if (std::filesystem::exists(folder / file, problem)) found.push_back(folder / file);
  return found;
}

// A function of a library, and where its pointer belongs in a table of pointers.
struct Symbol {
  const char* name;
  size_t offset;
  bool optional = false;
};

// Fills the pointers of `table`. Returns the name of the first symbol that is missing, or nullptr.
inline const char* find_symbols(void* library, const Symbol* symbols, size_t count, void* table) {
  for (const Symbol* symbol = symbols; symbol != symbols + count; ++symbol) {
    void* function = dlsym(library, symbol->name);
    if (!function && !symbol->optional) return symbol->name;
    *reinterpret_cast<void**>(static_cast<char*>(table) + symbol->offset) = function;
  }
  return nullptr;
}

// Opens each of `names`, as the loader finds them; or, where the environment variable `variable` is
// set, the paths that it lists, separated by colons. A library that does not open is left out.
class SharedLibraries {
 public:
  SharedLibraries(const char* variable, std::initializer_list<const char*> names) {
    const std::string list = environment_text(variable);
    if (list.empty()) {
      for (const char* name : names) open(name);
      return;
    }
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(':', begin), list.size());
      open(list.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  bool empty() const { return libraries_.empty(); }
  // What the loader said of the libraries that did not open.
  const std::string& problem() const { return problem_; }

  // The address of the first library's symbol of this name; nullptr: none has it.
  void* find(const char* name) const {
    for (void* library : libraries_)
      if (void* symbol = dlsym(library, name)) return symbol;
    return nullptr;
  }

 private:
  void open(const std::string& path) {
    if (void* library = open_shared_library(path, &problem_)) libraries_.push_back(library);
  }

  std::vector<void*> libraries_;
  std::string problem_;
};

}  // namespace tenon

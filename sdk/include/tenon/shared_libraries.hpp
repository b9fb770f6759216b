// SPDX-License-Identifier: Apache-2.0
// A vendor's libraries, opened at run time, so that a plugin builds and loads where they are not installed.
#pragma once

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

namespace tenon {

// Opens each of `names`, as the loader finds them; or, where the environment variable `variable` is set, the paths
// that it lists, separated by colons. A library that does not open is left out. They stay open for the life
// of the process: the threads and exit handlers of such libraries do not survive an unmapping.
class SharedLibraries {
 public:
  SharedLibraries(const char* variable, std::initializer_list<const char*> names) {
    const char* chosen = secure_getenv(variable);
    if (!chosen || !*chosen) {
      for (const char* name : names) open(name);
      return;
    }
    const std::string list = chosen;
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
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
      libraries_.push_back(library);
      return;
    }
    const char* reason = dlerror();
    problem_ += (problem_.empty() ? "" : "; ") + std::string(reason ? reason : path.c_str());
  }

  std::vector<void*> libraries_;
  std::string problem_;
};

}  // namespace tenon

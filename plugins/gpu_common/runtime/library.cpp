// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "errors.hpp"

namespace gpu {
namespace {

void* try_open(const std::string& name, std::string* why) {
  if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return library;
  const char* reason = dlerror();
  if (!why->empty()) *why += "; ";
  *why += reason ? reason : name + ": no reason given";
  return nullptr;
}

// site-packages/nvidia/*/lib
std::vector<std::filesystem::path> package_folders() {
  namespace fs = std::filesystem;
  std::vector<fs::path> folders;
  std::error_code problem;
  const fs::path packages = site_packages() / "nvidia";
  for (fs::directory_iterator at(packages, problem), end; !problem && at != end;
       at.increment(problem))
    folders.push_back(at->path() / "lib");
  return folders;
}

// The file's own name carries the version: libcublasLt.so.13 is a link to libcublasLt.so.13.1.0.3.
std::string file_name(void* library) {
  const link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || !map->l_name) return "unknown file";
  std::error_code problem;
  const std::filesystem::path path = std::filesystem::canonical(map->l_name, problem);
  return (problem ? std::filesystem::path(map->l_name) : path).filename();
}

}  // namespace

std::filesystem::path site_packages() {
  namespace fs = std::filesystem;
  Dl_info plugin;
  if (!dladdr(reinterpret_cast<const void*>(&site_packages), &plugin)) return {};
  std::error_code problem;
  const fs::path file = fs::canonical(plugin.dli_fname, problem);
  return file.parent_path().parent_path().parent_path();
}

void* open_library(const char* variable, const char* names, std::string* why) {
  why->clear();
  const char* chosen = secure_getenv(variable);
  if (chosen && *chosen) return try_open(chosen, why);
  std::istringstream words(names);
  for (std::string name; words >> name;)
    if (void* library = try_open(name, why)) return library;
  std::error_code problem;
  std::string unused;
  for (const std::filesystem::path& folder : package_folders()) {
    std::istringstream again(names);
    for (std::string name; again >> name;)
      if (name[0] != '/' && std::filesystem::exists(folder / name, problem))
        if (void* library = try_open(folder / name, &unused)) return library;
  }
  return nullptr;
}

const char* find_symbols(void* library, const Symbol* symbols, size_t count, void* table) {
  for (const Symbol* symbol = symbols; symbol != symbols + count; ++symbol) {
    void* function = dlsym(library, symbol->name);
    if (!function && !symbol->optional) return symbol->name;
    *reinterpret_cast<void**>(static_cast<char*>(table) + symbol->offset) = function;
  }
  return nullptr;
}

KernelLibrary open_kernel_library(const char* title, const char* variable, const char* names,
                                  const char* how_to_install, const Symbol* symbols, size_t count,
                                  void* table) {
  KernelLibrary opened;
  std::string why;
  void* library = open_library(variable, names, &why);
  const char* missing = library ? find_symbols(library, symbols, count, table) : nullptr;
  if (!library)
    opened.problem = std::string(title) + " was not found (" + why + "); " + how_to_install;
  else if (missing)
    opened.problem = std::string(title) + " lacks " + missing + "; " + how_to_install;
  else
    opened.name = std::string(title) + " (" + file_name(library) + ")";
  log(opened ? 0 : 2, "%s", (opened ? opened.name : opened.problem).c_str());
  return opened;
}

}  // namespace gpu

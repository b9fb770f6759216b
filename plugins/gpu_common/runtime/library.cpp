// SPDX-License-Identifier: Apache-2.0
#include "runtime/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <iterator>
#include <sstream>
#include <vector>

#include "runtime/errors.hpp"

namespace gpu {
namespace {

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
  const auto folders = tenon::folders_above(reinterpret_cast<const void*>(&site_packages));
  return folders.size() > 2 ? folders[2] : std::filesystem::path();
}

void* open_library(const char* variable, const char* names, std::string* why) {
  why->clear();
  if (const std::string chosen = tenon::environment_text(variable); !chosen.empty())
    return tenon::open_shared_library(chosen, why);
  std::istringstream words(names);
  const std::vector<std::string> known(std::istream_iterator<std::string>(words), {});
  if (void* library = tenon::open_first_library(known, why)) return library;
  for (const std::string& name : known)
    if (name[0] != '/')
      if (void* library =
              tenon::open_first_library(tenon::files_in(package_folders(), {name.c_str()}), why))
        return library;
  return nullptr;
}

KernelLibrary open_kernel_library(const char* title, const char* variable, const char* names,
                                  const char* how_to_install, const Symbol* symbols, size_t count,
                                  void* table) {
  KernelLibrary opened;
  std::string why;
  void* library = open_library(variable, names, &why);
  const char* missing = library ? tenon::find_symbols(library, symbols, count, table) : nullptr;
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

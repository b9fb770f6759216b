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

Opening open_kernel_libraries(std::initializer_list<KernelLibrary> libraries, void* table) {
  Opening opening;
  for (const KernelLibrary& each : libraries) {
    std::string why;
    void* library = open_library(each.variable, each.names, &why);
    const char* missing =
        library ? tenon::find_symbols(library, each.symbols.data(), each.symbols.size(), table)
                : nullptr;
    const std::string text =
        !library  ? std::string(each.title) + " was not found (" + why + "); " + each.how_to_install
        : missing ? std::string(each.title) + " lacks " + missing + "; " + each.how_to_install
                  : std::string(each.title) + " (" + file_name(library) + ")";
    const bool is_open = library && !missing;
    log(is_open ? 0 : 2, "%s", text.c_str());
    if (is_open)
      opening.name += (opening.name.empty() ? "" : ", ") + text;
    else if (opening.problem.empty())
      opening.problem = text;
  }
  if (!opening.problem.empty()) opening.name.clear();
  return opening;
}

}  // namespace gpu

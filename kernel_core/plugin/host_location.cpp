// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/host_location.hpp"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "kernel_core/plugin/trust.hpp"

namespace tenon::core {
namespace {

// Below the host's own folder: plugins that nothing finds, and that the host's packages load by path.
constexpr const char* kOnDemand = "/on_demand";

HostLocation find_host() {
  HostLocation host;
  Dl_info info{};
  // In a program that contains the host, the name may be as typed: then the system knows better.
  if (dladdr(reinterpret_cast<void*>(&host_location), &info) && info.dli_fname)
    host.library = real_path(info.dli_fname);
  if (host.library.empty()) host.library = real_path("/proc/self/exe");

  struct stat status {};
  if (host.library.empty() || ::stat(host.library.c_str(), &status) != 0) return {};
  host.folder = std::filesystem::path(host.library).parent_path();
  host.owner = status.st_uid;
  host.group = status.st_gid;
  host.is_group_writable = status.st_mode & S_IWGRP;
  return host;
}

}  // namespace

bool HostLocation::is_below(const std::string& ancestor) const {
  if (ancestor == "/") return !library.empty();
  return library.size() > ancestor.size() && library.starts_with(ancestor) &&
         library[ancestor.size()] == '/';
}

const HostLocation& host_location() {
  static const HostLocation& host = *new HostLocation(find_host());
  return host;
}

std::vector<std::string> own_plugin_folders() {
  std::vector<std::string> folders;
  // In a Python package, beside lib/; under an installation prefix, below it.
  for (const char* relative : {"/../plugins", "/tenon/plugins"}) {
    std::string folder = real_path(host_location().folder + relative);
    std::error_code ignored;
    if (!folder.empty() && std::filesystem::is_directory(folder, ignored))
      folders.push_back(folder);
  }
  return folders;
}

bool is_in_own_folder(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  const std::vector<std::string> folders = own_plugin_folders();
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) {
    return parent == folder || parent == folder + kOnDemand;
  });
}

}  // namespace tenon::core

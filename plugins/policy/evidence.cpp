// SPDX-License-Identifier: Apache-2.0
#include "evidence.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace tenon::policy {
namespace {

namespace fs = std::filesystem;

std::string own_library() {
  Dl_info info{};
  std::error_code error;
  return ::dladdr(reinterpret_cast<void*>(&own_folder), &info)
             ? fs::canonical(info.dli_fname, error).string()
             : "";
}

std::string writer_of(const std::string& path, const struct stat& own) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return "an unknown user: it cannot be examined";
  if (status.st_uid != 0 && status.st_uid != ::geteuid() && status.st_uid != own.st_uid)
    return "its owner, user " + std::to_string(status.st_uid);
  if (status.st_mode & S_IWOTH) return "everyone";
  bool group_is_ours = (own.st_mode & S_IWGRP) && status.st_gid == own.st_gid;
  if ((status.st_mode & S_IWGRP) && !group_is_ours) return "group " + std::to_string(status.st_gid);
  return {};
}

}  // namespace

std::string from_environment(const char* variable) {
  const char* value = ::secure_getenv(variable);
  return value ? value : "";
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string own_folder() { return fs::path(own_library()).parent_path(); }

std::string foreign_writer(const std::string& path) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  struct stat own {};
  std::string library = own_library();
  if (error || ::stat(library.c_str(), &own) != 0) return "an unknown user";
  for (fs::path at = real;; at = at.parent_path()) {
    // A user who can rename entries of a folder above this library can replace it.
    bool is_above_us =
        at != real && (library.starts_with(at.string() + "/") || at == at.root_path());
    std::string writer = is_above_us ? "" : writer_of(at, own);
    if (!writer.empty()) return at == real ? writer : writer + ", by way of " + at.string();
    if (at == at.root_path()) return {};
  }
}

}  // namespace tenon::policy

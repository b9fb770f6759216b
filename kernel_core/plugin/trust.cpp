// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/trust.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "kernel_core/plugin/host_location.hpp"

namespace tenon::core {
namespace {

Refusal refuse(Reason reason, std::string text, std::string fix) {
  return {Stage::kTrust, reason, std::move(text), std::move(fix)};
}

// The user besides root, the effective user and the host's owner who can write here, or empty.
std::string foreign_writer(const struct stat& status) {
  const HostLocation& host = host_location();
  bool owner_is_ours = status.st_uid == 0 || status.st_uid == ::geteuid() ||
                       (!host.library.empty() && status.st_uid == host.owner);
  if (!owner_is_ours) return "its owner, user " + std::to_string(status.st_uid);
  if (status.st_mode & S_IWOTH) return "everyone";
  bool group_is_ours = host.is_group_writable && status.st_gid == host.group;
  if ((status.st_mode & S_IWGRP) && !group_is_ours) return "group " + std::to_string(status.st_gid);
  return {};
}

Refusal check_folder(const std::string& folder) {
  // A user who can rename files here can also replace the host, so this folder needs no check.
  if (host_location().is_below(folder)) return accepted();
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0)
    return refuse(Reason::kNotAllowedDir,
                  "folder " + folder + " cannot be examined: " + std::strerror(errno), "");
  // Sticky folders such as /tmp are no exception: names in them can be claimed by anyone.
  if (std::string writer = foreign_writer(status); !writer.empty())
    return refuse(Reason::kNotAllowedDir,
                  "expected folders that only you or root can change, but " + folder +
                      " can be changed by " + writer,
                  "move the plugin to a folder of your own, or chmod go-w " + folder +
                      ", or load it by its path with TENON_PLUGIN_TRUST=any");
  return accepted();
}

}  // namespace

std::string real_path(const std::string& path) {
  std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr),
                                                       &std::free);
  return resolved ? resolved.get() : std::string();
}

Refusal identify(const std::string& path, FileIdentity& file) {
  if (path.find('/') == std::string::npos)
    return refuse(Reason::kNotFound, "expected a path, got the bare name '" + path + "'",
                  "plugins are never searched for: write ./" + path + " or the full path");
  file.path = real_path(path);
  struct stat status {};
  if (file.path.empty() || ::stat(file.path.c_str(), &status) != 0)
    return refuse(errno == EACCES ? Reason::kNotAllowedDir : Reason::kNotFound,
                  "no plugin can be read at " + path + ": " + std::strerror(errno),
                  "check the path");
  if (!S_ISREG(status.st_mode))
    return refuse(Reason::kNotFound, "expected a shared library, but " + path + " is not a file",
                  "name the .so file itself");
  file.device = status.st_dev;
  file.inode = status.st_ino;
  return accepted();
}

Refusal check_trust(const FileIdentity& file, Trust trust) {
  if (trust == Trust::kAny) return accepted();
  struct stat status {};
  if (::stat(file.path.c_str(), &status) != 0)
    return refuse(Reason::kNotFound, file.path + " is gone: " + std::strerror(errno), "");
  if (std::string writer = foreign_writer(status); !writer.empty())
    return refuse(Reason::kWritable,
                  "expected a file that only you or root can change, but " + file.path +
                      " can be changed by " + writer,
                  "chmod go-w " + file.path +
                      " or chown it, or load it by its path with TENON_PLUGIN_TRUST=any");
  std::filesystem::path folder = std::filesystem::path(file.path).parent_path();
  for (;; folder = folder.parent_path()) {
    if (Refusal refusal = check_folder(folder)) return refusal;
    if (folder == folder.root_path()) return accepted();
  }
}

Trust explicit_path_trust() {
  // secure_getenv: a set-user-id program takes no advice from its caller's environment.
  const char* value = ::secure_getenv("TENON_PLUGIN_TRUST");
  return value && std::strcmp(value, "any") == 0 ? Trust::kAny : Trust::kStrict;
}

}  // namespace tenon::core

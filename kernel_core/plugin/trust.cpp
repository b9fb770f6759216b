// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/trust.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "kernel_core/plugin/host_location.hpp"

namespace tenon::core {
namespace {

namespace fs = std::filesystem;

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

constexpr const char* kOtherwise = ", or load it by its path with TENON_PLUGIN_TRUST=any";

// `why`: what the folder has to do with a plugin, if that is not plain.
Refusal check_folder(const std::string& folder, const std::string& why) {
  // A user who can rename files here can also replace the host, so this folder needs no check.
  if (host_location().is_below(folder)) return accepted();
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0)
    return refuse(Reason::kNotAllowedDir,
                  "folder " + folder + " cannot be examined: " + std::strerror(errno), "");
  // Sticky folders such as /tmp are no exception: names in them can be claimed by anyone.
  if (std::string writer = foreign_writer(status); !writer.empty())
    return refuse(Reason::kNotAllowedDir,
                  "expected folders that only you or root can change, but " + folder + why +
                      " can be changed by " + writer,
                  "move the plugin to a folder of your own, or chmod go-w " + folder + kOtherwise);
  return accepted();
}

Refusal check_folders(fs::path folder, const std::string& why) {
  for (;; folder = folder.parent_path()) {
    if (Refusal refusal = check_folder(folder, why)) return refusal;
    if (folder == folder.root_path()) return accepted();
  }
}

// A file by its real path, and the folders above it.
Refusal check_file(const std::string& path, const std::string& why) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    return refuse(Reason::kNotFound, path + " is gone: " + std::strerror(errno), "");
  if (std::string writer = foreign_writer(status); !writer.empty())
    return refuse(Reason::kWritable,
                  "expected a file that only you or root can change, but " + path + why +
                      " can be changed by " + writer,
                  "chmod go-w " + path + " or chown it" + kOtherwise);
  return check_folders(fs::path(path).parent_path(), why);
}

// Every folder in which the system looks for the next part of a full path, also where symbolic
// links lead it. A user who can change one, or make there what is absent, decides what is found.
Refusal check_way_to(const fs::path& path, const std::string& why) {
  constexpr int kMaxLinks = 40;  // of the system, which then gives up
  std::vector<fs::path> parts;   // the next one is the last
  auto add = [&](const fs::path& more) {
    parts.insert(parts.end(), std::make_reverse_iterator(more.end()),
                 std::make_reverse_iterator(more.begin()));
  };
  add(path);
  fs::path at;
  for (int links = 0; !parts.empty() && links <= kMaxLinks;) {
    const fs::path part = parts.back();
    parts.pop_back();
    if (part.empty() || part == ".") continue;
    const fs::path next = part == ".." ? at.parent_path() : at / part;
    std::error_code error;
    const fs::file_type type = fs::symlink_status(next, error).type();
    if (type == fs::file_type::symlink) {
      add(fs::read_symlink(next, error));
      ++links;
      continue;
    }
    if (type != fs::file_type::directory) return accepted();
    at = next;
    if (Refusal refusal = check_folder(at, why)) return refusal;
  }
  return accepted();
}

using Folders = std::vector<std::string>;

// What was examined: libraries, and the folders that those that need them have handed down.
using Examined = std::map<std::string, std::set<std::string>>;

bool is_known(const std::string& path, const Folders& inherited, Examined& examined) {
  auto [known, is_new] = examined.try_emplace(path);
  const size_t before = known->second.size();
  known->second.insert(inherited.begin(), inherited.end());
  return !is_new && known->second.size() == before;
}

// The libraries that the system loads with this one: those that it finds in the folders that the
// file itself names, and in those that RPATH names in the libraries that need it. What it finds
// elsewhere is the system's.
Refusal check_needed(const std::string& path, Folders inherited, Examined& examined) {
  if (is_known(path, inherited, examined)) return accepted();
  const LibrarySearch search = read_library_search(path);
  if (Refusal refusal = check_variables(path, search)) {
    refusal.fix += kOtherwise;
    return refusal;
  }
  auto refuse_path = [&](const char* what, const std::string& got) {
    return refuse(Reason::kNotAllowedDir,
                  "expected " + std::string(what) + " in " + path + ", got '" + got +
                      "': the system would look in the current folder of the program",
                  "build it with tenon_add_plugin(), or link it with -Wl,-rpath,'$ORIGIN'" +
                      std::string(kOtherwise));
  };
  for (const std::string& folder : search.folders) {
    if (!folder.starts_with('/')) return refuse_path("$ORIGIN or full paths as RUNPATH", folder);
    if (Refusal refusal =
            check_way_to(folder, ", where " + path + " looks for libraries (RUNPATH),"))
      return refusal;
  }
  Folders folders = search.folders;
  if (!search.has_runpath) {
    folders.insert(folders.end(), inherited.begin(), inherited.end());
    inherited = folders;
  }
  const std::string why = ", which " + path + " needs,";
  for (const std::string& name : search.needed) {
    if (name.find('/') != name.npos && !name.starts_with('/'))
      return refuse_path("names or full paths of libraries", name);
    for (const std::string& file : find_library(name, folders)) {
      if (Refusal refusal = check_way_to(file, why)) return refusal;
      const std::string found = real_path(file);
      if (found.empty()) continue;
      if (Refusal refusal = check_file(found, why)) return refusal;
      if (Refusal refusal = check_needed(found, inherited, examined)) return refusal;
    }
  }
  return accepted();
}

// Would dlopen replace something in this path, and so open another file?
bool has_variable(const std::string& path) {
  for (size_t at = path.find('$'); at != path.npos; at = path.find('$', at + 1)) {
    std::string_view rest = std::string_view(path).substr(at + 1);
    if (rest.starts_with('{')) rest.remove_prefix(1);
    for (std::string_view name : {"ORIGIN", "LIB", "PLATFORM"})
      if (rest.starts_with(name) &&
          (rest.size() == name.size() ||
           !(std::isalnum(static_cast<unsigned char>(rest[name.size()])) ||
             rest[name.size()] == '_')))
        return true;
  }
  return false;
}

}  // namespace

Refusal check_variables(const std::string& path, const LibrarySearch& search) {
  if (search.variables.empty()) return accepted();
  return refuse(Reason::kNotAllowedDir,
                "expected names and folders of libraries (RUNPATH) in " + path +
                    " without variables other than a leading $ORIGIN, got '" +
                    search.variables.front() +
                    "': what the system replaces it by cannot be examined",
                "write the folder out, as in -Wl,-rpath,'$ORIGIN/lib'");
}

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
  if (has_variable(file.path))
    return refuse(
        Reason::kNotAllowedDir,
        "expected a path without variables of the system ($ORIGIN, $LIB, $PLATFORM), got " +
            file.path,
        "rename the folder or the file");
  file.device = status.st_dev;
  file.inode = status.st_ino;
  return accepted();
}

Refusal check_trust(const FileIdentity& file, Trust trust) {
  if (trust == Trust::kAny) return accepted();
  if (Refusal refusal = check_file(file.path, "")) return refusal;
  Examined examined;
  return check_needed(file.path, {}, examined);
}

Trust explicit_path_trust() {
  // secure_getenv: a set-user-id program takes no advice from its caller's environment.
  const char* value = ::secure_getenv("TENON_PLUGIN_TRUST");
  return value && std::strcmp(value, "any") == 0 ? Trust::kAny : Trust::kStrict;
}

}  // namespace tenon::core

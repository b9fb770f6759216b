// SPDX-License-Identifier: Apache-2.0
// First stage: may this file be loaded at all? A plugin runs inside the process with all its
// rights, so only users who can change the process anyway may be able to change its file: root, the
// effective user, and users who can change the host library.
//
// This says where a plugin comes from. It is no sandbox.
#pragma once

#include <sys/types.h>

#include <string>

#include "kernel_core/plugin/library_search.hpp"
#include "kernel_core/plugin/refusal.hpp"

namespace tenon::core {

enum class Trust {
  kStrict,
  kAny,  // the user vouches for the file
};

// What makes two paths the same file.
struct FileIdentity {
  std::string path;  // real
  dev_t device = 0;
  ino_t inode = 0;

  bool same_file(const FileIdentity& other) const {
    return device == other.device && inode == other.inode;
  }
};

// Resolve symbolic links and dots. Empty, with errno set, if nothing is there.
std::string real_path(const std::string& path);

// Find the file behind `path`; asks nothing about trust.
Refusal identify(const std::string& path, FileIdentity& file);

// The file, the folders above it, and likewise the folders that it makes the system search
// (RUNPATH) and the libraries that are found there.
Refusal check_trust(const FileIdentity& file, Trust trust);

// Refused if the library at `path` names others by variables that only the system can replace.
Refusal check_variables(const std::string& path, const LibrarySearch& search);

// The policy for paths that a program names itself: TENON_PLUGIN_TRUST=any gives Trust::kAny.
Trust explicit_path_trust();

}  // namespace tenon::core

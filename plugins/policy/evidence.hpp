// SPDX-License-Identifier: Apache-2.0
// Files that decide what is loaded: the lock, the keys.
#pragma once

#include <string>

namespace tenon::policy {

// A variable's value; empty if it is unset, or if a set-user-id program must not listen to it.
std::string from_environment(const char* variable);

// Empty if there is no such file.
std::string read_file(const std::string& path);

// Where this library lies; the host's folder is beside it.
std::string own_folder();

// Who could change the file, or put another in its place, who could not change this library as
// well; empty: no other user. The host makes the same check of the plugins themselves
// (kernel_core/plugin/trust.cpp).
std::string foreign_writer(const std::string& path);

}  // namespace tenon::policy

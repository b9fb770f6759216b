// SPDX-License-Identifier: Apache-2.0
// Compiled programs on disk: $XDG_CACHE_HOME/tenon/<folder>, or ~/.cache/tenon/<folder>, where each
// plugin has a folder of its own. Everything in it can be deleted at any time; an entry that is
// damaged, written by another user or made for another key is ignored.
#pragma once

#include <string>

namespace gpu_common {

// `key` is all that the binary depends on, in full: it is stored and compared, so that two sources
// with one hash are no danger. Returns an empty string if there is no entry.
std::string read_cached_binary(const char* folder, const std::string& key);

// Best effort: a failure to write leaves no entry, and the program is compiled again next time.
void write_cached_binary(const char* folder, const std::string& key, const std::string& binary);

}  // namespace gpu_common

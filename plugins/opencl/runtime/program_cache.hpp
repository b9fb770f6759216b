// SPDX-License-Identifier: Apache-2.0
// Compiled programs on disk: $XDG_CACHE_HOME/tenon/opencl, or ~/.cache/tenon/opencl. Everything in
// it can be deleted at any time; what is damaged, foreign or of another driver is passed over.
#pragma once

#include <string>

namespace opencl {

// `key` is all that the binary depends on, in full: it is stored and compared, so that two sources
// with one hash are no danger. Empty: there is none.
std::string read_cached_binary(const std::string& key);

// Best effort: a cache that cannot be written is none.
void write_cached_binary(const std::string& key, const std::string& binary);

}  // namespace opencl

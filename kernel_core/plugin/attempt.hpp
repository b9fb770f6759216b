// SPDX-License-Identifier: Apache-2.0
// The outcome of every attempt to load or unload a plugin.
#pragma once

#include "kernel_core/plugin/refusal.hpp"

namespace tenon::core {

struct Attempt {
  std::string path;
  std::string name, version;  // from the note; empty if it could not be read
  Refusal outcome;
  uint64_t count = 1;  // equal attempts, counted rather than kept one by one
};

}  // namespace tenon::core

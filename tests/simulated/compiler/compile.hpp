// SPDX-License-Identifier: Apache-2.0
// Device source to a shared object, by the host's C++ compiler with a precompiled header, through a
// cache on disk.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace simulated {

struct Compilation {
  std::string source, name;
  std::vector<std::pair<std::string, std::string>> headers;  // name, text
  std::vector<std::string> options;                          // the caller's
  std::vector<std::string> expressions;
  bool is_hip = false;
};

enum class Outcome { kDone, kInvalidOption, kFailed, kNoCompiler };

// `image` receives the bytes of the shared object, `log` what the compiler said.
Outcome compile(const Compilation& request, std::string* image, std::string* log);

}  // namespace simulated

// SPDX-License-Identifier: Apache-2.0
// Named, versioned tables through which plugins offer services to one another and to programs.
#pragma once

#include <string>
#include <vector>

namespace tenon::core {

// While it lives, what is registered on this thread belongs to the plugin `owner`; `origin`
// describes it in messages.
class StartScope {
 public:
  StartScope(const void* owner, std::string origin);
  ~StartScope();
  StartScope(const StartScope&) = delete;
  StartScope& operator=(const StartScope&) = delete;

 private:
  friend const std::string& starting_origin();
  std::string origin_;
  const void* outer_owner_;
  StartScope* outer_;
};

// "the program" outside every such scope.
const std::string& starting_origin();

std::vector<std::string> services_of(const void* owner);
// Those of them that were requested: their table may be in use for as long as the process
// runs.
std::vector<std::string> services_handed_out(const void* owner);
void remove_services(const void* owner);

}  // namespace tenon::core

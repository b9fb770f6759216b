// SPDX-License-Identifier: Apache-2.0
// Named, versioned tables through which plugins offer services to one another and to programs.
#pragma once

#include <string>
#include <vector>

namespace tenon::core {

// While it lives, services registered on this thread belong to `owner`, described by `origin`.
class ServiceOwner {
 public:
  ServiceOwner(const void* owner, std::string origin);
  ~ServiceOwner();
  ServiceOwner(const ServiceOwner&) = delete;
  ServiceOwner& operator=(const ServiceOwner&) = delete;

  const void* owner() const { return owner_; }
  const std::string& origin() const { return origin_; }

 private:
  const void* owner_;
  std::string origin_;
  ServiceOwner* outer_;
};

std::vector<std::string> services_of(const void* owner);
// Those of them that somebody has asked for: their table may be in use for as long as the process
// runs.
std::vector<std::string> services_handed_out(const void* owner);
void remove_services(const void* owner);

}  // namespace tenon::core

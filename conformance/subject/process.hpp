// SPDX-License-Identifier: Apache-2.0
// What this process holds: to see whether something grows.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace tenon::kit {

struct Holdings {
  int64_t memory = 0;    // bytes of address space that can be written
  int64_t resident = 0;  // bytes in memory
  int files = 0;
  int threads = 0;
};
Holdings holdings();

// The count of threads once it has come down to `expected`, or after a second: the system takes a
// moment to take leave of a thread that was joined.
int settled_threads(int expected);

std::set<std::string> mapped_files();
bool is_mapped(const std::string& path);  // is the file part of this process?

double now();  // seconds on a clock that only goes forward

}  // namespace tenon::kit

// SPDX-License-Identifier: Apache-2.0
// The plugin under test, opened by the kit itself: its table, called without a host in between.
#pragma once

#include <tenon/abi.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "harness/session.hpp"

namespace tenon::kit {

// Receives what a call says about its failure.
class Error {
 public:
  Error();
  ~Error();
  Error(const Error&) = delete;
  Error& operator=(const Error&) = delete;
  operator tenon_err*() { return err_; }
  std::string text() const;
  void clear();

 private:
  tenon_err* err_;
};

// "code 8 (OUT_OF_MEMORY): no room"
std::string describe(tenon_status, const Error&);
const char* status_name(tenon_status);

// Libtenon's table: what a plugin gets as its host, except where a check wants it otherwise.
const tenon_host* real_host();

class Plugin {
 public:
  // Maps the library and asks for its table; a failure ends the check. What was slow to ask is
  // asked once in a process.
  explicit Plugin(Session&, const tenon_host* host = real_host());
  ~Plugin() = default;  // stays mapped: see close()
  Plugin(const Plugin&) = delete;

  // The library, opened but not queried.
  static void* map(Session&, const std::string& path);

  void close();  // unmaps it

  const tenon_plugin* table() const { return table_; }  // watched: subject/guarded.hpp
  void* library() const { return library_; }
  bool has_device() const;
  const tenon_device_api& api() const;  // ends the check as absent if there is none

  // A group's table; NULL if the device does not offer it.
  template <class Group>
  const Group* group(int number) const {
    return static_cast<const Group*>(find_group(number));
  }
  // Ends the check as absent if the device does not offer it.
  template <class Group>
  const Group& need_group(int number) const {
    const void* found = find_group(number);
    if (!found) session_.absent(text("the device has no group `", group_name(number), "`"));
    return *static_cast<const Group*>(found);
  }
  static const char* group_name(int number);

  Session& session() const { return session_; }

  // What enumerate said, kept where it is slow; asked now where it is not.
  std::vector<tenon_device_info>& known_devices() const { return *devices_; }

 private:
  // A table, and what its enumerate said where that took long.
  struct Known {
    void* library = nullptr;
    const tenon_plugin* table = nullptr;
    std::shared_ptr<std::vector<tenon_device_info>> devices;
  };
  static Known& known(const tenon_host*);  // of this process; empty if asking is quick

  const void* find_group(int number) const;

  Session& session_;
  void* library_ = nullptr;
  const tenon_plugin* table_ = nullptr;
  std::shared_ptr<std::vector<tenon_device_info>> devices_ =
      std::make_shared<std::vector<tenon_device_info>>();
};

}  // namespace tenon::kit

// SPDX-License-Identifier: Apache-2.0
// The vendor's plugin, as loaded in this process.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "wire/message.hpp"

namespace tenon::isolated {

struct OpenDevice {
  tenon_device_id id = TENON_DEVICE_NONE;
  std::atomic<tenon_device> handle{nullptr};  // set last
};

class Vendor {
 public:
  // Load it with every check of the host, and describe it.
  tenon_status load(const std::string& path, const std::string& folders, Writer& description,
                    tenon_err* err);
  tenon_status unload(tenon_err* err);

  tenon_status open(uint32_t index, tenon_err* err);
  // NULL, and err says so, if it was never opened.
  const OpenDevice* find(uint32_t index, tenon_err* err) const;

  const tenon_device_api& api() const { return api_; }
  const tenon_pool_api* pool() const { return api_.pool; }
  // The can_run of a row of the description; NULL if there is no such row.
  int32_t (*can_run(uint32_t row) const)(const tenon_value*, uint32_t);

 private:
  struct Kernel {
    tenon_kernel_def def;
    const tenon_op* op;
    bool is_compiled;
  };
  void add_kernels(const tenon_plugin& plugin, bool is_own);
  tenon_status describe(const tenon_plugin& plugin, Writer& out, tenon_err* err) const;

  std::string name_;
  tenon_device_api api_ = {};
  std::vector<Kernel> kernels_;
  std::mutex mutex_;
  std::array<OpenDevice, 256> devices_;  // by index
};

// tables.cpp: the table of a library that the host has loaded already; NULL: it is no plugin.
const tenon_plugin* find_table(const char* path, tenon_err* err);
// Paths of all libraries in the process, in the order in which they were loaded.
std::vector<std::string> loaded_libraries();
// A copy in the layout of this build: what its writer did not know of is zero.
template <class Table>
Table copy_sized(const void* theirs, uint32_t size) {
  Table copy{};
  std::memcpy(&copy, theirs, size < sizeof copy ? size : sizeof copy);
  return copy;
}

// handle.cpp: what the plugin calls an open device.
tenon_status find_handle(tenon_device_id device, tenon_device* out, tenon_err* err);
tenon_status prepare_handles(const char* device_kind, tenon_err* err);

}  // namespace tenon::isolated

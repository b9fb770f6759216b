// SPDX-License-Identifier: Apache-2.0
// The plugin's table with the kit between the host and each kernel: it chooses the form in which a
// kernel is called, sees which are, and watches what they change in the process. Memory that the
// host allocates starts dirty, as that of a program does which has run for a while.
#pragma once

#include <string>
#include <vector>

#include "subject/plugin.hpp"

namespace tenon::kit {

enum class KernelForm { kBoxed, kTyped };
void set_kernel_form(KernelForm);

// The kernels that the plugin brings for its own device, in this header's layout.
std::vector<tenon_kernel_def> kernels_of(const tenon_plugin&);

class ShimmedPlugin {
 public:
  ShimmedPlugin(Session&, const tenon_plugin& original);
  const tenon_plugin* table() const { return &table_; }
  std::vector<std::string> never_called() const;

 private:
  tenon_plugin table_{};
  tenon_device_api device_{};
  tenon_pool_api pool_{};
  std::vector<tenon_kernel_def> kernels_;
};

}  // namespace tenon::kit

// SPDX-License-Identifier: Apache-2.0
// The good plugin's tables, in a copy that a fault may write to. A fault puts a function of its own
// in place of a good one, which it mostly calls: reference::kDevice.copy, and so on.
#pragma once

#include <cstdlib>
#include <cstring>

#include "../kernels/kernels.hpp"
#include "../runtime/device.hpp"

namespace reference {

struct Tables {
  tenon_plugin plugin;
  tenon_device_api device;
  tenon_async_api async;
  tenon_pool_api pool;
  tenon_graph_api graph;
  tenon_profile_api profile;
  tenon_collective_api collective;
  tenon_ipc_api ipc;
  tenon_quiesce_api quiesce;
  tenon_compile_api compile;
  tenon_exchange_api exchange;
  tenon_subgraph_api subgraph;
  tenon_kernel_def kernels[kKernelCount + 1];

  tenon_kernel_def& kernel(const char* op);  // "tenon::add"
  void add_kernel(const tenon_kernel_def&);  // one that the good plugin does not have
};
extern Tables tables;

// Memory that is never freed. Kept in sight of the compiler, which else leaves it out.
inline void* volatile lost_page = nullptr;
inline void lose_a_page() {
  lost_page = std::malloc(4096);
  std::memset(lost_page, 1, 4096);
}

// Makes the tables wrong. Called once, from tenon_plugin_query.
#define FAULT(name) void fault_##name()
#define X(number, name, what, check) FAULT(name);
#include "faults.def"
#undef X

enum class Fault {
#define X(number, name, what, check) k_##name = number,
#include "faults.def"
#undef X
};

}  // namespace reference

// In the one file that each faulty plugin has for itself.
extern "C" const int tenon_selected_fault;
extern "C" const char tenon_selected_name[];

// SPDX-License-Identifier: Apache-2.0
// The entry point of the faulty plugins: copies the good tables and lets the selected fault at
// them.
#include <tenon/plugin.hpp>

#include <algorithm>
#include <cstring>

#include "tables.hpp"

namespace reference {

Tables tables;

tenon_kernel_def& Tables::kernel(const char* op) {
  return *std::find_if(kernels, kernels + kKernelCount,
                       [&](const auto& row) { return !std::strcmp(row.op, op); });
}

void Tables::add_kernel(const tenon_kernel_def& row) {
  kernels[kKernelCount] = row;
  plugin.nkernels = kKernelCount + 1;
}

namespace {

void select(int fault) {
  switch (static_cast<Fault>(fault)) {
#define X(number, name, what, check) \
  case Fault::k_##name:              \
    return fault_##name();
#include "faults.def"
#undef X
  }
}

const tenon_plugin* make_tables() {
  tables = {.plugin = kPlugin,
            .device = kDevice,
            .async = kAsync,
            .pool = kPool,
            .graph = kGraph,
            .profile = kProfile,
            .collective = kCollective,
            .ipc = kIpc,
            .quiesce = kQuiesce,
            .compile = kCompile,
            .exchange = kExchange,
            .subgraph = kSubgraph,
            .kernels = {}};
  std::copy_n(kKernels, kKernelCount, tables.kernels);
#define TABLE(number, NAME, member, type) tables.device.member = &tables.member;
  TENON_DEVICE_GROUPS(TABLE)
#undef TABLE
  tables.plugin.device = &tables.device;
  tables.plugin.kernels = tables.kernels;
  tables.plugin.name = tenon_selected_name;
  select(tenon_selected_fault);
  return &tables.plugin;
}

}  // namespace
}  // namespace reference

extern "C" TENON_EXPORT const tenon_plugin* tenon_plugin_query(uint32_t host_min, uint32_t host_max,
                                                               const tenon_host* host,
                                                               tenon_err* err) {
  tenon::host = host;
  const bool spoken = host_min <= TENON_ABI_EPOCH && TENON_ABI_EPOCH <= host_max;
  if (!spoken && tenon_selected_fault != static_cast<int>(reference::Fault::k_ignores_epoch)) {
    tenon::fail(err, TENON_UNSUPPORTED, "this plugin speaks ABI epoch 1 only");
    return nullptr;
  }
  return reference::make_tables();
}

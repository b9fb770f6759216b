// SPDX-License-Identifier: Apache-2.0
// Plugin "cpu": the device, and its kernels for the best instruction set that the processor has.
#include "device.hpp"
#include "following.hpp"
#include "isa.hpp"
#include "packed_constants.hpp"
#include "region_steps.hpp"
#include "register_functions.hpp"
#include "subgraph.hpp"

#include <tenon/error.hpp>
#include <tenon/tensor.hpp>

#include <vector>

namespace tenon::cpu {
namespace {

tenon_status start(const tenon_host* host, tenon_err* err) {
  TENON_TRY(offer_register_functions(host, err));
  return offer_packed_constants(host, err);
}

// Kernels keep no threads and no handles, so there is nothing to stop.
tenon_status stop(tenon_err*) { return TENON_OK; }

tenon_plugin table = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "cpu",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .device = &kDevice,
    .op_size = sizeof(tenon_op_def),
    .kernel_size = sizeof(tenon_kernel_def),
    .start = start,
    .stop = stop,
};

}  // namespace
}  // namespace tenon::cpu

// Not TENON_PLUGIN(table): the kernels are chosen when the plugin is loaded.
extern "C" TENON_EXPORT const tenon_plugin* tenon_plugin_query(uint32_t host_min, uint32_t host_max,
                                                               const tenon_host* host,
                                                               tenon_err* err) {
  using namespace tenon::cpu;
  if (host_min > TENON_ABI_EPOCH || host_max < TENON_ABI_EPOCH) {
    static constexpr char text[] = "this plugin speaks ABI epoch 1 only";
    host->fail(err, TENON_UNSUPPORTED, 0, text, sizeof text - 1);
    return nullptr;
  }
  tenon::host = host;
  const Isa* isa = choose_isa(host, err);
  if (!isa) return nullptr;
  static std::vector<tenon_kernel_def> kernels;
  kernels.clear();
  isa->append_kernels(kernels);
  set_isa_name(isa->name);
  set_packed_convs(isa->packed_convs);
  set_nhwc_functions(isa->nhwc_functions);
  set_elementwise_kernels(kernels);
  set_register_functions(isa->register_functions, kernels);
  table.kernels = kernels.data();
  table.nkernels = static_cast<uint32_t>(kernels.size());
  return &table;
}

// SPDX-License-Identifier: Apache-2.0
// The kernels in a plugin's table.
#include <algorithm>
#include <cstddef>

#include "kernel_core/plugin/sized_copy.hpp"
#include "kernel_core/plugin/tables.hpp"

namespace tenon::core {
namespace {

constexpr uint32_t kKnownTraits = TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT |
                                  TENON_KERNEL_HOST_SCALARS | TENON_KERNEL_BROADCAST |
                                  TENON_KERNEL_MIXED_DTYPES | TENON_KERNEL_NONDETERMINISTIC |
                                  TENON_KERNEL_ROWS | TENON_KERNEL_IEEE | TENON_KERNEL_IN_PLACE;

// Empty, or what is wrong.
std::string find_fault(const Manifest& manifest, tenon_kernel_def& kernel, const Tables& tables) {
  if (!kernel.boxed) return "`boxed` is NULL; every kernel needs the boxed form";
  if (kernel.typed && kernel.schema_hash == 0)
    return "`typed` is set and schema_hash is 0; without a hash nothing guards the call";
  if (kernel.dtype_mask == 0 || !accept_dtype_mask(tables, kernel.dtype_mask))
    return "dtype_mask is empty or has bits of unknown dtypes";
  if (kernel.traits & ~kKnownTraits) {
    // Traits only loosen what the host must do for a kernel: one it has not heard of may be
    // ignored.
    if (!tables.is_newer()) return "traits have unknown bits";
    kernel.traits &= kKnownTraits;
  }
  if (kernel.reserved != 0 && !tables.is_newer()) return "reserved is not 0";
  if (!kernel.device)
    return tables.has_device() ? ""
                               : "it names no device, and this plugin provides none; set `device`";
  bool is_own = tables.has_device() && std::strcmp(kernel.device, tables.device.kind) == 0;
  // A plugin may bring kernels of its own operators for any device: they override no other kernel.
  for (const tenon_op_def& op : tables.ops) is_own |= std::strcmp(op.name, kernel.op) == 0;
  const auto& declared = manifest.kernels_for;
  if (!is_own && !manifest.is_attached &&
      std::find(declared.begin(), declared.end(), kernel.device) == declared.end())
    return std::string("it is for device '") + kernel.device +
           "' of another plugin, which the note does not declare; tenon_add_plugin(... "
           "KERNELS_FOR " +
           kernel.device + ")";
  return {};
}

}  // namespace

Refusal check_kernels(const Manifest& manifest, Tables& tables) {
  const tenon_plugin& plugin = tables.plugin;
  constexpr size_t kMandatory = offsetof(tenon_kernel_def, typed);
  if (Refusal refusal = check_array(manifest, "kernels", plugin.kernels, plugin.nkernels,
                                    plugin.kernel_size, kMandatory))
    return refusal;
  tables.kernels.reserve(plugin.nkernels);
  for (uint32_t i = 0; i < plugin.nkernels; ++i) {
    const char* theirs =
        reinterpret_cast<const char*>(plugin.kernels) + size_t{i} * plugin.kernel_size;
    uint32_t size;
    std::memcpy(&size, theirs, sizeof size);
    std::string which = "kernel " + std::to_string(i);
    if (size > plugin.kernel_size || !is_plausible_size(size, kMandatory))
      return refuse_table(manifest,
                          "struct_size of " + which + ": " + describe_size(size, kMandatory),
                          "write sizeof(tenon_kernel_def) to every entry and to kernel_size");
    tenon_kernel_def kernel;
    copy_sized(kernel, theirs, size);
    kernel.struct_size = sizeof kernel;
    if (!kernel.op) return refuse_table(manifest, which + " names no operator");
    if (std::string fault = find_fault(manifest, kernel, tables); !fault.empty())
      return refuse_table(manifest, which + ", for " + kernel.op + ": " + fault);
    // Only for dtypes that are newer than this host: it cannot be called.
    if (kernel.dtype_mask != 0) tables.kernels.push_back(kernel);
  }
  return accepted();
}

}  // namespace tenon::core

// SPDX-License-Identifier: Apache-2.0
#include "service/description.hpp"

namespace tenon::isolated {
namespace {

constexpr uint32_t kMaxDevices = 256;
constexpr uint32_t kMaxKernels = 1 << 16;

}  // namespace

bool read_description(Reader message, Description* out) {
  out->name = message.get_text();
  out->version = message.get_text();
  out->vendor = message.get_text();
  out->kind = message.get_text();
  const auto devices = message.get<uint32_t>();
  if (!message.ok() || devices > kMaxDevices) return false;
  for (uint32_t i = 0; i < devices; ++i) {
    auto info = message.get<tenon_device_info>();
    // Its memory belongs to the other process, of whatever kind it is there: pointers into it mean
    // nothing in this process.
    info.flags &= ~uint32_t{TENON_DEVICE_HOST_MEMORY};
    constexpr int32_t kExtensionDevice = 12;
    info.dl_device_type = kExtensionDevice;
    out->devices.push_back(info);
  }
  const auto kernels = message.get<uint32_t>();
  if (!message.ok() || kernels > kMaxKernels) return false;
  for (uint32_t i = 0; i < kernels; ++i) {
    const auto row = message.get<KernelRow>();
    out->kernels.push_back({row, std::string(message.get_text())});
  }
  return message.ok();
}

}  // namespace tenon::isolated

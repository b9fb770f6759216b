// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include "memory.hpp"
#include "subgraph.hpp"

#include <tenon/tensor.hpp>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>

#include <unistd.h>

struct tenon_device_s {};

namespace tenon::cpu {
namespace {

tenon_device_s the_device;
const char* isa_name = "";

// "model name" of the first processor.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

template <size_t N>
void copy_text(char (&to)[N], const std::string& from) {
  const size_t length = std::min(from.size(), N - 1);
  std::memcpy(to, from.data(), length);
  to[length] = 0;
}

tenon_status enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count, tenon_err*) {
  *count = 1;
  if (capacity == 0) return TENON_OK;
  tenon_device_info info = {};
  info.struct_size = sizeof info;
  info.flags = TENON_DEVICE_HOST_MEMORY;
  copy_text(info.name, processor_name());
  copy_text(info.arch, isa_name);
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) {
    info.memory_bytes = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page);
  }
  info.dl_device_type = 1;  // kDLCPU
  out[0] = info;
  return TENON_OK;
}

tenon_status open(uint32_t index, tenon_device* out, tenon_err* err) {
  if (index != 0) {
    return fail(err, TENON_NOT_FOUND,
                "expected cpu:0, the only one, got cpu:" + std::to_string(index));
  }
  *out = &the_device;
  return TENON_OK;
}

void close(tenon_device) {}

// Kernels finish before they return.
tenon_status sync(tenon_device, tenon_stream, tenon_err*) { return TENON_OK; }

}  // namespace

void set_isa_name(const char* name) { isa_name = name; }

constexpr tenon_device_api kDevice = {
    .struct_size = sizeof(tenon_device_api),
    .revision = TENON_ABI_REVISION,
    .kind = "cpu",
    .enumerate = enumerate,
    .open = open,
    .close = close,
    .alloc = alloc,
    .free = free,
    .copy = copy,
    .fill = fill,
    .sync = sync,
    .subgraph = &kSubgraphs,
};

}  // namespace tenon::cpu

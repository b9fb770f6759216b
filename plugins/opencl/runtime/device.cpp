// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <algorithm>
#include <cstdio>
#include <new>

#include "platforms.hpp"

tenon_device_s::~tenon_device_s() {
  opencl::destroy_queue(synchronous);
  opencl::destroy_queue(service);
  if (context) opencl::cl.ReleaseContext(context);
}

namespace opencl {
namespace {

void put(char* to, size_t room, const std::string& text) {
  std::snprintf(to, room, "%s", text.c_str());
}

tenon_status find_all(std::vector<Found>* out, tenon_err* err) {
  TENON_TRY(load_driver(err));
  return find_devices(out, err);
}

tenon_status enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count,
                       tenon_err* err) try {
  std::vector<Found> found;
  TENON_TRY(find_all(&found, err));
  for (uint32_t i = 0; i < found.size() && i < capacity; ++i) {
    cl_device_id device = found[i].device;
    // DLPack has a number for OpenCL, but means a cl_mem by the data pointer; ours is an address.
    constexpr int32_t kDLExtDev = 12;
    out[i] = {.struct_size = sizeof(tenon_device_info),
              .memory_bytes = device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE),
              .dl_device_type = kDLExtDev};
    put(out[i].name, sizeof out[i].name, device_text(device, CL_DEVICE_NAME));
    put(out[i].arch, sizeof out[i].arch, device_text(device, CL_DEVICE_VERSION).substr(0, 10));
    put(out[i].bus_id, sizeof out[i].bus_id, "platform " + found[i].place);
  }
  *count = static_cast<uint32_t>(found.size());
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

std::string options_for(cl_device_id device) {
  std::string options = "-cl-std=CL1.2 -w";
  auto single = device_value<cl_device_fp_config>(device, CL_DEVICE_SINGLE_FP_CONFIG);
  if (single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT)
    options += " -cl-fp32-correctly-rounded-divide-sqrt";
  return options;
}

void describe(tenon_device device, const Found& found) {
  device->id = found.device;
  device->is_processor = found.is_processor;
  device->memory_bytes = device_value<cl_ulong>(found.device, CL_DEVICE_GLOBAL_MEM_SIZE);
  device->buffer_bytes = device_value<cl_ulong>(found.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  device->has_float64 =
      device_value<cl_device_fp_config>(found.device, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  device->build_options = options_for(found.device);
  auto platform = device_value<cl_platform_id>(found.device, CL_DEVICE_PLATFORM);
  device->identity = platform_text(platform, CL_PLATFORM_NAME) + "\n" +
                     platform_text(platform, CL_PLATFORM_VERSION) + "\n" +
                     device_text(found.device, CL_DEVICE_NAME) + "\n" +
                     device_text(found.device, CL_DEVICE_VERSION) + "\n" +
                     device_text(found.device, CL_DRIVER_VERSION);
}

tenon_status open(uint32_t index, tenon_device* out, tenon_err* err) try {
  std::vector<Found> found;
  TENON_TRY(find_all(&found, err));
  if (index >= found.size()) {
    return fail(err, TENON_NOT_FOUND, "open: expected an index below %zu, got %u", found.size(),
                index);
  }
  auto device = std::make_unique<tenon_device_s>();
  describe(device.get(), found[index]);
  // Room for gaps: four times what can be allocated at once, and 16 GiB at least.
  uint64_t bytes = std::max(device->memory_bytes * 4, uint64_t{16} << 30);
  if (!device->addresses.reserve(bytes)) {
    return fail(err, TENON_OUT_OF_MEMORY,
                "open: the system grants no %llu GiB of address space; raise the limit (ulimit -v)",
                static_cast<unsigned long long>(bytes >> 30));
  }
  cl_int error;
  device->context = cl.CreateContext(nullptr, 1, &device->id, nullptr, nullptr, &error);
  if (error) return fail_driver(err, error, "open: create a context");
  TENON_TRY(create_queue(device.get(), device->synchronous, err));
  TENON_TRY(create_queue(device.get(), device->service, err));
  *out = device.release();
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

void close(tenon_device device) { delete device; }

// Closing a device has finished its work, and we keep neither threads nor callbacks.
tenon_status quiesce(uint64_t, tenon_err*) { return TENON_OK; }

const tenon_quiesce_api kQuiesce = {
    .struct_size = sizeof(tenon_quiesce_api),
    .reserved = 0,
    .quiesce = quiesce,
};

template <class Get>
std::string read_text(Get get) {
  size_t bytes = 0;
  if (get(0, nullptr, &bytes) || bytes == 0) return "";
  std::string text(bytes, '\0');
  if (get(bytes, text.data(), nullptr)) return "";
  text.resize(text.find('\0') == std::string::npos ? bytes : text.find('\0'));
  return text;
}

}  // namespace

std::string device_text(cl_device_id device, cl_device_info what) {
  return read_text([&](size_t size, void* data, size_t* needed) {
    return cl.GetDeviceInfo(device, what, size, data, needed);
  });
}

std::string platform_text(cl_platform_id platform, cl_platform_info what) {
  return read_text([&](size_t size, void* data, size_t* needed) {
    return cl.GetPlatformInfo(platform, what, size, data, needed);
  });
}

// The whole device at a glance.
const tenon_device_api kDevice = {
    .struct_size = sizeof(tenon_device_api),
    .revision = TENON_ABI_REVISION,
    .features = 0,
    .kind = "opencl",
    .enumerate = enumerate,
    .open = open,
    .close = close,
    .alloc = alloc,
    .free = release,
    .copy = copy,
    .fill = fill,
    .sync = sync,
    .async = &kAsync,
    .pool = nullptr,   // the host's allocator serves better than one of OpenCL's buffers would
    .graph = nullptr,  // OpenCL 1.2 cannot record
    .profile = &kProfile,
    .collective = nullptr,
    .ipc = nullptr,
    .quiesce = &kQuiesce,
    .compile = &kCompile,
};

}  // namespace opencl

// SPDX-License-Identifier: Apache-2.0
#include "platforms.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "device.hpp"

namespace opencl {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool is_chosen(const std::string& choice, size_t number, const std::string& name) {
  if (choice.empty() || choice == std::to_string(number)) return true;
  bool is_number = choice.find_first_not_of("0123456789") == std::string::npos;
  return !is_number && lower(name).find(lower(choice)) != std::string::npos;
}

// NULL: usable.
const char* why_not(cl_device_id device) {
  unsigned major = 0, minor = 0;
  std::sscanf(device_text(device, CL_DEVICE_VERSION).c_str(), "OpenCL %u.%u", &major, &minor);
  if (major * 10 + minor < 12) return "it has no OpenCL 1.2";
  if (!device_value<cl_bool>(device, CL_DEVICE_AVAILABLE)) return "it is not available";
  if (!device_value<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE))
    return "its driver has no compiler";
  if (!device_value<cl_bool>(device, CL_DEVICE_ENDIAN_LITTLE)) return "it is big-endian";
  // What the group `compile` promises of every device.
  if (device_value<size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE) < 64)
    return "its work groups are below 64";
  if (device_value<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE) < 16384)
    return "it has no 16 KiB of local memory";
  return nullptr;
}

void add_devices(cl_platform_id platform, size_t number, std::vector<Found>* out) {
  cl_uint count = 0;
  if (cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) || count == 0) return;
  std::vector<cl_device_id> devices(count);
  if (cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr)) return;
  for (size_t i = 0; i < devices.size(); ++i) {
    std::string place = std::to_string(number) + ":" + std::to_string(i);
    if (const char* reason = why_not(devices[i])) {
      log_info("device %s (%s) is left out: %s", place.c_str(),
               device_text(devices[i], CL_DEVICE_NAME).c_str(), reason);
      continue;
    }
    auto type = device_value<cl_device_type>(devices[i], CL_DEVICE_TYPE);
    out->push_back({devices[i], (type & CL_DEVICE_TYPE_CPU) != 0, place});
  }
}

}  // namespace

tenon_status find_devices(std::vector<Found>* out, tenon_err* err) {
  cl_uint count = 0;
  cl_int error = cl.GetPlatformIDs(0, nullptr, &count);
  if (error || count == 0) {
    return fail(err, TENON_UNAVAILABLE,
                "the OpenCL loader found no driver (%s); install one for your device (Debian: "
                "pocl-opencl-icd for CPUs) and check with clinfo",
                error ? error_name(error) : "no platforms");
  }
  std::vector<cl_platform_id> platforms(count);
  if ((error = cl.GetPlatformIDs(count, platforms.data(), nullptr)))
    return fail_driver(err, error, "list platforms");

  const char* given = std::getenv("TENON_OPENCL_PLATFORM");
  std::string choice = given ? given : "", names;
  bool matched = false;
  for (size_t i = 0; i < platforms.size(); ++i) {
    std::string name = platform_text(platforms[i], CL_PLATFORM_NAME);
    names += (i ? ", " : "") + std::to_string(i) + " (" + name + ")";
    if (!is_chosen(choice, i, name)) continue;
    matched = true;
    add_devices(platforms[i], i, out);
  }
  if (!matched) {
    return fail(err, TENON_NOT_FOUND,
                "TENON_OPENCL_PLATFORM: expected a platform's number or a part of its name, got "
                "'%s'; there "
                "are %s",
                choice.c_str(), names.c_str());
  }
  std::stable_partition(out->begin(), out->end(),
                        [](const Found& found) { return !found.is_processor; });
  return TENON_OK;
}

}  // namespace opencl

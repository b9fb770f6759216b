// SPDX-License-Identifier: Apache-2.0
#include "device/interface.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace tenon::paddle {
namespace {

constexpr uint64_t kUntouched = 0xa5c35a3ca5c35a3c;
constexpr size_t kWords = sizeof(C_DeviceInterface) / sizeof(uint64_t);
constexpr size_t kGuardWords = 64;

struct Reserved {
  size_t first, count;
};
#define TENON_PADDLE_RESERVED(member)                        \
  Reserved {                                                 \
    offsetof(C_DeviceInterface, member) / sizeof(uint64_t),  \
        sizeof(C_DeviceInterface::member) / sizeof(uint64_t) \
  }
constexpr Reserved kReserved[] = {
    TENON_PADDLE_RESERVED(reserved_dev_api),      TENON_PADDLE_RESERVED(reserved_mem_api),
    TENON_PADDLE_RESERVED(reserved_info_api),     TENON_PADDLE_RESERVED(reserved_ccl_api),
    TENON_PADDLE_RESERVED(reserved_profiler_api), TENON_PADDLE_RESERVED(reserved_other_api)};
#undef TENON_PADDLE_RESERVED

union Buffer {
  C_DeviceInterface slots;
  std::array<uint64_t, kWords + kGuardWords> words;
};

[[noreturn]] void refuse_layout(const std::string& found) {
  throw Error(TENON_FAILED_PRECONDITION,
              "it was built for another layout of C_DeviceInterface: expected one of " +
                  std::to_string(sizeof(C_DeviceInterface)) + " bytes, " + found +
                  "; its functions would be taken for one another. Build it with the headers of "
                  "tenon.compat.paddle.get_include()");
}

// Throws if the plugin's C_DeviceInterface cannot be ours; then makes what it left untouched NULL.
void check_layout(Buffer& buffer) {
  auto& words = buffer.words;
  const uint64_t size = words[0];
  if (size != 0 && size != sizeof(C_DeviceInterface) && size != kUntouched)
    refuse_layout("got `size` " + std::to_string(size));
  const auto end =
      std::find_if(words.rbegin(), words.rend(), [](uint64_t word) { return word != kUntouched; });
  const size_t touched = static_cast<size_t>(words.rend() - end);
  if (touched > kWords) refuse_layout("got one of at least " + std::to_string(touched * 8));
  // Cleared from the start to before the end: no plugin sets all functions and all reserved words
  // one by one.
  const auto first_untouched =
      static_cast<size_t>(std::find(words.begin(), words.end(), kUntouched) - words.begin());
  if (first_untouched == touched && touched < kWords &&
      touched > kReserved[0].first + kReserved[0].count)
    refuse_layout("got one of " + std::to_string(touched * 8) + " (all that InitPlugin cleared)");
  std::replace(words.begin(), words.end(), kUntouched, uint64_t{0});
  for (const Reserved& reserved : kReserved)
    for (size_t i = reserved.first; i < reserved.first + reserved.count; ++i)
      if (words[i] != 0)
        refuse_layout("got a function at byte " + std::to_string(i * 8) + ", which is reserved");
}

void check_required(const C_DeviceInterface& slots) {
  std::string missing;
#define TENON_PADDLE_REQUIRE(slot) \
  if (!slots.slot) missing += (missing.empty() ? "" : ", ") + std::string(#slot)
  TENON_PADDLE_REQUIRE(set_device);
  TENON_PADDLE_REQUIRE(get_device);
  TENON_PADDLE_REQUIRE(create_event);
  TENON_PADDLE_REQUIRE(record_event);
  TENON_PADDLE_REQUIRE(destroy_event);
  TENON_PADDLE_REQUIRE(synchronize_event);
  TENON_PADDLE_REQUIRE(device_memory_allocate);
  TENON_PADDLE_REQUIRE(device_memory_deallocate);
  TENON_PADDLE_REQUIRE(get_device_count);
  TENON_PADDLE_REQUIRE(get_device_list);
  // Without these no value gets in or out, and nothing would say so.
  TENON_PADDLE_REQUIRE(memory_copy_h2d);
  TENON_PADDLE_REQUIRE(memory_copy_d2h);
#undef TENON_PADDLE_REQUIRE
  if (!missing.empty())
    throw Error(TENON_FAILED_PRECONDITION, "InitPlugin left required functions NULL: " + missing);
}

// It becomes the name of a device kind, by which users call it.
void check_device_type(const std::string& name) {
  auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (!name.empty() && name.size() <= 16 && name[0] >= 'a' && name[0] <= 'z' &&
      std::all_of(name.begin(), name.end(), is_word))
    return;
  throw Error(
      TENON_INVALID_ARGUMENT,
      "device_type: expected at most 16 characters like [a-z][a-z0-9_]*, got '" + name + "'");
}

// A string of the plugin, as far as it can be one.
std::string text_of(const char* text) { return text ? std::string(text, strnlen(text, 256)) : ""; }

}  // namespace

FilledInterface run_init_plugin(InitPluginFn init) {
  Buffer buffer;
  buffer.words.fill(kUntouched);
  buffer.slots.size = sizeof(C_DeviceInterface);
  CustomRuntimeParams params = {};
  params.size = sizeof params;
  params.interface = &buffer.slots;
  try {
    init(&params);
  } catch (const std::exception& error) {
    throw Error(TENON_INTERNAL, std::string("InitPlugin threw: ") + error.what());
  } catch (...) {
    throw Error(TENON_INTERNAL, "InitPlugin threw what is no std::exception");
  }
  if (!params.device_type)
    throw Error(TENON_FAILED_PRECONDITION,
                "InitPlugin returned without naming a device_type: it found that it does not fit "
                "this host");
  const CustomRuntimeVersion& version = params.version;
  const std::string version_text = std::to_string(version.major) + "." +
                                   std::to_string(version.minor) + "." +
                                   std::to_string(version.patch);
  if (version.major * 10000 + version.minor * 100 + version.patch <
      PADDLE_CUSTOM_RUNTIME_MAJOR_VERSION * 10000 + PADDLE_CUSTOM_RUNTIME_MINOR_VERSION * 100 +
          PADDLE_CUSTOM_RUNTIME_PATCH_VERSION)
    throw Error(TENON_FAILED_PRECONDITION,
                "expected custom runtime version 0.1.1 or newer, got " + version_text +
                    "; call PADDLE_CUSTOM_RUNTIME_CHECK_VERSION in InitPlugin");
  check_device_type(text_of(params.device_type));
  check_layout(buffer);
  check_required(buffer.slots);
  return {buffer.slots, text_of(params.device_type), text_of(params.sub_device_type), version_text};
}

}  // namespace tenon::paddle

// SPDX-License-Identifier: Apache-2.0
// One device of the plugin, and memory on it.
#pragma once

#include <cstdint>
#include <vector>

#include "subject/plugin.hpp"

namespace tenon::kit {

using Bytes = std::vector<unsigned char>;

class Device;

// Device memory, given back at the end.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, void* memory, uint64_t bytes)
      : device_(&device), memory_(memory), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { release(nullptr); }

  void release(tenon_stream stream);    // now, in the order of `stream`
  void disown() { memory_ = nullptr; }  // other code frees the memory
  void* memory() const { return memory_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  void* memory_ = nullptr;
  uint64_t bytes_ = 0;
};

class Device {
 public:
  // Opens it; a failure ends the check. No such device: the check is absent.
  explicit Device(Plugin& plugin, uint32_t index = 0);
  ~Device() { close(); }
  Device(const Device&) = delete;
  void close();

  const tenon_device_api& api() const { return api_; }
  tenon_device handle() const { return handle_; }
  const tenon_device_info& info() const { return info_; }
  bool is_joined() const { return api_.features & TENON_DEVICE_FEATURE_JOINED_MEMORY; }
  bool is_opaque() const { return info_.flags & TENON_DEVICE_OPAQUE_MEMORY; }
  Session& session() const { return session_; }
  Plugin& plugin() const { return plugin_; }

  // `Ask::kAgain` asks even if asking is slow, and was done before.
  enum class Ask { kOnce, kAgain };
  static std::vector<tenon_device_info> enumerate(Plugin&, Ask = Ask::kOnce);

  // Each of these ends the check if the plugin fails.
  Buffer alloc(uint64_t bytes, tenon_stream = nullptr, uint64_t align = 256);
  void put(const Buffer& to, uint64_t offset, const void* from, uint64_t bytes,
           tenon_stream = nullptr);
  void get(void* to, const Buffer& from, uint64_t offset, uint64_t bytes, tenon_stream = nullptr);
  void copy(const Buffer& to, uint64_t to_offset, const Buffer& from, uint64_t from_offset,
            uint64_t bytes, tenon_stream = nullptr);
  void fill(const Buffer& to, uint64_t offset, uint64_t bytes, const void* pattern,
            uint32_t pattern_bytes, tenon_stream = nullptr);
  void fill(const Buffer& to, unsigned char value, tenon_stream stream = nullptr) {
    fill(to, 0, to.bytes(), &value, 1, stream);
  }
  void sync(tenon_stream = nullptr);
  Bytes read(const Buffer& from, tenon_stream = nullptr);

  // The call itself.
  tenon_status alloc_raw(uint64_t bytes, uint64_t align, tenon_stream, void** out, tenon_err*,
                         uint64_t must_understand = 0, uint32_t kind = TENON_ALLOC_DEVICE);
  // Ends the check if `status` is a failure.
  void check(tenon_status status, const Error&, const std::string& what);

 private:
  void run_copy(int32_t direction, void* dst, uint64_t dst_offset, const void* src,
                uint64_t src_offset, uint64_t bytes, tenon_stream);

  Plugin& plugin_;
  Session& session_;
  const tenon_device_api& api_;
  tenon_device_info info_{};
  tenon_device handle_ = nullptr;
  uint32_t index_ = 0;
};

// From here on devices stay open when they are closed, and are used again: for a process that runs
// many checks on a device that is slow to open.
void share_devices();
bool are_devices_shared();
void close_shared_devices();

// Two allocations end to end, of so many bytes each, and both seen as one; not if the device says
// nothing of TENON_DEVICE_FEATURE_JOINED_MEMORY, or allocates none that way: the check is absent.
struct Joined {
  Joined(Device& device, uint64_t bytes);
  ~Joined() { whole.disown(); }
  Buffer low, high, whole;
};

// A recognisable sequence; no two neighbours equal.
Bytes pattern(uint64_t bytes, uint32_t seed = 1);

// "byte 4095: expected 0x3c, got 0x00"; empty if equal.
std::string first_difference(const Bytes& expected, const Bytes& got);
std::string hex(unsigned char);

}  // namespace tenon::kit

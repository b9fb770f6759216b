// SPDX-License-Identifier: Apache-2.0
#include "subject/device.hpp"

#include <map>
#include <utility>

#include "subject/process.hpp"

namespace tenon::kit {
namespace {

struct SharedDevices {
  bool are_shared = false;
  const tenon_device_api* api = nullptr;
  std::multimap<uint32_t, tenon_device> idle;  // open, and used by nothing now
};
SharedDevices shared;

}  // namespace

void share_devices() { shared.are_shared = true; }
bool are_devices_shared() { return shared.are_shared; }
void close_shared_devices() {
  for (auto [index, handle] : shared.idle) shared.api->close(handle);
  shared.idle.clear();
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void Buffer::release(tenon_stream stream) {
  if (!memory_ || !device_->handle()) return;
  device_->api().free(device_->handle(), std::exchange(memory_, nullptr), bytes_, stream);
}

std::vector<tenon_device_info> Device::enumerate(Plugin& plugin, Ask ask) {
  Session& session = plugin.session();
  if (ask == Ask::kOnce && !plugin.known_devices().empty()) return plugin.known_devices();
  const tenon_device_api& api = plugin.api();
  session.step("enumerate");
  std::vector<tenon_device_info> infos(64);
  for (tenon_device_info& info : infos) info.struct_size = sizeof info;
  uint32_t count = 0;
  Error error;
  const double start = now();
  tenon_status status = api.enumerate(infos.data(), 64, &count, error);
  session.opened(now() - start);
  session.require(status == TENON_OK, "enumerate succeeds", describe(status, error));
  session.require(count <= 256, "at most 256 devices", text(count, " devices"));
  infos.resize(std::min<size_t>(count, infos.size()));
  if (now() - start > kSlow || are_devices_shared()) plugin.known_devices() = infos;
  return infos;
}

Device::Device(Plugin& plugin, uint32_t index)
    : plugin_(plugin), session_(plugin.session()), api_(plugin.api()) {
  // Without the group that a check is about there is no need to open the device, which may take
  // long.
  for (int group = 0; group < TENON_GROUP_COUNT; ++group)
    if (family_of(session_.check().id) == Plugin::group_name(group)) plugin.need_group<char>(group);
  std::vector<tenon_device_info> infos = enumerate(plugin);
  if (index >= infos.size())
    session_.absent(text("there is no device ", index, " on this machine"));
  info_ = infos[index];
  index_ = index;
  if (auto idle = shared.idle.find(index); idle != shared.idle.end()) {
    handle_ = idle->second;
    shared.idle.erase(idle);
    return;
  }
  session_.step(text("open device ", index));
  Error error;
  const double start = now();
  tenon_status status = api_.open(index, &handle_, error);
  session_.opened(now() - start);
  check(status, error, text("open device ", index));
  session_.require(handle_, "open gives a handle", "TENON_OK and NULL");
}

void Device::close() {
  if (!handle_) return;
  if (shared.are_shared) {
    shared.idle.emplace(index_, std::exchange(handle_, nullptr));
    shared.api = &api_;
    return;
  }
  session_.step("close");
  const double start = now();
  api_.close(std::exchange(handle_, nullptr));
  session_.opened(now() - start);
}

void Device::check(tenon_status status, const Error& error, const std::string& what) {
  if (status != TENON_OK) session_.require(false, what + " succeeds", describe(status, error));
}

tenon_status Device::alloc_raw(uint64_t bytes, uint64_t align, tenon_stream stream, void** out,
                               tenon_err* err, uint64_t must_understand, uint32_t kind) {
  tenon_alloc_request request{sizeof request, kind, must_understand, bytes, align, stream};
  return api_.alloc(handle_, &request, out, err);
}

Buffer Device::alloc(uint64_t bytes, tenon_stream stream, uint64_t align) {
  void* memory = nullptr;
  Error error;
  tenon_status status = alloc_raw(bytes, align, stream, &memory, error);
  check(status, error, text("alloc of ", bytes, " bytes"));
  return Buffer(*this, memory, bytes);
}

void Device::run_copy(int32_t direction, void* dst, uint64_t dst_offset, const void* src,
                      uint64_t src_offset, uint64_t bytes, tenon_stream stream) {
  // Only opaque handles take offsets; other memory is addressed.
  bool to_device = direction != TENON_COPY_DEVICE_TO_HOST;
  bool from_device = direction != TENON_COPY_HOST_TO_DEVICE;
  if (to_device && !is_opaque()) dst = static_cast<char*>(dst) + std::exchange(dst_offset, 0);
  if (from_device && !is_opaque())
    src = static_cast<const char*>(src) + std::exchange(src_offset, 0);
  tenon_copy_request request{sizeof request, direction,  0,          dst,   src,
                             bytes,          dst_offset, src_offset, stream};
  Error error;
  tenon_status status = api_.copy(handle_, &request, error);
  static const char* const kDirections[] = {"host to device", "device to host", "device to device"};
  check(status, error, text("copy ", kDirections[direction], " of ", bytes, " bytes"));
}

void Device::put(const Buffer& to, uint64_t offset, const void* from, uint64_t bytes,
                 tenon_stream stream) {
  run_copy(TENON_COPY_HOST_TO_DEVICE, to.memory(), offset, from, 0, bytes, stream);
}
void Device::get(void* to, const Buffer& from, uint64_t offset, uint64_t bytes,
                 tenon_stream stream) {
  run_copy(TENON_COPY_DEVICE_TO_HOST, to, 0, from.memory(), offset, bytes, stream);
}
void Device::copy(const Buffer& to, uint64_t to_offset, const Buffer& from, uint64_t from_offset,
                  uint64_t bytes, tenon_stream stream) {
  run_copy(TENON_COPY_DEVICE_TO_DEVICE, to.memory(), to_offset, from.memory(), from_offset, bytes,
           stream);
}

void Device::fill(const Buffer& to, uint64_t offset, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes, tenon_stream stream) {
  void* dst = to.memory();
  if (!is_opaque()) dst = static_cast<char*>(dst) + std::exchange(offset, 0);
  Error error;
  tenon_status status =
      api_.fill(handle_, dst, offset, bytes, pattern, pattern_bytes, stream, error);
  check(status, error, text("fill of ", bytes, " bytes with a pattern of ", pattern_bytes));
}

void Device::sync(tenon_stream stream) {
  Error error;
  check(api_.sync(handle_, stream, error), error, "sync");
}

Bytes Device::read(const Buffer& from, tenon_stream stream) {
  Bytes result(from.bytes());
  get(result.data(), from, 0, from.bytes(), stream);
  return result;
}

Joined::Joined(Device& device, uint64_t bytes) {
  constexpr int kTries = 16;
  if (!device.is_joined())
    device.session().absent("the device does not say TENON_DEVICE_FEATURE_JOINED_MEMORY");
  auto end = [&](const Buffer& buffer) { return static_cast<char*>(buffer.memory()) + bytes; };
  std::vector<Buffer> others;
  for (int i = 0; i < kTries && !low.memory(); ++i) {
    high = device.alloc(bytes);
    for (Buffer& other : others)
      if (end(other) == high.memory() || end(high) == other.memory()) low = std::move(other);
    if (!low.memory()) others.push_back(std::move(high));
  }
  if (!low.memory())
    device.session().absent(
        text("no two of ", kTries, " allocations of ", bytes, " bytes lie end to end"));
  if (end(high) == low.memory()) std::swap(low, high);
  whole = Buffer(device, low.memory(), 2 * bytes);
}

Bytes pattern(uint64_t bytes, uint32_t seed) {
  Bytes result(bytes);
  uint32_t state = seed * 2654435761u + 12345;
  for (uint64_t i = 0; i < bytes; ++i) {
    state = state * 1664525u + 1013904223u;
    result[i] = static_cast<unsigned char>(state >> 24);
    if (i > 0 && result[i] == result[i - 1]) ++result[i];
  }
  return result;
}

std::string hex(unsigned char byte) {
  const char* digits = "0123456789abcdef";
  return {'0', 'x', digits[byte >> 4], digits[byte & 15]};
}

std::string first_difference(const Bytes& expected, const Bytes& got) {
  if (expected.size() != got.size()) return text(got.size(), " bytes instead of ", expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    if (expected[i] != got[i])
      return text("byte ", i, " of ", expected.size(), ": expected ", hex(expected[i]), ", got ",
                  hex(got[i]));
  return "";
}

}  // namespace tenon::kit

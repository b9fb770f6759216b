// SPDX-License-Identifier: Apache-2.0
// Device memory shared with another process. The other one starts before the plugin is loaded:
// drivers do not survive a fork.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "subject/device.hpp"

namespace tenon::kit {
namespace {

constexpr uint64_t kBytes = 128 << 10;

bool send(int to, const void* from, size_t bytes) {
  return ::write(to, from, bytes) == static_cast<ssize_t>(bytes);
}
bool receive(int from, void* to, size_t bytes) {
  for (char* at = static_cast<char*>(to); bytes > 0;) {
    ssize_t got = ::read(from, at, bytes);
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

// What the other process found. Its own failures it tells through the session: the pipe is shared.
struct Reply {
  int32_t saw_pattern = 0;
};

// The other process: opens the handle, looks, writes, closes.
[[noreturn]] void be_importer(Session& session, int from, int to) {
  try {
    // Opened at the same time as the exporter's, which may take long.
    Plugin plugin(session);
    const auto& api = plugin.need_group<tenon_ipc_api>(TENON_GROUP_IPC);
    Device device(plugin);
    tenon_ipc_handle handle;
    if (!receive(from, &handle, sizeof handle)) ::_exit(0);
    session.step("ipc_open in another process");
    void* memory = nullptr;
    uint64_t bytes = 0;
    Error error;
    device.check(api.ipc_open(device.handle(), &handle, &memory, &bytes, error), error,
                 "ipc_open in another process");
    session.expect(bytes >= kBytes, text("ipc_open tells the size, ", kBytes), text(bytes));
    Buffer view(device, memory, kBytes);
    Reply reply;
    reply.saw_pattern = device.read(view) == pattern(kBytes);
    device.fill(view, 0, 1000, "\x5e", 1);
    device.sync();
    view.disown();
    send(to, &reply, sizeof reply);
    char go;
    receive(from, &go, 1);
    session.step("ipc_close");
    api.ipc_close(device.handle(), memory);
    device.close();
  } catch (const Stop&) {
  }
  ::_exit(0);
}

using Look = void (*)(Session&, Device&, Buffer&, const Reply&);

// What is shared: one allocation, or the halves of two that meet in its middle.
enum class Share { kOne, kTwo };

// Everything between two processes. `during` runs while the other one has the memory open, `after`
// when it has closed it and ended.
void exchange(Session& session, Look during, Look after, Share share = Share::kOne) {
  int to_child[2], to_parent[2];
  session.require(::pipe(to_child) == 0 && ::pipe(to_parent) == 0, "two pipes", "none");
  pid_t child = ::fork();
  if (child == 0) {
    ::close(to_child[1]);
    be_importer(session, to_child[0], to_parent[1]);
  }
  ::close(to_child[0]);
  ::close(to_parent[1]);
  Plugin plugin(session);
  const auto& api = plugin.need_group<tenon_ipc_api>(TENON_GROUP_IPC);
  Device device(plugin);
  // It is neither the first allocation, nor the first that is exported, and may lie where another
  // one was.
  tenon_ipc_handle handle{};
  std::vector<Buffer> others;
  for (uint64_t bytes : {uint64_t{5000}, kBytes, kBytes / 2}) {
    others.push_back(device.alloc(bytes));
    session.step("ipc_export of other memory");
    Error error;
    device.check(api.ipc_export(device.handle(), others.back().memory(), bytes, &handle, error),
                 error, "ipc_export");
  }
  others.erase(others.begin() + 1);
  std::optional<Joined> joined;
  if (share == Share::kTwo) joined.emplace(device, kBytes / 2);
  Buffer single = joined ? Buffer() : device.alloc(kBytes);
  Buffer& buffer = joined ? joined->whole : single;
  Bytes data = pattern(kBytes);
  device.put(buffer, 0, data.data(), kBytes);
  device.sync();
  session.step("ipc_export");
  Error error;
  device.check(api.ipc_export(device.handle(), buffer.memory(), kBytes, &handle, error), error,
               "ipc_export");
  send(to_child[1], &handle, sizeof handle);
  Reply reply;
  session.step("waiting for the other process");
  bool replied = receive(to_parent[0], &reply, sizeof reply);
  if (replied && during) during(session, device, buffer, reply);
  int status = 0;
  ::close(to_child[1]);
  ::waitpid(child, &status, 0);
  session.require(replied && status == 0, "the other process uses the memory", "it failed or died");
  if (after) after(session, device, buffer, reply);
}

void look_while_shared(Session& session, Device& device, Buffer& buffer, const Reply& reply) {
  session.expect(reply.saw_pattern, "the other process sees what was written here",
                 "something else");
  unsigned char seen = 0;
  device.get(&seen, buffer, 999, 1);
  session.expect(seen == 0x5e, "what the other process writes is seen here",
                 text("byte 999 is ", hex(seen)));
}

void share(Session& session) { exchange(session, look_while_shared, nullptr); }
void joined(Session& session) { exchange(session, look_while_shared, nullptr, Share::kTwo); }

void close(Session& session) {
  exchange(session, nullptr, [](Session& session, Device& device, Buffer& buffer, const Reply&) {
    session.step("memory whose importer has closed it");
    Bytes kept = pattern(kBytes);
    std::fill_n(kept.begin(), 1000, 0x5e);  // the importer's
    std::string difference = first_difference(kept, device.read(buffer));
    session.expect(difference.empty(), "ipc_close leaves the memory as it is", difference,
                   "unmap it, and free nothing: the exporter does");
    device.fill(buffer, 0x66);
    Buffer other = device.alloc(kBytes);
    device.fill(other, 0x77);
    device.sync();
    Bytes found = device.read(buffer);
    session.expect(found == Bytes(kBytes, 0x66), "ipc_close leaves the memory to its owner",
                   first_difference(Bytes(kBytes, 0x66), found),
                   "unmap it, and free nothing: the exporter does");
  });
}

}  // namespace

const Checks& ipc_checks() {
  static const char kNeeds[] = "lifecycle.sync memory.copy_grid memory.fill_grid";
  static const Checks checks = {
      {"ipc.share", "Two processes see the same memory, whichever it is.",
       "abi.h section 5, tenon_ipc_api", "", kNeeds, share},
      {"ipc.joined", "Two allocations that lie end to end are shared as one.",
       "abi.h section 5, TENON_DEVICE_FEATURE_JOINED_MEMORY",
       "take `bytes` as what the caller wants, not as the size of the allocation that begins there",
       "lifecycle.sync memory.copy_grid memory.fill_grid memory.joined ipc.share", joined},
      {"ipc.close", "ipc_close takes nothing away from the exporter.", "abi.h section 5, ipc_close",
       "", "lifecycle.sync memory.copy_grid memory.fill_grid ipc.share", close},
  };
  return checks;
}

}  // namespace tenon::kit

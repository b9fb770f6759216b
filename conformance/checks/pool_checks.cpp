// SPDX-License-Identifier: Apache-2.0
// The vendor's stream-ordered pool.
#include "subject/stream.hpp"

namespace tenon::kit {
namespace {

constexpr uint64_t kBytes = 4 << 20;

// The group over one device; memory comes and goes in the order of streams.
class Pool {
 public:
  explicit Pool(Device& device)
      : device_(device), api_(device.plugin().need_group<tenon_pool_api>(TENON_GROUP_POOL)) {}

  void* alloc(uint64_t bytes, tenon_stream stream) {
    tenon_alloc_request request{sizeof request, TENON_ALLOC_DEVICE, 0, bytes, 256, stream};
    void* memory = nullptr;
    Error error;
    device_.check(api_.pool_alloc(device_.handle(), &request, &memory, error), error,
                  text("pool_alloc of ", bytes, " bytes"));
    return memory;
  }
  void free(void* memory, uint64_t bytes, tenon_stream stream) {
    api_.pool_free(device_.handle(), memory, bytes, stream);
  }
  uint64_t trim(uint64_t keep) {
    uint64_t released = 0;
    Error error;
    device_.check(api_.pool_trim(device_.handle(), keep, &released, error), error, "pool_trim");
    return released;
  }
  struct Usage {
    uint64_t reserved = 0, used = 0;
  };
  Usage usage() {
    Usage found;
    Error error;
    device_.check(api_.pool_usage(device_.handle(), &found.reserved, &found.used, error), error,
                  "pool_usage");
    return found;
  }

 private:
  Device& device_;
  const tenon_pool_api& api_;
};

// Memory that comes back while work on its old stream still uses it must not be seen by others.
void reuse(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Pool pool(device);
  Stream stream(device), other(device);
  Buffer kept = device.alloc(kBytes), slow = device.alloc(16 * kBytes),
         slower = device.alloc(16 * kBytes);
  for (unsigned char round = 1; round <= 6; ++round) {
    session.step("pool_free while queued work uses the memory, then pool_alloc on another stream");
    void* memory = pool.alloc(kBytes, stream);
    Buffer view(device, memory, kBytes);
    for (int i = 0; i < 4; ++i) device.copy(slower, 0, slow, 0, slow.bytes(), stream);
    device.fill(view, round, stream);
    device.copy(kept, 0, view, 0, kBytes, stream);
    pool.free(memory, kBytes, stream);
    void* fresh = pool.alloc(kBytes, other);
    Buffer fresh_view(device, fresh, kBytes);
    device.fill(fresh_view, 0xf0, other);
    device.sync(other);
    device.sync(stream);
    Bytes found = device.read(kept);
    session.expect(
        found.front() == round && found.back() == round,
        "work queued before pool_free still finds its memory",
        text("it found ", hex(found.front()), " and ", hex(found.back()), ", not ", hex(round)),
        "reuse memory on its own stream only, or wait for an event");
    Bytes theirs = device.read(fresh_view);
    session.expect(theirs.front() == 0xf0 && theirs.back() == 0xf0,
                   "memory given to another stream is free of older work",
                   text("it holds ", hex(theirs.front()), ", not 0xf0"));
    pool.free(fresh, kBytes, other);
    view.disown();
    fresh_view.disown();
  }
}

void usage(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Pool pool(device);
  session.step("pool_usage before, with and after one allocation");
  Pool::Usage before = pool.usage();
  void* memory = pool.alloc(kBytes, nullptr);
  Pool::Usage with = pool.usage();
  pool.free(memory, kBytes, nullptr);
  device.sync();
  Pool::Usage after = pool.usage();
  session.expect(with.used >= before.used + kBytes, text("`used` grows by at least ", kBytes),
                 text(with.used - before.used));
  session.expect(with.reserved >= with.used, "`reserved` is at least `used`",
                 text(with.reserved, " and ", with.used));
  session.expect(after.used == before.used, "`used` comes back to what it was",
                 text(after.used, ", was ", before.used));
}

void trim(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Pool pool(device);
  for (int i = 0; i < 4; ++i) {
    void* memory = pool.alloc(kBytes << i, nullptr);
    pool.free(memory, kBytes << i, nullptr);
  }
  device.sync();
  session.step("pool_trim");
  Pool::Usage before = pool.usage();
  uint64_t released = pool.trim(0);
  Pool::Usage after = pool.usage();
  session.expect(before.reserved - after.reserved == released,
                 text("pool_trim says what it gave back: ", before.reserved - after.reserved),
                 text(released));
  session.expect(after.reserved <= before.reserved, "`reserved` does not grow",
                 text(after.reserved));
  session.expect(pool.trim(0) == 0, "nothing is left to give back", "more was given back");
  void* memory = pool.alloc(kBytes, nullptr);
  session.expect(memory != nullptr, "the pool goes on after it", "NULL");
  pool.free(memory, kBytes, nullptr);
}

}  // namespace

const Checks& pool_checks() {
  static const char kNeeds[] = "lifecycle.sync memory.copy_grid memory.copy_d2d memory.fill_grid";
  static const Checks checks = {
      {"pool.usage", "pool_usage counts bytes held and in use.", "abi.h section 5, tenon_pool_api",
       "", kNeeds, usage},
      {"pool.trim", "pool_trim gives unused memory back.", "abi.h section 5, tenon_pool_api", "",
       kNeeds, trim},
      {"pool.reuse", "Freed memory is not reused before its stream is done with it.",
       "abi.h section 5, tenon_pool_api", "",
       "lifecycle.sync memory.copy_grid memory.copy_d2d memory.fill_grid async.order", reuse},
  };
  return checks;
}

}  // namespace tenon::kit

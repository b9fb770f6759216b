// SPDX-License-Identifier: Apache-2.0
// The plugin comes to rest before it is unloaded.
#include "subject/process.hpp"
#include "subject/stream.hpp"

namespace tenon::kit {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

void work(Plugin& plugin) {
  Device device(plugin);
  Buffer buffer = device.alloc(1 << 20);
  if (plugin.group<tenon_async_api>(TENON_GROUP_ASYNC)) {
    Stream stream(device);
    device.fill(buffer, 0x31, stream);
    device.sync(stream);
  } else {
    device.fill(buffer, 0x31);
  }
}

// A driver's library keeps threads of its own, which are not the plugin's to stop. Where one was
// loaded, all that can be asked is that their number does not grow.
void stops(Session& session) {
  std::set<std::string> files_before = mapped_files();
  int threads_before = holdings().threads;
  Plugin plugin(session);
  const auto& api = plugin.need_group<tenon_quiesce_api>(TENON_GROUP_QUIESCE);
  const double begin = now();
  for (int round = 0; round < 4; ++round) {
    if (round > 1 && now() - begin > 5) break;  // it is slow to open
    work(plugin);
    session.step("quiesce");
    const double start = now();
    Error error;
    tenon_status status = api.quiesce(5 * kSecond, error);
    session.require(status == TENON_OK, "quiesce succeeds when no device is open",
                    describe(status, error));
    session.expect(now() - start < 5, "quiesce keeps to its time", text(now() - start, " s"));
    if (round == 0) {
      std::set<std::string> files = mapped_files();
      for (const std::string& file : files_before) files.erase(file);
      files.erase(session.path());
      bool has_driver = TENON_SANITIZER_HERE != TENON_SANITIZER_NONE;  // it has a thread, too
      for (const std::string& file : files) has_driver |= file.find(".so") != std::string::npos;
      if (has_driver) threads_before = settled_threads(0);
    }
    int threads = settled_threads(threads_before);
    session.expect(threads <= threads_before, "no thread of the plugin runs after quiesce",
                   text(threads - threads_before, " do"), "stop and join them");
  }
}

}  // namespace

const Checks& quiesce_checks() {
  static const Checks checks = {
      {"quiesce.stops", "After quiesce nothing of the plugin runs, and it can start again.",
       "abi.h section 5, tenon_quiesce_api", "",
       "lifecycle.sync async.null_stream async.leak_stream", stops},
  };
  return checks;
}

}  // namespace tenon::kit

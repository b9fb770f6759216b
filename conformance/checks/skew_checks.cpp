// SPDX-License-Identifier: Apache-2.0
// Hosts of other versions: older ones with a shorter table, newer ones with a longer one, and
// requests with features that no revision defines yet.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "subject/device.hpp"
#include "subject/process.hpp"

namespace tenon::kit {
namespace {

constexpr uint64_t kUnknownFeature = 1ull << 63;

// What every revision of the epoch had.
constexpr uint32_t kFirstRevisionBytes = offsetof(tenon_host, device_group_borrow);

// Works the device a little, with this host as the plugin's only one.
void work(Session& session, const tenon_host* host) {
  Plugin plugin(session, host);
  Device device(plugin);
  Buffer buffer = device.alloc(1000);
  Bytes data = pattern(1000);
  device.put(buffer, 0, data.data(), data.size());
  device.sync();
  std::string difference = first_difference(data, device.read(buffer));
  session.expect(difference.empty(), "the device works", difference);
  // A failure, so that the plugin uses its host.
  void* none = nullptr;
  Error error;
  device.alloc_raw(uint64_t{1} << 60, 256, nullptr, &none, error);
}

// A table that ends where memory ends: reading behind it is a crash.
void host_short(Session& session) {
  size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* pages =
      ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  session.require(pages != MAP_FAILED, "memory for the test", "none");
  ::mprotect(static_cast<char*>(pages) + page, page, PROT_NONE);
  char* at = static_cast<char*>(pages) + page - kFirstRevisionBytes;
  std::memcpy(at, real_host(), kFirstRevisionBytes);
  tenon_host* table = reinterpret_cast<tenon_host*>(at);
  table->struct_size = kFirstRevisionBytes;
  table->revision = 0;
  session.step(text("a host of revision 0, with ", kFirstRevisionBytes, " bytes"));
  Error error;
  void* library = Plugin::map(session, session.path());
  auto query = reinterpret_cast<tenon_plugin_query_fn>(::dlsym(library, "tenon_plugin_query"));
  session.step(
      "tenon_plugin_query with a host of revision 0; a crash here: it read behind the table");
  if (query && !query(TENON_ABI_EPOCH, TENON_ABI_EPOCH, table, error)) {
    session.expect(!error.text().empty(), "a table, or a refusal with a text", "NULL and no text");
    return session.note("the plugin refuses hosts of revision 0: " + error.text());
  }
  work(session, table);
}

void host_long(Session& session) {
  constexpr size_t kTail = 512;
  alignas(tenon_host) static unsigned char bytes[sizeof(tenon_host) + kTail];
  std::memset(bytes, 0xa5, sizeof bytes);
  std::memcpy(bytes, real_host(), sizeof(tenon_host));
  tenon_host* table = reinterpret_cast<tenon_host*>(bytes);
  table->struct_size = sizeof bytes;
  table->revision = TENON_ABI_REVISION + 41;
  table->features = ~0ull;
  session.step("a host of a later revision");
  work(session, table);
}

void epoch(Session& session) {
  void* library = Plugin::map(session, session.path());
  auto query = reinterpret_cast<tenon_plugin_query_fn>(::dlsym(library, "tenon_plugin_query"));
  session.require(query, "the library exports tenon_plugin_query", "it does not");
  auto ask = [&](uint32_t low, uint32_t high, bool wanted) {
    session.step(text("tenon_plugin_query(", low, ", ", high, ")"));
    Error error;
    const double start = now();
    const tenon_plugin* table = query(low, high, real_host(), error);
    const bool is_slow = now() - start > kSlow;
    std::string asked = text("a host of epochs ", low, " to ", high);
    session.expect(!table == !wanted, asked + (wanted ? " gets a table" : " gets NULL"),
                   table ? "a table" : "NULL: " + error.text(),
                   "return the table only if host_min <= TENON_ABI_EPOCH <= host_max");
    return is_slow;
  };
  if (!ask(TENON_ABI_EPOCH, TENON_ABI_EPOCH + 3, true))
    ask(TENON_ABI_EPOCH - 1, TENON_ABI_EPOCH, true);
  ask(TENON_ABI_EPOCH + 1, TENON_ABI_EPOCH + 3, false);
  ask(0, 0, false);
}

void expect_unsupported(Session& session, tenon_status status, const Error& error) {
  session.expect(status == TENON_UNSUPPORTED, "code 12 (UNSUPPORTED)", describe(status, error));
}

void understand_alloc(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  session.step("alloc with an unknown must_understand bit");
  void* memory = nullptr;
  Error error;
  tenon_status status = device.alloc_raw(4096, 256, nullptr, &memory, error, kUnknownFeature);
  expect_unsupported(session, status, error);
}

void understand_copy(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Buffer to = device.alloc(64), from = device.alloc(64);
  session.step("copy with an unknown must_understand bit");
  tenon_copy_request request{sizeof request,
                             TENON_COPY_DEVICE_TO_DEVICE,
                             kUnknownFeature,
                             to.memory(),
                             from.memory(),
                             64,
                             0,
                             0,
                             nullptr};
  Error error;
  expect_unsupported(session, device.api().copy(device.handle(), &request, error), error);
}

constexpr const char kEmptyKernel[] = "TK_KERNEL void nothing(tk_i64 n) { (void)n; }\n";

void understand_program(Session& session) {
  Plugin plugin(session);
  const auto& compile = plugin.need_group<tenon_compile_api>(TENON_GROUP_COMPILE);
  Device device(plugin);
  session.step("program_create with an unknown must_understand bit");
  tenon_program_request request{
      sizeof request, 0, kUnknownFeature, "kit/nothing", kEmptyKernel, sizeof kEmptyKernel - 1};
  tenon_program program = nullptr;
  Error error;
  expect_unsupported(session, compile.program_create(device.handle(), &request, &program, error),
                     error);
}

void understand_launch(Session& session) {
  Plugin plugin(session);
  const auto& compile = plugin.need_group<tenon_compile_api>(TENON_GROUP_COMPILE);
  Device device(plugin);
  tenon_program_request request{sizeof request,         0, 0, "kit/nothing", kEmptyKernel,
                                sizeof kEmptyKernel - 1};
  tenon_program program = nullptr;
  tenon_kernel kernel = nullptr;
  Error error;
  device.check(compile.program_create(device.handle(), &request, &program, error), error,
               "program_create");
  device.check(compile.program_kernel(device.handle(), program, "nothing", &kernel, error), error,
               "program_kernel");
  session.step("kernel_launch with an unknown must_understand bit");
  int64_t count = 0;
  tenon_launch_arg arg{TENON_LAUNCH_VALUE, sizeof count, &count, 0};
  tenon_launch_request launch{sizeof launch, 1,         kUnknownFeature, kernel,
                              &arg,          {1, 1, 1}, {1, 1, 1},       nullptr};
  expect_unsupported(session, compile.kernel_launch(device.handle(), &launch, error), error);
  compile.program_destroy(device.handle(), program);
}

}  // namespace

const Checks& skew_checks() {
  static const char kUnderstand[] =
      "call TENON_CHECK_UNDERSTOOD first in every function that takes a request";
  static const Checks checks = {
      {"skew.host_short", "An older host, with a shorter table, is served or refused.",
       "abi.h, ground rules; section 8",
       "use a slot only if host->struct_size reaches behind it; slots of revision 0 are always "
       "there",
       "lifecycle.sync memory.copy_grid faults.oom", host_short},
      {"skew.host_long", "A newer host, with a longer table, is served.", "abi.h, ground rules",
       "ignore what lies behind the struct that you know; never compare sizes for equality",
       "lifecycle.sync memory.copy_grid faults.oom", host_long},
      {"skew.epoch", "A host of another epoch is refused.", "abi.h section 7, tenon_plugin_query",
       "", "lifecycle.load", epoch},
      {"skew.understand_alloc", "alloc refuses what it does not understand.",
       "abi.h section 5, must_understand", kUnderstand, "lifecycle.sync", understand_alloc},
      {"skew.understand_copy", "copy refuses what it does not understand.",
       "abi.h section 5, must_understand", kUnderstand, "lifecycle.sync", understand_copy},
      {"skew.understand_program", "program_create refuses what it does not understand.",
       "abi.h section 5, must_understand", kUnderstand, "lifecycle.sync", understand_program},
      {"skew.understand_launch", "kernel_launch refuses what it does not understand.",
       "abi.h section 5, must_understand", kUnderstand, "lifecycle.sync skew.understand_program",
       understand_launch},
  };
  return checks;
}

}  // namespace tenon::kit

// SPDX-License-Identifier: Apache-2.0
// Faults that change the process: its floating-point environment, signals, settings, output.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <clocale>
#include <cstdio>
#include <cstdlib>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "tables.hpp"

namespace reference {
namespace {

// The good `open`, and then something that it must not do.
template <void (*Harm)()>
tenon_status open_and(uint32_t index, tenon_device* out, tenon_err* err) {
  const tenon_status status = kDevice.open(index, out, err);
  if (status == TENON_OK) Harm();
  return status;
}

// Flush-to-zero and denormals-are-zero.
void flush_to_zero() {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);
#elif defined(__aarch64__)
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  __asm__ volatile("msr fpcr, %0" : : "r"(control | 1u << 24));
#endif
}
void take_segv() {
  ::signal(SIGSEGV, [](int) { _exit(1); });
}
void block_term() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}
void set_locale() { std::setlocale(LC_ALL, "C.UTF-8"); }
void go_to_root() {
  if (::chdir("/") != 0) std::abort();
}
void mask_files() { ::umask(0777); }
void set_variable() { ::setenv("REFERENCE_OPENED", "1", 1); }
void start_thread() {
  std::thread([] { ::pause(); }).detach();
}
void wait_long() { std::this_thread::sleep_for(std::chrono::seconds(3)); }

}  // namespace

FAULT(open_flushes_to_zero) { tables.device.open = open_and<flush_to_zero>; }
FAULT(open_takes_segv) { tables.device.open = open_and<take_segv>; }
FAULT(open_blocks_signal) { tables.device.open = open_and<block_term>; }
FAULT(open_sets_locale) { tables.device.open = open_and<set_locale>; }
FAULT(open_changes_folder) { tables.device.open = open_and<go_to_root>; }
FAULT(open_changes_umask) { tables.device.open = open_and<mask_files>; }
FAULT(open_sets_variable) { tables.device.open = open_and<set_variable>; }
FAULT(open_starts_thread) { tables.device.open = open_and<start_thread>; }
FAULT(slow_open) { tables.device.open = open_and<wait_long>; }

FAULT(sync_changes_rounding) {
  tables.device.sync = [](tenon_device device, tenon_stream stream, tenon_err* err) {
    const tenon_status status = kDevice.sync(device, stream, err);
    std::fesetround(FE_UPWARD);
    return status;
  };
}

FAULT(sync_prints) {
  tables.device.sync = [](tenon_device device, tenon_stream stream, tenon_err* err) {
    std::puts("reference: sync");
    return kDevice.sync(device, stream, err);
  };
}

FAULT(status_out_of_range) {
  tables.device.alloc = [](tenon_device device, const tenon_alloc_request* request, void** out,
                           tenon_err* err) -> tenon_status {
    const tenon_status status = kDevice.alloc(device, request, out, err);
    return status == TENON_OK ? TENON_OK : 719;
  };
}

FAULT(device_renames) {
  tables.device.enumerate = [](tenon_device_info* out, uint32_t capacity, uint32_t* count,
                               tenon_err* err) {
    static std::atomic<unsigned> calls{0};
    const tenon_status status = kDevice.enumerate(out, capacity, count, err);
    const unsigned number = ++calls;
    for (uint32_t i = 0; status == TENON_OK && i < std::min(capacity, *count); ++i) {
      std::snprintf(out[i].name, sizeof out[i].name, "Board %u", number);
      out[i].memory_bytes += number << 20;
    }
    return status;
  };
}

FAULT(kind_cpu) { tables.device.kind = "cpu"; }

// ---- slow, and right

FAULT(slow_enumerate) {
  tables.device.enumerate = [](tenon_device_info* out, uint32_t capacity, uint32_t* count,
                               tenon_err* err) {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    return kDevice.enumerate(out, capacity, count, err);
  };
}

FAULT(slow_close) {
  tables.device.close = [](tenon_device device) {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    kDevice.close(device);
  };
}

FAULT(slow_alloc) {
  tables.device.alloc = [](tenon_device device, const tenon_alloc_request* request, void** out,
                           tenon_err* err) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return kDevice.alloc(device, request, out, err);
  };
}

// tenon_plugin_query takes three seconds.
FAULT(slow_query) { std::this_thread::sleep_for(std::chrono::seconds(3)); }

FAULT(slow_stop) {
  tables.plugin.stop = [](tenon_err* err) {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    return kPlugin.stop(err);
  };
}

}  // namespace reference

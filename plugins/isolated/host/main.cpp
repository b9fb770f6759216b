// SPDX-License-Identifier: Apache-2.0
// tenon-plugin-host: runs one vendor's plugin for a program that does not want its crashes. Started
// by the plugin "isolated", never by hand.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <tenon/tensor.hpp>
#include <thread>

#include "host/commands.hpp"

namespace tenon::isolated {
namespace {

Shared* shared = nullptr;

Vendor& vendor() {
  static auto* instance = new Vendor;  // threads use it until the process ends
  return *instance;
}

bool map_shared() {
  struct stat status {};
  if (fstat(kSharedDescriptor, &status) != 0 ||
      status.st_size != static_cast<off_t>(sizeof(Shared)))
    return false;
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, kSharedDescriptor, 0);
  if (memory == MAP_FAILED) return false;
  shared = static_cast<Shared*>(memory);
  return shared->magic == kMagic && shared->version == kWireVersion &&
         shared->bytes == sizeof(Shared);
}

// The program's other files are none of the plugin's business.
void close_inherited_files() {
#ifdef SYS_close_range
  syscall(SYS_close_range, kSharedDescriptor, ~0u, 0);
#endif
}

// Gradients are recorded, and plugins isolated, in the program.
void leave_services_out() {
  const char* before = secure_getenv("TENON_PLUGINS_DISABLE");
  const std::string names = std::string(before && *before ? before : "") + ",autograd,isolated";
  setenv("TENON_PLUGINS_DISABLE", names.c_str(), 1);
}

void serve_lane(uint32_t index, void (*on_loaded)()) {
  Server(vendor(), shared->lanes[index], patience_of(index)).serve(on_loaded);
}

void serve_other_lanes() {
  for (uint32_t index = 1; index < kLanes; ++index) std::thread(serve_lane, index, [] {}).detach();
}

int run(int count, char** arguments) {
  // This process ends with the thread that started it, which may have ended before this request.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (count != 2 || getppid() != atoi(arguments[1]) || !map_shared()) {
    std::fputs("tenon-plugin-host is started by tenon.plugins.load(path, isolated=True)\n", stderr);
    return 2;
  }
  close_inherited_files();
  leave_services_out();
  if (!attach(tenon_host_get(TENON_ABI_EPOCH))) {
    std::fputs("tenon-plugin-host: libtenon speaks another ABI epoch; reinstall tenon\n", stderr);
    return 2;
  }
  serve_lane(0, serve_other_lanes);
  return 0;
}

}  // namespace
}  // namespace tenon::isolated

int main(int count, char** arguments) { return tenon::isolated::run(count, arguments); }

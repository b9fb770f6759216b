// SPDX-License-Identifier: Apache-2.0
// The process of a simulated device: it has the device's memory and runs its kernels. The driver in
// the host's process starts it and ends it.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../driver/channel.hpp"
#include "block.hpp"

namespace simulated {
namespace {

constexpr int kInvalidValue = 1, kInvalidImage = 200, kOperatingSystem = 304;

struct Loaded {
  int file;
  void* library;
  const Program* program;
  std::mutex one_launch;  // of kernels with shared memory
};

// What a kernel's handle points to.
struct Kernel {
  Loaded* owner;
  const KernelEntry* entry;
};

Channel* channels;
std::map<Loaded*, std::vector<std::unique_ptr<Kernel>>> loaded;  // of the main thread

template <class T>
T* pointer(uint64_t address) {
  return reinterpret_cast<T*>(address);
}

int load(Channel& request) {
  auto program = std::make_unique<Loaded>();
  // The loader takes two libraries with one path for the same, so the descriptor, which is part of
  // the path, stays open while the library does.
  program->file = open(request.payload, O_RDONLY | O_CLOEXEC);
  const std::string path = "/proc/self/fd/" + std::to_string(program->file);
  program->library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!program->library) {
    std::fprintf(stderr, "simulated: %s\n", dlerror());
    close(program->file);
    return kInvalidImage;
  }
  program->program = static_cast<const Program*>(dlsym(program->library, "simulated_program"));
  if (!program->program) {
    dlclose(program->library);
    close(program->file);
    return kInvalidImage;
  }
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<char> reply(
      program->program->architecture,
      program->program->architecture + std::strlen(program->program->architecture) + 1);
  reply.resize((reply.size() + 7) & ~size_t{7});
  auto append = [&](const void* data, size_t bytes) {
    reply.insert(reply.end(), static_cast<const char*>(data),
                 static_cast<const char*>(data) + bytes);
  };
  for (const KernelEntry* entry = program->program->kernels; entry->name; ++entry) {
    kernels.push_back(std::make_unique<Kernel>(Kernel{program.get(), entry}));
    const KernelRecord record = {reinterpret_cast<uint64_t>(kernels.back().get()),
                                 entry->parameters,
                                 static_cast<uint32_t>(std::strlen(entry->name) + 1)};
    append(&record, sizeof record);
    append(entry->parameter_bytes, entry->parameters * sizeof(uint32_t));
    append(entry->name, record.name_bytes);
    reply.resize((reply.size() + 7) & ~size_t{7});
  }
  if (reply.size() > sizeof request.payload) return kInvalidImage;
  std::memcpy(request.payload, reply.data(), reply.size());
  request.payload_bytes = static_cast<uint32_t>(reply.size());
  request.handle = reinterpret_cast<uint64_t>(program.get());
  loaded[program.release()] = std::move(kernels);
  return 0;
}

int unload(const Channel& request) {
  auto found = loaded.find(pointer<Loaded>(request.handle));
  if (found == loaded.end()) return kInvalidValue;
  Loaded* program = found->first;
  loaded.erase(found);
  dlclose(program->library);
  close(program->file);
  delete program;
  return 0;
}

int import(const Channel& request) {
  const int file = open(request.payload, O_RDWR | O_CLOEXEC);
  if (file < 0) return kOperatingSystem;
  void* mapped =
      mmap(pointer<void>(request.address), request.bytes, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, static_cast<off_t>(request.offset));
  close(file);
  return mapped == MAP_FAILED ? kOperatingSystem : 0;
}

int protect(const Channel& request, int protection) {
  return mprotect(pointer<void>(request.address), request.bytes, protection) ? kOperatingSystem : 0;
}

int launch(Channel& request) {
  const auto* kernel = pointer<const Kernel>(request.handle);
  const KernelEntry& entry = *kernel->entry;
  std::vector<void*> arguments(entry.parameters + 1);
  uint64_t at = 0;
  for (unsigned i = 0; i < entry.parameters; ++i) {
    at = (at + kArgumentAlignment - 1) & ~(kArgumentAlignment - 1);
    arguments[i] = request.payload + at;
    at += entry.parameter_bytes[i];
  }
  Launch run_this = {.kernel = &entry,
                     .arguments = arguments.data(),
                     .grid = {request.grid[0], request.grid[1], request.grid[2]},
                     .block = {request.block[0], request.block[1], request.block[2]},
                     .shared_bytes = request.shared_bytes,
                     .warp_size = kernel->owner->program->warp_size,
                     .shared_begin = kernel->owner->program->shared_begin,
                     .shared_end = kernel->owner->program->shared_end};
  std::unique_lock lock(kernel->owner->one_launch, std::defer_lock);
  if (kernel->owner->program->has_shared_memory) lock.lock();
  const Stop stop = run(run_this);
  request.fault_address = reinterpret_cast<uint64_t>(stop.address);
  const unsigned block[] = {stop.block.x, stop.block.y, stop.block.z};
  const unsigned thread[] = {stop.thread.x, stop.thread.y, stop.thread.z};
  std::memcpy(request.fault_block, block, sizeof block);
  std::memcpy(request.fault_thread, thread, sizeof thread);
  return stop.error;
}

void serve(Channel& channel);

int answer(Channel& request) {
  switch (request.request) {
    case Request::kStart:
      std::thread(serve, std::ref(channels[request.index])).detach();
      return 0;
    case Request::kMap:
      return protect(request, PROT_READ | PROT_WRITE);
    case Request::kUnmap:
      return protect(request, PROT_NONE);
    case Request::kImport:
      return import(request);
    case Request::kLoad:
      return load(request);
    case Request::kUnload:
      return unload(request);
    case Request::kLaunch:
      return launch(request);
  }
  return kInvalidValue;
}

void serve(Channel& channel) {
  for (;;) {
    const uint32_t state = channel.state.load(std::memory_order_acquire);
    if (state != Channel::kRequested) {
      futex_wait(channel.state, state, 60'000);
      continue;
    }
    channel.error = answer(channel);
    channel.state.store(Channel::kDone, std::memory_order_release);
    futex_wake(channel.state);
  }
}

// The other end of the pipe is closed when the host's process ends, for whatever reason.
void end_with_host() {
  char byte;
  while (read(kLifetimePipe, &byte, 1) > 0 || errno == EINTR) {
  }
  _exit(0);
}

bool map_at(uint64_t base, uint64_t bytes, int protection, int flags, int file) {
  auto* wanted = pointer<void>(base);
  return mmap(wanted, bytes, protection, flags | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file, 0) ==
         wanted;
}

}  // namespace
}  // namespace simulated

int main(int argc, char** argv) {
  using namespace simulated;
  if (argc != 6) {
    std::fprintf(stderr, "%s: the driver of the simulator starts this program\n", argv[0]);
    return 2;
  }
  uint64_t numbers[5];
  for (int i = 0; i < 5; ++i) numbers[i] = std::strtoull(argv[i + 1], nullptr, 16);
  const auto [base, bytes, imports, host_base, host_bytes] = numbers;
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  void* control = mmap(nullptr, kControlBytes, PROT_READ | PROT_WRITE, MAP_SHARED, kControlFile, 0);
  const bool mapped =
      control != MAP_FAILED && map_at(base, bytes, PROT_NONE, MAP_SHARED, kArenaFile) &&
      (imports == 0 || map_at(base + bytes, imports, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1)) &&
      map_at(host_base, host_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kHostArenaFile);
  if (!mapped) {
    std::perror("simulated: the memory of the device");
    return 1;
  }
  channels = static_cast<Channel*>(control);
  handle_faults();
  std::thread(end_with_host).detach();
  serve(channels[0]);
}

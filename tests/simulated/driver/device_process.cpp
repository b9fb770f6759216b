// SPDX-License-Identifier: Apache-2.0
#include "device_process.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

extern char** environ;

namespace simulated {
namespace {

// Beside this library, unless SIMULATED_DEVICE names another file.
std::string program_path() {
  const char* chosen = std::getenv("SIMULATED_DEVICE");
  if (chosen && *chosen) return chosen;
  Dl_info about;
  static const int anchor = 0;
  if (!dladdr(&anchor, &about) || !about.dli_fname) return "simulated_device";
  const std::string library = about.dli_fname;
  return library.substr(0, library.rfind('/') + 1) + "simulated_device";
}

std::string hex(uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(number));
  return text;
}

// A copy of `file` that is none of the numbers which the device process uses, so that arranging one
// descriptor there does not overwrite another.
int high_copy(int file) { return fcntl(file, F_DUPFD_CLOEXEC, 16); }

}  // namespace

std::unique_ptr<DeviceProcess> DeviceProcess::start(const Arena& memory, const Arena& host) {
  std::unique_ptr<DeviceProcess> result(new DeviceProcess);
  const int control = memfd_create("simulated-control", MFD_CLOEXEC);
  int pipe_ends[2];
  if (control < 0 || ftruncate(control, kControlBytes) != 0 || pipe2(pipe_ends, O_CLOEXEC) != 0)
    return nullptr;
  void* channels = mmap(nullptr, kControlBytes, PROT_READ | PROT_WRITE, MAP_SHARED, control, 0);
  if (channels == MAP_FAILED) return nullptr;
  result->channels_ = static_cast<Channel*>(channels);  // zeros: all of them idle
  result->lifetime_ = pipe_ends[1];

  const int files[][2] = {{high_copy(control), kControlFile},
                          {high_copy(memory.file()), kArenaFile},
                          {high_copy(host.file()), kHostArenaFile},
                          {high_copy(pipe_ends[0]), kLifetimePipe}};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const auto& [from, to] : files) posix_spawn_file_actions_adddup2(&actions, from, to);
  std::string words[] = {program_path(),        hex(memory.base()), hex(memory.bytes()),
                         hex(memory.imports()), hex(host.base()),   hex(host.bytes())};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int failed =
      posix_spawn(&result->process_, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  for (const auto& file : files) close(file[0]);
  close(control);
  close(pipe_ends[0]);
  if (failed) {
    std::fprintf(stderr, "simulated: %s cannot be started: %s\n", words[0].c_str(),
                 std::strerror(failed));
    return nullptr;
  }
  for (uint32_t i = 1; i < kChannels; ++i) result->free_.push_back(kChannels - i);
  bool mapped = true;
  memory.each([&](void* at, uint64_t bytes) { mapped &= result->map(at, bytes) == 0; });
  if (!mapped) return nullptr;
  return result;
}

DeviceProcess::~DeviceProcess() {
  if (lifetime_ >= 0) close(lifetime_);  // the process ends when its end of the pipe says so
  if (channels_) munmap(channels_, kControlBytes);
  if (process_ > 0 && !ended_) waitpid(process_, nullptr, 0);
}

bool DeviceProcess::has_ended() {
  std::lock_guard lock(free_mutex_);
  if (!ended_) ended_ = waitpid(process_, nullptr, WNOHANG) != 0;
  return ended_;
}

Error DeviceProcess::wait(Channel& channel) {
  channel.error = 0;
  channel.state.store(Channel::kRequested, std::memory_order_release);
  futex_wake(channel.state);
  for (;;) {
    const uint32_t state = channel.state.load(std::memory_order_acquire);
    if (state == Channel::kDone) break;
    futex_wait(channel.state, state, 500);
    if (channel.state.load(std::memory_order_acquire) != Channel::kDone && has_ended())
      return error::LAUNCH_FAILED;
  }
  channel.state.store(Channel::kIdle, std::memory_order_relaxed);
  return channel.error;
}

Error DeviceProcess::control(Request request, const void* memory, uint64_t bytes, uint64_t offset,
                             const std::string& path, uint64_t handle) {
  Channel& to = channel(0);
  to.request = request;
  to.address = reinterpret_cast<uint64_t>(memory);
  to.bytes = bytes;
  to.offset = offset;
  to.handle = handle;
  if (path.size() >= sizeof to.payload) return error::INVALID_VALUE;
  std::memcpy(to.payload, path.c_str(), path.size() + 1);
  return wait(to);
}

Error DeviceProcess::map(const void* memory, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  return control(Request::kMap, memory, bytes, 0, "", 0);
}

Error DeviceProcess::unmap(const void* memory, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  return control(Request::kUnmap, memory, bytes, 0, "", 0);
}

Error DeviceProcess::import(const void* at, const std::string& path, uint64_t offset,
                            uint64_t bytes) {
  std::lock_guard lock(mutex_);
  return control(Request::kImport, at, bytes, offset, path, 0);
}

Error DeviceProcess::load(const std::string& path, uint64_t* handle, std::string* architecture,
                          std::vector<KernelInfo>* kernels) {
  std::lock_guard lock(mutex_);
  TRY(control(Request::kLoad, nullptr, 0, 0, path, 0));
  const Channel& reply = channel(0);
  *handle = reply.handle;
  *architecture = reply.payload;  // then the records
  for (uint64_t at = (architecture->size() + 8) & ~uint64_t{7}; at < reply.payload_bytes;) {
    KernelRecord record;
    std::memcpy(&record, reply.payload + at, sizeof record);
    at += sizeof record;
    KernelInfo info;
    info.handle = record.handle;
    info.parameter_bytes.resize(record.parameters);
    std::memcpy(info.parameter_bytes.data(), reply.payload + at, record.parameters * 4);
    at += record.parameters * 4;
    info.name.assign(reply.payload + at, record.name_bytes - 1);
    at = (at + record.name_bytes + 7) & ~uint64_t{7};
    kernels->push_back(std::move(info));
  }
  return error::SUCCESS;
}

Error DeviceProcess::unload(uint64_t handle) {
  std::lock_guard lock(mutex_);
  return control(Request::kUnload, nullptr, 0, 0, "", handle);
}

Error DeviceProcess::run(const Launch& launch, std::string* where) {
  uint32_t chosen;
  bool start = false;
  {
    std::unique_lock lock(free_mutex_);
    freed_.wait(lock, [&] { return !free_.empty(); });
    chosen = free_.back();
    free_.pop_back();
    if (chosen > started_) {
      started_ = chosen;  // numbers are used in order, so those below have been started
      start = true;
    }
  }
  Error result = error::SUCCESS;
  if (start) {
    std::lock_guard lock(mutex_);
    channel(0).index = chosen;
    result = control(Request::kStart, nullptr, 0, 0, "", 0);
  }
  if (!result) {
    Channel& to = channel(chosen);
    to.request = Request::kLaunch;
    to.handle = launch.kernel;
    for (int d = 0; d < 3; ++d) {
      to.grid[d] = launch.grid[d];
      to.block[d] = launch.block[d];
    }
    to.shared_bytes = launch.shared_bytes;
    std::memcpy(to.payload, launch.arguments->data(), launch.arguments->size());
    result = wait(to);
    if (result) {
      char text[160];
      std::snprintf(text, sizeof text,
                    "error %d at address 0x%llx, block (%u, %u, %u), thread (%u, %u, %u)", result,
                    static_cast<unsigned long long>(to.fault_address), to.fault_block[0],
                    to.fault_block[1], to.fault_block[2], to.fault_thread[0], to.fault_thread[1],
                    to.fault_thread[2]);
      *where = text;
    }
  }
  std::lock_guard lock(free_mutex_);
  free_.push_back(chosen);
  freed_.notify_one();
  return result;
}

}  // namespace simulated

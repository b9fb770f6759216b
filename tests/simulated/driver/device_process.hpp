// SPDX-License-Identifier: Apache-2.0
// The driver's side of the process that runs the kernels of one device.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "arena.hpp"
#include "channel.hpp"
#include "errors.hpp"

namespace simulated {

struct KernelInfo {
  uint64_t handle = 0;
  std::string name;
  std::vector<uint32_t> parameter_bytes;
};

class DeviceProcess {
 public:
  // nullptr: it could not be started.
  static std::unique_ptr<DeviceProcess> start(const Arena& memory, const Arena& host_memory);
  ~DeviceProcess();
  DeviceProcess(const DeviceProcess&) = delete;

  Error map(const void* memory, uint64_t bytes);
  Error unmap(const void* memory, uint64_t bytes);
  // `path` names a file in memory of some process, "/proc/.../fd/...".
  Error import(const void* at, const std::string& path, uint64_t offset, uint64_t bytes);
  Error load(const std::string& path, uint64_t* handle, std::string* architecture,
             std::vector<KernelInfo>* kernels);
  Error unload(uint64_t handle);

  struct Launch {
    uint64_t kernel;
    uint32_t grid[3], block[3], shared_bytes;
    const std::vector<char>* arguments;
  };
  // Waits until the kernel has ended. `where` describes a fault.
  Error run(const Launch& launch, std::string* where);

 private:
  DeviceProcess() = default;
  Error control(Request request, const void* memory, uint64_t bytes, uint64_t offset,
                const std::string& path, uint64_t handle);
  Error wait(Channel& channel);  // sends the request that it holds
  Channel& channel(uint32_t i) { return channels_[i]; }
  bool has_ended();

  Channel* channels_ = nullptr;
  int lifetime_ = -1;
  pid_t process_ = 0;
  std::mutex mutex_;  // of channel 0
  std::mutex free_mutex_;
  std::condition_variable freed_;
  std::vector<uint32_t> free_;
  uint32_t started_ = 0;
  bool ended_ = false;
};

}  // namespace simulated

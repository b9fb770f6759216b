// SPDX-License-Identifier: Apache-2.0
// Programs that were loaded, and their kernels.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device.hpp"

namespace simulated {

struct Function;

struct Module {
  explicit Module(Device& device) : device(device) {}
  ~Module();

  Device& device;
  uint64_t handle = 0;
  std::vector<std::unique_ptr<Function>> functions;
};

struct Function {
  std::shared_ptr<Module> module() const { return owner.lock(); }
  KernelInfo info;
  std::weak_ptr<Module> owner;
};

// `image` is a shared object that the compiler's stand-in made.
Error load_module(Device& device, const void* image, std::shared_ptr<Module>* out);

struct LaunchShape {
  unsigned grid[3], block[3], shared_bytes;
};
inline constexpr unsigned kMaxThreads = 1024;
inline constexpr unsigned kMaxSharedBytes = 48 << 10;

Error launch(const Function& function, const LaunchShape& shape, Stream& stream,
             void* const* parameters);

}  // namespace simulated

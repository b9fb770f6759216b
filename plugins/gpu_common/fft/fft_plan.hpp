// SPDX-License-Identifier: Apache-2.0
// The plans of an FFT library for one device. Making one takes milliseconds and memory of the device, so that it is kept.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "fft/fft_layout.hpp"
#include "runtime/device.hpp"

namespace gpu::fft {

class Plan {
 public:
  // NULL: the library does not transform this, for the reason in `*status`.
  static std::unique_ptr<Plan> make(const Library& library, const Layout& layout, Status* status);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  uint64_t workspace_bytes() const { return workspace_bytes_; }
  // Queues the transforms. A transform to real numbers may overwrite `in`.
  Status run(void* in, void* out, bool forward, void* workspace, Stream stream) const;

 private:
  explicit Plan(const Library& library, const Layout& layout)
      : library_(library), layout_(layout) {}

  const Library& library_;
  const Layout layout_;
  Handle handle_ = {};
  bool has_handle_ = false;
  size_t workspace_bytes_ = 0;
  mutable std::mutex mutex_;  // the stream and the workspace belong to the handle
};

// Every function is called with the device current, from any thread.
class Plans : public LibraryState {
 public:
  explicit Plans(const Library& library) : library_(library) {}

  std::shared_ptr<const Plan> find(const Layout& layout, Status* status);
  // A graph replays the plan's work, and reads its tables, for as long as the process may run it.
  void keep(const std::shared_ptr<const Plan>& plan);

 private:
  const Library& library_;
  std::mutex mutex_;
  std::unordered_map<Layout, std::shared_ptr<const Plan>, LayoutHash> plans_;
  std::unordered_map<const Plan*, std::shared_ptr<const Plan>> kept_;
};

Plans& plans_of(tenon_device device);

}  // namespace gpu::fft

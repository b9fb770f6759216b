// SPDX-License-Identifier: Apache-2.0
// The programs in kernels/*.cu, of both vendors and of one, that a device has compiled, and how their kernels are launched.
// The compiler of the group `compile` makes them and keeps them on disk, as it does for every other program.
#pragma once

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/device.hpp"
#include "runtime/program.hpp"

namespace gpu::kernels {

class DevicePrograms : public LibraryState {
 public:
  explicit DevicePrograms(tenon_device device) : device_(device) {}
  ~DevicePrograms() override {
    for (auto& [variant, program] : programs_) kCompile.program_destroy(device_, program.handle);
  }

  // The kernel `name` of the program `variant`, whose source `make` returns at the first use. NULL: it does
  // not compile here, which the log says once, and other kernels have to do.
  template <class Make>
  tenon_kernel kernel(int variant, const char* name, const Make& make) {
    std::lock_guard lock(mutex_);
    const auto [entry, is_new] = programs_.try_emplace(variant);
    Program& program = entry->second;
    if (is_new) compile(name, make(), &program);
    const auto [kernel, is_unknown] = program.kernels.try_emplace(name, nullptr);
    if (is_unknown && program.handle) find(program.handle, name, &kernel->second);
    return kernel->second;
  }

 private:
  struct Program {
    tenon_program handle = nullptr;
    std::map<std::string, tenon_kernel, std::less<>> kernels;
  };

  template <class Work>
  void log_failure(const char* name, const Work& work) {
    tenon_err* err = host->err_create();
    if (work(err) != TENON_OK)
      log(2, "the kernel %s is not used: %.600s", name, host->err_text(err));
    host->err_destroy(err);
  }
  void compile(const char* name, const std::string& source, Program* program) {
    const tenon_program_request request = {.struct_size = sizeof request,
                                           .reserved = 0,
                                           .must_understand = 0,
                                           .name = name,
                                           .source = source.data(),
                                           .source_bytes = source.size()};
    log_failure(name, [&](tenon_err* err) {
      return kCompile.program_create(device_, &request, &program->handle, err);
    });
  }
  void find(tenon_program program, const char* name, tenon_kernel* kernel) {
    log_failure(name, [&](tenon_err* err) {
      return kCompile.program_kernel(device_, program, name, kernel, err);
    });
  }

  const tenon_device device_;
  std::mutex mutex_;
  std::map<int, Program> programs_;
};

inline DevicePrograms& programs_of(tenon_device device) {
  return *device->library_state<DevicePrograms>(
      kOwnKernels, [&] { return std::make_unique<DevicePrograms>(device); });
}

// The arguments of one launch, in order.
class Arguments {
 public:
  void buffer(const void* memory) {
    args_[count_++] = {TENON_LAUNCH_BUFFER, 0, const_cast<void*>(memory), 0};
  }

  template <class T>
  void value(const T& value) {
    static_assert(sizeof(T) <= kSlotBytes);
    std::memcpy(values_[count_], &value, sizeof value);
    args_[count_] = {TENON_LAUNCH_VALUE, sizeof value, values_[count_], 0};
    ++count_;
  }

  tenon_status launch(tenon_device device, tenon_kernel kernel,
                      const std::array<uint32_t, 3>& groups, const std::array<uint32_t, 3>& size,
                      tenon_stream stream, tenon_err* err) const {
    const tenon_launch_request request = {.struct_size = sizeof request,
                                          .nargs = count_,
                                          .must_understand = 0,
                                          .kernel = kernel,
                                          .args = args_,
                                          .groups = {groups[0], groups[1], groups[2]},
                                          .group_size = {size[0], size[1], size[2]},
                                          .stream = stream};
    return kernel_launch(device, &request, err);
  }

 private:
  static constexpr uint32_t kMax = 24, kSlotBytes = 64;
  tenon_launch_arg args_[kMax];
  alignas(8) char values_[kMax][kSlotBytes];
  uint32_t count_ = 0;
};

}  // namespace gpu::kernels

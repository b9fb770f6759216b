// SPDX-License-Identifier: Apache-2.0
// The functions of cuFFT and hipFFT that make and run plans. Every extent, stride, address and workspace is checked, and
// what does not fit is refused with the status of the real library or, where that would read or write wrong memory, with
// INVALID_VALUE.
//
// Sources: the cuFFT reference (13.0) and the hipFFT API reference.
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "../current_device.hpp"
#include "../failures.hpp"
#include "transform.hpp"

#define EXPORT extern "C" [[gnu::visibility("default")]]

#if SIMULATED_HIP
#define NAME(name) hipfft##name
using Handle = void*;
#else
#define NAME(name) cufft##name
using Handle = int;
#endif

using namespace simulated;

namespace {

enum Status {
  kSuccess = 0,
  kInvalidPlan = 1,
  kInvalidType = 3,
  kInvalidValue = 4,
  kExecFailed = 6,
  kSetupFailed = 7,
  kInvalidSize = 8,
  kUnaligned = 9,
  kInvalidDevice = 11,
  kNoWorkspace = 13
};
enum Type { kC2C = 0x29, kR2C = 0x2a, kC2R = 0x2c, kDouble = 0x40 };

struct Plan {
  int device = -1;
  bool allocates = true, is_made = false, is_busy = false;
  int type = 0;
  Fft fft;
  void *stream = nullptr, *workspace = nullptr;
  uint64_t workspace_bytes = 0;
};

std::mutex plans_mutex;
std::map<Handle, std::shared_ptr<Plan>> plans;
uintptr_t last_handle = 0;

std::shared_ptr<Plan> find(Handle handle) {
  std::lock_guard lock(plans_mutex);
  const auto found = plans.find(handle);
  return found == plans.end() ? nullptr : found->second;
}

// Two threads must not change or run one plan at once.
class Use {
 public:
  explicit Use(Handle handle) : plan_(find(handle)) {
    if (!plan_) return;
    std::lock_guard lock(plans_mutex);
    if (plan_->is_busy) {
      plan_ = nullptr;
      return;
    }
    plan_->is_busy = true;
  }
  ~Use() {
    if (!plan_) return;
    std::lock_guard lock(plans_mutex);
    plan_->is_busy = false;
  }
  explicit operator bool() const { return plan_ != nullptr; }
  Plan* operator->() const { return plan_.get(); }

 private:
  std::shared_ptr<Plan> plan_;
};

bool read_side(int rank, const long long* embed, long long stride, long long distance,
               const long long* extents, long long batch, FftSide* out) {
  if (!embed || stride < 1 || (batch > 1 && distance < 1)) return false;
  for (int axis = 0; axis < rank; ++axis) {
    if (axis > 0 && embed[axis] < extents[axis]) return false;
    out->embed[axis] = embed[axis];
  }
  out->stride = stride;
  out->distance = distance;
  return true;
}

struct Queued {
  Fft fft;
  void *in, *out, *workspace;
  uint64_t workspace_bytes;
};

int execute(Handle handle, int type, void* in, void* out, int direction) {
  if (int error = count_call("FftExec")) return error;
  const Use plan(handle);
  if (!plan || !plan->is_made) return kInvalidPlan;
  if (plan->type != type) return kInvalidType;
  if (plan->device != current_device()) return kInvalidDevice;
  if (direction != -1 && direction != 1) return kInvalidValue;
  Fft fft = plan->fft;
  fft.direction = direction;
  // Real numbers are read in pairs.
  const uintptr_t pair = fft.is_double ? 16 : 8;
  if (reinterpret_cast<uintptr_t>(in) % pair || reinterpret_cast<uintptr_t>(out) % pair)
    return kUnaligned;
  if (!simulated_access(in, fft_extent_bytes(fft, true)) ||
      !simulated_access(out, fft_extent_bytes(fft, false)))
    return kInvalidValue;
  if (in == out && fft.real_in != fft.real_out) return kInvalidValue;
  if (!plan->allocates && !simulated_access(plan->workspace, plan->workspace_bytes))
    return kNoWorkspace;
  auto queued = std::make_unique<Queued>(
      Queued{fft, in, out, plan->allocates ? nullptr : plan->workspace, plan->workspace_bytes});
  const auto call = [](void* user) {
    const Queued& work = *static_cast<const Queued*>(user);
    auto* from = static_cast<char*>(simulated_access(work.in, fft_extent_bytes(work.fft, true)));
    auto* to = static_cast<char*>(simulated_access(work.out, fft_extent_bytes(work.fft, false)));
    if (!from || !to) return;  // freed meanwhile; a device would fault
    if (work.workspace)
      if (void* memory = simulated_access(work.workspace, work.workspace_bytes))
        std::memset(memory, 0xff, work.workspace_bytes);
    run_fft(work.fft, from, to);
  };
  return simulated_enqueue(plan->stream, call, queued.release(),
                           [](void* user) { delete static_cast<Queued*>(user); })
             ? int{kExecFailed}
             : int{kSuccess};
}

}  // namespace

#define COUNT(name) \
  if (int error = count_call(#name)) return error

EXPORT int NAME(Create)(Handle* out) {
  COUNT(FftCreate);
  if (!out) return kInvalidValue;
  if (current_device() < 0) return kSetupFailed;
  auto plan = std::make_shared<Plan>();
  plan->device = current_device();
  std::lock_guard lock(plans_mutex);
#if SIMULATED_HIP
  *out = reinterpret_cast<Handle>(++last_handle);
#else
  *out = static_cast<Handle>(++last_handle);
#endif
  plans[*out] = plan;
  return kSuccess;
}

EXPORT int NAME(Destroy)(Handle handle) {
  COUNT(FftDestroy);
  std::lock_guard lock(plans_mutex);
  return plans.erase(handle) ? kSuccess : kInvalidPlan;
}

EXPORT int NAME(SetAutoAllocation)(Handle handle, int allocate) {
  const Use plan(handle);
  if (!plan || plan->is_made) return kInvalidPlan;
  plan->allocates = allocate != 0;
  return kSuccess;
}

EXPORT int NAME(MakePlanMany64)(Handle handle, int rank, long long* n, long long* in_embed,
                                long long in_stride, long long in_distance, long long* out_embed,
                                long long out_stride, long long out_distance, int type,
                                long long batch, size_t* workspace_bytes) {
  COUNT(FftMakePlan);
  const Use plan(handle);
  if (!plan || plan->is_made) return kInvalidPlan;
  if (plan->device != current_device()) return kInvalidDevice;
  if (rank < 1 || rank > 3 || !n || !workspace_bytes) return kInvalidValue;
  const int kind = type & ~kDouble;
  if (kind != kC2C && kind != kR2C && kind != kC2R) return kInvalidType;
  if (batch < 1) return kInvalidSize;
  Fft fft = {.is_double = (type & kDouble) != 0,
             .real_in = kind == kR2C,
             .real_out = kind == kC2R,
             .rank = rank,
             .batch = batch};
  long long in_extents[3], out_extents[3];
  for (int axis = 0; axis < rank; ++axis) {
    if (n[axis] < 1) return kInvalidSize;
    fft.n[axis] = n[axis];
    const long long half = axis == rank - 1 ? n[axis] / 2 + 1 : n[axis];
    in_extents[axis] = fft.real_out ? half : n[axis];
    out_extents[axis] = fft.real_in ? half : n[axis];
  }
  if (!read_side(rank, in_embed, in_stride, in_distance, in_extents, batch, &fft.in) ||
      !read_side(rank, out_embed, out_stride, out_distance, out_extents, batch, &fft.out))
    return kInvalidValue;
  plan->fft = fft;
  plan->type = type;
  plan->is_made = true;
  *workspace_bytes = plan->workspace_bytes = 512;
  return kSuccess;
}

EXPORT int NAME(SetWorkArea)(Handle handle, void* workspace) {
  const Use plan(handle);
  if (!plan || !plan->is_made) return kInvalidPlan;
  if (!simulated_access(workspace, plan->workspace_bytes)) return kInvalidValue;
  plan->workspace = workspace;
  return kSuccess;
}

EXPORT int NAME(SetStream)(Handle handle, void* stream) {
  const Use plan(handle);
  if (!plan) return kInvalidPlan;
  plan->stream = stream;
  return kSuccess;
}

EXPORT int NAME(ExecC2C)(Handle handle, void* in, void* out, int direction) {
  return execute(handle, kC2C, in, out, direction);
}
EXPORT int NAME(ExecZ2Z)(Handle handle, void* in, void* out, int direction) {
  return execute(handle, kC2C + kDouble, in, out, direction);
}
EXPORT int NAME(ExecR2C)(Handle handle, void* in, void* out) {
  return execute(handle, kR2C, in, out, -1);
}
EXPORT int NAME(ExecD2Z)(Handle handle, void* in, void* out) {
  return execute(handle, kR2C + kDouble, in, out, -1);
}
EXPORT int NAME(ExecC2R)(Handle handle, void* in, void* out) {
  return execute(handle, kC2R, in, out, 1);
}
EXPORT int NAME(ExecZ2D)(Handle handle, void* in, void* out) {
  return execute(handle, kC2R + kDouble, in, out, 1);
}

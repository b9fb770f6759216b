// SPDX-License-Identifier: Apache-2.0
#include "fft/fft_plan.hpp"

#include <utility>

namespace gpu::fft {
namespace {

// Programs whose shapes change all the time would fill memory with plans otherwise.
constexpr size_t kMaxPlans = 256;

}  // namespace

std::unique_ptr<Plan> Plan::make(const Library& library, const Layout& layout, Status* status) {
  std::unique_ptr<Plan> plan(new Plan(library, layout));
  *status = library.create(&plan->handle_);
  if (*status) return nullptr;
  plan->has_handle_ = true;
  Layout own = layout;  // the functions take addresses of numbers that they do not change
  *status = library.set_auto_allocation(plan->handle_, 0);
  if (*status == 0)
    *status = library.make(plan->handle_, static_cast<int>(own.rank), own.n.data(),
                           own.in.embed.data(), own.in.stride, own.in.distance,
                           own.out.embed.data(), own.out.stride, own.out.distance,
                           static_cast<int>(own.type), own.batch, &plan->workspace_bytes_);
  return *status ? nullptr : std::move(plan);
}

// The library waits for the device before it frees the plan's tables.
Plan::~Plan() {
  if (has_handle_) library_.destroy(handle_);
}

Status Plan::run(void* in, void* out, bool forward, void* workspace, Stream stream) const {
  const int direction = forward ? kForward : kBackward;
  std::lock_guard lock(mutex_);
  Status status = library_.set_stream(handle_, stream);
  if (status == 0 && workspace_bytes_) status = library_.set_work_area(handle_, workspace);
  if (status) return status;
  switch (layout_.type) {
    case kComplexToComplex:
      return library_.c2c(handle_, in, out, direction);
    case kComplexToComplex + kDouble:
      return library_.z2z(handle_, in, out, direction);
    case kRealToComplex:
      return library_.r2c(handle_, in, out);
    case kRealToComplex + kDouble:
      return library_.d2z(handle_, in, out);
    case kComplexToReal:
      return library_.c2r(handle_, in, out);
    default:
      return library_.z2d(handle_, in, out);
  }
}

std::shared_ptr<const Plan> Plans::find(const Layout& layout, Status* status) {
  std::lock_guard lock(mutex_);
  if (const auto found = plans_.find(layout); found != plans_.end()) return found->second;
  if (plans_.size() >= kMaxPlans) plans_.clear();
  std::shared_ptr<const Plan> plan = Plan::make(library_, layout, status);
  if (plan) plans_.emplace(layout, plan);
  return plan;
}

void Plans::keep(const std::shared_ptr<const Plan>& plan) {
  std::lock_guard lock(mutex_);
  kept_.emplace(plan.get(), plan);
}

Plans& plans_of(tenon_device device) {
  return *device->library_state<Plans>(kFftLibrary,
                                       [] { return std::make_unique<Plans>(*library()); });
}

}  // namespace gpu::fft

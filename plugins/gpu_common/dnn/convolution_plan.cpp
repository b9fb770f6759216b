// SPDX-License-Identifier: Apache-2.0
#include "dnn/convolution_plan.hpp"

#include "runtime/errors.hpp"
#include "runtime/vendor.hpp"

namespace gpu::dnn {
namespace {

// Programs whose shapes change all the time would fill memory with plans otherwise.
constexpr size_t kMaxPlans = 4096;

}  // namespace

ConvolutionPlans::~ConvolutionPlans() {
  known_.clear();
  if (handle_) destroy_handle(handle_);
}

bool ConvolutionPlans::open() {
  if (handle_ || is_broken_) return handle_ != nullptr;
  const Status status = create_handle(&handle_);
  if (status == 0) return true;
  handle_ = nullptr;
  is_broken_ = true;
  log(2, "%s does not start on this device (%s); convolutions run by other kernels", vendor::kDnn,
      error_text(status));
  return false;
}

const std::vector<Algorithm>& ConvolutionPlans::algorithms(Known& known, Order order) {
  auto& list = known.algorithms[order];
  if (!list) {
    std::lock_guard lock(using_handle_);
    list = known.descriptors->algorithms(handle_, order);
  }
  return *list;
}

ConvolutionPlan ConvolutionPlans::find(const Convolution& convolution, Rank rank) {
  std::lock_guard lock(mutex_);
  if (!open()) return {};
  auto found = known_.find(convolution);
  if (found == known_.end()) {
    if (known_.size() >= kMaxPlans) known_.clear();
    Known made = {.descriptors = Descriptors::make(convolution), .algorithms = {}};
    found = known_.emplace(convolution, std::move(made)).first;
  }
  Known& known = found->second;
  // Without an algorithm of a fixed order none of any order would be chosen by measuring: it would be the only one.
  if (!known.descriptors || algorithms(known, kFixedOrder).empty()) return {};
  const std::vector<Algorithm>& list = algorithms(known, rank.order);
  if (rank.index >= list.size()) return {};
  return {.descriptors = known.descriptors, .algorithm = list[rank.index]};
}

Status ConvolutionPlans::run(const ConvolutionPlan& plan, const void* first, const void* second,
                             const void* bias, void* out, void* workspace, Stream stream) {
  std::lock_guard lock(using_handle_);
  const Status status = set_stream(handle_, stream);
  return status
             ? status
             : plan.descriptors->run(handle_, plan.algorithm, first, second, bias, out, workspace);
}

}  // namespace gpu::dnn

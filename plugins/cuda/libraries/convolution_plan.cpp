// SPDX-License-Identifier: Apache-2.0
#include "convolution_plan.hpp"

#include "errors.hpp"

namespace gpu::dnn {
namespace {

// An algorithm that wants more memory than this is not worth it beside the tensors of a training step.
constexpr uint64_t kMaxWorkspaceBytes = uint64_t{1} << 30;
// Programs whose shapes change all the time would fill memory with plans otherwise.
constexpr size_t kMaxPlans = 4096;

int data_type(int dtype) {
  switch (dtype) {
    case TENON_DTYPE_F64:
      return number::kDouble;
    case TENON_DTYPE_F16:
      return number::kHalf;
    case TENON_DTYPE_BF16:
      return number::kBfloat16;
    default:
      return number::kFloat;
  }
}

// float32 is multiplied as float32, not as TF32.
int math_of(int dtype) {
  switch (dtype) {
    case TENON_DTYPE_F32:
      return number::kFmaMath;
    case TENON_DTYPE_F64:
      return number::kDefaultMath;
    default:
      return number::kTensorOpMath;
  }
}

bool make_tensor(const Library& library, int type, const std::array<int, 4>& shape,
                 TensorDesc* out) {
  const int strides[] = {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
  return library.tensor_create(out) == 0 &&
         library.tensor_set(*out, type, 4, shape.data(), strides) == 0;
}

}  // namespace

std::unique_ptr<ConvolutionPlan> ConvolutionPlan::make(const Library& library, Handle handle,
                                                       const Convolution& convolution) {
  std::unique_ptr<ConvolutionPlan> plan(new ConvolutionPlan(library));
  return plan->build(handle, convolution) ? std::move(plan) : nullptr;
}

ConvolutionPlan::~ConvolutionPlan() {
  for (TensorDesc tensor : {x_, y_, bias_})
    if (tensor) library_.tensor_destroy(tensor);
  if (w_) library_.filter_destroy(w_);
  if (convolution_) library_.convolution_destroy(convolution_);
}

bool ConvolutionPlan::build(Handle handle, const Convolution& c) {
  const int type = data_type(c.dtype);
  kind_ = c.kind;
  is_double_ = c.dtype == TENON_DTYPE_F64;
  return make_tensor(library_, type, c.x, &x_) && make_tensor(library_, type, c.y, &y_) &&
         (!c.has_bias || make_tensor(library_, type, {1, c.w[0], 1, 1}, &bias_)) &&
         library_.filter_create(&w_) == 0 &&
         library_.filter_set(w_, type, number::kNchw, 4, c.w.data()) == 0 &&
         library_.convolution_create(&convolution_) == 0 &&
         library_.convolution_set(convolution_, 2, c.padding.data(), c.stride.data(),
                                  c.dilation.data(), number::kCrossCorrelation,
                                  is_double_ ? number::kDouble : number::kFloat) == 0 &&
         library_.convolution_set_groups(convolution_, c.groups) == 0 &&
         library_.convolution_set_math(convolution_, math_of(c.dtype)) == 0 &&
         choose_algorithm(handle);
}

// The heuristic lists algorithms, the fastest one first. Those that add in an order that changes from
// run to run are left out, so that a program gives the same bits each time.
bool ConvolutionPlan::choose_algorithm(Handle handle) {
  constexpr int kWanted = 12;
  AlgorithmResult results[kWanted] = {};
  int found = 0;
  Status status;
  switch (kind_) {
    case kForward:
      status = library_.find_forward(handle, x_, w_, convolution_, y_, kWanted, &found, results);
      break;
    case kInputGrad:
      status = library_.find_input_grad(handle, w_, y_, convolution_, x_, kWanted, &found, results);
      break;
    default:
      status =
          library_.find_weight_grad(handle, x_, y_, convolution_, w_, kWanted, &found, results);
  }
  for (int i = 0; status == 0 && i < found; ++i) {
    const AlgorithmResult& result = results[i];
    if (result.status != 0 || result.is_deterministic != number::kDeterministic ||
        result.workspace_bytes > kMaxWorkspaceBytes)
      continue;
    algorithm_ = result.algorithm;
    workspace_bytes_ = result.workspace_bytes;
    return library_.convolution_set_math(convolution_, result.math) == 0;
  }
  return false;
}

Status ConvolutionPlan::run(Handle handle, const void* first, const void* second, const void* bias,
                            void* out, void* workspace) const {
  static constexpr double kOne64 = 1, kZero64 = 0;
  static constexpr float kOne32 = 1, kZero32 = 0;
  const void* one = is_double_ ? static_cast<const void*>(&kOne64) : &kOne32;
  const void* zero = is_double_ ? static_cast<const void*>(&kZero64) : &kZero32;
  switch (kind_) {
    case kForward: {
      const Status status =
          library_.forward(handle, one, x_, first, w_, second, convolution_, algorithm_, workspace,
                           workspace_bytes_, zero, y_, out);
      return status || !bias ? status : library_.add_bias(handle, one, bias_, bias, one, y_, out);
    }
    case kInputGrad:
      return library_.input_grad(handle, one, w_, second, y_, first, convolution_, algorithm_,
                                 workspace, workspace_bytes_, zero, x_, out);
    default:
      return library_.weight_grad(handle, one, x_, second, y_, first, convolution_, algorithm_,
                                  workspace, workspace_bytes_, zero, w_, out);
  }
}

ConvolutionPlans::~ConvolutionPlans() {
  plans_.clear();
  if (handle_) library_.destroy(handle_);
}

std::shared_ptr<const ConvolutionPlan> ConvolutionPlans::find(const Convolution& convolution) {
  std::lock_guard lock(mutex_);
  if (const auto found = plans_.find(convolution); found != plans_.end()) return found->second;
  if (is_broken_) return nullptr;
  if (!handle_) {
    if (const Status status = library_.create(&handle_)) {
      is_broken_ = true;
      log(2, "cuDNN does not start on this device (%s); convolutions run by other kernels",
          library_.error_text(status));
      return nullptr;
    }
  }
  if (plans_.size() >= kMaxPlans) plans_.clear();
  return plans_[convolution] = ConvolutionPlan::make(library_, handle_, convolution);
}

Status ConvolutionPlans::run(const ConvolutionPlan& plan, const void* first, const void* second,
                             const void* bias, void* out, void* workspace, Stream stream) {
  std::lock_guard lock(running_);
  const Status status = library_.set_stream(handle_, stream);
  return status ? status : plan.run(handle_, first, second, bias, out, workspace);
}

}  // namespace gpu::dnn

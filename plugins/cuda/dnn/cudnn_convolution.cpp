// SPDX-License-Identifier: Apache-2.0
// Convolutions as cuDNN describes them.
#include "dnn/cudnn.hpp"

namespace gpu::dnn {
namespace {

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

class CudnnDescriptors : public Descriptors {
 public:
  explicit CudnnDescriptors(const Library& library) : library_(library) {}
  ~CudnnDescriptors() override;
  CudnnDescriptors(const CudnnDescriptors&) = delete;
  CudnnDescriptors& operator=(const CudnnDescriptors&) = delete;

  bool build(const Convolution&);
  std::vector<Algorithm> algorithms(Handle, Order) override;
  Status run(Handle, const Algorithm&, const void* first, const void* second, const void* bias,
             void* out, void* workspace) override;

 private:
  static constexpr int kWanted = 12;
  Status find(Handle, int* found, AlgorithmResult* results);

  const Library& library_;
  int kind_ = kForward;
  int dtype_ = 0;
  int math_ = 0;  // what the descriptor has now
  TensorDesc x_ = nullptr, y_ = nullptr, bias_ = nullptr;
  FilterDesc w_ = nullptr;
  ConvolutionDesc convolution_ = nullptr;
};

CudnnDescriptors::~CudnnDescriptors() {
  for (TensorDesc tensor : {x_, y_, bias_})
    if (tensor) library_.tensor_destroy(tensor);
  if (w_) library_.filter_destroy(w_);
  if (convolution_) library_.convolution_destroy(convolution_);
}

bool CudnnDescriptors::build(const Convolution& c) {
  const int type = data_type(c.dtype);
  kind_ = c.kind;
  dtype_ = c.dtype;
  math_ = math_of(c.dtype);
  return make_tensor(library_, type, c.x, &x_) && make_tensor(library_, type, c.y, &y_) &&
         (!c.has_bias || make_tensor(library_, type, {1, c.w[0], 1, 1}, &bias_)) &&
         library_.filter_create(&w_) == 0 &&
         library_.filter_set(w_, type, number::kNchw, 4, c.w.data()) == 0 &&
         library_.convolution_create(&convolution_) == 0 &&
         library_.convolution_set(convolution_, 2, c.padding.data(), c.stride.data(),
                                  c.dilation.data(), number::kCrossCorrelation,
                                  c.dtype == TENON_DTYPE_F64 ? number::kDouble : number::kFloat) ==
             0 &&
         library_.convolution_set_groups(convolution_, c.groups) == 0 &&
         library_.convolution_set_math(convolution_, math_) == 0;
}

Status CudnnDescriptors::find(Handle handle, int* found, AlgorithmResult* results) {
  switch (kind_) {
    case kForward:
      return library_.find_forward(handle, x_, w_, convolution_, y_, kWanted, found, results);
    case kInputGrad:
      return library_.find_input_grad(handle, w_, y_, convolution_, x_, kWanted, found, results);
    default:
      return library_.find_weight_grad(handle, x_, y_, convolution_, w_, kWanted, found, results);
  }
}

std::vector<Algorithm> CudnnDescriptors::algorithms(Handle handle, Order order) {
  std::vector<Algorithm> list;
  AlgorithmResult results[kWanted] = {};
  int found = 0;
  // What the heuristic lists depends on it, and a call may have left another one.
  if (library_.convolution_set_math(convolution_, math_of(dtype_)) != 0) return list;
  math_ = math_of(dtype_);
  if (find(handle, &found, results) != 0) return list;
  for (int i = 0; i < found; ++i) {
    const AlgorithmResult& result = results[i];
    const bool has_fixed_order = result.is_deterministic == number::kDeterministic;
    if (result.status != 0 || has_fixed_order != (order == kFixedOrder) ||
        result.workspace_bytes > kMaxWorkspaceBytes)
      continue;
    // Among algorithms for float32 there must be no choice of TF32.
    if (dtype_ == TENON_DTYPE_F32 && (order == kAnyOrder || !list.empty()) &&
        result.math != number::kFmaMath)
      continue;
    list.push_back({.number = static_cast<uint64_t>(result.algorithm),
                    .workspace_bytes = result.workspace_bytes,
                    .mode = result.math});
  }
  return list;
}

Status CudnnDescriptors::run(Handle handle, const Algorithm& algorithm, const void* first,
                             const void* second, const void* bias, void* out, void* workspace) {
  static constexpr double kOne64 = 1, kZero64 = 0;
  static constexpr float kOne32 = 1, kZero32 = 0;
  const bool is_double = dtype_ == TENON_DTYPE_F64;
  const void* one = is_double ? static_cast<const void*>(&kOne64) : &kOne32;
  const void* zero = is_double ? static_cast<const void*>(&kZero64) : &kZero32;
  const int chosen = static_cast<int>(algorithm.number);
  const uint64_t bytes = algorithm.workspace_bytes;
  if (math_ != algorithm.mode) {
    if (const Status status = library_.convolution_set_math(convolution_, algorithm.mode))
      return status;
    math_ = algorithm.mode;
  }
  switch (kind_) {
    case kForward: {
      const Status status = library_.forward(handle, one, x_, first, w_, second, convolution_,
                                             chosen, workspace, bytes, zero, y_, out);
      return status || !bias ? status : library_.add_bias(handle, one, bias_, bias, one, y_, out);
    }
    case kInputGrad:
      return library_.input_grad(handle, one, w_, second, y_, first, convolution_, chosen,
                                 workspace, bytes, zero, x_, out);
    default:
      return library_.weight_grad(handle, one, x_, second, y_, first, convolution_, chosen,
                                  workspace, bytes, zero, w_, out);
  }
}

}  // namespace

const uint64_t kConvolutionDtypes =
    uint64_t{1} << TENON_DTYPE_F32 | uint64_t{1} << TENON_DTYPE_F64 |
    uint64_t{1} << TENON_DTYPE_F16 | uint64_t{1} << TENON_DTYPE_BF16;

std::string name_of(const Algorithm& algorithm) {
  return "algorithm " + std::to_string(algorithm.number) +
         (algorithm.mode == number::kTensorOpMath ? " with tensor cores" : "");
}

std::unique_ptr<Descriptors> Descriptors::make(const Convolution& convolution) {
  auto descriptors = std::make_unique<CudnnDescriptors>(*library());
  if (!descriptors->build(convolution)) return nullptr;
  return descriptors;
}

}  // namespace gpu::dnn

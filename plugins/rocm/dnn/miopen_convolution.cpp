// SPDX-License-Identifier: Apache-2.0
// Convolutions as MIOpen describes them, by its immediate mode: a list of solutions from its data base and heuristics, of
// which one is called by its number. The older mode lists algorithms only after it has run them all.
#include <algorithm>

#include "dnn/miopen.hpp"
#include "kernels/device_programs.hpp"
#include "runtime/errors.hpp"

namespace gpu::kernels::text {
extern const char bias[];  // bias.cu
}  // namespace gpu::kernels::text

namespace gpu::dnn {
namespace {

int data_type(int dtype) {
  switch (dtype) {
    case TENON_DTYPE_F16:
      return number::kHalf;
    case TENON_DTYPE_BF16:
      return number::kBfloat16;
    default:
      return number::kFloat;
  }
}

bool make_tensor(const Library& library, int type, const std::array<int, 4>& shape,
                 TensorDesc* out) {
  const int strides[] = {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
  return library.tensor_create(out) == 0 &&
         library.tensor_set(*out, type, 4, shape.data(), strides) == 0;
}

class MiopenDescriptors : public Descriptors {
 public:
  explicit MiopenDescriptors(const Library& library) : library_(library) {}
  ~MiopenDescriptors() override;
  MiopenDescriptors(const MiopenDescriptors&) = delete;
  MiopenDescriptors& operator=(const MiopenDescriptors&) = delete;

  bool build(const Convolution&);
  std::vector<Algorithm> algorithms(Handle, Order) override;
  Status run(Handle, const Algorithm&, const void* first, const void* second, const void* bias,
             void* out, void* workspace) override;
  tenon_status finish(tenon_device, tenon_stream, const void* bias, void* out,
                      tenon_err*) const override;

 private:
  const Library& library_;
  Convolution convolution_;
  TensorDesc x_ = nullptr, w_ = nullptr, y_ = nullptr;
  ConvolutionDesc convolutions_[kOrders] = {};
};

MiopenDescriptors::~MiopenDescriptors() {
  for (TensorDesc tensor : {x_, w_, y_})
    if (tensor) library_.tensor_destroy(tensor);
  for (ConvolutionDesc desc : convolutions_)
    if (desc) library_.convolution_destroy(desc);
}

bool MiopenDescriptors::build(const Convolution& c) {
  const int type = data_type(c.dtype);
  convolution_ = c;
  bool is_made = make_tensor(library_, type, c.x, &x_) && make_tensor(library_, type, c.w, &w_) &&
                 make_tensor(library_, type, c.y, &y_);
  for (int order = 0; order < kOrders && is_made; ++order) {
    ConvolutionDesc& desc = convolutions_[order];
    is_made =
        library_.convolution_create(&desc) == 0 &&
        library_.convolution_set(desc, 2, c.padding.data(), c.stride.data(), c.dilation.data(),
                                 number::kConvolution) == 0 &&
        library_.convolution_set_groups(desc, c.groups) == 0 &&
        library_.convolution_set_attribute(desc, number::kDeterministic, order == kFixedOrder) == 0;
  }
  return is_made;
}

// One solution may be in both lists: it then splits its sums where it may add them in any order.
std::vector<Algorithm> MiopenDescriptors::algorithms(Handle handle, Order order) {
  const TensorDesc first = convolution_.kind == kForward ? w_ : y_;
  const TensorDesc second = convolution_.kind == kInputGrad ? w_ : x_;
  const TensorDesc result = convolution_.kind == kForward     ? y_
                            : convolution_.kind == kInputGrad ? x_
                                                              : w_;
  const auto count_of = convolution_.kind == kForward     ? library_.count_forward
                        : convolution_.kind == kInputGrad ? library_.count_input_grad
                                                          : library_.count_weight_grad;
  const auto list_of = convolution_.kind == kForward     ? library_.list_forward
                       : convolution_.kind == kInputGrad ? library_.list_input_grad
                                                         : library_.list_weight_grad;
  const ConvolutionDesc desc = convolutions_[order];
  size_t count = 0;
  if (count_of(handle, first, second, desc, result, &count) != 0 || count == 0) return {};
  std::vector<Solution> solutions(count);
  if (list_of(handle, first, second, desc, result, count, &count, solutions.data()) != 0) return {};
  solutions.resize(std::min(count, solutions.size()));
  std::vector<Algorithm> list;
  for (const Solution& each : solutions)
    if (each.workspace_bytes <= kMaxWorkspaceBytes)
      list.push_back({.number = each.id, .workspace_bytes = each.workspace_bytes, .mode = order});
  return list;
}

Status MiopenDescriptors::run(Handle handle, const Algorithm& algorithm, const void* first,
                              const void* second, const void*, void* out, void* workspace) {
  const uint64_t bytes = algorithm.workspace_bytes;
  const ConvolutionDesc desc = convolutions_[algorithm.mode];
  switch (convolution_.kind) {
    case kForward:
      return library_.forward(handle, w_, second, x_, first, desc, y_, out, workspace, bytes,
                              algorithm.number);
    case kInputGrad:
      return library_.input_grad(handle, y_, first, w_, second, desc, x_, out, workspace, bytes,
                                 algorithm.number);
    default:
      return library_.weight_grad(handle, y_, first, x_, second, desc, w_, out, workspace, bytes,
                                  algorithm.number);
  }
}

// MIOpen adds tensors in float32 and float16; its documents name no bfloat16 there.
tenon_status MiopenDescriptors::finish(tenon_device device, tenon_stream stream, const void* bias,
                                       void* out, tenon_err* err) const {
  constexpr int64_t kThreads = 256, kMaxBlocks = 65535;
  const tenon_kernel kernel =
      kernels::programs_of(device).kernel(convolution_.dtype, "tenon_add_bias", [&] {
        const int dtype = convolution_.dtype;
        const int bits = dtype == TENON_DTYPE_F32 ? 32 : dtype == TENON_DTYPE_F16 ? 16 : -16;
        return "#define BITS " + std::to_string(bits) + "\n" + kernels::text::bias;
      });
  if (!kernel)
    return fail(err, TENON_UNAVAILABLE,
                "conv2d: the kernel tenon_add_bias does not compile on this device");
  const std::array<int, 4>& y = convolution_.y;
  const int64_t image = int64_t{y[2]} * y[3], channels = y[1], count = y[0] * channels * image;
  kernels::Arguments arguments;
  arguments.buffer(out);
  arguments.buffer(bias);
  arguments.value(image);
  arguments.value(channels);
  arguments.value(count);
  const int64_t blocks = std::min((count + kThreads - 1) / kThreads, kMaxBlocks);
  return arguments.launch(device, kernel, {static_cast<uint32_t>(blocks), 1, 1},
                          {static_cast<uint32_t>(kThreads), 1, 1}, stream, err);
}

}  // namespace

// MIOpen's documents promise no float64.
const uint64_t kConvolutionDtypes = uint64_t{1} << TENON_DTYPE_F32 |
                                    uint64_t{1} << TENON_DTYPE_F16 |
                                    uint64_t{1} << TENON_DTYPE_BF16;

std::string name_of(const Algorithm& algorithm) {
  return "solution " + std::to_string(algorithm.number);
}

std::unique_ptr<Descriptors> Descriptors::make(const Convolution& convolution) {
  auto descriptors = std::make_unique<MiopenDescriptors>(*library());
  if (!descriptors->build(convolution)) return nullptr;
  return descriptors;
}

}  // namespace gpu::dnn

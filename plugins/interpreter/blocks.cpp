// SPDX-License-Identifier: Apache-2.0
// An expression over blocks of elements: all its steps on one block before the next, so that
// intermediate results never leave the cache, and blocks on all threads.
#include <algorithm>
#include <mutex>
#include <tenon/parallel.hpp>

#include "elementwise.hpp"

namespace tenon::interpreter {
namespace {

// Elements of a block. Many enough that calls cost little beside the work, few enough that half a
// dozen of them fit into the second-level cache of any processor.
constexpr int64_t kBlock = 8192;
constexpr size_t kMaxOperands = 33;  // 32 parameters and the result

// What is called inside of a kernel is no call of the program's: layers do not see it.
class LayersOff {
 public:
  LayersOff() : every_(host->layers_every_call()) {
    for (int32_t i = 0; every_ >> i; ++i)
      if (every_ >> i & 1) host->layer_enable(i, 0);
  }
  ~LayersOff() {
    for (int32_t i = 0; every_ >> i; ++i)
      if (every_ >> i & 1) host->layer_enable(i, 1);
  }
  LayersOff(const LayersOff&) = delete;

 private:
  const uint32_t every_;
};

struct Operand {
  tenon_tensor* tensor = nullptr;
  int64_t strides[TENON_MAX_NDIM];  // 0 where it broadcasts
};

// The elements as few dimensions as all operands allow, and the result last among the operands.
struct Space {
  int32_t ndim = 0;
  int64_t shape[TENON_MAX_NDIM];
  Operand operands[kMaxOperands];
  uint32_t count = 0;

  // False: it does not broadcast to the result's shape.
  bool add(tenon_tensor* tensor, const tenon_tensor& out) {
    Operand& operand = operands[count++];
    operand.tensor = tensor;
    const int32_t lead = out.ndim - tensor->ndim;
    if (lead < 0) return false;
    for (int32_t i = 0; i < out.ndim; ++i) {
      const int64_t extent = i < lead ? 1 : tensor->shape[i - lead];
      if (extent != out.shape[i] && extent != 1) return false;
      operand.strides[i] = extent == 1 ? 0 : tensor->strides[i - lead];
    }
    return true;
  }

  void set_shape(const tenon_tensor& out) {
    ndim = 0;
    for (int32_t i = 0; i < out.ndim; ++i) {
      if (out.shape[i] == 1) continue;
      const bool merges =
          ndim > 0 && std::all_of(operands, operands + count, [&](Operand& operand) {
            return operand.strides[ndim - 1] == operand.strides[i] * out.shape[i];
          });
      if (merges) {
        shape[ndim - 1] *= out.shape[i];
      } else {
        shape[ndim++] = out.shape[i];
      }
      for (uint32_t k = 0; k < count; ++k) operands[k].strides[ndim - 1] = operands[k].strides[i];
    }
  }
};

// Blocks are runs of dimension `axis`, with all dimensions after it, for every index before it.
struct Blocks {
  int32_t axis = 0;
  int64_t rows = 1;  // of dimension `axis` in one block
  int64_t runs = 1;  // blocks along dimension `axis`
  int64_t count = 1;

  explicit Blocks(const Space& space) {
    int64_t inner = 1;
    for (axis = space.ndim; axis > 0 && inner * space.shape[axis - 1] <= kBlock; --axis)
      inner *= space.shape[axis - 1];
    if (axis == 0) return;  // one block
    --axis;
    rows = std::max<int64_t>(1, kBlock / inner);
    runs = (space.shape[axis] + rows - 1) / rows;
    count = runs;
    for (int32_t i = 0; i < axis; ++i) count *= space.shape[i];
  }
};

class Kernel {
 public:
  Kernel(const Elementwise& op, const tenon_value* args, int32_t compute, ScalarCodes const& codes,
         const Space& space)
      : op_(op), args_(args), compute_(compute), codes_(codes), space_(space), blocks_(space) {}

  tenon_status run(tenon_err* err) {
    if (blocks_.count == 1) {
      LayersOff below;
      return is_plain() ? run_plain(err) : run_block(0, err);
    }
    parallel(blocks_.count, kBlock * static_cast<int64_t>(codes_.size()),
             [&](int64_t begin, int64_t end) { run_range(begin, end, err); });
    return status_;
  }

 private:
  // One block of tensors that lie alike and that no layer looks at: they are their own views.
  bool is_plain() const {
    const tenon_tensor& out = *space_.operands[space_.count - 1].tensor;
    return std::all_of(space_.operands, space_.operands + space_.count, [&](const Operand& one) {
      const tenon_tensor& tensor = *one.tensor;
      return tensor.layers == 0 && !(tensor.flags & TENON_TENSOR_FOLLOWS_BASE) &&
             tensor.ndim == out.ndim &&
             std::equal(tensor.shape, tensor.shape + tensor.ndim, out.shape);
    });
  }
  tenon_status run_plain(tenon_err* err) {
    return run_codes(args_, space_.operands[space_.count - 1].tensor, err);
  }

  tenon_status run_codes(const tenon_value* args, tenon_tensor* out, tenon_err* err) {
    Scope scope(err);
    const lowering::Surroundings around{scope, args, op_.promoted, primitive::work_dtype(compute_),
                                        out->device};
    return ScalarRun(codes_, around).result_into(out);
  }

  // Threads must not write to one sink together: the first to fail does.
  void run_range(int64_t begin, int64_t end, tenon_err* err) {
    LayersOff below;
    tenon_err* own = host->err_create();
    tenon_status status = own ? TENON_OK : TENON_OUT_OF_MEMORY;
    try {
      for (int64_t i = begin; i < end && status == TENON_OK; ++i) status = run_block(i, own);
    } catch (const std::exception&) {
      status = TENON_OUT_OF_MEMORY;
      tenon::fail(own, status, "out of host memory");
    }
    if (status != TENON_OK) {
      std::lock_guard lock(mutex_);
      if (status_ == TENON_OK) {
        status_ = status;
        tenon::fail(err, status, own ? host->err_text(own) : "out of host memory");
      }
    }
    if (own) host->err_destroy(own);
  }

  tenon_status run_block(int64_t number, tenon_err* err) {
    int64_t shape[TENON_MAX_NDIM], offsets[kMaxOperands] = {};
    const int32_t axis = blocks_.axis, ndim = space_.ndim - axis;
    std::copy(space_.shape + axis, space_.shape + space_.ndim, shape);
    int64_t row = 0, rest = number;
    if (blocks_.count > 1 || blocks_.runs > 1) {
      row = rest % blocks_.runs * blocks_.rows;
      rest /= blocks_.runs;
      shape[0] = std::min(blocks_.rows, space_.shape[axis] - row);
    }
    for (uint32_t k = 0; k < space_.count && ndim > 0; ++k)
      offsets[k] = row * space_.operands[k].strides[axis];
    for (int32_t i = axis - 1; i >= 0; rest /= space_.shape[i--])
      for (uint32_t k = 0; k < space_.count; ++k)
        offsets[k] += rest % space_.shape[i] * space_.operands[k].strides[i];

    Tensor views[kMaxOperands];
    for (uint32_t k = 0; k < space_.count; ++k) {
      const Operand& operand = space_.operands[k];
      tenon_tensor* view = nullptr;
      const tenon_status status =
          host->tensor_view(operand.tensor, operand.tensor->dtype, ndim, shape,
                            operand.strides + axis, offsets[k], &view, err);
      if (status != TENON_OK) return status;
      views[k] = Tensor::adopt(view);
    }
    tenon_value args[32];
    uint32_t next = 0;
    for (uint32_t i = 0; i < op_.nparams; ++i) {
      args[i] = args_[i];
      if (op_.tensors >> i & 1) args[i] = TensorArg(views[next++]).value();
    }
    return run_codes(args, views[next].get(), err);
  }

  const Elementwise& op_;
  const tenon_value* args_;
  const int32_t compute_;
  const ScalarCodes& codes_;
  const Space& space_;
  const Blocks blocks_;
  std::mutex mutex_;
  tenon_status status_ = TENON_OK;
};

}  // namespace

tenon_status run_in_blocks(const Elementwise& op, const tenon_value* args, tenon_tensor* out,
                           tenon_err* err) {
  if (out->numel == 0) return TENON_OK;
  Space space;
  int32_t compute = -1;
  for (uint32_t i = 0; op.tensors >> i; ++i) {
    if (!(op.tensors >> i & 1)) continue;
    auto* tensor = static_cast<tenon_tensor*>(args[i].v.p);
    if (compute < 0 && op.promoted >> i & 1) compute = tensor->dtype;
    if (!space.add(tensor, *out))
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op.name.c_str(),
                          "expected a tensor that broadcasts to %s, got %s",
                          shape_text(*out).c_str(), shape_text(*tensor).c_str());
  }
  if (!space.add(out, *out)) return TENON_INTERNAL;
  space.set_shape(*out);
  // As the host has it, where no tensor is converted.
  if (compute < 0) compute = TENON_DTYPE_F32;
  const Elementwise::Case* one = op.case_of(compute);
  if (!one)
    return shapes::fail(err, TENON_UNSUPPORTED, op.name.c_str(), "no expression for %s",
                        host->dtype_name(compute));
  return Kernel(op, args, compute, one->codes, space).run(err);
}

}  // namespace tenon::interpreter

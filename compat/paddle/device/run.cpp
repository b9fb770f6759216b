// SPDX-License-Identifier: Apache-2.0
// One kernel call: Tenon's arguments become those of the kernel, and its results are checked.
#include <tenon/services/validation.h>
#include <tenon/unbox.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "device/plugin.hpp"

namespace tenon::paddle {
namespace {

// Is this a validated call, in which a kernel's omissions are to show?
bool is_validated() {
  const auto* validation = static_cast<const tenon_validation_api*>(
      host->service_find(TENON_VALIDATION_SERVICE, TENON_VALIDATION_VERSION));
  constexpr size_t kNeeded = offsetof(tenon_validation_api, is_watching) + sizeof(void*);
  return validation && validation->struct_size >= kNeeded && validation->is_watching();
}

class KernelCall {
 public:
  KernelCall(tenon_ctx* ctx, const tenon_value* args, uint32_t nargs, tenon_value* outs,
             uint32_t nouts)
      : ctx_(ctx),
        args_(args),
        nargs_(nargs),
        outs_(outs),
        nouts_(nouts),
        device_(host->ctx_device(ctx)),
        stream_(host->ctx_stream(ctx)) {
    const int32_t dtype = key_dtype();
    const tenon_op* op = host->ctx_op(ctx);
    bound_ = device_->plugin->kernel_for(op, dtype);
    if (!bound_)
      throw Error(TENON_INTERNAL, device_->plugin->kind() + " has no kernel for " +
                                      host->op_def(op)->name + " in " + host->dtype_name(dtype));
  }

  void run() {
    const Row& row = *bound_->row;
    // Nothing to compute: kernels that were never tried on nothing are not asked to.
    if (std::all_of(outs_, outs_ + nouts_,
                    [](const tenon_value& out) { return tenon_out_tensor(&out)->numel == 0; }))
      return;
    call_.device.memory = device_;
    call_.device.stream = stream_of(device_, stream_);
    call_.device.marks_new_memory = is_validated();
    for (const Argument& argument : row.inputs) call_.inputs.push_back(make_tensors(argument));
    for (const Argument& argument : row.attributes)
      call_.attributes.push_back(make_attribute(argument));
    for (const Argument& argument : row.outputs) call_.outputs.push_back(make_tensors(argument));
    call_kernel();
    for (size_t i = 0; i < row.outputs.size(); ++i)
      if (row.outputs[i].how == How::kOutput) deliver(row.outputs[i].index, *call_.outputs[i][0]);
    finish_call(device_, stream_);
  }

 private:
  const tenon_tensor& input(int index) const { return *tenon_arg_tensor(&args_[index]); }
  const tenon_tensor& output(int index) const { return *tenon_out_tensor(&outs_[index]); }

  // The dtype that kernels are registered for: the first tensor's, or the result's if there is
  // none.
  int32_t key_dtype() const {
    if (nargs_ > 0 && args_[0].tag == TENON_VALUE_TENSOR) return input(0).dtype;
    if (nargs_ > 0 && args_[0].tag == TENON_VALUE_TENSORS)
      return tenon_arg_tensors(&args_[0])[0]->dtype;
    return output(0).dtype;
  }

  PD_Tensor* new_tensor() {
    tensors_.push_back(std::make_unique<PD_Tensor>());
    return tensors_.back().get();
  }
  PD_Tensor* describe(const tenon_tensor& tensor) {
    PD_Tensor* made = new_tensor();
    made->set_dims(tensor.shape, tensor.ndim);
    made->dtype = to_paddle_dtype(tensor.dtype);
    return made;
  }
  PD_Tensor* wrap(const tenon_tensor& tensor) {
    PD_Tensor* made = describe(tensor);
    size_t bytes = static_cast<size_t>(tensor.numel) * host->dtype_size(tensor.dtype);
    if (!(tensor.flags & TENON_TENSOR_CONTIGUOUS)) {
      made->strides.assign(tensor.strides, tensor.strides + tensor.ndim);
      bytes = SIZE_MAX;  // spread over more than its elements
    }
    made->storage = std::make_shared<Storage>(tensor.data, bytes, device_);
    return made;
  }

  PD_TensorSlot make_tensors(const Argument& argument) {
    const int index = argument.index;
    switch (argument.how) {
      case How::kTensor:
        return {wrap(input(index))};
      case How::kColumn: {
        PD_Tensor* made = wrap(input(index));
        made->dims.push_back(1);
        made->strides.push_back(1);
        return {made};
      }
      case How::kTensors: {
        PD_TensorSlot list;
        for (uint64_t i = 0; i < tenon_arg_count(&args_[index]); ++i)
          list.push_back(wrap(*tenon_arg_tensors(&args_[index])[i]));
        return list;
      }
      case How::kNumber:
        return {make_number(tenon_arg_float(&args_[index]))};
      case How::kScratch:
        return {describe(input(0))};
      case How::kOutput:
        return {make_output(output(index))};
      default:
        return {};
    }
  }

  PD_Tensor* make_number(double value) {
    PD_Tensor* made = new_tensor();
    const int64_t one = 1;
    made->set_dims(&one, 1);
    made->dtype = bound_->registration->dtype;
    made->storage =
        std::make_shared<Storage>(device_, dtype_bytes(made->dtype), call_.device.stream);
    const float f32 = static_cast<float>(value);
    const phi::dtype::float16 f16(f32);
    const phi::dtype::bfloat16 bf16(f32);
    const void* source = made->dtype == FLOAT64   ? static_cast<const void*>(&value)
                         : made->dtype == FLOAT32 ? static_cast<const void*>(&f32)
                         : made->dtype == FLOAT16 ? static_cast<const void*>(&f16)
                                                  : static_cast<const void*>(&bf16);
    copy_memory(device_, TENON_COPY_HOST_TO_DEVICE, made->storage->data, source,
                dtype_bytes(made->dtype), static_cast<C_Stream>(call_.device.stream));
    return made;
  }

  // Memory of its own if the kernel would otherwise write what it reads, or where it cannot.
  PD_Tensor* make_output(const tenon_tensor& out) {
    PD_Tensor* made = describe(out);
    const bool is_input = !bound_->row->in_place && reads(out.data);
    if (out.flags & TENON_TENSOR_CONTIGUOUS) {
      made->destination = out.data;
      made->destination_bytes = static_cast<size_t>(out.numel) * host->dtype_size(out.dtype);
      if (!is_input)
        made->storage = std::make_shared<Storage>(out.data, made->destination_bytes, device_);
    }
    return made;
  }
  bool reads(const void* data) const {
    for (uint32_t i = 0; i < nargs_; ++i)
      if (const tenon_tensor* tensor = tenon_arg_tensor(&args_[i]); tensor && tensor->data == data)
        return true;
    return false;
  }

  // An int-list argument with axes counted from the front; all of them if there is none.
  std::vector<int64_t> axes(int index) const {
    const int64_t rank = input(0).ndim;
    std::vector<int64_t> result;
    if (args_[index].tag == TENON_VALUE_NONE) {
      for (int64_t axis = 0; axis < rank; ++axis) result.push_back(axis);
      return result;
    }
    const int64_t* first = tenon_arg_ints(&args_[index]);
    for (uint64_t i = 0; i < tenon_arg_count(&args_[index]); ++i)
      result.push_back(first[i] < 0 ? first[i] + rank : first[i]);
    std::sort(result.begin(), result.end());
    return result;
  }

  int64_t axis(int index) const {
    const int64_t axis = tenon_arg_int(&args_[index]);
    const tenon_tensor& first =
        args_[0].tag == TENON_VALUE_TENSORS ? *tenon_arg_tensors(&args_[0])[0] : input(0);
    return axis < 0 ? axis + first.ndim : axis;
  }

  int32_t seed() {
    uint64_t seed, offset;
    host->random_reserve(ctx_, static_cast<uint64_t>(output(0).numel) / 4 + 1, &seed, &offset);
    call_.device.seed = seed * 0x9e3779b97f4a7c15u + offset * 0xbf58476d1ce4e5b9u;
    const auto folded =
        static_cast<int32_t>((call_.device.seed ^ call_.device.seed >> 32) & 0x7fffffff);
    return folded ? folded : 1;
  }

  PD_Attribute make_attribute(const Argument& argument) {
    const int index = argument.index;
    switch (argument.how) {
      case How::kArgument:
        return number_attribute(argument.type, args_[index]);
      case How::kConstant:
        return number_attribute(argument.type, boxed(index));
      case How::kAxis:
        return number_attribute(argument.type, boxed(axis(index)));
      case How::kAxes:
        return PD_IntArray{axes(index)};
      case How::kAllAxes:
        return std::ssize(axes(index)) == input(0).ndim;
      case How::kOutputDtype:
        return to_paddle_dtype(output(index).dtype);
      case How::kOutputShape:
        return PD_IntArray{{output(index).shape, output(index).shape + output(index).ndim}};
      case How::kSeed:
        return seed();
      default:
        throw Error(TENON_INTERNAL, "the kernel table makes an attribute of a tensor");
    }
  }

  static PD_Attribute number_attribute(PD_KernelArgumentType type, const tenon_value& value) {
    switch (type) {
      case PD_ARG_TYPE_BOOL:
        return tenon_arg_bool(&value) != 0;
      case PD_ARG_TYPE_INT32: {
        const int64_t number = tenon_arg_int(&value);
        if (number != static_cast<int32_t>(number))
          throw Error(TENON_OUT_OF_RANGE,
                      "the kernel takes 32-bit integers, got " + std::to_string(number));
        return static_cast<int32_t>(number);
      }
      case PD_ARG_TYPE_SCALAR:
        if (value.tag == TENON_VALUE_BOOL) return PD_Scalar{value.v.i != 0};
        if (value.tag == TENON_VALUE_INT) return PD_Scalar{value.v.i};
        return PD_Scalar{value.v.f};
      default:
        throw Error(TENON_INTERNAL, "the kernel table names an attribute kind that is not made");
    }
  }

  void call_kernel() {
    take_failure();
    std::string thrown;
    {
      std::lock_guard lock(device_->plugin->mutex());
      device_->plugin->check(device_->plugin->slots().set_device(&device_->handle), "set_device");
      try {
        bound_->registration->function(&call_);
      } catch (const std::exception& error) {
        thrown = error.what();
        if (thrown.empty()) thrown = "an exception without text";
      } catch (...) {
        thrown = "an exception that is no std::exception";
      }
    }
    // What a C function said is nearer to the cause than the exception that came of it.
    std::string failure = take_failure();
    if (failure.empty()) failure = thrown;
    if (!failure.empty()) throw Error(TENON_INTERNAL, what() + ": " + failure);
  }

  std::string what() const {
    return device_->plugin->kind() + " > kernel " + bound_->registration->name + " (" +
           dtype_text(bound_->registration->dtype) + ")";
  }

  // The kernel's result is what Tenon's shape rule said, and lies where the host wants it.
  void deliver(int index, const PD_Tensor& made) {
    const tenon_tensor& out = output(index);
    if (!made.was_used)
      throw Error(TENON_INTERNAL, what() +
                                      ": it returned without requesting the memory of output " +
                                      std::to_string(index));
    if (to_tenon_dtype(made.dtype) != out.dtype || made.numel() != out.numel)
      throw Error(TENON_INTERNAL,
                  what() + ": expected output " + std::to_string(index) + " with " +
                      std::to_string(out.numel) + " elements of " + host->dtype_name(out.dtype) +
                      ", got " + std::to_string(made.numel()) + " of " + dtype_text(made.dtype));
    const void* data = made.data();
    if (data == out.data || out.numel == 0) return;
    const size_t bytes = static_cast<size_t>(out.numel) * host->dtype_size(out.dtype);
    if (made.storage->source != device_)
      throw Error(TENON_INTERNAL,
                  what() + ": it put output " + std::to_string(index) + " into host memory");
    if (out.flags & TENON_TENSOR_CONTIGUOUS)
      copy_memory(device_, TENON_COPY_DEVICE_TO_DEVICE, out.data, data, bytes,
                  static_cast<C_Stream>(call_.device.stream));
    else
      scatter(out, data, bytes);
  }

  // Elements of a dense result into a strided tensor: on the host, over the stretch of memory that
  // it spans.
  void scatter(const tenon_tensor& out, const void* data, size_t bytes) {
    const auto stream = static_cast<C_Stream>(call_.device.stream);
    const auto size = static_cast<int64_t>(host->dtype_size(out.dtype));
    int64_t low = 0, high = 0;
    for (int32_t axis = 0; axis < out.ndim; ++axis) {
      const int64_t reach = out.strides[axis] * (out.shape[axis] - 1);
      (reach < 0 ? low : high) += reach;
    }
    const auto span = static_cast<size_t>((high - low + 1) * size);
    char* first = static_cast<char*>(out.data) + low * size;
    std::vector<char> dense(bytes), spread(span);
    copy_memory(device_, TENON_COPY_DEVICE_TO_HOST, dense.data(), data, bytes, stream);
    copy_memory(device_, TENON_COPY_DEVICE_TO_HOST, spread.data(), first, span, stream);
    std::vector<int64_t> position(out.ndim);
    int64_t at = -low;
    for (int64_t i = 0; i < out.numel; ++i) {
      std::memcpy(&spread[at * size], &dense[i * size], size);
      for (int32_t axis = out.ndim; axis-- > 0;) {
        at += out.strides[axis];
        if (++position[axis] < out.shape[axis]) break;
        at -= out.strides[axis] * out.shape[axis];
        position[axis] = 0;
      }
    }
    copy_memory(device_, TENON_COPY_HOST_TO_DEVICE, first, spread.data(), span, stream);
  }

  tenon_ctx* ctx_;
  const tenon_value* args_;
  uint32_t nargs_;
  tenon_value* outs_;
  uint32_t nouts_;
  tenon_device device_;
  tenon_stream stream_;
  const BoundKernel* bound_;
  std::vector<std::unique_ptr<PD_Tensor>> tensors_;
  PD_KernelContext call_;
};

}  // namespace

tenon_status run_kernel(tenon_ctx* ctx, const tenon_value* args, uint32_t nargs, tenon_value* outs,
                        uint32_t nouts, tenon_err* err) {
  return guarded(err, [&] { KernelCall(ctx, args, nargs, outs, nouts).run(); });
}

}  // namespace tenon::paddle

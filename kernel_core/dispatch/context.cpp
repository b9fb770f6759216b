// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/dispatch/call.hpp"

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/runtime/random.hpp"
#include "kernel_core/runtime/tensor.hpp"
#include "kernel_core/runtime/tensor_shape.hpp"

namespace tenon::core {

constinit thread_local Device* random_origin = nullptr;

void record_stream_use(Device& device, tenon_stream stream, const tenon_tensor* tensor) {
  if (!tensor || tensor->flags & TENON_TENSOR_HOST_SCALAR) return;
  const Storage* storage = impl(tensor)->storage;
  if (!storage || storage->device != &device || !storage->data) return;
  if (storage->stream != stream || device.recordings.load(std::memory_order_relaxed) != 0)
    record_use(device, storage->data, stream);
}

void record_stream_use(const tenon_ctx& ctx, const tenon_value* values, uint32_t count) {
  visit_tensors(values, count,
                [&](auto& tensor) { record_stream_use(ctx.device, ctx.stream, &tensor); });
}

namespace slots {

tenon_stream ctx_stream(tenon_ctx* ctx) { return ctx->stream; }
tenon_device ctx_device(tenon_ctx* ctx) { return ctx->device.handle; }
const tenon_op* ctx_op(tenon_ctx* ctx) { return ctx->op; }

tenon_status scratch(tenon_ctx* ctx, uint64_t bytes, void** out, tenon_err* err) {
  return ctx->scratch.allocate(bytes, out, err);
}

tenon_status output_alloc(tenon_ctx* ctx, uint32_t index, int32_t dtype, int32_t ndim,
                          const int64_t* shape, tenon_tensor** out, tenon_err* err) {
  if (!(ctx->op->def.flags & TENON_OP_DATA_DEPENDENT))
    return core::fail(
        err, TENON_FAILED_PRECONDITION,
        "%s: output_alloc is for data-dependent operators; the host has allocated the outputs",
        ctx->op->def.name);
  if (index >= ctx->nouts || !is_dtype(dtype))
    return core::fail(err, TENON_INVALID_ARGUMENT, "%s: no output %u of dtype id %d",
                      ctx->op->def.name, index, dtype);
  if (ctx->outs[index].tag != TENON_VALUE_NONE)
    return core::fail(err, TENON_FAILED_PRECONDITION, "%s: output %u was allocated already",
                      ctx->op->def.name, index);
  int64_t numel;
  TENON_TRY(count_elements(ndim, shape, &numel, err));
  TensorImpl* tensor;
  TENON_TRY(create_tensor(ctx->device, dtype, ndim, shape, &tensor, err));
  ctx->outs[index] = boxed(static_cast<tenon_tensor*>(tensor));
  *out = tensor;
  return TENON_OK;
}

void random_reserve(tenon_ctx* ctx, uint64_t count, uint64_t* seed, uint64_t* offset) {
  reserve_random((random_origin ? *random_origin : ctx->device).id, count, seed, offset);
}

}  // namespace slots
}  // namespace tenon::core

// SPDX-License-Identifier: Apache-2.0
// Copies: between layouts and dtypes by the operators registered for that, between devices by
// bytes.
#include <cstring>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/dispatch/call.hpp"
#include "kernel_core/dispatch/layers.hpp"
#include "kernel_core/dispatch/registry.hpp"
#include "kernel_core/runtime/tensor_shape.hpp"

namespace tenon::core {
namespace {

tenon_status need(Operator* op, const char* what, tenon_err* err) {
  if (op) return TENON_OK;
  return fail(err, TENON_FAILED_PRECONDITION,
              "no loaded plugin defines the operator that %s; load the standard operators", what);
}

tenon_copy_request request_of(int32_t direction, const tenon_tensor* destination,
                              const tenon_tensor* source, uint64_t bytes, tenon_stream stream) {
  tenon_copy_request request{};
  request.struct_size = sizeof request;
  request.direction = direction;
  request.dst = destination->data;
  request.src = source->data;
  request.bytes = bytes;
  request.dst_offset = destination->byte_offset;
  request.src_offset = source->byte_offset;
  request.stream = stream;
  return request;
}

tenon_status copy_request(Device& device, int32_t direction, const tenon_tensor* destination,
                          const tenon_tensor* source, uint64_t bytes, tenon_err* err) {
  const tenon_copy_request request =
      request_of(direction, destination, source, bytes, current_stream(device));
  if (device.has_streams.load(std::memory_order_relaxed)) [[unlikely]] {
    record_stream_use(device, request.stream, destination);
    record_stream_use(device, request.stream, source);
  }
  return device_result(device, "copy", device.api->copy(device.handle, &request, err), err);
}

// By the plugin of both devices. The source's stream ends first, and the copy has ended on return, so that neither device
// has to know of the other's streams.
tenon_status copy_from_peer(Device& to, Device& from, const tenon_tensor* destination,
                            const tenon_tensor* source, uint64_t bytes, tenon_err* err) {
  if (tenon_stream stream = current_stream(from))
    TENON_TRY(device_result(from, "sync", from.api->sync(from.handle, stream, err), err));
  tenon_copy_request request =
      request_of(TENON_COPY_DEVICE_TO_DEVICE, destination, source, bytes, current_stream(to));
  request.must_understand = TENON_COPY_PEER;
  request.src_device = from.handle;
  if (to.has_streams.load(std::memory_order_relaxed))
    record_stream_use(to, request.stream, destination);
  return device_result(to, "copy", to.api->copy(to.handle, &request, err), err);
}

}  // namespace

tenon_status copy_bytes(tenon_tensor* destination, const tenon_tensor* source, tenon_err* err) {
  uint64_t bytes = static_cast<uint64_t>(source->numel) * dtype_size(source->dtype);
  if (bytes == 0) return TENON_OK;
  Device* to = find_device(destination->device);
  Device* from = find_device(source->device);
  if (!to || !from || to->id == TENON_DEVICE_META || from->id == TENON_DEVICE_META)
    return fail(err, TENON_UNSUPPORTED, "tensors on meta have no data to copy");
  if (to->host_memory && from->host_memory) {
    std::memmove(destination->data, source->data, bytes);
    return TENON_OK;
  }
  if (from->host_memory)
    return copy_request(*to, TENON_COPY_HOST_TO_DEVICE, destination, source, bytes, err);
  if (to->host_memory)
    return copy_request(*from, TENON_COPY_DEVICE_TO_HOST, destination, source, bytes, err);
  if (to == from)
    return copy_request(*to, TENON_COPY_DEVICE_TO_DEVICE, destination, source, bytes, err);
  if (to->api == from->api) {
    const tenon_status status = copy_from_peer(*to, *from, destination, source, bytes, err);
    if (status != TENON_UNSUPPORTED) return status;
    slots::err_clear(err);
  }
  // Two devices that do not know each other meet on the host.
  Device* host = find_device(slots::device_host());
  if (!host) return fail(err, TENON_UNAVAILABLE, "no host device to copy through");
  TensorRef staging;
  TENON_TRY(
      create_tensor(*host, source->dtype, source->ndim, source->shape, staging.receive(), err));
  TENON_TRY(copy_bytes(staging.get(), source, err));
  return copy_bytes(destination, staging.get(), err);
}

tenon_status materialize(tenon_tensor* tensor, TensorRef* out, tenon_err* err) {
  Operator* op = materialize_operator();
  TENON_TRY(need(op, "makes tensors contiguous", err));
  tenon_value args[1] = {boxed(tensor)}, outs[1] = {};
  TENON_TRY(call_kernel(*op, args, outs, err));
  *out = TensorRef(impl(as_tensor(outs[0])));
  return TENON_OK;
}

tenon_status convert(tenon_tensor* tensor, int32_t dtype, TensorRef* out, tenon_err* err) {
  Operator* op = convert_operator();
  TENON_TRY(need(op, "converts dtypes", err));
  tenon_value args[2] = {boxed(tensor), boxed_dtype(dtype)}, outs[1] = {};
  TENON_TRY(call_kernel(*op, args, outs, err));
  *out = TensorRef(impl(as_tensor(outs[0])));
  return TENON_OK;
}

tenon_status copy_into(tenon_tensor* destination, tenon_tensor* source, tenon_err* err) {
  TensorRef held;
  if (source->dtype != destination->dtype) {
    TENON_TRY(convert(source, destination->dtype, &held, err));
    source = held.get();
  }
  if (source->device == TENON_DEVICE_META && destination->device == TENON_DEVICE_META)
    return TENON_OK;
  if (source->flags & destination->flags & TENON_TENSOR_CONTIGUOUS)
    return copy_bytes(destination, source, err);
  if (source->device == destination->device) {
    Operator* op = materialize_operator();
    TENON_TRY(need(op, "copies strided tensors", err));
    tenon_value args[1] = {boxed(source)}, outs[1] = {boxed(destination)};
    return call_kernel(*op, args, outs, err);
  }
  // Dense on its own device, then across, then spread out there.
  TensorRef packed, moved;
  if (!(source->flags & TENON_TENSOR_CONTIGUOUS)) {
    TENON_TRY(materialize(source, &packed, err));
    return copy_into(destination, packed.get(), err);
  }
  Device* device = find_device(destination->device);
  TENON_TRY(
      create_tensor(*device, source->dtype, source->ndim, source->shape, moved.receive(), err));
  TENON_TRY(copy_bytes(moved.get(), source, err));
  return copy_into(destination, moved.get(), err);
}

tenon_status expand_view(const TensorImpl& tensor, int32_t ndim, const int64_t* shape,
                         TensorRef* out, tenon_err* err) {
  int64_t strides[TENON_MAX_NDIM];
  int32_t lead = ndim - tensor.ndim;
  for (int32_t axis = 0; axis < ndim; ++axis) {
    bool repeated = axis < lead || (tensor.shape[axis - lead] == 1 && shape[axis] != 1);
    strides[axis] = repeated ? 0 : tensor.strides[axis - lead];
  }
  return create_view(tensor, tensor.dtype, ndim, shape, strides, 0, out->receive(), err);
}

tenon_status deliver(const Plan& plan, tenon_value* results) {
  tenon_status status = TENON_OK;
  for (uint32_t i = 0; i < plan.op.def.nouts; ++i) {
    tenon_tensor* given = as_tensor(plan.outs[i]);
    if (!given) {
      plan.outs[i] = results[i];
      continue;
    }
    tenon_tensor* result = as_tensor(results[i]);
    if (result != given) {
      // Without a shape rule the result says only now whether the output fits.
      if (status == TENON_OK && !plan.has_metas)
        status = check_output_fits(plan, *given, result->ndim, result->shape, result->dtype);
      if (status == TENON_OK) status = copy_into(given, result, plan.err);
      release(impl(result));
    }
    bump_version(impl(given));
  }
  return status;
}

namespace slots {

tenon_status tensor_copy(tenon_tensor* destination, tenon_tensor* source, tenon_err* err) {
  if (destination->dtype != source->dtype || !same_shape(*destination, source->ndim, source->shape))
    return core::fail(err, TENON_INVALID_ARGUMENT,
                      "copy: expected equal shapes and dtypes, got %s %s and %s %s",
                      shape_text(*destination).c_str(), core::dtype_name(destination->dtype),
                      shape_text(*source).c_str(), core::dtype_name(source->dtype));
  if ((destination->flags | source->flags) & TENON_TENSOR_COMPOSED)
    return core::fail(err, TENON_UNSUPPORTED,
                      "copy: expected tensors with memory, got one that is composed of others; use "
                      "to_dense() first");
  if (destination->flags & TENON_TENSOR_READONLY)
    return core::fail(err, TENON_INVALID_ARGUMENT, "copy: the destination is read-only");
  if (may_overlap_itself(*destination))
    return core::fail(err, TENON_INVALID_ARGUMENT,
                      "copy: elements of the destination share memory (it was expanded)");
  LayersOff below;
  TENON_TRY(copy_into(destination, source, err));
  bump_version(impl(destination));
  return TENON_OK;
}

}  // namespace slots
}  // namespace tenon::core

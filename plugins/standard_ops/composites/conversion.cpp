// SPDX-License-Identifier: Apache-2.0
// Moving data between layouts, devices and host numbers.
#include <cstring>

#include "composites/compose.hpp"
#include "shapes/packed.hpp"

namespace tenon::standard_ops {

namespace {

// A vector of `numbers` in the host's memory; null after a failure.
template <class Number>
Tensor on_host(Scope& scope, const std::vector<Number>& numbers, int32_t dtype) {
  const int64_t count = static_cast<int64_t>(numbers.size());
  tenon_tensor* created;
  if (!scope.ok() || !scope.check(host->tensor_create(host->device_host(), dtype, 1, &count,
                                                      &created, scope.err())))
    return {};
  Tensor tensor = Tensor::adopt(created);
  if (count > 0) std::memcpy(tensor->data, numbers.data(), numbers.size() * sizeof(Number));
  return tensor;
}

}  // namespace

Tensor int_tensor(Scope& scope, const std::vector<int64_t>& numbers, tenon_device_id device) {
  return ops::to_device(scope, on_host(scope, numbers, TENON_DTYPE_I64), device);
}

Tensor float_tensor(Scope& scope, const std::vector<double>& numbers, int32_t dtype,
                    tenon_device_id device) {
  Tensor tensor = on_host(scope, numbers, TENON_DTYPE_F64);
  if (dtype != TENON_DTYPE_F64) tensor = ops::cast(scope, tensor, dtype);
  return ops::to_device(scope, tensor, device);
}

TENON_DECOMPOSE(contiguous) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (scope.ok() && !(x->flags & TENON_TENSOR_CONTIGUOUS)) x = ops::clone(scope, x);
  return finish(scope, outs, x);
}

TENON_DECOMPOSE(to_device) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  auto device = static_cast<tenon_device_id>(int_of(args[1]));
  if (!scope.ok()) return scope.status();
  if (x->device == device) return finish(scope, outs, x);
  if (x->device == TENON_DEVICE_META)
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, "to_device",
        "expected a tensor with data, got one on the meta device; make an empty_like "
        "on the device instead");
  return finish(scope, outs, ops::copy_to_device(scope, x, device, x->device));
}

TENON_DECOMPOSE(copy_to_device) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  tenon_tensor* created;
  TENON_TRY(host->tensor_create(static_cast<tenon_device_id>(int_of(args[1])), x->dtype, x->ndim,
                                x->shape, &created, err));
  Tensor copy = Tensor::adopt(created);
  if (copy->device != TENON_DEVICE_META) TENON_TRY(host->tensor_copy(copy.get(), x.get(), err));
  return finish(scope, outs, copy);
}

// What `full` fills; but few zeros in the host's memory, where no layer wants to see a call, are
// written here.
TENON_DECOMPOSE(zeros) {
  constexpr int64_t kFew = 512;
  Ints shape = ints_of(args[0]);
  bool is_few = shape.size() <= TENON_MAX_NDIM;
  int64_t numel = 1;
  for (size_t axis = 0; axis < shape.size() && is_few; ++axis) {
    is_few = shape[axis] >= 0 && shape[axis] <= kFew && numel * shape[axis] <= kFew;
    numel *= shape[axis];
  }
  tenon_device_id memory = host->device_host();
  // Of what is stored only, not every dtype has a 0: `full` refuses it.
  is_few = is_few && !is_storage(shapes::dtype_or(args[1], TENON_DTYPE_F32));
  bool is_here = memory != TENON_DEVICE_NONE && (is_none(args[2]) || int_of(args[2]) == memory);
  if (!is_few || !is_here || host->layers_every_call() != 0) {
    Scope scope(err);
    return finish(
        scope, outs,
        ops::full(scope, list_of(shape), 0.0, tenon_arg_id(&args[1]), tenon_arg_id(&args[2])));
  }
  tenon_tensor* created;
  TENON_TRY(host->tensor_create(memory, shapes::dtype_or(args[1], TENON_DTYPE_F32),
                                static_cast<int32_t>(shape.size()), shape.data(), &created, err));
  if (numel > 0)
    std::memset(created->data, 0, static_cast<size_t>(numel) * host->dtype_size(created->dtype));
  outs[0] = boxed(created);
  return TENON_OK;
}

TENON_DECOMPOSE(empty) {
  Ints shape = ints_of(args[0]);
  tenon_meta meta;
  TENON_TRY(shapes::of("empty", "shape", args[0], meta, err));
  tenon_device_id device =
      is_none(args[2]) ? host->device_host() : static_cast<tenon_device_id>(int_of(args[2]));
  if (device == TENON_DEVICE_NONE)
    return shapes::fail(err, TENON_NOT_FOUND, "empty",
                        "expected a device: no host device is loaded");
  tenon_tensor* created;
  TENON_TRY(host->tensor_create(device, shapes::dtype_or(args[1], TENON_DTYPE_F32),
                                static_cast<int32_t>(shape.size()), shape.data(), &created, err));
  outs[0] = boxed(created);
  return TENON_OK;
}

}  // namespace tenon::standard_ops

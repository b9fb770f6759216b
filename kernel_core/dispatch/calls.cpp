// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/dispatch/calls.hpp"

#include <tenon/services/calls.h>

#include <algorithm>
#include <cstring>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/dispatch/call.hpp"
#include "kernel_core/dispatch/layers.hpp"
#include "kernel_core/dispatch/piecewise.hpp"
#include "kernel_core/types/owner.hpp"

namespace tenon::core {
namespace {

int32_t may_view(const tenon_op* op) { return op->views_first; }

int32_t view(const tenon_op* op, const tenon_value* args, tenon_tensor** out) {
  tenon_tensor* base = as_tensor(args[0]);
  tenon_status status;
  return base && !is_seen(*base) && view_by_rule(*op, args, base, out, nullptr, &status);
}

// The arguments are those of tensor_view_of, so that the call of it is a jump.
tenon_status view_of(tenon_tensor* base, int32_t dtype, int32_t ndim, const int64_t* shape,
                     const int64_t* strides, int64_t offset, tenon_tensor** out, tenon_err* err) {
  if (is_seen(*base)) [[unlikely]] {
    *out = nullptr;
    return TENON_OK;
  }
  return slots::tensor_view_of(base, dtype, ndim, shape, strides, offset, out, err);
}

void* element(tenon_tensor* tensor, int64_t index) {
  if (tensor->ndim != 1 || tensor->flags & TENON_TENSOR_READONLY || is_seen(*tensor))
    return nullptr;
  const Device* device = find_device(tensor->device);
  if (!device || !device->host_memory) return nullptr;
  return static_cast<char*>(tensor->data) + index * tensor->strides[0] * dtype_size(tensor->dtype);
}

int32_t is_creation(const tenon_op* op) {
  return op->creation.load(std::memory_order_relaxed) != 0;
}

int32_t create(const tenon_op* op, int32_t ndim, const int64_t* shape, tenon_tensor** out) {
  constexpr int64_t kMaxElements = 512;
  constexpr int32_t kMaxAxes = 4;  // so that the product of the sizes does not overflow
  const uint16_t creation = op->creation.load(std::memory_order_relaxed);
  const LayerSet every_call = layer_table.every_call.load(std::memory_order_relaxed);
  if (creation == 0 || ndim > kMaxAxes || (every_call && every_call & enabled_layers())) return 0;
  int64_t numel = 1;
  for (int32_t axis = 0; axis < ndim; ++axis) {
    if (static_cast<uint64_t>(shape[axis]) > kMaxElements) return 0;  // negative ones, too
    numel *= shape[axis];
  }
  if (numel > kMaxElements) return 0;
  Device* device = find_device(host_device());
  TensorImpl* created;
  if (!device ||
      create_tensor(*device, creation & 0xff, ndim, shape, &created, nullptr) != TENON_OK)
    return 0;
  *out = created;
  if (creation >> 8 == TENON_CREATION_ZEROS && created->numel > 0)
    std::memset(created->data, 0, static_cast<size_t>(created->numel) * dtype_size(created->dtype));
  return 1;
}

tenon_status declare_creation(const tenon_op* handle, int32_t dtype, int32_t content,
                              tenon_err* err) {
  auto* op = const_cast<Operator*>(handle);
  if (!op || !op->is_defined || op->owner != starting_plugin)
    return fail(err, TENON_INVALID_ARGUMENT,
                "declare_creation: expected an operator of the plugin that starts, got %s",
                op ? op->name.c_str() : "NULL");
  const bool is_known = content == TENON_CREATION_EMPTY || content == TENON_CREATION_ZEROS;
  const bool has_shape = op->def.nparams > 0 && op->def.params[0].kind == TENON_PARAM_INTS;
  if (!is_dtype(dtype) || !is_known || !has_shape || op->def.nouts != 1)
    return fail(err, TENON_INVALID_ARGUMENT,
                "[%s] declare_creation: expected an operator (int[] shape, ...) -> Tensor, a dtype "
                "and TENON_CREATION_EMPTY or _ZEROS, got dtype id %d and content %d for %s",
                short_name(*op), dtype, content, op->def.schema);
  op->creation.store(static_cast<uint16_t>(content << 8 | dtype), std::memory_order_relaxed);
  return TENON_OK;
}

constexpr tenon_calls_api kService = {.struct_size = sizeof(tenon_calls_api),
                                      .version = TENON_CALLS_VERSION,
                                      .call = call_complete,
                                      .may_view = may_view,
                                      .view = view,
                                      .view_of = view_of,
                                      .element = element,
                                      .is_creation = is_creation,
                                      .create = create,
                                      .declare_creation = declare_creation,
                                      .piecewise = prepare_piecewise,
                                      .piecewise_kernel = piecewise_kernel,
                                      .piecewise_run = run_piece,
                                      .piecewise_release = release_piecewise,
                                      .piecewise_holds = piecewise_holds};

}  // namespace

void register_calls_service() {
  [[maybe_unused]] static const tenon_status registered =
      slots::service_register(TENON_CALLS_SERVICE, TENON_CALLS_VERSION, &kService, nullptr);
}

}  // namespace tenon::core

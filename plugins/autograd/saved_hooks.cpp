// SPDX-License-Identifier: Apache-2.0
#include "saved_hooks.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <vector>

#include "operator_node.hpp"
#include "operators.hpp"

namespace tenon::autograd {

tenon_status Packed::make(tenon_tensor* tensor, Packed** out, tenon_err* err) {
  const tenon_saved_hooks& hooks = *saved_hooks;
  Tensor plain;  // without history: a hook that holds it holds no graph
  TENON_TRY(alias(tensor, &plain, err));
  void* content = nullptr;
  {
    RecordingScope off(false);
    SavedHooksScope none(nullptr);
    TENON_TRY(hooks.pack(hooks.user, plain.get(), &content, err));
  }
  auto* packed = new (std::nothrow) Packed;
  if (!packed) {
    hooks.drop(content);
    return fail_host_memory(err);
  }
  packed->content_ = content;
  packed->unpack_ = hooks.unpack;
  packed->drop_ = hooks.drop;
  packed->device_ = tensor->device;
  packed->dtype_ = tensor->dtype;
  packed->ndim_ = tensor->ndim;
  std::copy_n(tensor->shape, tensor->ndim, packed->shape_);
  *out = packed;
  return TENON_OK;
}

tenon_status Packed::unpack(Variable* history, const char* operation, Tensor* out,
                            tenon_err* err) const {
  tenon_tensor* made = nullptr;
  {
    RecordingScope off(false);
    SavedHooksScope none(nullptr);
    TENON_TRY(unpack_(content_, &made, err));
  }
  Tensor tensor = Tensor::adopt(made);
  if (tensor->ndim != ndim_ || tensor->dtype != dtype_ || tensor->device != device_ ||
      !std::equal(shape_, shape_ + ndim_, tensor->shape))
    return fail_format(err, TENON_INVALID_ARGUMENT,
                       "gradient of [%s]: expected unpack to return what pack was given, of shape "
                       "%s and dtype %s on the same device, got shape %s and dtype %s%s",
                       operation, shape_text(ndim_, shape_).c_str(), host->dtype_name(dtype_),
                       shape_text(tensor->ndim, tensor->shape).c_str(),
                       host->dtype_name(tensor->dtype),
                       tensor->device == device_ ? "" : " on another device");
  if (history || tensor->layers & place.bit) {
    TENON_TRY(alias(tensor.get(), out, err));
    if (!history) return TENON_OK;
    retain(history->node());
    attach(out->get(), history, kStandIn);
    return TENON_OK;
  }
  *out = std::move(tensor);
  return TENON_OK;
}

namespace {

// A list is packed as a whole or not at all, as its tag says which it is.
tenon_status pack_list(tenon_value& value, tenon_err* err) try {
  auto* list = static_cast<tenon_tensor**>(const_cast<void*>(value.v.p));
  std::vector<std::unique_ptr<Packed>> packed(value.aux);
  for (uint32_t k = 0; k < value.aux; ++k) {
    if (!list[k]) continue;
    Packed* made;
    TENON_TRY(Packed::make(list[k], &made, err));
    packed[k].reset(made);
  }
  for (uint32_t k = 0; k < value.aux; ++k) {
    if (list[k]) host->tensor_release(list[k]);
    list[k] = reinterpret_cast<tenon_tensor*>(packed[k].release());
  }
  value.tag = kPackedList;
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

}  // namespace

tenon_status pack_saved(Node& node, tenon_err* err) {
  for (uint32_t i = 0; i < node.nvalues; ++i) {
    tenon_value& value = values_of(node)[i];
    if (value.tag == TENON_VALUE_TENSOR) {
      tenon_tensor* tensor = as_tensor(value);
      Packed* packed;
      TENON_TRY(Packed::make(tensor, &packed, err));
      value = {kPacked, 0, {.p = packed}};
      host->tensor_release(tensor);
    } else if (value.tag == TENON_VALUE_TENSORS) {
      TENON_TRY(pack_list(value, err));
    }
  }
  Saved* saved = saved_outs_of(node);
  for (uint32_t rest = node.saved_outs; rest; rest &= rest - 1, ++saved) {
    Packed* packed;
    TENON_TRY(Packed::make(saved->tensor, &packed, err));
    host->tensor_release(saved->tensor);
    saved->tensor = nullptr;
    saved->packed = packed;
  }
  return TENON_OK;
}

const tenon_saved_hooks* set_saved_hooks(const tenon_saved_hooks* hooks) {
  return std::exchange(saved_hooks, hooks);
}

}  // namespace tenon::autograd

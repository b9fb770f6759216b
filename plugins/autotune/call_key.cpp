// SPDX-License-Identifier: Apache-2.0
#include "call_key.hpp"

#include <tenon/plugin.hpp>

#include <cstring>

namespace tenon::autotune {
namespace {

struct Hash {
  uint64_t state = 0x9e3779b97f4a7c15u;
  void add(uint64_t word) {
    const auto product = static_cast<unsigned __int128>(state ^ word) * 0xa0761d6478bd642fu;
    state = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
};

const tenon_tensor* as_tensor(const tenon_value& value) {
  return value.tag == TENON_VALUE_TENSOR ? static_cast<const tenon_tensor*>(value.v.p) : nullptr;
}

template <class Visit>
void for_each_tensor(const tenon_value* values, uint32_t count, Visit&& visit) {
  for (uint32_t i = 0; i < count; ++i) {
    if (const tenon_tensor* tensor = as_tensor(values[i])) visit(*tensor);
    if (values[i].tag != TENON_VALUE_TENSORS) continue;
    auto* list = static_cast<tenon_tensor* const*>(values[i].v.p);
    for (uint32_t j = 0; j < values[i].aux; ++j)
      if (list[j]) visit(*list[j]);
  }
}

constexpr uint16_t kLayoutFlags = TENON_TENSOR_CONTIGUOUS | TENON_TENSOR_HOST_SCALAR;

void add_layout(Hash& hash, const tenon_tensor& tensor) {
  const uint16_t flags = tensor.flags & kLayoutFlags;
  hash.add(uint64_t{flags} << 32 | static_cast<uint32_t>(tensor.ndim));
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    hash.add(static_cast<uint64_t>(tensor.shape[i]));
    if (!(flags & TENON_TENSOR_CONTIGUOUS)) hash.add(static_cast<uint64_t>(tensor.strides[i]));
  }
}

// Whole numbers decide sizes and axes. The value of a fraction (eps, a scale) decides nothing.
void add_attribute(Hash& hash, const tenon_value& value) {
  hash.add(static_cast<uint32_t>(value.tag));
  switch (value.tag) {
    case TENON_VALUE_INT:
    case TENON_VALUE_BOOL:
    case TENON_VALUE_DTYPE:
    case TENON_VALUE_DEVICE:
      return hash.add(static_cast<uint64_t>(value.v.i));
    case TENON_VALUE_INTS:
      hash.add(value.aux);
      for (uint32_t i = 0; i < value.aux; ++i)
        hash.add(static_cast<uint64_t>(static_cast<const int64_t*>(value.v.p)[i]));
      return;
    case TENON_VALUE_STRING:
      hash.add(value.aux);
      for (uint32_t i = 0; i < value.aux; ++i)
        hash.add(static_cast<unsigned char>(static_cast<const char*>(value.v.p)[i]));
      return;
    default:
      return;
  }
}

std::string list_text(const int64_t* numbers, int64_t count) {
  std::string text = "[";
  for (int64_t i = 0; i < count; ++i) text += (i ? "," : "") + std::to_string(numbers[i]);
  return text + "]";
}

std::string tensor_text(const tenon_tensor& tensor) {
  std::string text = host->dtype_name(tensor.dtype) + list_text(tensor.shape, tensor.ndim);
  if (!(tensor.flags & TENON_TENSOR_CONTIGUOUS))
    text += "strides" + list_text(tensor.strides, tensor.ndim);
  if (tensor.flags & TENON_TENSOR_HOST_SCALAR) text += "number";
  return text;
}

std::string value_text(const tenon_value& value) {
  switch (value.tag) {
    case TENON_VALUE_NONE:
      return "none";
    case TENON_VALUE_TENSOR:
      return tensor_text(*as_tensor(value));
    case TENON_VALUE_TENSORS: {
      std::string text = "(";
      for_each_tensor(&value, 1, [&](const tenon_tensor& tensor) {
        text += (text.size() > 1 ? " " : "") + tensor_text(tensor);
      });
      return text + ")";
    }
    case TENON_VALUE_INT:
      return std::to_string(value.v.i);
    case TENON_VALUE_BOOL:
      return value.v.i ? "true" : "false";
    case TENON_VALUE_DTYPE:
      return host->dtype_name(static_cast<int32_t>(value.v.i));
    case TENON_VALUE_INTS:
      return list_text(static_cast<const int64_t*>(value.v.p), value.aux);
    case TENON_VALUE_STRING: {
      std::string text = "'";
      for (uint32_t i = 0; i < value.aux; ++i) {
        const char letter = static_cast<const char*>(value.v.p)[i];
        text += letter >= ' ' ? letter : '?';  // a line of the file holds one call
      }
      return text + "'";
    }
    default:
      return "number";
  }
}

}  // namespace

CallHash hash_call(const tenon_op* op, const tenon_value* args, uint32_t nargs,
                   const tenon_value* outs, uint32_t nouts) {
  CallHash result;
  Hash hash;
  hash.add(reinterpret_cast<uintptr_t>(op));
  bool is_first = true;
  for_each_tensor(args, nargs, [&](const tenon_tensor& tensor) {
    if (is_first) result.device = tensor.device, result.dtype = tensor.dtype;
    is_first = false;
    hash.add(uint64_t{tensor.device} << 8 | tensor.dtype);
  });
  result.dtypes = hash.state;
  for (uint32_t i = 0; i < nargs; ++i) {
    const tenon_value& value = args[i];
    if (value.tag == TENON_VALUE_TENSOR || value.tag == TENON_VALUE_TENSORS) {
      hash.add(value.aux);
      for_each_tensor(&value, 1, [&](const tenon_tensor& tensor) { add_layout(hash, tensor); });
    } else {
      add_attribute(hash, value);
    }
  }
  for (uint32_t i = 0; i < nouts; ++i)
    if (const tenon_tensor* out = as_tensor(outs[i])) add_layout(hash, *out);
  hash.add(static_cast<uint64_t>(host->thread_count()));
  result.call = hash.state;
  return result;
}

std::string describe_call(const tenon_op* op, const tenon_value* args, uint32_t nargs,
                          const tenon_value* outs, uint32_t nouts) {
  std::string text = std::string(host->op_def(op)->name) + " |";
  for (uint32_t i = 0; i < nargs; ++i) text += " " + value_text(args[i]);
  for (uint32_t i = 0; i < nouts; ++i)
    if (const tenon_tensor* out = as_tensor(outs[i])) text += " to " + tensor_text(*out);
  const int32_t threads = host->thread_count();
  return text + " | " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

}  // namespace tenon::autotune

// SPDX-License-Identifier: Apache-2.0
// Weights that are stored in blocks.
#include <tenon/block_formats.hpp>

#include "shapes/infer.hpp"

namespace tenon::standard_ops {
namespace {

// The format and the elements of a row of `blocks` [..., bytes].
tenon_status read_blocks(const char* op, const char* name, const tenon_tensor& blocks,
                         const tenon_value& format_name, const BlockFormat** format,
                         int64_t* elements, tenon_err* err) {
  const std::string_view wanted = text_of(format_name);
  const BlockFormat* found = find_block_format(wanted);
  if (!found) {
    std::string known;
    for (const BlockFormat& each : kBlockFormats)
      known.append(known.empty() ? "'" : ", '").append(each.name).append("'");
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected format %s, got '%.*s'",
                        known.c_str(), static_cast<int>(wanted.size()), wanted.data());
  }
  if (blocks.ndim == 0 || blocks.shape[blocks.ndim - 1] % found->bytes != 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected %s of shape [..., bytes] with whole blocks of '%.*s', which have "
                        "%d bytes for %d elements, got shape %s",
                        name, static_cast<int>(wanted.size()), wanted.data(), found->bytes,
                        found->elements, shape_text(blocks).c_str());
  *format = found;
  const int64_t count = blocks.shape[blocks.ndim - 1] / found->bytes;
  if (__builtin_mul_overflow(count, int64_t{found->elements}, elements))
    return shapes::fail(err, TENON_OUT_OF_RANGE, op, "expected fewer than 2^63 elements, got %s",
                        shape_text(blocks).c_str());
  return TENON_OK;
}

}  // namespace

TENON_INFER(dequantize_blocks) {
  const tenon_tensor& blocks = tensor_of(args[0]);
  const BlockFormat* format;
  int64_t elements;
  TENON_TRY(read_blocks("dequantize_blocks", "blocks", blocks, args[1], &format, &elements, err));
  set_new(outs[0], TENON_DTYPE_F32, shape_of(blocks).first(static_cast<size_t>(blocks.ndim) - 1));
  add_axis(outs[0], elements);
  return TENON_OK;
}

TENON_INFER(linear_blocks) {
  const char* op = "linear_blocks";
  const tenon_tensor &x = tensor_of(args[0]), &weight = tensor_of(args[1]);
  const tenon_tensor* bias = optional_tensor(args[3]);
  TENON_TRY(expect_ndim(op, "weight", weight, 2, "[out, bytes of a row]", err));
  const BlockFormat* format;
  int64_t elements;
  TENON_TRY(read_blocks(op, "weight", weight, args[2], &format, &elements, err));
  if (x.ndim == 0 || x.shape[x.ndim - 1] % format->elements != 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x of shape [..., in] where in is a multiple of the %d elements "
                        "that a block of '%.*s' has, got shape %s; pad rows with zeros",
                        format->elements, static_cast<int>(format->name.size()),
                        format->name.data(), shape_text(x).c_str());
  if (x.shape[x.ndim - 1] != elements)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x.shape[-1] to be the %lld elements of a row of weight, got "
                        "shapes %s and %s",
                        ll(elements), shape_text(x).c_str(), shape_text(weight).c_str());
  const std::string_view activations = text_of(args[4]);
  if (activations != "float" && activations != "int8")
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected activations 'float' or 'int8', got '%.*s'",
                        static_cast<int>(activations.size()), activations.data());
  if (!bias && !is_none(args[3]))
    return shapes::fail(err, TENON_TYPE_MISMATCH, op, "expected bias to be a tensor, got a number");
  if (bias && (bias->ndim != 1 || bias->shape[0] != weight.shape[0]))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected bias of shape [%lld], got %s",
                        ll(weight.shape[0]), shape_text(*bias).c_str());
  const int32_t dtype = bias ? host->dtype_promote(x.dtype, bias->dtype) : int32_t{x.dtype};
  set_new(outs[0], dtype, shape_of(x).first(static_cast<size_t>(x.ndim) - 1));
  add_axis(outs[0], weight.shape[0]);
  return TENON_OK;
}

TENON_INFER(moe_linear) {
  const char* op = "moe_linear";
  const tenon_tensor &x = tensor_of(args[0]), &counts = tensor_of(args[2]);
  const std::span<tenon_tensor* const> weights = tensors_of(args[1]);
  TENON_TRY(expect_ndim(op, "x", x, 2, "[rows, in]", err));
  if (weights.empty())
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected at least one weight, got none");
  const tenon_tensor& first = *weights[0];
  TENON_TRY(expect_ndim(op, "weights", first, 2, "[out, in]", err));
  const bool in_blocks = !is_none(args[3]);
  for (const tenon_tensor* weight : weights) {
    if (!std::ranges::equal(shape_of(*weight), shape_of(first)))
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected weights of one shape, got %s and %s", shape_text(first).c_str(),
                          shape_text(*weight).c_str());
    if (weight->dtype != (in_blocks ? int32_t{TENON_DTYPE_U8} : int32_t{x.dtype}))
      return shapes::fail(err, TENON_TYPE_MISMATCH, op, "expected weights of dtype %s, got %s",
                          in_blocks ? "uint8, in blocks" : host->dtype_name(x.dtype),
                          host->dtype_name(weight->dtype));
  }
  if (counts.ndim != 1 || counts.shape[0] != static_cast<int64_t>(weights.size()))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected a count for each of the %lld weights, got shape %s",
                        ll(static_cast<int64_t>(weights.size())), shape_text(counts).c_str());
  int64_t elements = first.shape[1];
  const std::string_view activations = text_of(args[4]);
  if (in_blocks) {
    const BlockFormat* format;
    TENON_TRY(read_blocks(op, "weights", first, args[3], &format, &elements, err));
    if (activations != "float" && activations != "int8")
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected activations 'float' or 'int8', got '%.*s'",
                          static_cast<int>(activations.size()), activations.data());
  } else if (activations != "float") {
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected activations 'float' for weights without a format, got '%.*s'",
                        static_cast<int>(activations.size()), activations.data());
  }
  if (x.shape[1] != elements)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x.shape[-1] to be the %lld elements of a row of the weights, got "
                        "shapes %s and %s",
                        ll(elements), shape_text(x).c_str(), shape_text(first).c_str());
  const int64_t shape[] = {x.shape[0], first.shape[0]};
  set_new(outs[0], x.dtype, shape);
  return TENON_OK;
}

// A composite, whose parts check its arguments; a kernel for the whole takes what fits alone.
TENON_INFER(weight_only_linear) {
  const tenon_tensor& x = tensor_of(args[0]);
  if (x.ndim == 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "weight_only_linear",
                        "expected x of shape [..., in], got shape ()");
  set_new(outs[0], x.dtype, shape_of(x).first(static_cast<size_t>(x.ndim) - 1));
  const tenon_tensor& quantized = tensor_of(args[1]);
  add_axis(outs[0], quantized.ndim > 0 ? quantized.shape[0] : 0);
  return TENON_OK;
}

}  // namespace tenon::standard_ops

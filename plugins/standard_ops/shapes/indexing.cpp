// SPDX-License-Identifier: Apache-2.0
// Shape rules of gather and scatter operators, whose indices are tensors.
#include "shapes/infer.hpp"
#include "shapes/packed.hpp"

namespace tenon::standard_ops {
namespace {

// The shape of x[..., indices, ...]: what `index` gives and `index_put` takes.
tenon_status set_indexed(const char* op, const tenon_value* args, int64_t axis_argument,
                         tenon_meta& result, tenon_err* err) {
  const tenon_tensor& x = tensor_of(args[0]);
  auto indices = tensors_of(args[1]);
  int32_t axis;
  if (indices.empty())
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected at least one index tensor, got none");
  TENON_TRY(resolve_axis(op, axis_argument, x.ndim, &axis, err));
  if (static_cast<int64_t>(indices.size()) > x.ndim - axis)
    return shapes::fail(err, TENON_OUT_OF_RANGE, op,
                        "expected at most %d index tensors from axis %d of shape %s, got %zu",
                        x.ndim - axis, axis, shape_text(x).c_str(), indices.size());
  int32_t joint_ndim = 0;
  int64_t joint[TENON_MAX_NDIM];
  for (const tenon_tensor* index : indices) {
    if (!index)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected index tensors, got none among them");
    if (!broadcast_into(joint, &joint_ndim, shape_of(*index)))
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected index tensors that broadcast together, got shapes %s and %s",
                          list_text({joint, static_cast<size_t>(joint_ndim)}).c_str(),
                          shape_text(*index).c_str());
  }
  int32_t indexed = static_cast<int32_t>(indices.size());
  TENON_TRY(expect_room(op, int64_t{x.ndim} - indexed + joint_ndim, err));
  begin_new(result, x.dtype);
  add_axes(result, shape_of(x).first(static_cast<size_t>(axis)));
  add_axes(result, {joint, static_cast<size_t>(joint_ndim)});
  add_axes(result, shape_of(x).subspan(static_cast<size_t>(axis + indexed)));
  return TENON_OK;
}

tenon_status expect_dtype_of(const char* op, const char* name, const tenon_tensor& value,
                             const tenon_tensor& x, tenon_err* err) {
  const auto is_complex = [](const tenon_tensor& tensor) {
    return tensor.dtype == TENON_DTYPE_C64 || tensor.dtype == TENON_DTYPE_C128;
  };
  const bool number = value.flags & TENON_TENSOR_HOST_SCALAR && !is_storage(x.dtype);
  if (number && value.dtype == TENON_DTYPE_I64)
    return expect_integer(op, x.dtype, *static_cast<const int64_t*>(value.data), err);
  if (value.dtype == x.dtype || (number && (is_complex(x) || !is_complex(value)))) return TENON_OK;
  return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                      "expected %s of dtype %s, got %s; convert it with cast", name,
                      host->dtype_name(x.dtype), host->dtype_name(value.dtype));
}

// `index` must index `x`: as many axes, and none longer outside `axis`.
tenon_status expect_places(const char* op, const tenon_tensor& x, const tenon_tensor& index,
                           int64_t axis_argument, tenon_err* err) {
  int32_t axis;
  TENON_TRY(resolve_axis_along(op, axis_argument, x.ndim, &axis, err));
  bool fits = index.ndim == x.ndim;
  for (int32_t i = 0; fits && i < x.ndim; ++i) fits = i == axis || index.shape[i] <= x.shape[i];
  if (fits) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected an index with the axes of %s, none longer outside axis %d, got %s; "
                      "take_along_axis broadcasts",
                      shape_text(x).c_str(), axis, shape_text(index).c_str());
}

tenon_status infer_scatter_into(const char* op, const tenon_value* args, tenon_meta* outs,
                                tenon_err* err) {
  const tenon_tensor &x = tensor_of(args[0]), &index = tensor_of(args[1]),
                     &source = tensor_of(args[2]);
  TENON_TRY(expect_places(op, x, index, int_of(args[3]), err));
  TENON_TRY(expect_dtype_of(op, "source", source, x, err));
  bool same = std::ranges::equal(shape_of(source), shape_of(index));
  if (source.ndim != 0 && !same)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected source to be a single number or of index's shape %s, got %s",
                        shape_text(index).c_str(), shape_text(source).c_str());
  set_like(outs[0], x);
  return TENON_OK;
}

}  // namespace

TENON_INFER(index) { return set_indexed("index", args, int_of(args[2]), outs[0], err); }

TENON_INFER(index_put) {
  const tenon_tensor &x = tensor_of(args[0]), &value = tensor_of(args[2]);
  tenon_meta place;
  TENON_TRY(set_indexed("index_put", args, int_of(args[3]), place, err));
  TENON_TRY(expect_dtype_of("index_put", "value", value, x, err));
  if (bool_of(args[4]) && is_storage(x.dtype))
    return shapes::fail(err, TENON_TYPE_MISMATCH, "index_put",
                        "expected a dtype with arithmetic to accumulate in, got %s",
                        host->dtype_name(x.dtype));
  Ints wanted = {place.shape, static_cast<size_t>(place.ndim)};
  if (!can_expand(shape_of(value), wanted))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "index_put",
                        "expected a value that broadcasts to %s, got shape %s",
                        list_text(wanted).c_str(), shape_text(value).c_str());
  set_like(outs[0], x);
  return TENON_OK;
}

TENON_INFER(index_select) {
  const tenon_tensor &x = tensor_of(args[0]), &index = tensor_of(args[1]);
  int32_t axis;
  TENON_TRY(resolve_axis("index_select", int_of(args[2]), x.ndim, &axis, err));
  TENON_TRY(expect_room("index_select", int64_t{x.ndim} - 1 + index.ndim, err));
  begin_new(outs[0], x.dtype);
  add_axes(outs[0], shape_of(x).first(static_cast<size_t>(axis)));
  add_axes(outs[0], shape_of(index));
  add_axes(outs[0], shape_of(x).subspan(static_cast<size_t>(axis) + 1));
  return TENON_OK;
}

TENON_INFER(index_add) {
  const tenon_tensor &x = tensor_of(args[0]), &index = tensor_of(args[1]),
                     &source = tensor_of(args[2]);
  int32_t axis;
  TENON_TRY(resolve_axis("index_add", int_of(args[3]), x.ndim, &axis, err));
  TENON_TRY(expect_dtype_of("index_add", "source", source, x, err));
  int64_t wanted[2 * TENON_MAX_NDIM];
  size_t count = 0;
  for (int32_t i = 0; i < axis; ++i) wanted[count++] = x.shape[i];
  for (int64_t extent : shape_of(index)) wanted[count++] = extent;
  for (int32_t i = axis + 1; i < x.ndim; ++i) wanted[count++] = x.shape[i];
  if (!std::ranges::equal(shape_of(source), Ints{wanted, count}))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "index_add",
                        "expected source of shape %s, got %s", list_text({wanted, count}).c_str(),
                        shape_text(source).c_str());
  set_like(outs[0], x);
  return TENON_OK;
}

TENON_INFER(gather) {
  const tenon_tensor &x = tensor_of(args[0]), &index = tensor_of(args[1]);
  TENON_TRY(expect_places("gather", x, index, int_of(args[2]), err));
  set_new(outs[0], x.dtype, shape_of(index));
  return TENON_OK;
}

TENON_INFER(scatter) { return infer_scatter_into("scatter", args, outs, err); }
TENON_INFER(scatter_add) { return infer_scatter_into("scatter_add", args, outs, err); }

TENON_INFER(scatter_extreme) { return infer_scatter_into("scatter_extreme", args, outs, err); }

TENON_INFER(embedding_bag) {
  const char* op = "embedding_bag";
  const tenon_tensor &weight = tensor_of(args[0]), &indices = tensor_of(args[1]),
                     &offsets = tensor_of(args[2]);
  TENON_TRY(expect_ndim(op, "weight", weight, 2, "[rows, features]", err));
  TENON_TRY(expect_ndim(op, "indices", indices, 1, "[n]", err));
  TENON_TRY(expect_ndim(op, "offsets", offsets, 1, "[bags + 1]", err));
  if (offsets.shape[0] < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected offsets of one number more than there are bags, got none");
  const std::string_view reduce = text_of(args[4]);
  if (reduce != "sum" && reduce != "mean" && reduce != "max")
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected reduce 'sum', 'mean' or 'max', got '%.*s'",
                        static_cast<int>(reduce.size()), reduce.data());
  if (!is_none(args[3])) {
    if (args[3].tag != TENON_VALUE_TENSOR)
      return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                          "expected scale to be a tensor, got a number");
    const tenon_tensor& scale = tensor_of(args[3]);
    TENON_TRY(expect_dtype_of(op, "scale", scale, weight, err));
    if (!std::ranges::equal(shape_of(scale), shape_of(indices)))
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected scale of the shape %s of indices, got %s",
                          shape_text(indices).c_str(), shape_text(scale).c_str());
    if (reduce != "sum")
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected no scale beside reduce '%.*s'; only sums are scaled",
                          static_cast<int>(reduce.size()), reduce.data());
  }
  if (!is_none(args[5])) {
    const int64_t padding = int_of(args[5]), rows = weight.shape[0];
    if (padding < -rows || padding >= rows)
      return shapes::fail(err, TENON_OUT_OF_RANGE, op,
                          "expected padding_index from %lld to %lld, got %lld", ll(-rows),
                          ll(rows - 1), ll(padding));
  }
  const int64_t shape[] = {offsets.shape[0] - 1, weight.shape[1]};
  set_new(outs[0], weight.dtype, shape);
  return TENON_OK;
}

TENON_INFER(embedding) {
  const tenon_tensor &weight = tensor_of(args[0]), &indices = tensor_of(args[1]);
  if (weight.ndim < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "embedding",
                        "expected weight of shape [rows, ...], got a single number");
  if (!is_none(args[2])) {
    int64_t padding = int_of(args[2]), rows = weight.shape[0];
    if (padding < -rows || padding >= rows)
      return shapes::fail(err, TENON_OUT_OF_RANGE, "embedding",
                          "expected padding_index from %lld to %lld, got %lld", ll(-rows),
                          ll(rows - 1), ll(padding));
  }
  TENON_TRY(expect_room("embedding", int64_t{indices.ndim} + weight.ndim - 1, err));
  set_new(outs[0], weight.dtype, shape_of(indices));
  add_axes(outs[0], shape_of(weight).subspan(1));
  return TENON_OK;
}

}  // namespace tenon::standard_ops

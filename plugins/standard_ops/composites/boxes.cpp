// SPDX-License-Identifier: Apache-2.0
// Boxes: their formats, what detectors learn of them, and which of them to keep.
#include "composites/compose.hpp"
#include "composites/data_reads.hpp"

namespace tenon::standard_ops {
namespace {

tenon_status expect_boxes(const char* op, const char* name, const Tensor& boxes, tenon_err* err) {
  if (!is_real_floating(boxes->dtype))
    return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                        "expected floating %s, got %s; convert with .to(float32)", name,
                        host->dtype_name(boxes->dtype));
  if (boxes->ndim > 0 && boxes->shape[boxes->ndim - 1] == 4) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected %s of shape [..., 4], got %s",
                      name, shape_text(*boxes.get()).c_str());
}

// A corner or a size: both numbers of it, [..., 2].
Tensor half(Scope& scope, const Tensor& boxes, int64_t which) {
  return ops::narrow(scope, boxes, -1, 2 * which, 2);
}

struct Box {
  Tensor center, size;
};

Box read_box(Scope& scope, const Tensor& boxes, std::string_view format) {
  Tensor first = half(scope, boxes, 0), second = half(scope, boxes, 1);
  if (format == "cxcywh") return {first, second};
  if (format == "xyxy") second = ops::subtract(scope, second, first);
  return {ops::add(scope, first, ops::divide(scope, second, 2)), second};
}

Tensor write_box(Scope& scope, const Box& box, std::string_view format) {
  if (format == "cxcywh") return ops::concat(scope, {box.center, box.size}, -1);
  Tensor radius = ops::divide(scope, box.size, 2);
  Tensor begin = ops::subtract(scope, box.center, radius);
  Tensor rest = format == "xywh" ? box.size : ops::add(scope, box.center, radius);
  return ops::concat(scope, {begin, rest}, -1);
}

// Four weights as a vector like `like`.
tenon_status read_weights(Scope& scope, const char* op, const tenon_value& given,
                          const Tensor& like, Tensor* weights, tenon_err* err) {
  const double* from = tenon_arg_floats(&given);
  const uint64_t count = tenon_arg_count(&given);
  if (count != 4)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected four weights, got %llu",
                        static_cast<unsigned long long>(count));
  std::vector<double> numbers;
  for (uint64_t i = 0; i < count; ++i)
    numbers.push_back(from ? from[i] : static_cast<double>(ints_of(given)[i]));
  for (double number : numbers)
    if (!(number != 0 && std::isfinite(number)))
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected weights that are finite and not 0, got %g", number);
  *weights = float_tensor(scope, numbers, like->dtype, like->device);
  return scope.status();
}

}  // namespace

TENON_DECOMPOSE(box_convert) {
  const char* op = "box_convert";
  Scope scope(err);
  Tensor boxes = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_boxes(op, "boxes", boxes, err));
  const std::string_view from = text_of(args[1]), to = text_of(args[2]);
  for (std::string_view format : {from, to})
    if (format != "xyxy" && format != "xywh" && format != "cxcywh")
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected a format 'xyxy', 'xywh' or 'cxcywh', got '%.*s'",
                          static_cast<int>(format.size()), format.data());
  if (from == to) return finish(scope, outs, boxes);
  // Between a corner with a size and two corners, the way over the centre would round.
  if (from != "cxcywh" && to != "cxcywh") {
    Tensor first = half(scope, boxes, 0), second = half(scope, boxes, 1);
    second = to == "xywh" ? ops::subtract(scope, second, first) : ops::add(scope, second, first);
    return finish(scope, outs, ops::concat(scope, {first, second}, -1));
  }
  return finish(scope, outs, write_box(scope, read_box(scope, boxes, from), to));
}

TENON_DECOMPOSE(box_encode) {
  const char* op = "box_encode";
  Scope scope(err);
  Tensor boxes = operand(scope, args[0]), anchors = operand(scope, args[1]), weights;
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_boxes(op, "boxes", boxes, err));
  TENON_TRY(expect_boxes(op, "anchors", anchors, err));
  TENON_TRY(read_weights(scope, op, args[2], boxes, &weights, err));
  const Box box = read_box(scope, boxes, "xyxy"), anchor = read_box(scope, anchors, "xyxy");
  Tensor offset = ops::divide(scope, ops::subtract(scope, box.center, anchor.center), anchor.size);
  Tensor ratio = ops::log(scope, ops::divide(scope, box.size, anchor.size));
  return finish(scope, outs,
                ops::multiply(scope, ops::concat(scope, {offset, ratio}, -1), weights));
}

TENON_DECOMPOSE(box_decode) {
  const char* op = "box_decode";
  Scope scope(err);
  Tensor deltas = operand(scope, args[0]), anchors = operand(scope, args[1]), weights;
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_boxes(op, "deltas", deltas, err));
  TENON_TRY(expect_boxes(op, "anchors", anchors, err));
  TENON_TRY(read_weights(scope, op, args[2], deltas, &weights, err));
  const double max_ratio = float_of(args[3]);
  if (!(max_ratio > 0))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected max_ratio above 0, got %g",
                        max_ratio);
  const Box anchor = read_box(scope, anchors, "xyxy");
  deltas = ops::divide(scope, deltas, weights);
  Tensor center =
      ops::add(scope, ops::multiply(scope, half(scope, deltas, 0), anchor.size), anchor.center);
  Tensor ratio =
      ops::exp(scope, ops::clip(scope, half(scope, deltas, 1), nullptr, std::log(max_ratio)));
  const Box box = {center, ops::multiply(scope, ratio, anchor.size)};
  return finish(scope, outs, write_box(scope, box, "xyxy"));
}

TENON_DECOMPOSE(nms) {
  const char* op = "nms";
  Scope scope(err);
  Tensor boxes = operand(scope, args[0]), scores = operand(scope, args[1]),
         categories = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_boxes(op, "boxes", boxes, err));
  TENON_TRY(expect_ndim(op, "boxes", *boxes.get(), 2, "[N, 4]", err));
  for (const Tensor* each : {&scores, &categories})
    if (*each && ((*each)->ndim != 1 || (*each)->shape[0] != boxes->shape[0]))
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected a number for each of %lld boxes, got %s of shape %s",
                          ll(boxes->shape[0]), each == &scores ? "scores" : "categories",
                          shape_text(*each->get()).c_str());
  const int64_t count = is_none(args[4]) ? boxes->shape[0] : int_of(args[4]);
  if (count < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected a count of at least 0, got %lld",
                        ll(count));
  Tensor order = ops::argsort(scope, ops::stop_gradient(scope, scores), 0, true);
  Tensor sorted = ops::index_select(scope, ops::stop_gradient(scope, boxes), order, 0);
  if (categories) categories = ops::index_select(scope, categories, order, 0);
  Tensor mask = ops::nms_mask(scope, sorted, categories, float_of(args[2]));
  Tensor kept = ops::select(scope, ops::nonzero(scope, mask), 1, 0);
  if (!scope.ok()) return scope.status();
  if (kept->shape[0] > count) kept = ops::narrow(scope, kept, 0, 0, count);
  return finish(scope, outs, ops::index_select(scope, order, kept, 0));
}

// A box is kept if none that is kept overlaps it from before. Starting from all boxes, each round
// makes the answer right for one more at least, and in practice for nearly all at once.
TENON_DECOMPOSE(nms_mask) {
  Scope scope(err);
  Tensor boxes = operand(scope, args[0]), categories = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const int64_t count = boxes->shape[0];
  Tensor numbers = numbers_to(scope, count, boxes);
  const auto rows = [&](const Tensor& x) { return ops::unsqueeze(scope, x, {1}); };
  Tensor overlaps = ops::greater(scope, ops::box_iou(scope, boxes, boxes), float_of(args[2]));
  overlaps = ops::logical_and(scope, overlaps, ops::greater(scope, rows(numbers), numbers));
  if (categories)
    overlaps = ops::logical_and(scope, overlaps, ops::equal(scope, rows(categories), categories));
  Tensor keep = ops::full(scope, {count}, true, TENON_DTYPE_BOOL, boxes->device);
  for (int64_t round = 0; round < count && scope.ok(); ++round) {
    Tensor next =
        ops::logical_not(scope, ops::any(scope, ops::logical_and(scope, overlaps, keep), {1}));
    Tensor changed = ops::to_device(scope, ops::any(scope, ops::not_equal(scope, next, keep)),
                                    host->device_host());
    if (!has_elements(scope, changed) || !*static_cast<const bool*>(changed->data)) break;
    keep = next;
  }
  return finish(scope, outs, keep);
}

}  // namespace tenon::standard_ops

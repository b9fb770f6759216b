// SPDX-License-Identifier: Apache-2.0
// Shape rules in Python: what they are given and what they may return.
#include <algorithm>
#include <utility>

#include "operator_definition.hpp"
#include "operator_type.hpp"
#include "recording.hpp"
#include "tensor_object.hpp"
#include "types.hpp"

namespace tenon::python {
namespace {

// The dtype of results whose rule names none: that of the first tensor, or of the first dtype
// argument.
int32_t default_dtype(const tenon_value* args, uint32_t nargs) {
  int32_t named = -1;
  for (uint32_t i = 0; i < nargs; ++i) {
    if (args[i].tag == TENON_VALUE_TENSOR) return static_cast<tenon_tensor*>(args[i].v.p)->dtype;
    if (args[i].tag == TENON_VALUE_TENSORS)
      for (uint32_t k = 0; k < args[i].aux; ++k)
        if (auto* tensor = static_cast<tenon_tensor* const*>(args[i].v.p)[k]) return tensor->dtype;
    if (args[i].tag == TENON_VALUE_DTYPE && named < 0) named = static_cast<int32_t>(args[i].v.i);
  }
  return named;
}

Raised wrong_result(const Schema& schema, PyObject* got) {
  return raise_otherwise(
      PyExc_TypeError,
      "%s: its shape rule returned %R; expected a shape, (shape, dtype) or a Tensor%s",
      schema.name().c_str(), got, schema.results().size() > 1 ? " for each result" : "");
}

bool read_extents(const Schema& schema, PyObject* shape, tenon_meta& meta) {
  Items items(shape);
  if (!items) return wrong_result(schema, shape);
  if (items.size() > TENON_MAX_NDIM)
    return raise_error(PyExc_ValueError, "%s: its shape rule returned %u axes; expected at most %d",
                       schema.name().c_str(), items.size(), TENON_MAX_NDIM);
  meta.ndim = static_cast<int32_t>(items.size());
  for (uint32_t i = 0; i < items.size(); ++i) {
    if (!PyIndex_Check(items[i])) return wrong_result(schema, shape);
    meta.shape[i] = PyNumber_AsSsize_t(items[i], PyExc_OverflowError);
    if (meta.shape[i] < 0)
      return raise_otherwise(PyExc_ValueError,
                             "%s: its shape rule returned the shape %R; expected no negative size",
                             schema.name().c_str(), shape);
  }
  return true;
}

bool read_meta(const Schema& schema, PyObject* item, int32_t dtype, tenon_meta& meta) {
  meta = {};
  meta.kind = TENON_META_NEW;
  if (is_tensor(item)) {
    const tenon_tensor& like = *handle_of(item);
    meta.ndim = like.ndim;
    meta.dtype = like.dtype;
    std::copy_n(like.shape, like.ndim, meta.shape);
    return true;
  }
  PyObject* shape = item;
  if (PyTuple_Check(item) && PyTuple_GET_SIZE(item) == 2 &&
      (PyTuple_Check(PyTuple_GET_ITEM(item, 0)) || PyList_Check(PyTuple_GET_ITEM(item, 0)))) {
    shape = PyTuple_GET_ITEM(item, 0);
    if (!to_dtype(PyTuple_GET_ITEM(item, 1), dtype)) return wrong_result(schema, item);
  }
  if (!read_extents(schema, shape, meta)) return false;
  if (dtype < 0)
    return raise_error(PyExc_ValueError,
                       "%s: its shape rule returned a shape alone, and no argument has a dtype; "
                       "return (shape, dtype)",
                       schema.name().c_str());
  meta.dtype = static_cast<uint8_t>(dtype);
  return true;
}

bool read_metas(const Schema& schema, PyObject* result, int32_t dtype, tenon_meta* outs,
                uint32_t nouts) {
  if (nouts == 1) return read_meta(schema, result, dtype, outs[0]);
  Items items(result);
  if (!items) return wrong_result(schema, result);
  if (items.size() != nouts)
    return raise_error(PyExc_ValueError, "%s: its shape rule returned %u results; expected %u",
                       schema.name().c_str(), items.size(), nouts);
  for (uint32_t i = 0; i < nouts; ++i)
    if (!read_meta(schema, items[i], dtype, outs[i])) return false;
  return true;
}

// The host asks for shapes just before it runs the body.
struct Promise {
  const OperatorDefinition* definition = nullptr;
  ExpectedResult results[kMaxResults];
};
thread_local Promise promised;

void promise(const OperatorDefinition& definition, const tenon_meta* metas, uint32_t count) {
  promised.definition = &definition;
  for (uint32_t i = 0; i < count; ++i) {
    ExpectedResult& result = promised.results[i];
    result.dtype = metas[i].dtype;
    result.device = TENON_DEVICE_NONE;
    result.ndim = metas[i].ndim;
    std::copy_n(metas[i].shape, metas[i].ndim, result.shape);
  }
}

}  // namespace

bool take_promise(const OperatorDefinition& definition, ExpectedResult* results, uint32_t count) {
  if (std::exchange(promised.definition, nullptr) != &definition) return false;
  std::copy_n(promised.results, count, results);
  return true;
}

tenon_status infer_in_python(const tenon_value* args, uint32_t nargs, tenon_meta* outs,
                             uint32_t nouts, tenon_err* err, void* self) {
  return run_python(err, [&]() -> bool {
    auto& definition = *static_cast<OperatorDefinition*>(self);
    const Schema& schema = definition.schema;
    if (!definition.shape)
      return raise_error(
          PyExc_NotImplementedError,
          "%s has no shape rule; add one with @%s.shape, or a body in terms of other "
          "operators",
          schema.name().c_str(), std::string(schema.short_name()).c_str());
    Running running(definition.running);
    note_operator(schema.name());
    WithoutRecording off;
    PyObject* result = definition.shape.call({.schema = schema, .args = args, .detaches = true});
    if (!result) return false;
    bool good = read_metas(schema, result, default_dtype(args, nargs), outs, nouts);
    Py_DECREF(result);
    if (good && definition.body) promise(definition, outs, nouts);
    return good;
  });
}

}  // namespace tenon::python

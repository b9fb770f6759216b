// SPDX-License-Identifier: Apache-2.0
// LinearRegressor, LinearClassifier, Scaler, Normalizer, Imputer, FeatureVectorizer.
#include <cmath>

#include "convert/converters.hpp"
#include "ml/scores.hpp"

namespace tenon::onnx {
namespace {

Floats floats_attribute(Conversion& c, const char* name) {
  const Value value = c.attribute(name);
  return value.is_none() ? Floats() : floats_of(value, name);
}

// X by rows of coefficients, [rows, outputs].
Tensor linear(Conversion& c, int64_t outputs) {
  const Tensor x = as_rows(c, c.cast(c.tensor("X"), TENON_DTYPE_F32));
  const Floats weights = floats_attribute(c, "coefficients"),
               offsets = floats_attribute(c, "intercepts");
  const int64_t features = x->shape[1];
  if (outputs < 1 || static_cast<int64_t>(weights.size()) != outputs * features)
    c.fail("attribute `coefficients`: expected " + std::to_string(features) +
           " numbers for each of " + std::to_string(outputs) + " outputs, got " +
           std::to_string(weights.size()));
  if (!offsets.empty() && static_cast<int64_t>(offsets.size()) != outputs)
    c.fail("attribute `intercepts`: expected " + std::to_string(outputs) + ", got " +
           std::to_string(offsets.size()));
  const Tensor weight = known_table(weights, {outputs, features});
  return c.call("linear", {x, weight, offsets.empty() ? Value() : Value(known_floats(offsets))});
}

// One number, or one for each column.
Value by_column(Conversion& c, const char* name, double otherwise, int64_t columns) {
  const Floats list = floats_attribute(c, name);
  if (list.empty()) return otherwise;
  if (list.size() != 1 && static_cast<int64_t>(list.size()) != columns)
    c.fail(std::string("attribute `") + name + "`: expected 1 or " + std::to_string(columns) +
           " numbers, got " + std::to_string(list.size()));
  return known_floats(list);
}

}  // namespace

Values convert_linear_regressor(Conversion& c) {
  return {post_transformed(c, linear(c, c.integer("targets")), c.text("post_transform"))};
}

Values convert_linear_classifier(Conversion& c) {
  const Labels labels(c, "classlabels_strings", "classlabels_ints");
  const Tensor x = as_rows(c, c.tensor("X"));
  const auto total = static_cast<int64_t>(floats_attribute(c, "coefficients").size());
  const int64_t features = x->shape[1], outputs = features > 0 ? total / features : 0;
  return classified(c, labels, linear(c, outputs), c.text("post_transform"), {0.0, true});
}

Values convert_scaler(Conversion& c) {
  const Tensor x = c.cast(c.tensor("X"), TENON_DTYPE_F32);
  if (x->ndim < 1) c.fail("expected X of at least one axis");
  const int64_t columns = x->shape[x->ndim - 1];
  const Tensor moved = c.call("subtract", {x, by_column(c, "offset", 0.0, columns)});
  return {c.call("multiply", {moved, by_column(c, "scale", 1.0, columns)})};
}

Values convert_normalizer(Conversion& c) {
  const Tensor x = c.cast(c.tensor("X"), TENON_DTYPE_F32);
  if (x->ndim < 1) c.fail("expected X of at least one axis");
  const std::string norm = c.text("norm");
  Tensor size;
  if (norm == "MAX")
    size = c.call("max", {x, Ints{-1}, true});
  else if (norm == "L1")
    size = c.call("sum", {c.call("abs", {x}), Ints{-1}, true});
  else if (norm == "L2")
    size = c.call("sqrt", {c.call("sum", {c.call("multiply", {x, x}), Ints{-1}, true})});
  else
    c.fail("attribute `norm`: expected MAX, L1 or L2, got `" + norm + "`");
  const Tensor is_nothing = c.call("equal", {size, 0.0});
  return {c.call("divide", {x, c.call("where", {is_nothing, 1.0, size})})};
}

Values convert_imputer(Conversion& c) {
  const Tensor& x = c.tensor("X");
  if (x->ndim < 1) c.fail("expected X of at least one axis");
  const int64_t columns = x->shape[x->ndim - 1];
  const bool is_integer = x->dtype <= TENON_DTYPE_I64;
  const char* name = is_integer ? "imputed_value_int64s" : "imputed_value_floats";
  if (!c.has_attribute(name)) c.fail(std::string("expected attribute `") + name + "`");
  Tensor is_missing;
  Value imputed;
  if (is_integer) {
    const Ints list = c.integers(name);
    if (list.size() != 1 && static_cast<int64_t>(list.size()) != columns)
      c.fail("attribute `imputed_value_int64s`: expected 1 or " + std::to_string(columns));
    is_missing = c.call("equal", {x, c.integer("replaced_value_int64")});
    imputed = c.cast(known_ints(list), x->dtype);
  } else {
    const double replaced = c.number("replaced_value_float");
    is_missing = std::isnan(replaced) ? c.call("isnan", {x}) : c.call("equal", {x, replaced});
    imputed = c.cast(by_column(c, name, 0.0, columns).tensor(name), x->dtype);
  }
  return {c.call("where", {is_missing, imputed, x})};
}

Values convert_feature_vectorizer(Conversion& c) {
  const Ints sizes = c.integers("inputdimensions");
  if (!sizes.empty() && sizes.size() != c.inputs().size())
    c.fail("attribute `inputdimensions`: expected one for each of " +
           std::to_string(c.inputs().size()) + " inputs, got " + std::to_string(sizes.size()));
  Values columns;
  for (size_t i = 0; i < c.inputs().size(); ++i) {
    const Tensor x = as_rows(c, c.cast(c.inputs()[i].tensor("X"), TENON_DTYPE_F32));
    if (!sizes.empty() && sizes[i] != x->shape[1])
      c.refuse("attribute `inputdimensions`: " + std::to_string(sizes[i]) +
               " columns of an input of " + std::to_string(x->shape[1]));
    columns.emplace_back(x);
  }
  if (columns.empty()) c.fail("expected one input at least, got none");
  return {c.call("concat", {columns, 1})};
}

}  // namespace tenon::onnx

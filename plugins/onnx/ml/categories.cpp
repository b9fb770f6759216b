// SPDX-License-Identifier: Apache-2.0
// LabelEncoder, CategoryMapper, OneHotEncoder: keys to values, by a table that is sorted when the model is imported.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "convert/converters.hpp"
#include "ml/scores.hpp"
#include "text/texts.hpp"

namespace tenon::onnx {
namespace {

// For each element its place among the keys; as many as there are where it is none of them.
Tensor key_indices(Conversion& c, const Text& text, const Texts& keys) {
  std::map<std::string_view, int64_t> known;
  for (size_t i = 0; i < keys.size(); ++i) known.emplace(keys[i], static_cast<int64_t>(i));
  Ints found;
  for (const std::string& one : *text.vocabulary) {
    const auto at = known.find(one);
    found.push_back(at == known.end() ? static_cast<int64_t>(keys.size()) : at->second);
  }
  return rows_of(c, text, known_ints(found));
}

Tensor key_indices(Conversion& c, const Tensor& x, const Floats& keys) {
  const auto count = static_cast<int64_t>(keys.size());
  Ints order;
  int64_t of_nan = count;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(keys[static_cast<size_t>(i)]))
      of_nan = std::min(of_nan, i);
    else
      order.push_back(i);
  }
  const auto key = [&](int64_t i) { return keys[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return key(a) < key(b); });
  Ints whole;
  Floats sorted;
  for (int64_t i : order) {
    sorted.push_back(key(i));
    whole.push_back(static_cast<int64_t>(key(i)));
  }
  Value place = count;
  if (!sorted.empty()) {
    const bool is_integer = x->dtype <= TENON_DTYPE_I64;
    const auto size = static_cast<int64_t>(sorted.size());
    const Tensor values = is_integer ? c.cast(x, TENON_DTYPE_I64) : x,
                 table = is_integer
                             ? known_ints(whole)
                             : c.cast(known_table(sorted, {size}, TENON_DTYPE_F64), x->dtype);
    const Tensor at = c.call("minimum", {c.call("searchsorted", {table, values}), size - 1}),
                 is_key = c.call("equal", {c.call("index_select", {table, at, 0}), values});
    place = c.call("where", {is_key, c.call("index_select", {known_ints(order), at, 0}), place});
  }
  if (of_nan < count && x->dtype > TENON_DTYPE_I64)
    place = c.call("where", {c.call("isnan", {x}), of_nan, place});
  if (!place.is_tensor()) c.refuse("no key that an input of " + describe(*x.get()) + " may be");
  return c.cast(place.tensor("X"), TENON_DTYPE_I64);
}

// Integers beyond 2^53 are no double.
Floats exact(Conversion& c, const Ints& list) {
  for (int64_t number : list)
    if (std::abs(static_cast<double>(number)) > 9e15) c.refuse("keys beyond 2^53");
  return Floats(list.begin(), list.end());
}

Tensor key_indices_of(Conversion& c, const Value& x, const Value& keys, const std::string& name) {
  const Texts* texts = keys.get<Texts>();
  Texts elements;
  if (keys.get<Text>()) elements = texts_of(keys, name);
  if (texts) elements = *texts;
  const bool has_texts = texts || keys.get<Text>();
  if (const Text* text = x.get<Text>()) {
    if (!has_texts) c.fail("`" + name + "`: expected texts for an input of text");
    return key_indices(c, *text, elements);
  }
  if (has_texts) c.fail("`" + name + "`: expected numbers for an input of " + x.describe());
  const Ints* list = keys.get<Ints>();
  return key_indices(c, x.tensor("X"), list ? exact(c, *list) : floats_of(keys, name));
}

// values[place], and the default behind the last one.
Value valued(Conversion& c, const Tensor& place, const Value& values, const Value& otherwise,
             size_t keys) {
  const auto check = [&](size_t count) {
    if (count != keys)
      c.fail("expected as many values as keys, " + std::to_string(keys) + ", got " +
             std::to_string(count));
  };
  if (values.get<Texts>() || values.get<Text>()) {
    Texts texts = values.get<Text>() ? texts_of(values, "values") : *values.get<Texts>();
    check(texts.size());
    texts.push_back(otherwise.get<Text>() ? texts_of(otherwise, "default_tensor").at(0)
                                          : *otherwise.get<std::string>());
    return texts_at(c, place, texts);
  }
  Tensor table;
  if (const Tensor* tensor = values.get<Tensor>()) {
    check(static_cast<size_t>((*tensor)->numel));
    const Tensor last =
        otherwise.get<Tensor>()
            ? *otherwise.get<Tensor>()
            : c.call("full", {Ints{1}, otherwise, {"dtype", Dtype{(*tensor)->dtype}}});
    table = c.call("concat", {Values{c.call("reshape", {*tensor, Ints{-1}}),
                                     c.cast(c.call("reshape", {last, Ints{-1}}), (*tensor)->dtype)},
                              int64_t{0}});
  } else if (const Ints* list = values.get<Ints>()) {
    check(list->size());
    Ints all = *list;
    all.push_back(int_of(otherwise, "default_int64"));
    table = known_ints(all);
  } else {
    Floats all = floats_of(values, "values");
    check(all.size());
    all.push_back(float_of(otherwise, "default_float"));
    table = known_floats(all);
  }
  return c.call("index_select", {table, place, 0});
}

size_t count_of(const Value& list) {
  if (const Texts* texts = list.get<Texts>()) return texts->size();
  if (const Ints* ints = list.get<Ints>()) return ints->size();
  if (const Floats* floats = list.get<Floats>()) return floats->size();
  if (const Text* text = list.get<Text>()) return static_cast<size_t>(text->codes->numel);
  if (const Tensor* tensor = list.get<Tensor>()) return static_cast<size_t>((*tensor)->numel);
  return 0;
}

// The attribute of these names that is given, and its name.
std::pair<Value, std::string> one_of(Conversion& c, const std::vector<std::string>& names) {
  std::pair<Value, std::string> found;
  for (const std::string& name : names) {
    if (!c.schema.find_attribute(name) || !c.has_attribute(name)) continue;
    if (!found.second.empty())
      c.fail("expected one of attributes `" + found.second + "` and `" + name + "`, got both");
    found = {c.attribute(name), name};
  }
  if (found.second.empty())
    c.fail("expected one of attributes `" + names[0] + "`, `" + names[1] + "`, ...");
  return found;
}

}  // namespace

Values convert_label_encoder(Conversion& c) {
  const Value x = c.inputs()[0];
  if (c.schema.since == 1) {
    const Value classes = c.attribute("classes_strings");
    if (!classes.get<Texts>()) c.fail("expected attribute `classes_strings`");
    const Texts& texts = *classes.get<Texts>();
    Ints numbers(texts.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    if (x.get<Text>())
      return {valued(c, key_indices(c, *x.get<Text>(), texts), numbers, c.integer("default_int64"),
                     texts.size())};
    const Value otherwise = c.text("default_string");
    return {valued(c, key_indices(c, x.tensor("X"), exact(c, numbers)), texts, otherwise,
                   texts.size())};
  }
  const auto [keys, keys_name] =
      one_of(c, {"keys_strings", "keys_int64s", "keys_floats", "keys_tensor"});
  const auto [values, values_name] =
      one_of(c, {"values_strings", "values_int64s", "values_floats", "values_tensor"});
  Value otherwise;
  if (c.schema.find_attribute("default_tensor") && c.has_attribute("default_tensor"))
    otherwise = c.attribute("default_tensor");
  else if (values.get<Texts>() || values.get<Text>())
    otherwise = c.text("default_string");
  else if (values.get<Ints>() ||
           (values.get<Tensor>() && (*values.get<Tensor>())->dtype <= TENON_DTYPE_I64))
    otherwise = c.integer("default_int64");
  else
    otherwise = c.number("default_float");
  return {valued(c, key_indices_of(c, x, keys, keys_name), values, otherwise, count_of(keys))};
}

Values convert_category_mapper(Conversion& c) {
  const Value texts = c.attribute("cats_strings");
  if (!texts.get<Texts>() || !c.has_attribute("cats_int64s"))
    c.fail("expected attributes `cats_strings` and `cats_int64s`");
  const Ints numbers = c.integers("cats_int64s");
  const Value x = c.inputs()[0];
  if (x.get<Text>())
    return {valued(c, key_indices(c, *x.get<Text>(), *texts.get<Texts>()), numbers,
                   c.integer("default_int64"), texts.get<Texts>()->size())};
  const Value otherwise = c.text("default_string");
  return {valued(c, key_indices(c, x.tensor("X"), exact(c, numbers)), texts, otherwise,
                 numbers.size())};
}

Values convert_one_hot_encoder(Conversion& c) {
  const auto [keys, name] = one_of(c, {"cats_int64s", "cats_strings"});
  const auto count = static_cast<int64_t>(count_of(keys));
  Value x = c.inputs()[0];
  // Categories are integers: a number with a fraction is the one below.
  if (const Tensor* numbers = x.get<Tensor>()) x = c.cast(*numbers, TENON_DTYPE_I64);
  Tensor place = key_indices_of(c, x, keys, name);
  if (c.integer("zeros", 1) == 0)
    place = c.call("expect_between", {place, 0.0, static_cast<double>(count - 1), "OneHotEncoder",
                                      "category", false});
  Ints all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  const Tensor equal =
      c.call("equal", {c.call("unsqueeze", {place, Ints{place->ndim}}), known_ints(all)});
  return {c.cast(equal, TENON_DTYPE_F32)};
}

}  // namespace tenon::onnx

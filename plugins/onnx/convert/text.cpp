// SPDX-License-Identifier: Apache-2.0
// Operators on text. What an operator makes of one text follows from the text alone, so that it is computed for each text of the
// vocabulary, and the numbers of the elements may depend on the inputs; what changes a shape needs texts that are known.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "convert/converters.hpp"
#include "convert/text.hpp"
#include "reader/reader.hpp"
#include "tensors.hpp"
#include "text/regex.hpp"
#include "text/texts.hpp"

namespace tenon::onnx {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 26;  // of texts that are made
constexpr size_t kMaxTexts = size_t{1} << 16;  // of a vocabulary that two make together

// f(text), for each text of the vocabulary.
template <class Function>
Text each(Conversion& c, const Text& text, Function function) {
  Texts made;
  for (const std::string& one : *text.vocabulary) made.push_back(function(one));
  return texts_at(c, text.codes, made);
}

// Between pieces of white space, or between delimiters.
Texts split(const std::string& text, const std::string& delimiter, int64_t most) {
  static constexpr const char* kSpace = " \t\n\v\f\r";
  Texts pieces;
  size_t begin = delimiter.empty() ? text.find_first_not_of(kSpace) : 0;
  if (begin == text.npos) return pieces;
  while (true) {
    const bool is_last = most >= 0 && static_cast<int64_t>(pieces.size()) == most;
    const size_t end = is_last             ? text.npos
                       : delimiter.empty() ? text.find_first_of(kSpace, begin)
                                           : text.find(delimiter, begin);
    if (end == text.npos) {
      size_t stop = text.size();
      if (delimiter.empty()) stop = text.find_last_not_of(kSpace) + 1;
      pieces.push_back(text.substr(begin, stop - begin));
      return pieces;
    }
    pieces.push_back(text.substr(begin, end - begin));
    begin = delimiter.empty() ? text.find_first_not_of(kSpace, end) : end + delimiter.size();
    if (begin == text.npos) return pieces;
  }
}

std::string lower(const std::string& text, const std::string& what) {
  return encoded(with_case(decoded(text, what), false));
}

// With the digits that ONNX Runtime prints.
std::string number_text(double number, bool is_double) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "INF" : "-INF";
  char text[64];
  std::snprintf(text, sizeof text, is_double ? "%.17g" : "%.8g", number);
  return text;
}

double parsed(Conversion& c, const std::string& text) {
  std::string plain = text;
  const size_t begin = plain.find_first_not_of(' ');
  plain = begin == plain.npos ? "" : plain.substr(begin, plain.find_last_not_of(' ') + 1 - begin);
  std::string small = plain;
  for (char& letter : small)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const bool is_negative = !small.empty() && small[0] == '-';
  const std::string body =
      !small.empty() && (small[0] == '-' || small[0] == '+') ? small.substr(1) : small;
  if (body == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (body == "inf" || body == "infinity")
    return is_negative ? -std::numeric_limits<double>::infinity()
                       : std::numeric_limits<double>::infinity();
  double value = 0;
  const char* first = body.data();
  const auto [end, error] = std::from_chars(first, first + body.size(), value);
  if (body.empty() || end != first + body.size() || error == std::errc::invalid_argument)
    c.fail("expected texts that are numbers, got `" + text.substr(0, 100) + "`");
  if (error == std::errc::result_out_of_range)
    value = body.find("e-") == body.npos ? std::numeric_limits<double>::infinity() : 0.0;
  return is_negative ? -value : value;
}

int64_t parsed_integer(Conversion& c, const std::string& text) {
  int64_t value = 0;
  const bool has_plus = !text.empty() && text[0] == '+';
  const char *first = text.data() + has_plus, *last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, value);
  if (first == last || end != last || error != std::errc())
    c.fail("expected texts that are integers of 64 bits, got `" + text.substr(0, 100) + "`");
  return value;
}

}  // namespace

Tensor cast_from_text(Conversion& c, const Text& text, int32_t dtype) {
  if (dtype == TENON_DTYPE_BOOL) c.refuse("text as bool, of which ONNX does not say what it is");
  if (dtype <= TENON_DTYPE_I64) {
    Ints numbers;
    for (const std::string& one : *text.vocabulary) numbers.push_back(parsed_integer(c, one));
    return c.cast(rows_of(c, text, known_ints(numbers)), dtype);
  }
  const auto count = static_cast<int64_t>(text.vocabulary->size());
  Tensor numbers = make_known(TENON_DTYPE_F64, {count});
  for (int64_t i = 0; i < count; ++i)
    static_cast<double*>(numbers->data)[i] = parsed(c, (*text.vocabulary)[static_cast<size_t>(i)]);
  return rows_of(c, text, c.cast(numbers, dtype));
}

Text cast_to_text(Conversion& c, const Tensor& from) {
  if (!is_known(from))
    c.refuse("to text: expected numbers that are known when the model is loaded, got a tensor of " +
             describe(*from.get()) + " that depends on the inputs");
  Texts texts;
  if (from->dtype == TENON_DTYPE_BOOL)
    c.refuse("bool as text, of which ONNX does not say what it is");
  if (from->dtype <= TENON_DTYPE_I64) {
    for (int64_t number : ints_of(from, "input")) texts.push_back(std::to_string(number));
  } else {
    const bool is_double = from->dtype == TENON_DTYPE_F64;
    for (double number : floats_of(from, "input")) texts.push_back(number_text(number, is_double));
  }
  return make_text(texts, shape_of(from));
}

Values convert_string_concat(Conversion& c) {
  const Text x = text_of(c.input("X"), "X"), y = text_of(c.input("Y"), "Y");
  const auto width = static_cast<int64_t>(y.vocabulary->size());
  if (x.vocabulary->size() * y.vocabulary->size() > kMaxTexts)
    c.refuse("more than 65536 pairs of different texts");
  Texts made;
  size_t bytes = 0;
  for (const std::string& one : *x.vocabulary)
    for (const std::string& other : *y.vocabulary) {
      if ((bytes += one.size() + other.size()) > kMaxBytes) c.refuse("texts of more than 64 MiB");
      made.push_back(one + other);
    }
  const Tensor numbers = c.call("add", {c.call("multiply", {x.codes, width}), y.codes});
  if (made.empty()) return {Text{numbers, std::make_shared<const Texts>()}};
  return {texts_at(c, numbers, made)};
}

Values convert_string_split(Conversion& c) {
  const Text x = text_of(c.input("X"), "X");
  const Texts elements = texts_of(x, "X");
  const std::string delimiter = c.text("delimiter");
  const int64_t most = c.has_attribute("maxsplit") ? c.integer("maxsplit") : -1;
  std::vector<Texts> rows;
  size_t width = 0;
  Ints counts;
  for (const std::string& element : elements) {
    rows.push_back(split(element, delimiter, most));
    width = std::max(width, rows.back().size());
    counts.push_back(static_cast<int64_t>(rows.back().size()));
    if (width * elements.size() > kMaxTexts * 16) c.refuse("more than 2^20 pieces");
  }
  Texts pieces;
  for (Texts& row : rows) {
    row.resize(width);
    pieces.insert(pieces.end(), row.begin(), row.end());
  }
  Ints shape = shape_of(x.codes);
  const Tensor numbers = c.call("reshape", {known_ints(counts), shape});
  shape.push_back(static_cast<int64_t>(width));
  return {make_text(pieces, shape), numbers};
}

Values convert_regex_full_match(Conversion& c) {
  const Text x = text_of(c.input("X"), "X");
  const Regex regex(decoded(c.text("pattern"), "attribute `pattern`"));
  Tensor matches = make_known(TENON_DTYPE_BOOL, {static_cast<int64_t>(x.vocabulary->size())});
  for (size_t i = 0; i < x.vocabulary->size(); ++i)
    static_cast<bool*>(matches->data)[i] = regex.matches(decoded((*x.vocabulary)[i], "X"));
  return {rows_of(c, x, matches)};
}

Values convert_string_normalizer(Conversion& c) {
  const Text x = text_of(c.input("X"), "X");
  const Ints shape = shape_of(x.codes);
  if (shape.size() != 1 && (shape.size() != 2 || shape[0] != 1))
    c.fail("expected texts of shape [C] or [1, C], got " + c.input("X").describe());
  const std::string action = c.text("case_change_action"), locale = c.text("locale");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    c.fail("attribute `case_change_action`: expected LOWER, UPPER or NONE, got `" + action + "`");
  for (const char* special : {"tr", "az", "lt"})
    if (locale.compare(0, 2, special) == 0)
      c.refuse("attribute `locale`: `" + locale +
               "` has letters of its own in upper and lower case");
  const Value given = c.attribute("stopwords");
  Texts stopwords = given.is_none() ? Texts() : *given.get<Texts>();
  const bool is_sensitive = c.integer("is_case_sensitive") != 0;
  const auto folded = [&](const std::string& text) {
    return is_sensitive ? text : lower(text, "X");
  };
  for (std::string& word : stopwords) word = folded(word);
  const auto changed = [&](const std::string& text) {
    return action == "NONE" ? text : encoded(with_case(decoded(text, "X"), action == "UPPER"));
  };
  if (stopwords.empty()) return {each(c, x, changed)};
  Texts kept;
  for (const std::string& text : texts_of(x, "X"))
    if (std::find(stopwords.begin(), stopwords.end(), folded(text)) == stopwords.end())
      kept.push_back(changed(text));
  if (kept.empty()) kept.emplace_back();
  Ints kept_shape = shape;
  kept_shape.back() = static_cast<int64_t>(kept.size());
  return {make_text(kept, kept_shape)};
}

namespace {

// Operators that move elements, or compare them, and which of their results are text: all, the first, none.
enum class Gives { kAll, kFirst, kNone };

const std::map<std::string_view, Gives>& moving() {
  static const std::map<std::string_view, Gives> table = {
      {"Identity", Gives::kAll},        {"Reshape", Gives::kAll},
      {"Flatten", Gives::kAll},         {"Squeeze", Gives::kAll},
      {"Unsqueeze", Gives::kAll},       {"Transpose", Gives::kAll},
      {"Expand", Gives::kAll},          {"Tile", Gives::kAll},
      {"Gather", Gives::kAll},          {"GatherElements", Gives::kAll},
      {"GatherND", Gives::kAll},        {"Concat", Gives::kAll},
      {"Slice", Gives::kAll},           {"Split", Gives::kAll},
      {"Where", Gives::kAll},           {"Compress", Gives::kAll},
      {"ReverseSequence", Gives::kAll}, {"ScatterElements", Gives::kAll},
      {"ScatterND", Gives::kAll},       {"DepthToSpace", Gives::kAll},
      {"SpaceToDepth", Gives::kAll},    {"Unique", Gives::kFirst},
      {"Equal", Gives::kNone},          {"Shape", Gives::kNone},
      {"Size", Gives::kNone},           {"ai.onnx.ml.ArrayFeatureExtractor", Gives::kAll}};
  return table;
}

}  // namespace

bool moves_text(const std::string& op) { return moving().count(op) > 0; }

Values with_numbers(Conversion& c, const Values& inputs, const std::string& op,
                    const std::function<Values(Values)>& convert) {
  std::vector<Text> texts;
  for (const Value& input : inputs)
    if (const Text* text = input.get<Text>()) texts.push_back(*text);
  texts = with_one_vocabulary(c, texts);
  Values numbers;
  size_t next = 0;
  for (const Value& input : inputs)
    numbers.push_back(input.get<Text>() ? Value(texts[next++].codes) : input);
  if (op.compare(0, 7, "Scatter") == 0 && c.has_attribute("reduction") &&
      c.text("reduction") != "none")
    c.refuse("attribute `reduction`: `" + c.text("reduction") + "` of texts");
  Values results = convert(std::move(numbers));
  const Gives gives = moving().at(op);
  const auto as_text = [&](Value& value) {
    if (const Tensor* tensor = value.get<Tensor>()) value = Text{*tensor, texts.at(0).vocabulary};
  };
  if (gives == Gives::kAll)
    for (Value& result : results) as_text(result);
  if (gives == Gives::kFirst && !results.empty()) as_text(results[0]);
  return results;
}

}  // namespace tenon::onnx

// SPDX-License-Identifier: Apache-2.0
#include "text/size_reader.hpp"

#include <algorithm>

#include "support/host.hpp"

namespace tenon::graph {

std::optional<uint32_t> SizeReader::find_dimension(std::string_view name) const {
  for (uint32_t i = 0; i < dimensions_.list.size(); ++i)
    if (dimensions_.list[i].name == name) return i;
  return std::nullopt;
}

int64_t SizeReader::sum(bool rounds) {
  if (++nested_ > kMaxDepth) fail("too many parentheses");
  int64_t value = product(rounds);
  for (;;) {
    if (accept('+'))
      value = checked(__builtin_add_overflow(value, product(rounds), &value), value);
    else if (accept('-'))
      value = checked(__builtin_sub_overflow(value, product(rounds), &value), value);
    else
      break;
  }
  --nested_;
  return value;
}

int64_t SizeReader::product(bool rounds) {
  int64_t value = factor(rounds);
  for (;;) {
    skip_spaces();
    const bool rounds_down = rounds && text_.substr(at_, 2) == "//";
    if (accept('*')) {
      value = checked(__builtin_mul_overflow(value, factor(rounds), &value), value);
    } else if (rounds_down) {
      at_ += 2;
      const int64_t by = divisor(rounds);
      value = value / by - (value % by != 0 && (value % by < 0) != (by < 0));
    } else if (accept('/')) {
      const int64_t by = divisor(rounds);
      if (value % by != 0)
        throw Error(TENON_INVALID_ARGUMENT, "program, line " + std::to_string(line_) + ": " +
                                                std::to_string(value) + " is no multiple of " +
                                                std::to_string(by) + " for " + sizes_text() +
                                                "; export the function for this size");
      value /= by;
    } else if (rounds && accept('%')) {
      const int64_t by = divisor(rounds), rest = value % by;
      value = rest != 0 && (rest < 0) != (by < 0) ? rest + by : rest;
    } else {
      return value;
    }
  }
}

int64_t SizeReader::factor(bool rounds) {
  bool is_negative = false;
  while (accept('-')) is_negative = !is_negative;
  int64_t value;
  skip_spaces();
  if (accept('(')) {
    value = sum(rounds);
    expect(')');
  } else if (peek() >= '0' && peek() <= '9') {
    value = integer<int64_t>();
  } else {
    const std::string_view name = word();
    const std::optional<uint32_t> found = find_dimension(name);
    if (!found)
      fail("expected an integer or a dimension, got '" + std::string(name) + rest() + "'");
    value = sizes_[*found];
    names_dimension_ = true;
  }
  return is_negative ? checked(__builtin_sub_overflow(int64_t{0}, value, &value), value) : value;
}

int64_t SizeReader::divisor(bool rounds) {
  const int64_t by = factor(rounds);
  if (by == 0 || by == -1) fail("expected a divisor that is not 0 or -1");
  return by;
}

double SizeReader::scaled(double number) {
  if (!has_dimensions()) return number;
  if (accept('/')) return number / static_cast<double>(divisor(false));
  if (accept('*')) return number * static_cast<double>(factor(false));
  return number;
}

int64_t SizeReader::checked(bool overflows, const int64_t& value) const {
  if (overflows) fail("an expression of sizes is too large for 64 bits");
  return value;
}

std::string SizeReader::sizes_text() const {
  std::string text;
  for (size_t i = 0; i < sizes_.size(); ++i)
    text += (i ? ", " : "") + dimensions_.list[i].name + " = " + std::to_string(sizes_[i]);
  return text;
}

void SizeReader::read_dimension() {
  Dimension dimension;
  dimension.name = word();
  auto after = [&](const char* what) {
    if (!accept_word(what)) fail(std::string("expected '") + what + "', got '" + rest() + "'");
    return integer<int64_t>();
  };
  dimension.min = after("from");
  dimension.max = after("to");
  dimension.multiple = after("by");
  dimension.recorded = after("at");
  const std::string& name = dimension.name;
  const bool is_word =
      !name.empty() && !(name[0] >= '0' && name[0] <= '9') && name.find_first_of(":.") == name.npos;
  for (const char* taken : {"none", "true", "false", "nan", "inf", "complex"})
    if (name == taken) fail("a dimension cannot be called '" + name + "'");
  if (!is_word || host->dtype_find(name.c_str()) >= 0 || find_dimension(name))
    fail("expected another name for a dimension, got '" + name + "'");
  if (dimension.min < 1 || dimension.max < dimension.min || dimension.multiple < 1 ||
      !dimension.allows(dimension.recorded))
    fail("expected sizes from 1 on and the recorded one among them, got " + range_text(dimension));
  if (dimensions_.list.size() >= kMaxDimensions) fail("too many dimensions");
  const size_t index = dimensions_.list.size();
  sizes_.push_back(given_ && index < given_->size() ? (*given_)[index] : dimension.recorded);
  dimensions_.list.push_back(std::move(dimension));
  end_line();
}

void SizeReader::read_requirement() {
  skip_spaces();
  const std::string line = std::string(text_.substr(at_, text_.find('\n', at_) - at_));
  const int64_t left = sum(true);
  skip_spaces();
  const size_t begin = at_;
  while (peek() == '<' || peek() == '>' || peek() == '=' || peek() == '!') ++at_;
  const std::string_view comparison = text_.substr(begin, at_ - begin);
  const int64_t right = sum(true);
  bool holds = false;
  if (comparison == "==")
    holds = left == right;
  else if (comparison == "!=")
    holds = left != right;
  else if (comparison == "<")
    holds = left < right;
  else if (comparison == "<=")
    holds = left <= right;
  else if (comparison == ">")
    holds = left > right;
  else if (comparison == ">=")
    holds = left >= right;
  else
    fail("expected a comparison, got '" + std::string(comparison) + rest() + "'");
  if (!holds)
    throw Error(TENON_INVALID_ARGUMENT, "program: it was recorded for sizes with `" + line +
                                            "`, got " + sizes_text() +
                                            "; export the function for these");
  end_line();
}

}  // namespace tenon::graph

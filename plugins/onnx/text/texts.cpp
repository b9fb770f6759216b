// SPDX-License-Identifier: Apache-2.0
#include "text/texts.hpp"

#include <clocale>
#include <cwctype>
#include <map>
#include <set>

namespace tenon::onnx {
namespace {

// The length of the sequence at `at`, and its number; 0: there is none.
size_t decode_one(const std::string& text, size_t at, char32_t& letter) {
  const auto byte = [&](size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned first = byte(at);
  if (first < 0x80) {
    letter = first;
    return 1;
  }
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (length == 0 || first > 0xf4 || length > text.size() - at) return 0;
  letter = first & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
    letter = letter << 6 | (byte(at + i) & 0x3f);
  }
  static constexpr char32_t kMin[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = letter >= 0xd800 && letter < 0xe000;
  return letter < kMin[length] || letter > 0x10ffff || is_surrogate ? 0 : length;
}

std::shared_ptr<const Texts> sorted(const std::set<std::string>& texts) {
  return std::make_shared<const Texts>(texts.begin(), texts.end());
}

// For each text of `from` its number in `to`, which has it.
Tensor numbers_in(const Texts& from, const Texts& to) {
  std::map<std::string_view, int64_t> numbers;
  for (size_t i = 0; i < to.size(); ++i) numbers.emplace(to[i], static_cast<int64_t>(i));
  Ints codes;
  for (const std::string& text : from) codes.push_back(numbers.at(text));
  return known_ints(codes);
}

}  // namespace

Text make_text(const Texts& elements, const Ints& shape) {
  const auto vocabulary = sorted({elements.begin(), elements.end()});
  const Tensor codes = numbers_in(elements, *vocabulary);
  Tensor shaped = make_known(TENON_DTYPE_I64, shape);
  for (int64_t i = 0; i < shaped->numel; ++i)
    static_cast<int64_t*>(shaped->data)[i] = static_cast<const int64_t*>(codes->data)[i];
  return {shaped, vocabulary};
}

Text text_of(const Value& value, const std::string& what) {
  if (const Text* text = value.get<Text>()) return *text;
  throw Error(TENON_INVALID_ARGUMENT,
              what + ": expected a tensor of text, got " + value.describe());
}

Texts texts_of(const Value& value, const std::string& what) {
  const Text text = text_of(value, what);
  if (!is_known(text.codes))
    throw Error(TENON_UNSUPPORTED,
                what +
                    ": expected a text that is known when the model is loaded (a constant, or "
                    "computed from such ones), got " +
                    value.describe() + " that depends on the inputs");
  Texts elements;
  for (int64_t code : ints_of(text.codes, what))
    elements.push_back(text.vocabulary->at(static_cast<size_t>(code)));
  return elements;
}

std::vector<Text> with_one_vocabulary(Conversion& c, const std::vector<Text>& texts) {
  std::set<std::string> all;
  for (const Text& text : texts) all.insert(text.vocabulary->begin(), text.vocabulary->end());
  const auto vocabulary = sorted(all);
  std::vector<Text> changed;
  for (const Text& text : texts)
    changed.push_back(
        *text.vocabulary == *vocabulary
            ? text
            : Text{rows_of(c, text, numbers_in(*text.vocabulary, *vocabulary)), vocabulary});
  return changed;
}

Text texts_at(Conversion& c, const Tensor& numbers, const Texts& texts) {
  const auto vocabulary = sorted({texts.begin(), texts.end()});
  return {c.call("index_select", {numbers_in(texts, *vocabulary), numbers, 0}), vocabulary};
}

Tensor rows_of(Conversion& c, const Text& text, const Tensor& table) {
  // No text, and so no row that could be taken.
  if (text.vocabulary->empty()) {
    Ints shape = shape_of(text.codes);
    shape.insert(shape.end(), table->shape + 1, table->shape + table->ndim);
    return make_known(table->dtype, shape);
  }
  return c.call("index_select", {table, text.codes, 0});
}

std::u32string decoded(const std::string& text, const std::string& what) {
  std::u32string letters;
  for (size_t at = 0; at < text.size();) {
    char32_t letter = 0;
    const size_t length = decode_one(text, at, letter);
    if (length == 0)
      throw Error(TENON_INVALID_ARGUMENT, what + ": expected UTF-8, got other bytes");
    letters += letter;
    at += length;
  }
  return letters;
}

bool is_utf8(const std::string& text) {
  char32_t letter = 0;
  for (size_t at = 0, length = 0; at < text.size(); at += length)
    if (length = decode_one(text, at, letter); length == 0) return false;
  return true;
}

std::string encoded(const std::u32string& text) {
  std::string bytes;
  const auto add = [&](unsigned head, char32_t letter, int more) {
    bytes += static_cast<char>(head | (letter >> (6 * more)));
    for (int i = more - 1; i >= 0; --i)
      bytes += static_cast<char>(0x80 | (letter >> (6 * i) & 0x3f));
  };
  for (char32_t letter : text) {
    if (letter < 0x80)
      bytes += static_cast<char>(letter);
    else if (letter < 0x800)
      add(0xc0, letter, 1);
    else if (letter < 0x10000)
      add(0xe0, letter, 2);
    else
      add(0xf0, letter, 3);
  }
  return bytes;
}

std::u32string with_case(std::u32string text, bool is_upper) {
  // glibc's own table of letters; never freed.
  static const locale_t kLetters = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  for (char32_t& letter : text) {
    const auto wide = static_cast<wint_t>(letter);
    if (letter < 0x80 || !kLetters)
      letter = is_upper && letter >= 'a' && letter <= 'z'    ? letter - 32
               : !is_upper && letter >= 'A' && letter <= 'Z' ? letter + 32
                                                             : letter;
    else
      letter =
          static_cast<char32_t>(is_upper ? towupper_l(wide, kLetters) : towlower_l(wide, kLetters));
  }
  return text;
}

}  // namespace tenon::onnx

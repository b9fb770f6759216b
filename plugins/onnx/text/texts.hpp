// SPDX-License-Identifier: Apache-2.0
// Tensors of text while a model is imported.
#pragma once

#include <vector>

#include "conversion.hpp"

namespace tenon::onnx {

// A known one of these elements, row-major; as many as the shape has.
Text make_text(const Texts& elements, const Ints& shape);
// The elements of a known one. Throws Error: `what`, expected a text that is known when the model is loaded.
Texts texts_of(const Value& value, const std::string& what);
// The tensor of text; throws Error with `what` for anything else.
Text text_of(const Value& value, const std::string& what);
// The same texts, with numbers into one list of them all.
std::vector<Text> with_one_vocabulary(Conversion& c, const std::vector<Text>& texts);
// The text `texts[n]` for each number n, which may depend on the inputs.
Text texts_at(Conversion& c, const Tensor& numbers, const Texts& texts);
// The row of `table`, one for each text of the vocabulary, for each text.
Tensor rows_of(Conversion& c, const Text& text, const Tensor& table);

// UTF-8. Throws Error with `what` where it is none.
std::u32string decoded(const std::string& text, const std::string& what);
std::string encoded(const std::u32string& text);
bool is_utf8(const std::string& text);
// In lower or upper case, letter by letter.
std::u32string with_case(std::u32string text, bool is_upper);

}  // namespace tenon::onnx

// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors.hpp"

#include <charconv>
#include <stdexcept>

namespace tenon {
namespace {

// The part of JSON that such headers are made of: objects, texts, lists of whole numbers.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  SafetensorsHeader header() {
    SafetensorsHeader header;
    object([&](const std::string& name) {
      if (name == "__metadata__") {
        object([&](const std::string& key) { header.metadata[key] = text(); });
      } else if (!header.tensors.emplace(name, tensor()).second) {
        fail("two tensors of one name");
      }
    });
    skip_spaces();
    if (at_ < text_.size()) fail("text after the end");
    return header;
  }

 private:
  [[noreturn]] void fail(const char* problem) const {
    throw std::invalid_argument("the header of the file is not valid at byte " +
                                std::to_string(at_) + ": " + problem);
  }
  void skip_spaces() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool accept(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail("an unexpected character");
  }

  template <class Entry>
  void object(Entry&& entry) {
    expect('{');
    if (accept('}')) return;
    do {
      const std::string key = text();
      expect(':');
      entry(key);
    } while (accept(','));
    expect('}');
  }

  StoredTensor tensor() {
    StoredTensor tensor;
    bool has_offsets = false;
    object([&](const std::string& key) {
      if (key == "dtype") {
        tensor.dtype = text();
      } else if (key == "shape") {
        tensor.shape = integers();
      } else if (key == "data_offsets") {
        const std::vector<int64_t> both = integers();
        if (both.size() != 2 || both[1] < both[0]) fail("offsets that are no range");
        tensor.begin = static_cast<uint64_t>(both[0]);
        tensor.end = static_cast<uint64_t>(both[1]);
        has_offsets = true;
      } else {
        fail("an unknown key of a tensor");
      }
    });
    if (!has_offsets) fail("a tensor without data_offsets");
    return tensor;
  }

  std::vector<int64_t> integers() {
    std::vector<int64_t> list;
    expect('[');
    if (accept(']')) return list;
    do {
      skip_spaces();
      int64_t number = 0;
      const char* begin = text_.data() + at_;
      auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
      if (error != std::errc() || number < 0) fail("expected a whole number");
      at_ += static_cast<size_t>(end - begin);
      list.push_back(number);
    } while (accept(','));
    expect(']');
    return list;
  }

  uint32_t code_unit() {
    uint32_t unit = 0;
    if (at_ + 4 > text_.size()) fail("a cut escape");
    const char* begin = text_.data() + at_;
    auto [end, error] = std::from_chars(begin, begin + 4, unit, 16);
    if (error != std::errc() || end != begin + 4) fail("an invalid escape");
    at_ += 4;
    return unit;
  }

  // A code point as UTF-8, from one escape or from a pair of surrogates.
  void append_escaped(std::string& out) {
    uint32_t point = code_unit();
    if (point >= 0xd800 && point < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      const uint32_t low = code_unit();
      if (low < 0xdc00 || low > 0xdfff) fail("half of a surrogate pair");
      point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    }
    auto add = [&](uint32_t byte) { out += static_cast<char>(byte); };
    if (point < 0x80) return add(point);
    if (point < 0x800) {
      add(0xc0 | point >> 6);
    } else if (point < 0x10000) {
      add(0xe0 | point >> 12);
      add(0x80 | (point >> 6 & 0x3f));
    } else {
      add(0xf0 | point >> 18);
      add(0x80 | (point >> 12 & 0x3f));
      add(0x80 | (point >> 6 & 0x3f));
    }
    add(0x80 | (point & 0x3f));
  }

  std::string text() {
    expect('"');
    std::string out;
    for (;;) {
      if (at_ >= text_.size()) fail("a text without its closing quote");
      const char c = text_[at_++];
      if (c == '"') return out;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (at_ >= text_.size()) fail("a cut escape");
      switch (const char code = text_[at_++]) {
        case 'u':
          append_escaped(out);
          break;
        case 'n':
          out += '\n';
          break;
        case 't':
          out += '\t';
          break;
        case 'r':
          out += '\r';
          break;
        case 'b':
          out += '\b';
          break;
        case 'f':
          out += '\f';
          break;
        case '"':
        case '\\':
        case '/':
          out += code;
          break;
        default:
          fail("an invalid escape");
      }
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json) { return Reader(json).header(); }

}  // namespace tenon

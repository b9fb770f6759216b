// SPDX-License-Identifier: Apache-2.0
#include "support/text.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <unordered_set>

namespace tenon::codegen {

std::string join(const std::vector<std::string>& items, std::string_view separator) {
  return join(items, separator, [](const std::string& item) { return item; });
}

std::string fill(std::string_view text, Values values) {
  std::string result;
  while (true) {
    size_t begin = text.find('@');
    if (begin == std::string_view::npos) return result.append(text);
    size_t end = text.find('@', begin + 1);
    if (end == std::string_view::npos) throw std::logic_error(cat("template: lone @ in: ", text));
    std::string_view name = text.substr(begin + 1, end - begin - 1);
    auto value = std::find_if(values.begin(), values.end(),
                              [&](const auto& entry) { return entry.first == name; });
    if (value == values.end()) throw std::logic_error(cat("template: no value for @", name, "@"));
    result.append(text.substr(0, begin)).append(value->second);
    text.remove_prefix(end + 1);
  }
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    switch (c) {
      case '"':
        result += "\\\"";
        break;
      case '\\':
        result += "\\\\";
        break;
      case '\n':
        result += "\\n";
        break;
      case '\t':
        result += "\\t";
        break;
      // Would start a trigraph.
      case '?':
        result += result.back() == '?' ? "\\?" : "?";
        break;
      default:
        result += c;
    }
  }
  return result + "\"";
}

std::string json_quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\u%04x", c);
      result += buffer;
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string camel_case(std::string_view snake_case) {
  std::string result;
  bool up = true;
  for (char c : snake_case) {
    if (c == '_') {
      up = true;
      continue;
    }
    result += up ? static_cast<char>(std::toupper(c)) : c;
    up = false;
  }
  return result;
}

std::string upper_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(c));
  return result;
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return std::string(text);
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> result;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

std::string hex64(uint64_t value) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "0x%llx", static_cast<unsigned long long>(value));
  return buffer;
}

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.find_last_of('/') + 1));
}

std::string stem(std::string_view path) {
  std::string name = base_name(path);
  return name.substr(0, name.find_last_of('.'));
}

static size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replace = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row[b.size()];
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  size_t best_distance = std::max<size_t>(word.size() / 3, 2) + 1;
  for (const std::string& candidate : candidates) {
    size_t distance = edit_distance(word, candidate);
    // An abbreviation is near whatever its length.
    if (word.size() >= 3 && candidate.size() > word.size() &&
        candidate.compare(0, word.size(), word) == 0)
      distance = 1;
    if (distance > 0 && distance < best_distance && distance < candidate.size()) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best ? cat("; did you mean `", *best, "`?") : "";
}

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

bool is_reserved_word(std::string_view name) {
  static const std::unordered_set<std::string_view> words = {
      // C++
      "alignas", "alignof", "and", "asm", "auto", "bitand", "bitor", "bool", "break", "case",
      "catch", "char", "class", "compl", "concept", "const", "constexpr", "continue", "decltype",
      "default", "delete", "do", "double", "else", "enum", "explicit", "export", "extern", "false",
      "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace",
      "new", "noexcept", "not", "nullptr", "operator", "or", "private", "protected", "public",
      "register", "requires", "return", "short", "signed", "sizeof", "static", "struct", "switch",
      "template", "this", "throw", "true", "try", "typedef", "typeid", "typename", "union",
      "unsigned", "using", "virtual", "void", "volatile", "while", "xor",
      // Python
      "None", "True", "False", "as", "assert", "async", "await", "def", "del", "elif", "except",
      "finally", "from", "global", "import", "in", "is", "lambda", "nonlocal", "pass", "raise",
      "with", "yield",
      // expressions
      "none",
      // generated functions
      "scope", "args", "nargs", "outs", "nouts", "err", "ctx", "needs", "grad_args", "grad_outs"};
  return words.count(name) != 0;
}

}  // namespace tenon::codegen

// SPDX-License-Identifier: Apache-2.0
// Words of the operator grammar: dtype names, names that are taken, the nearest known word, the
// hash. Part of tenon/schema.hpp.
#pragma once

#include <tenon/dtypes.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::schema {

// Indexed by TENON_DTYPE_ id.
inline constexpr auto kDtypeNames = [] {
  std::array<const char*, TENON_DTYPE_COUNT> names{};
  for (const DtypeRow& row : kDtypeTable) names[static_cast<size_t>(row.id)] = row.name;
  return names;
}();

inline std::optional<int> find_dtype(std::string_view name) {
  for (size_t id = 0; id < kDtypeNames.size(); ++id)
    if (name == kDtypeNames[id]) return static_cast<int>(id);
  return std::nullopt;
}

// FNV-1a, 64 bits: the schema hash.
constexpr uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// C++ and Python keywords, and names that generated functions use themselves: an operator is
// callable from both languages, whichever it is written in.
inline bool is_reserved_word(std::string_view name) {
  static constexpr std::string_view words[] = {
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
  return std::find(std::begin(words), std::end(words), name) != std::end(words);
}

namespace detail {

inline size_t edit_distance(std::string_view a, std::string_view b) {
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

}  // namespace detail

// "; did you mean `x`?" for the nearest candidate, or "" if none is near.
inline std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  size_t best_distance = std::max<size_t>(word.size() / 3, 2) + 1;
  for (const std::string& candidate : candidates) {
    size_t distance = detail::edit_distance(word, candidate);
    // An abbreviation is near whatever its length.
    if (word.size() >= 3 && candidate.size() > word.size() &&
        candidate.compare(0, word.size(), word) == 0)
      distance = 1;
    if (distance > 0 && distance < best_distance && distance < candidate.size()) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best ? "; did you mean `" + *best + "`?" : "";
}

}  // namespace tenon::schema

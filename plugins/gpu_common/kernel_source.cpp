// SPDX-License-Identifier: Apache-2.0
#include "kernel_source.hpp"

#include <cctype>

namespace gpu_common {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

size_t skip_space(std::string_view text, size_t at) {
  while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
  return at;
}

std::string_view word_at(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(at, end - at);
}

// The number of parameters in a list that begins behind its opening bracket.
unsigned count_parameters(std::string_view text, size_t at) {
  unsigned commas = 0;
  bool empty = true;
  for (int depth = 1; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '(') ++depth;
    if (c == ')' && --depth == 0) break;
    if (c == ',' && depth == 1) ++commas;
    if (!std::isspace(static_cast<unsigned char>(c))) empty = false;
  }
  return empty ? 0 : commas + 1;
}

}  // namespace

std::string line_directive(const std::string& program_name) {
  std::string shown = program_name;
  for (char& c : shown)
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ') c = '_';
  return "\n#line 1 \"" + shown + "\"\n";
}

std::vector<KernelSignature> find_kernels(std::string_view source) {
  constexpr std::string_view kMark = "TK_KERNEL";
  std::vector<KernelSignature> found;
  for (size_t at = source.find(kMark); at != source.npos; at = source.find(kMark, at)) {
    at = skip_space(source, at + kMark.size());
    if (word_at(source, at) != "void") continue;
    at = skip_space(source, at + 4);
    const std::string_view name = word_at(source, at);
    at = skip_space(source, at + name.size());
    if (name.empty() || at >= source.size() || source[at] != '(') continue;
    found.push_back({std::string(name), count_parameters(source, at + 1)});
  }
  return found;
}

}  // namespace gpu_common

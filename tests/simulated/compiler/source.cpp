// SPDX-License-Identifier: Apache-2.0
#include "source.hpp"

#include <cctype>
#include <string_view>

namespace simulated {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Tokens of preprocessed text: words, literals, and single characters for all else.
class Tokens {
 public:
  explicit Tokens(std::string_view text, size_t at = 0) : text_(text), at_(at) {}

  // An empty token is the end.
  std::string_view next() {
    skip_space();
    begin_ = at_;
    if (at_ >= text_.size()) return {};
    const char c = text_[at_];
    if (is_word(c))
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    else if (c == '"' || c == '\'')
      skip_literal(c);
    else
      ++at_;
    return text_.substr(begin_, at_ - begin_);
  }
  // After an opening bracket: goes behind the one that closes it.
  void skip_brackets(char open, char close) {
    for (int depth = 1; depth > 0;) {
      const std::string_view token = next();
      if (token.empty()) return;
      if (token[0] == open) ++depth;
      if (token[0] == close) --depth;
    }
  }
  size_t begin() const { return begin_; }
  size_t end() const { return at_; }

 private:
  void skip_space() {
    for (;;) {
      while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
      // A line marker of the preprocessor.
      const bool line_begins = at_ == 0 || text_[at_ - 1] == '\n';
      if (at_ >= text_.size() || text_[at_] != '#' || !line_begins) return;
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    }
  }
  void skip_literal(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_)
      if (text_[at_] == '\\') ++at_;
    ++at_;
  }

  std::string_view text_;
  size_t at_, begin_ = 0;
};

// Behind `__global__`: the name is the word before the first bracket that belongs to no attribute.
std::string kernel_name(Tokens tokens) {
  std::string_view word;
  for (;;) {
    const std::string_view token = tokens.next();
    if (token.empty() || token == ";" || token == "{") return "";
    if (token == "(") {
      const bool attribute =
          word == "__launch_bounds__" || word == "__attribute__" || word == "__align__";
      if (!attribute) return std::string(word);
      tokens.skip_brackets('(', ')');
      word = {};
    } else if (is_word(token[0])) {
      word = token;
    }
  }
}

// Behind `extern __shared__`: "T name[];" becomes a pointer. Returns where the declaration ends, or
// 0 if it is none of dynamic shared memory.
size_t dynamic_shared(std::string_view text, size_t from, std::string* out) {
  Tokens tokens(text, from);
  std::string type;
  std::string_view word;
  for (;;) {
    const std::string_view token = tokens.next();
    if (token.empty() || token == ";" || token == "=") return 0;
    if (token == "__align__" || token == "__attribute__" || token == "alignas") {
      tokens.next();
      tokens.skip_brackets('(', ')');
    } else if (token == "[") {
      if (tokens.next() != "]" || tokens.next() != ";") return 0;
      *out = "SIMULATED_DYNAMIC_SHARED(" + type + ", " + std::string(word) + ");";
      return tokens.end();
    } else {
      if (!word.empty()) type += std::string(word) + " ";
      word = token;
    }
  }
}

// Behind `asm`: one instruction with its operands becomes the call of a function that has the instruction's name and takes
// its operands in the order of the text. Returns where the statement ends, or 0 if it is none of that form.
size_t inline_ptx(std::string_view text, size_t from, std::string* out) {
  Tokens tokens(text, from);
  std::string_view token = tokens.next();
  if (token == "volatile") token = tokens.next();
  if (token != "(") return 0;
  std::string instruction;
  for (token = tokens.next(); token[0] == '"'; token = tokens.next())
    instruction += token.substr(1, token.size() - 2);
  std::vector<std::string> operands;
  for (; token != ")"; token = tokens.next()) {
    if (token.empty()) return 0;
    if (token != "(") continue;  // a constraint, or a separator
    const size_t begin = tokens.begin();
    tokens.skip_brackets('(', ')');
    operands.emplace_back(text.substr(begin, tokens.end() - begin));
  }
  const size_t name_end = std::min(instruction.find_first_of(" ;"), instruction.size());
  *out = "simulated::ptx::" + instruction.substr(0, name_end) + "(";
  for (char& c : *out)
    if (c == '.') c = '_';
  bool is_first = true;
  for (size_t at = name_end; at < instruction.size(); ++at) {
    const char c = instruction[at];
    if (c != '%' && !is_word(c)) continue;
    size_t end = at + 1;
    while (end < instruction.size() && is_word(instruction[end])) ++end;
    std::string operand = instruction.substr(at, end - at);
    if (c == '%') {
      const size_t number = std::stoul(operand.substr(1));
      if (number >= operands.size()) return 0;
      operand = operands[number];
    }
    *out += (is_first ? "" : ", ") + operand;
    is_first = false;
    at = end - 1;
  }
  *out += ")";
  return tokens.end();
}

}  // namespace

DeviceSource read_device_source(const std::string& preprocessed, bool runs_ptx) {
  DeviceSource result;
  Tokens tokens(preprocessed);
  size_t copied = 0, extern_at = 0;
  std::string_view before;
  int depth = 0, template_depth = -1;  // of braces; -1: in no template
  const auto replace = [&](size_t from, const std::string& replacement, size_t end) {
    result.text.append(preprocessed, copied, from - copied);
    result.text += replacement;
    copied = end;
    tokens = Tokens(preprocessed, end);
  };
  for (std::string_view token; !(token = tokens.next()).empty(); before = token) {
    if (token == "extern") extern_at = tokens.begin();
    if (token == "{") ++depth;
    if (token == "}") --depth;
    if (token == "template" && template_depth < 0) template_depth = depth;
    if ((token == ";" || token == "}") && depth == template_depth) template_depth = -1;
    if (token == "asm" && runs_ptx) {
      std::string call;
      const size_t begin = tokens.begin(), end = inline_ptx(preprocessed, tokens.end(), &call);
      if (end) replace(begin, call, end);
    } else if (token == "__shared__") {
      std::string replacement;
      size_t end =
          before == "extern" ? dynamic_shared(preprocessed, tokens.end(), &replacement) : 0;
      if (end) {
        replace(extern_at, replacement, end);
      } else {
        result.has_shared_memory = true;
        result.has_shared_memory_in_templates |= template_depth >= 0;
      }
    } else if (token == "__global__" && template_depth < 0) {
      std::string name = kernel_name(Tokens(preprocessed, tokens.end()));
      bool known = name.empty();
      for (const std::string& kernel : result.kernels) known |= kernel == name;
      if (!known) result.kernels.push_back(name);
    }
  }
  result.text.append(preprocessed, copied);
  return result;
}

// One section for all variables in shared memory, so that they are found. The compiler allows no
// such section for those of templates.
std::string shared_section(const DeviceSource& source) {
  if (!source.has_shared_memory || source.has_shared_memory_in_templates) return "";
  return R"(#undef __shared__
#define __shared__ static __attribute__((section("simulated_shared")))
extern char __start_simulated_shared[], __stop_simulated_shared[];
)";
}

std::string kernel_table(const DeviceSource& source, const std::vector<std::string>& expressions,
                         const std::string& architecture) {
  const bool finds_shared = source.has_shared_memory && !source.has_shared_memory_in_templates;
  std::string text = "\nstatic const simulated::KernelEntry simulated_kernels[] = {\n";
  auto add = [&](const std::string& expression) {
    text += "  SIMULATED_KERNEL((" + expression + "), \"" + expression + "\"),\n";
  };
  for (const std::string& name : source.kernels) add(name);
  for (const std::string& expression : expressions) add(expression);
  text += "  {nullptr, nullptr, nullptr, 0}};\n";
  text +=
      "extern \"C\" __attribute__((visibility(\"default\"))) const simulated::Program "
      "simulated_program = {\"" +
      architecture + "\", " + (source.has_shared_memory ? "true" : "false") + ", " +
      (finds_shared ? "__start_simulated_shared, __stop_simulated_shared" : "nullptr, nullptr") +
      ", SIMULATED_WARP, simulated_kernels};\n";
  return text;
}

}  // namespace simulated

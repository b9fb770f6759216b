// SPDX-License-Identifier: Apache-2.0
#include "kernel_text.hpp"

#include <cctype>
#include <vector>

#include "kernel_prelude.inc"

namespace reference {
namespace {

constexpr std::string_view kKernelMark = "tk_mark_kernel", kLocalMark = "tk_mark_local";

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

struct Kernel {
  std::string name;
  std::vector<std::string> types;  // of the parameters
};

std::string trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return std::string(text);
}

// "float * x" -> "float *"; arrays and functions cannot be parameters of a kernel.
std::string type_of(std::string_view parameter) {
  std::string text = trimmed(parameter);
  while (!text.empty() && is_word(text.back())) text.pop_back();
  return trimmed(text);
}

// The preprocessor notes lines of its own between others: "# 12 "file"".
std::string without_line_marks(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (text[at] != '#') result.append(text.substr(at, end - at)) += ' ';
    at = end + 1;
  }
  return result;
}

// `text` begins after the mark: "void name(type a, type b) {".
bool read_kernel(std::string_view text, Kernel* out) {
  const size_t open = text.find('('), close = text.find(')', open);
  if (open == text.npos || close == text.npos) return false;
  std::string head = trimmed(without_line_marks(text.substr(0, open)));
  size_t name = head.size();
  while (name > 0 && is_word(head[name - 1])) --name;
  out->name = head.substr(name);
  if (out->name.empty() || trimmed(head.substr(0, name)) != "void") return false;
  std::string parameters = without_line_marks(text.substr(open + 1, close - open - 1));
  if (trimmed(parameters).empty() || trimmed(parameters) == "void") return true;
  for (size_t at = 0; at <= parameters.size();) {
    const size_t end = std::min(parameters.find(',', at), parameters.size());
    out->types.push_back(type_of(std::string_view(parameters).substr(at, end - at)));
    if (out->types.back().empty()) return false;
    at = end + 1;
  }
  return true;
}

// A local array belongs to the group, whose items share a thread; a pointer to local memory is any
// pointer.
std::string_view local_meaning(std::string_view after) {
  const size_t decides = after.find_first_of("*;[=,)");
  const bool declares = decides != after.npos && (after[decides] == ';' || after[decides] == '[');
  return declares ? "static _Thread_local" : "";
}

std::string describe(const std::vector<Kernel>& kernels, bool uses_barrier) {
  std::string calls, entries;
  for (const Kernel& kernel : kernels) {
    std::string sizes, arguments;
    for (size_t i = 0; i < kernel.types.size(); ++i) {
      const std::string& type = kernel.types[i];
      sizes += type.find('*') != type.npos ? "-1u," : "sizeof(" + type + "),";
      arguments += (i ? ", *(" : "*(") + type + "*)arguments[" + std::to_string(i) + "]";
    }
    calls += "static const unsigned tk_parameters_" + kernel.name + "[] = {" + sizes + "0};\n" +
             "static void tk_call_" + kernel.name + "(tk_item* item, void* const* arguments) {\n" +
             "  tk_here = item;\n  (void)arguments;\n  " + kernel.name + "(" + arguments +
             ");\n}\n";
    entries += "{\"" + kernel.name + "\", tk_call_" + kernel.name + ", tk_parameters_" +
               kernel.name + ", " + std::to_string(kernel.types.size()) + ", " +
               (uses_barrier ? "1" : "0") + "}, ";
  }
  return "\n# 1 \"kernel entries\"\n" + calls +
         "typedef struct { const char* name; void (*call)(tk_item*, void* const*); const unsigned* "
         "parameters; "
         "unsigned count, uses_barrier; } tk_entry;\n"
         "__attribute__((visibility(\"default\"))) const tk_entry tk_entries[] = {" +
         entries + "{0}};\n";
}

}  // namespace

std::string with_prelude(std::string_view name, std::string_view source) {
  std::string shown;
  for (char c : name) shown += is_word(c) || c == '/' || c == '.' || c == '-' ? c : '_';
  return std::string(kKernelPrelude) + "#line 1 \"" + shown + "\"\n" + std::string(source) + "\n";
}

std::string finish_kernel_text(std::string text, std::string* why) {
  const size_t body = text.find("tk_barrier(void)");  // the prelude's; later ones are calls
  const bool uses_barrier = body != text.npos && text.find("tk_barrier(", body + 1) != text.npos;
  std::vector<Kernel> kernels;
  std::string result;
  for (size_t at = 0;;) {
    const size_t mark = text.find("tk_mark_", at);
    result += text.substr(at, mark - at);
    if (mark == text.npos) break;
    const std::string_view here = std::string_view(text).substr(mark);
    if (here.starts_with(kKernelMark)) {
      Kernel kernel;
      if (!read_kernel(here.substr(kKernelMark.size()), &kernel)) {
        *why = "expected `TK_KERNEL void name(type parameter, ...)`";
        return {};
      }
      kernels.push_back(std::move(kernel));
      result += "static";
      at = mark + kKernelMark.size();
    } else if (here.starts_with(kLocalMark)) {
      result += local_meaning(here.substr(kLocalMark.size()));
      at = mark + kLocalMark.size();
    } else {
      result += text[mark];
      at = mark + 1;
    }
  }
  return result + describe(kernels, uses_barrier);
}

}  // namespace reference

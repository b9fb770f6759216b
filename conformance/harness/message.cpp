// SPDX-License-Identifier: Apache-2.0
#include "harness/message.hpp"

namespace tenon::kit {

std::string encode(char kind, std::initializer_list<std::string> fields) {
  std::string line(1, kind);
  for (const std::string& field : fields) {
    line += '\t';
    for (char c : field) {
      if (c == '\n')
        line += "\\n";
      else if (c == '\t')
        line += "\\t";
      else if (c == '\\')
        line += "\\\\";
      else
        line += c;
    }
  }
  return line + '\n';
}

Message decode(std::string_view line) {
  Message message;
  if (line.empty()) return message;
  message.kind = line[0];
  for (size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '\t') {
      message.fields.emplace_back();
      continue;
    }
    if (message.fields.empty()) break;
    char c = line[i];
    if (c == '\\' && i + 1 < line.size()) {
      c = line[++i];
      if (c == 'n') c = '\n';
      if (c == 't') c = '\t';
    }
    message.fields.back() += c;
  }
  return message;
}

}  // namespace tenon::kit

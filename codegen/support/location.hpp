// SPDX-License-Identifier: Apache-2.0
// Where a piece of the model was written, and the error that points there.
#pragma once

#include <stdexcept>
#include <string>

namespace tenon::codegen {

struct Location {
  std::string file;  // as given on the command line
  int line = 0;

  std::string text() const { return file + ":" + std::to_string(line); }
  // "elementwise.yaml", whatever the folder. Comments of generated C++ have no line: a line that is
  // added to an operator file would change the comments of all operators behind it, and what
  // includes them would be compiled again.
  std::string source() const { return file.substr(file.find_last_of('/') + 1); }
  // "elementwise.yaml:12": what operator tables, documents and messages carry.
  std::string origin() const { return source() + ":" + std::to_string(line); }
};

// An entry is refused: says what was expected, what was got and how to fix it.
class Error : public std::runtime_error {
 public:
  Error(const Location& where, const std::string& text)
      : std::runtime_error(where.text() + ": " + text) {}
};

}  // namespace tenon::codegen

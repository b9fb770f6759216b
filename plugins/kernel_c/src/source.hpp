// SPDX-License-Identifier: Apache-2.0
// The text of a program, put together from the pieces in kernels/.
#pragma once

#include "device.hpp"
#include "dtypes.hpp"

namespace tenon::kernel_c {

// The files of kernels/, embedded by the build.
namespace piece {
#define TENON_KERNEL_C_PIECE(name) extern const char name[];
#include "pieces.inc"
#undef TENON_KERNEL_C_PIECE
}  // namespace piece

class SourceText {
 public:
  // Begins with what every program has.
  SourceText(const Device& device, std::string name);

  SourceText& add(std::string_view text) {
    text_ += text;
    return *this;
  }
  SourceText& define(const char* name, std::string_view value);
  SourceText& define(const char* name, int64_t value) {
    return define(name, std::to_string(value));
  }
  // T, the type that is computed in, and the functions on it.
  SourceText& element(int dtype);
  // <prefix>STORAGE, <prefix>COMPUTE, and <prefix>LOAD(v), <prefix>STORE(v) between them, of a
  // tensor in memory; <prefix>CONVERT(v) makes its COMPUTE from any number, a complex one from itself.
  SourceText& memory(const char* prefix, int dtype);
  // The same for elements that are only moved.
  SourceText& moved(const char* prefix, int dtype);

  Source finish() && { return {std::move(name_), std::move(text_)}; }

 private:
  void complex_type(int dtype);  // its definition, once

  std::string name_, text_;
  uint64_t complex_types_ = 0;
};

// "f32" and the like, for names of programs.
inline std::string suffix(int dtype) { return dtype_text(dtype).suffix; }

}  // namespace tenon::kernel_c

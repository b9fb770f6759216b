// SPDX-License-Identifier: Apache-2.0
// Text of error messages: shapes, and printf formats without allocation.
#pragma once

#include <tenon/abi.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace tenon {

// "(2, 3)", "(2,)" and "()": integers as Python writes a tuple.
inline std::string list_text(std::span<const int64_t> sizes) {
  std::string text(1, '(');
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(sizes[i]);
  }
  text += sizes.size() == 1 ? ",)" : ")";
  return text;
}
inline std::string shape_text(int64_t ndim, const int64_t* shape) {
  return list_text({shape, static_cast<size_t>(ndim)});
}
inline std::string shape_text(const tenon_tensor& tensor) {
  return shape_text(tensor.ndim, tensor.shape);
}

// Text that is put together on the stack, so that a failure can be described when memory has run
// out. What exceeds the buffer is cut off.
class TextBuffer {
 public:
  [[gnu::format(printf, 2, 3)]] void append(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append_list(format, arguments);
    va_end(arguments);
  }
  [[gnu::format(printf, 2, 0)]] void append_list(const char* format, va_list arguments) {
    const size_t room = sizeof data_ - size_;
    const int wanted = std::vsnprintf(data_ + size_, room, format, arguments);
    if (wanted > 0)
      size_ += static_cast<size_t>(wanted) < room ? static_cast<size_t>(wanted) : room - 1;
  }
  std::string_view text() const { return {data_, size_}; }

 private:
  char data_[4096];
  size_t size_ = 0;
};

}  // namespace tenon

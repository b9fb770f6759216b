// SPDX-License-Identifier: Apache-2.0
#include "convert/converters.hpp"

#include <map>

namespace tenon::onnx {

Converter find_converter(const std::string& name) {
#define TENON_ONNX_ROW(name) {#name, convert_##name},
  static const std::map<std::string, Converter> table = {TENON_ONNX_CONVERTERS(TENON_ONNX_ROW)};
#undef TENON_ONNX_ROW
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace tenon::onnx

// SPDX-License-Identifier: Apache-2.0
// Files of opdefs/onnx: what imports operators of ONNX that no line of an operator's own key names.
//
//   imports:
//   - {onnx: Hardmax, since: 13, import: "..."}     an expression in the names of ONNX's inputs and attributes
//   - {onnx: Conv, since: 1, native: conv}          a function in plugins/onnx/convert
//   refused:
//   - {onnx: ImageDecoder, reason: decodes files of images}
//   - {onnx: Scan, since: [8], reason: ...}         some versions alone
//
// A line holds from `since` to the next line of its ONNX operator. schema.txt lists the operators of ONNX, each version of which has to
// be imported or refused.
#pragma once

#include <string>
#include <vector>

#include "emit/emit.hpp"
#include "support/location.hpp"

namespace tenon::codegen {

struct OnnxRefusal {
  std::string name, reason;
  int64_t since = 0;  // 0: every version
  Location where;
};

struct OnnxTable {
  std::vector<std::string> schemas;  // lines of schema.txt
  std::vector<OnnxLine> lines;
  std::vector<OnnxRefusal> refusals;
};

// Functions of expressions that are no operators (plugins/onnx/host_functions.cpp).
const std::vector<std::string>& onnx_functions();

void load_onnx_schemas(const std::string& path, OnnxTable& table, std::vector<std::string>& errors);
void load_onnx(const std::string& path, OnnxTable& table, std::vector<std::string>& errors);

// Lines of the table and of operators, compared with the list: names that they use, versions that nothing imports or refuses.
void check_onnx(const OnnxTable& table, const Package& package, std::vector<std::string>& errors);

// "onnx_lines.hpp": kSchemas, kClaims, kRefusals of plugins/onnx.
OutputFile emit_onnx(const OnnxTable& table);

}  // namespace tenon::codegen

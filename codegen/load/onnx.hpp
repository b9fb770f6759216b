// SPDX-License-Identifier: Apache-2.0
// `onnx`: the operators of ONNX that an operator is.
#pragma once

#include "load/yaml_entry.hpp"
#include "model/operator.hpp"

namespace tenon::codegen {

// Fills op.onnx; the signature is known. Whether ONNX has such an operator, and its inputs and attributes these names, is checked
// where its list is at hand (onnx/onnx.hpp).
void read_onnx(const YamlEntry& entry, Operator& op);

}  // namespace tenon::codegen

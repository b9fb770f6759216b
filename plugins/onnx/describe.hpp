// SPDX-License-Identifier: Apache-2.0
// Models and the table as JSON, for those who load and document them.
#pragma once

#include <string>

#include "reader/model.hpp"
#include "table/table.hpp"
#include "value.hpp"

namespace tenon::onnx {

std::string describe_model(const Model& model);
// A list of texts, with all their letters. Throws Error where one is no UTF-8.
std::string json_texts(const Texts& texts);
std::string describe_table(const Table& table);

}  // namespace tenon::onnx

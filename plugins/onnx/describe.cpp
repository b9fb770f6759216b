// SPDX-License-Identifier: Apache-2.0
#include "describe.hpp"

#include <cstdio>
#include <set>

#include "reader/reader.hpp"
#include "tensors.hpp"
#include "text/texts.hpp"
#include "value.hpp"

namespace tenon::onnx {
namespace {

// Names of a file may be any bytes: what is no plain ASCII is replaced.
std::string json(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c >= ' ' && c < 127 ? c : '?';
  }
  return quoted + "\"";
}

std::string describe_type(const Type& type) {
  if (type.kind == Type::Sequence && type.element)
    return "\"kind\": \"sequence\", " + describe_type(*type.element);
  if (type.kind == Type::Optional && type.element) return describe_type(*type.element);
  const int32_t dtype = find_dtype(type.element_type);
  std::string text =
      "\"dtype\": " +
      json(dtype < 0 ? element_type_name(type.element_type) : host->dtype_name(dtype)) +
      ", \"shape\": ";
  if (!type.shape) return text + "null";
  text += "[";
  for (size_t i = 0; i < type.shape->size(); ++i) {
    const Type::Dimension& dimension = (*type.shape)[i];
    if (i) text += ", ";
    text += dimension.size           ? std::to_string(*dimension.size)
            : dimension.name.empty() ? "null"
                                     : json(dimension.name);
  }
  return text + "]";
}

}  // namespace

std::string describe_model(const Model& model) {
  std::string text = "{\"ir_version\": " + std::to_string(model.ir_version) +
                     ", \"producer\": " + json(model.producer) + ", \"opsets\": {";
  bool is_first = true;
  for (const auto& [domain, version] : model.opsets) {
    text += (is_first ? "" : ", ") + json(domain) + ": " + std::to_string(version);
    is_first = false;
  }
  text += "}, \"inputs\": [";
  std::set<std::string> initialized;
  for (const auto& data : model.graph.initializers) initialized.insert(data->name);
  is_first = true;
  for (const NamedType& input : model.graph.inputs) {
    if (initialized.count(input.name)) continue;
    text += (is_first ? "" : ", ");
    text += "{\"name\": " + json(input.name) + ", " + describe_type(input.type) + "}";
    is_first = false;
  }
  text += "], \"outputs\": [";
  is_first = true;
  for (const NamedType& output : model.graph.outputs) {
    text += (is_first ? "" : ", ") + json(output.name);
    is_first = false;
  }
  return text + "]}";
}

std::string json_texts(const Texts& texts) {
  std::string list = "[";
  for (const std::string& text : texts) {
    if (list.size() > 1) list += ", ";
    list += '"';
    decoded(text, "a text of a result");
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      if (byte < 0x20 || byte == 0x7f)
        list += escape;
      else
        list += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
    list += '"';
  }
  return list + "]";
}

std::string describe_table(const Table& table) {
  std::string text = "[";
  for (const auto& [name, versions] : table.schemas())
    for (const Schema& schema : versions) {
      if (text.size() > 1) text += ", ";
      text += "{\"op\": " + json(name) + ", \"since\": " + std::to_string(schema.since);
      if (const Claim* claim = table.claim(schema))
        text += ", \"by\": " + json(claim->origin) +
                ", \"native\": " + (claim->kind == Claim::Native ? "true" : "false");
      else if (const Refusal* refusal = table.refusal(schema))
        text += ", \"refused\": " + json(refusal->reason);
      text += std::string(", \"deprecated\": ") + (schema.is_deprecated ? "true" : "false") + "}";
    }
  return text + "]";
}

}  // namespace tenon::onnx

// SPDX-License-Identifier: Apache-2.0
// An ONNX model as it lies in its file: plain structs, names of the format. Bytes of tensors stay where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::onnx {

// TensorProto.DataType.
enum class ElementType : int32_t {
  Undefined = 0,
  Float = 1,
  UInt8 = 2,
  Int8 = 3,
  UInt16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Double = 11,
  UInt32 = 12,
  UInt64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  BFloat16 = 16,
  Float8E4M3FN = 17,
  Float8E4M3FNUZ = 18,
  Float8E5M2 = 19,
  Float8E5M2FNUZ = 20,
  UInt4 = 21,
  Int4 = 22,
  Float4E2M1 = 23,
  Float8E8M0 = 24,
  UInt2 = 25,
  Int2 = 26,
};

// TensorProto.
struct TensorData {
  std::string name;
  int32_t type = 0;
  std::vector<int64_t> shape;
  std::string_view raw;  // raw_data, in the file
  std::string unpacked;  // elements of float_data, int32_data, ..., in the layout of raw_data
  std::vector<std::string> texts;               // of a tensor of strings
  std::map<std::string, std::string> external;  // location, offset, length
  bool is_external = false;

  std::string_view elements() const { return raw.empty() ? unpacked : raw; }
};

struct Graph;

// TypeProto: a tensor, or a sequence or an optional of another type.
struct Type {
  enum Kind { Unknown, Tensor, Sequence, Optional, Map, SparseTensor, Opaque };
  struct Dimension {
    std::optional<int64_t> size;
    std::string name;  // dim_param; empty: nothing is known
  };
  Kind kind = Unknown;
  int32_t element_type = 0;
  std::optional<std::vector<Dimension>> shape;
  std::shared_ptr<const Type> element;  // of a sequence or an optional
};

// AttributeProto. `type` says which member counts.
struct Attribute {
  enum Kind {
    Undefined = 0,
    Float = 1,
    Int = 2,
    String = 3,
    TensorKind = 4,
    GraphKind = 5,
    Floats = 6,
    Ints = 7,
    Strings = 8,
    SparseTensor = 11,
    TypeKind = 13,
  };
  std::string name,
      reference;  // `reference`: of the function's attribute that it takes its value from
  int32_t kind = Undefined;
  float number = 0;
  int64_t integer = 0;
  std::string text;
  std::vector<float> numbers;
  std::vector<int64_t> integers;
  std::vector<std::string> texts;
  std::shared_ptr<const TensorData> tensor;
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Type> type;
};

struct Node {
  std::string name, op_type, domain, overload;
  std::vector<std::string> inputs, outputs;  // "": absent
  std::vector<Attribute> attributes;
};

struct NamedType {
  std::string name;
  Type type;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<std::shared_ptr<const TensorData>> initializers;
  std::vector<NamedType> inputs, outputs;
};

using Opsets = std::map<std::string, int64_t>;  // domain ("" is ai.onnx) -> version

struct Function {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;  // those without a default
  std::vector<Attribute> defaulted;
  std::vector<Node> nodes;
  Opsets opsets;
};

struct Model {
  int64_t ir_version = 0;
  std::string producer;
  Opsets opsets;
  Graph graph;
  std::vector<Function> functions;
};

}  // namespace tenon::onnx

// SPDX-License-Identifier: Apache-2.0
#include "reader/reader.hpp"

#include <tenon/error.hpp>

#include <cstring>
#include <protozero/pbf_reader.hpp>

namespace tenon::onnx {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

[[noreturn]] void refuse_model(const std::string& text) {
  throw Error(TENON_INVALID_ARGUMENT, text);
}

class ModelReader {
 public:
  Model model(std::string_view bytes) {
    Model model;
    pbf_reader message(bytes.data(), bytes.size());
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          model.ir_version = integer(message);
          break;
        case 2:
          model.producer = name(message);
          break;
        case 7:
          // A message in several parts is one, as in every reader of protocol buffers.
          add_to(model.graph, child(message));
          has_graph_ = true;
          break;
        case 8:
          opset(child(message), model.opsets);
          break;
        case 25:
          model.functions.push_back(function(child(message)));
          break;
        default:
          message.skip();
      }
    }
    check(model);
    return model;
  }

 private:
  // One more level of nesting for as long as it lives.
  class Level {
   public:
    explicit Level(int& depth) : depth_(depth) {
      if (++depth_ > kMaxDepth)
        refuse_model("expected graphs and types at most " + std::to_string(kMaxDepth) +
                     " deep in each other, got deeper ones");
    }
    ~Level() { --depth_; }

   private:
    int& depth_;
  };

  void check(const Model& model) const {
    if (!has_graph_ || model.ir_version == 0)
      refuse_model(
          "expected an ONNX model with a graph and an ir_version, got neither; is it a file "
          "of another format?");
    if (model.ir_version < 3 || model.ir_version > kMaxIrVersion)
      throw Error(TENON_UNSUPPORTED, "expected IR version 3 to " + std::to_string(kMaxIrVersion) +
                                         ", got " + std::to_string(model.ir_version));
    for (const auto& [domain, version] : model.opsets)
      if (domain.empty() && (version < 1 || version > kMaxOpset))
        throw Error(TENON_UNSUPPORTED, "expected opset 1 to " + std::to_string(kMaxOpset) +
                                           ", got " + std::to_string(version));
      else if (domain == "ai.onnx.ml" && (version < 1 || version > kMaxMlOpset))
        throw Error(TENON_UNSUPPORTED, "expected opset 1 to " + std::to_string(kMaxMlOpset) +
                                           " of ai.onnx.ml, got " + std::to_string(version));
  }

  static void expect(const pbf_reader& message, pbf_wire_type type) {
    if (message.wire_type() != type)
      refuse_model("field " + std::to_string(message.tag()) +
                   " of a message has another wire type " +
                   "than ONNX gives it; the file is damaged");
  }

  static pbf_reader child(pbf_reader& message) {
    expect(message, pbf_wire_type::length_delimited);
    return message.get_message();
  }

  static int64_t integer(pbf_reader& message) {
    expect(message, pbf_wire_type::varint);
    return message.get_int64();
  }

  static std::string_view bytes(pbf_reader& message) {
    expect(message, pbf_wire_type::length_delimited);
    const protozero::data_view view = message.get_view();
    return {view.data(), view.size()};
  }

  static std::string name(pbf_reader& message) {
    const std::string_view text = bytes(message);
    if (text.size() > kMaxName)
      refuse_model("expected names of at most " + std::to_string(kMaxName) + " bytes, got one of " +
                   std::to_string(text.size()));
    return std::string(text);
  }

  // take(message) reads one number; a packed field holds any number of them.
  template <class Take, class TakePacked>
  static void repeated(pbf_reader& message, pbf_wire_type type, Take take, TakePacked packed) {
    if (message.wire_type() == pbf_wire_type::length_delimited) return packed(message);
    expect(message, type);
    take(message);
  }

  static void integers(pbf_reader& message, std::vector<int64_t>& list) {
    repeated(
        message, pbf_wire_type::varint, [&](pbf_reader& one) { list.push_back(one.get_int64()); },
        [&](pbf_reader& all) {
          const auto range = all.get_packed_int64();
          list.insert(list.end(), range.begin(), range.end());
        });
  }

  static void floats(pbf_reader& message, std::vector<float>& list) {
    repeated(
        message, pbf_wire_type::fixed32, [&](pbf_reader& one) { list.push_back(one.get_float()); },
        [&](pbf_reader& all) {
          const auto range = all.get_packed_float();
          list.insert(list.end(), range.begin(), range.end());
        });
  }

  static void opset(pbf_reader message, Opsets& opsets) {
    std::string domain;
    int64_t version = 0;
    while (message.next()) {
      if (message.tag() == 1)
        domain = name(message);
      else if (message.tag() == 2)
        version = integer(message);
      else
        message.skip();
    }
    opsets[domain == "ai.onnx" ? "" : domain] = version;
  }

  Graph graph(pbf_reader message) {
    Graph graph;
    add_to(graph, message);
    return graph;
  }

  void add_to(Graph& graph, pbf_reader message) {
    const Level level(depth_);
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          graph.nodes.push_back(node(child(message)));
          break;
        case 2:
          graph.name = name(message);
          break;
        case 5:
          graph.initializers.push_back(std::make_shared<TensorData>(tensor(child(message))));
          break;
        case 11:
          graph.inputs.push_back(named_type(child(message)));
          break;
        case 12:
          graph.outputs.push_back(named_type(child(message)));
          break;
        case 15:
          throw Error(TENON_UNSUPPORTED,
                      "expected dense initializers, got a sparse one; store it as a dense tensor");
        default:
          message.skip();
      }
    }
  }

  // A message of a few bytes becomes a struct of hundreds.
  void count_message() {
    if (++messages_ > kMaxMessages)
      refuse_model("expected at most " + std::to_string(kMaxMessages) +
                   " nodes, attributes, tensors and types, got more");
  }

  Node node(pbf_reader message) {
    count_message();
    if (++nodes_ > kMaxNodes)
      refuse_model("expected at most " + std::to_string(kMaxNodes) + " nodes, got more");
    Node node;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          node.inputs.push_back(name(message));
          break;
        case 2:
          node.outputs.push_back(name(message));
          break;
        case 3:
          node.name = name(message);
          break;
        case 4:
          node.op_type = name(message);
          break;
        case 5:
          node.attributes.push_back(attribute(child(message)));
          break;
        case 7:
          node.domain = name(message);
          if (node.domain == "ai.onnx") node.domain.clear();
          break;
        case 8:
          node.overload = name(message);
          break;
        default:
          message.skip();
      }
    }
    return node;
  }

  Attribute attribute(pbf_reader message) {
    count_message();
    Attribute result;
    int32_t seen = Attribute::Undefined;  // before IR 4 `type` may be absent
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          result.name = name(message);
          break;
        case 2:
          expect(message, pbf_wire_type::fixed32);
          result.number = message.get_float();
          seen = Attribute::Float;
          break;
        case 3:
          result.integer = integer(message);
          seen = Attribute::Int;
          break;
        case 4:
          result.text = std::string(bytes(message));
          seen = Attribute::String;
          break;
        case 5:
          result.tensor = std::make_shared<TensorData>(tensor(child(message)));
          seen = Attribute::TensorKind;
          break;
        case 6:
          result.graph = std::make_shared<Graph>(graph(child(message)));
          seen = Attribute::GraphKind;
          break;
        case 7:
          floats(message, result.numbers);
          seen = Attribute::Floats;
          break;
        case 8:
          integers(message, result.integers);
          seen = Attribute::Ints;
          break;
        case 9:
          result.texts.emplace_back(bytes(message));
          seen = Attribute::Strings;
          break;
        case 14:
          result.type = std::make_shared<Type>(type(child(message)));
          seen = Attribute::TypeKind;
          break;
        case 20:
          result.kind = static_cast<int32_t>(integer(message));
          break;
        case 21:
          result.reference = name(message);
          break;
        default:
          message.skip();
      }
    }
    if (result.kind == Attribute::Undefined) result.kind = seen;
    const bool lacks = (result.kind == Attribute::TensorKind && !result.tensor) ||
                       (result.kind == Attribute::GraphKind && !result.graph) ||
                       (result.kind == Attribute::TypeKind && !result.type);
    if (lacks && result.reference.empty())
      refuse_model("expected a value for attribute `" + result.name + "`, got none");
    return result;
  }

  static void entry(pbf_reader message, std::map<std::string, std::string>& entries) {
    std::string key, value;
    while (message.next()) {
      if (message.tag() == 1)
        key = name(message);
      else if (message.tag() == 2)
        value = name(message);
      else
        message.skip();
    }
    entries[key] = value;
  }

  template <class Number>
  static void append(std::string& elements, Number number) {
    elements.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  // An element of int32_data, in as many bytes as its type has.
  static void append_int32(std::string& elements, int32_t type, int32_t value) {
    switch (element_size(type).bits) {
      case 32:
        return append(elements, value);
      case 16:
        return append(elements, static_cast<uint16_t>(value));
      default:  // numbers of less than 8 bits lie several in a byte, here too
        return append(elements, static_cast<uint8_t>(value));
    }
  }

  TensorData tensor(pbf_reader message) {
    count_message();
    TensorData result;
    std::vector<int64_t> int32s;  // their width is known when data_type was read
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          integers(message, result.shape);
          break;
        case 2:
          result.type = static_cast<int32_t>(integer(message));
          break;
        case 3:
          throw Error(TENON_UNSUPPORTED, "expected whole tensors, got a segment of one");
        case 4: {
          std::vector<float> list;
          floats(message, list);
          for (float value : list) append(result.unpacked, value);
          break;
        }
        case 5:
          integers(message, int32s);
          break;
        case 6:
          result.texts.emplace_back(bytes(message));
          break;
        case 7: {
          std::vector<int64_t> list;
          integers(message, list);
          for (int64_t value : list) append(result.unpacked, value);
          break;
        }
        case 8:
          result.name = name(message);
          break;
        case 9:
          result.raw = bytes(message);
          break;
        case 10:
          doubles(message, result.unpacked);
          break;
        case 11: {
          std::vector<int64_t> list;
          integers(message, list);
          for (int64_t value : list) {
            if (result.type == static_cast<int32_t>(ElementType::UInt32))
              append(result.unpacked, static_cast<uint32_t>(value));
            else
              append(result.unpacked, value);
          }
          break;
        }
        case 13:
          entry(child(message), result.external);
          break;
        case 14:
          result.is_external = integer(message) == 1;
          break;
        default:
          message.skip();
      }
    }
    for (int64_t value : int32s)
      append_int32(result.unpacked, result.type, static_cast<int32_t>(value));
    check(result);
    return result;
  }

  static void doubles(pbf_reader& message, std::string& elements) {
    repeated(
        message, pbf_wire_type::fixed64,
        [&](pbf_reader& one) { append(elements, one.get_double()); },
        [&](pbf_reader& all) {
          for (double value : all.get_packed_double()) append(elements, value);
        });
  }

  // The elements that the shape says have to be there, and no others.
  static void check(const TensorData& tensor) {
    const std::string what = "tensor `" + tensor.name + "`";
    if (tensor.shape.size() > static_cast<size_t>(kMaxAxes))
      refuse_model(what + ": expected at most " + std::to_string(kMaxAxes) + " axes, got " +
                   std::to_string(tensor.shape.size()));
    const int64_t count = count_elements(tensor.shape, what);
    if (tensor.type == static_cast<int32_t>(ElementType::String)) {
      if (static_cast<int64_t>(tensor.texts.size()) != count)
        refuse_model(what + ": expected " + std::to_string(count) + " texts, got " +
                     std::to_string(tensor.texts.size()));
      return;
    }
    const uint32_t bits = element_size(tensor.type).bits;
    if (bits == 0)
      refuse_model(what + ": its element type " + std::to_string(tensor.type) + " is unknown");
    if (count > (INT64_MAX - 7) / bits) refuse_model(what + ": its size does not fit into 63 bits");
    if (tensor.is_external) return;
    const auto expected = static_cast<uint64_t>((count * bits + 7) / 8);
    if (tensor.elements().size() != expected)
      refuse_model(what + ": expected " + std::to_string(expected) + " bytes for its shape, got " +
                   std::to_string(tensor.elements().size()));
  }

  NamedType named_type(pbf_reader message) {
    NamedType result;
    while (message.next()) {
      if (message.tag() == 1)
        result.name = name(message);
      else if (message.tag() == 2)
        result.type = type(child(message));
      else
        message.skip();
    }
    return result;
  }

  Type type(pbf_reader message) {
    count_message();
    const Level level(depth_);
    Type result;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          result.kind = Type::Tensor;
          tensor_type(child(message), result);
          break;
        case 4:
        case 9:
          result.kind = message.tag() == 4 ? Type::Sequence : Type::Optional;
          result.element = std::make_shared<Type>(element_of(child(message)));
          break;
        case 5:
          result.kind = Type::Map;
          message.skip();
          break;
        case 7:
          result.kind = Type::Opaque;
          message.skip();
          break;
        case 8:
          result.kind = Type::SparseTensor;
          message.skip();
          break;
        default:
          message.skip();
      }
    }
    return result;
  }

  Type element_of(pbf_reader message) {
    Type result;
    while (message.next()) {
      if (message.tag() == 1)
        result = type(child(message));
      else
        message.skip();
    }
    return result;
  }

  static void tensor_type(pbf_reader message, Type& result) {
    while (message.next()) {
      if (message.tag() == 1) {
        result.element_type = static_cast<int32_t>(integer(message));
      } else if (message.tag() == 2) {
        result.shape.emplace();
        pbf_reader shape = child(message);
        while (shape.next()) {
          if (shape.tag() == 1)
            result.shape->push_back(dimension(child(shape)));
          else
            shape.skip();
          if (result.shape->size() > static_cast<size_t>(kMaxAxes))
            refuse_model("expected types of at most " + std::to_string(kMaxAxes) +
                         " axes, got more");
        }
      } else {
        message.skip();
      }
    }
  }

  static Type::Dimension dimension(pbf_reader message) {
    Type::Dimension result;
    while (message.next()) {
      if (message.tag() == 1)
        result.size = integer(message);
      else if (message.tag() == 2)
        result.name = name(message);
      else
        message.skip();
    }
    return result;
  }

  Function function(pbf_reader message) {
    const Level level(depth_);
    Function function;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          function.name = name(message);
          break;
        case 4:
          function.inputs.push_back(name(message));
          break;
        case 5:
          function.outputs.push_back(name(message));
          break;
        case 6:
          function.attributes.push_back(name(message));
          break;
        case 7:
          function.nodes.push_back(node(child(message)));
          break;
        case 9:
          opset(child(message), function.opsets);
          break;
        case 10:
          function.domain = name(message);
          break;
        case 11:
          function.defaulted.push_back(attribute(child(message)));
          break;
        case 13:
          function.overload = name(message);
          break;
        default:
          message.skip();
      }
    }
    return function;
  }

  int depth_ = 0;
  size_t nodes_ = 0, messages_ = 0;
  bool has_graph_ = false;
};

}  // namespace

Model read_model(std::string_view bytes) {
  try {
    return ModelReader().model(bytes);
  } catch (const protozero::exception& error) {
    refuse_model(std::string("expected an ONNX model, got bytes that are no protocol buffer (") +
                 error.what() + "); is the file whole?");
  }
}

}  // namespace tenon::onnx

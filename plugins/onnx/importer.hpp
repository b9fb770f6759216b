// SPDX-License-Identifier: Apache-2.0
// A model of given sizes to a program: nodes in order, each by what the table says of its operator.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "conversion.hpp"
#include "tensors.hpp"

namespace tenon::onnx {

inline constexpr int kMaxCalls = 64;  // functions and graphs that run inside of each other

// What names of one graph, or of one call of a function, stand for.
class Scope {
 public:
  explicit Scope(const Opsets& opsets, Scope* outer = nullptr) : opsets_(opsets), outer_(outer) {}

  void set(const std::string& name, Value value) { values_[name] = std::move(value); }
  // nullptr: nothing of this name was made yet. Graphs see what is around them.
  const Value* find(const std::string& name) const;
  const Opsets& opsets() const { return opsets_; }

  // Attributes of the call of a function, for nodes that take theirs from there.
  const std::vector<Attribute>* arguments = nullptr;
  // Those that make the names of this scope.
  const std::vector<Node>* nodes = nullptr;

 private:
  const Opsets& opsets_;
  Scope* outer_;
  std::unordered_map<std::string, Value> values_;
};

// A size of an input that its type leaves open.
using Sizes = std::map<std::string, int64_t>;

struct ImportOptions {
  Sizes sizes;                                      // by dim_param
  std::map<std::string, std::vector<Ints>> shapes;  // of inputs by name; several: a sequence
  std::map<std::string, Tensor> constants;          // inputs that the program does not have
  std::map<std::string, Text> texts;                // such of text
  bool may_return_text = false;
  bool is_sample = false;  // of several sizes, for which one program is wanted
};

class Importer {
 public:
  Importer(const Model& model, ModelFiles& files, const ImportOptions& options);

  // Every operator that nothing imports, in one Error.
  void check_operators() const;
  // What a result of the model is: a tensor, a sequence of `count` tensors, or numbers into a list of texts.
  struct Result {
    enum Kind { kTensor, kSequence, kText } kind = kTensor;
    size_t count = 0;
    std::shared_ptr<const Texts> vocabulary;
  };
  // The program, owned by the caller.
  tenon_graph_program* run(std::vector<Result>& results);
  // Of the program's inputs and results, after run().
  const Texts& input_names() const { return input_names_; }
  const Texts& result_names() const { return result_names_; }

  // Nodes of a graph inside of another one; what its results are.
  Values run_graph(const Graph& graph, Scope& outer, const Values& inputs);
  // Some nodes of `scope` once more, with what another one has for their names.
  void run_again(const std::vector<size_t>& indices, Scope& scope);
  // Of the region that is being built, else of the program.
  Steps& steps() { return *current_; }
  // Steps go there from now on; where they went before.
  Steps* use_steps(Steps* steps) { return std::exchange(current_, steps); }
  ModelFiles& files() { return files_; }
  bool is_sample() const { return options_.is_sample; }
  // The number of a tensor's element type, where it is of less than a byte and carried by a wider dtype; else that of its dtype.
  int32_t element_type(const Tensor& tensor) const;
  void set_element_type(const Tensor& tensor, int32_t element_type);
  // Of the converters that ask for data no model may have.
  const Table& table() const { return table_; }

 private:
  void check_nodes(const std::vector<Node>& nodes, const Opsets& opsets,
                   std::set<std::string>& problems, int depth) const;
  void add_inputs(const Graph& graph, Scope& scope);
  Value text_input(const std::string& name, const Type& type) const;
  Value make_constant(const std::string& name, const Type& type, const Tensor& value);
  Value make_input(const std::string& name, const Type& type);
  Tensor add_input(const std::string& name, int32_t dtype, const Ints& shape);
  Ints input_shape(const std::string& name, const Type& type) const;
  void add_initializers(const Graph& graph, Scope& scope);
  void run_nodes(const std::vector<Node>& nodes, Scope& scope);
  void run_node(const std::vector<Node>& nodes, size_t index, Scope& scope);
  void run_node(const Node& node, Scope& scope);
  Values convert(const Node& node, Scope& scope, Values inputs);
  Values converted(const Node& node, Scope& scope, Values inputs);
  // What a node sees of sizes that change from sample to sample.
  SeenSizes seen_by(const Node& node, const Values& inputs) const;
  Values call_function(const Function& function, const Node& node, Scope& scope, Values inputs);
  std::vector<Attribute> attributes_of(const Node& node, const Scope& scope) const;
  const Function* find_function(const Node& node) const;
  Value result_of(const std::string& name, const Scope& scope) const;

  const Model& model_;
  ModelFiles& files_;
  const ImportOptions& options_;
  Table table_;
  Steps steps_;
  Steps* current_ = &steps_;
  Texts input_names_, result_names_;
  std::unordered_map<const tenon_tensor*, std::pair<Tensor, int32_t>> narrow_;
  int depth_ = 0;
  size_t nodes_ = 0;
};

}  // namespace tenon::onnx

// SPDX-License-Identifier: Apache-2.0
#include "tests/core/model_traces.hpp"

#include <utility>

namespace tenon::test {

TraceRecorder::Block::Block(TraceRecorder& recorder, uint64_t bytes, uint32_t stream)
    : recorder_(recorder), bytes_(bytes), stream_(stream) {
  if (recorder.free_slots_.empty()) {
    slot_ = recorder.slots_++;
  } else {
    slot_ = recorder.free_slots_.back();
    recorder.free_slots_.pop_back();
  }
  recorder.events_.push_back({slot_, stream_, bytes_});
}

TraceRecorder::Block::~Block() {
  recorder_.events_.push_back({slot_, stream_, 0});
  recorder_.free_slots_.push_back(slot_);
}

std::vector<TraceEvent> TraceRecorder::take_events() { return std::exchange(events_, {}); }

namespace {

using Memory = std::shared_ptr<const TraceRecorder::Block>;
constexpr uint64_t kFloat = 4;
constexpr uint64_t kIndex = 8;

struct Parameter {
  Memory value;
  Memory gradient;
  std::vector<Memory> state;  // the optimizer's
};

// A tensor of the graph that a step builds; `node` is where its gradient gathers.
struct Variable {
  Memory data;
  size_t node;
};

// What an operator keeps and asks for, besides its result.
struct Operation {
  uint64_t result;
  bool saves_inputs = false;
  bool saves_result = false;
  uint64_t saves_besides = 0;  // statistics, indices
  uint64_t workspace = 0;      // for the length of the call, forward and backward
  std::vector<Parameter*> parameters = {};
};

class Tape {
 public:
  explicit Tape(TraceRecorder& recorder) : recorder_(recorder) {}

  Memory make(uint64_t bytes, uint32_t stream = 0) const {
    return std::make_shared<TraceRecorder::Block>(recorder_, bytes, stream);
  }

  Variable input(uint64_t bytes) {
    nodes_.push_back({});
    return {make(bytes, 1), nodes_.size() - 1};
  }

  Variable apply(const std::vector<Variable>& inputs, const Operation& operation) {
    Node node;
    Memory workspace = operation.workspace ? make(operation.workspace) : nullptr;
    Memory result = make(operation.result);
    if (operation.saves_besides) node.saved.push_back(make(operation.saves_besides));
    workspace.reset();
    for (const Variable& input : inputs) {
      node.inputs.emplace_back(input.node, input.data->bytes());
      if (operation.saves_inputs) node.saved.push_back(input.data);
    }
    if (operation.saves_result) node.saved.push_back(result);
    node.workspace = operation.workspace;
    node.parameters = operation.parameters;
    nodes_.push_back(std::move(node));
    return {std::move(result), nodes_.size() - 1};
  }

  // From the last operator to the first; each one's memory goes when it has run.
  void backward() {
    nodes_.back().gradient = make(kFloat);
    while (!nodes_.empty()) {
      Node node = std::move(nodes_.back());
      nodes_.pop_back();
      if (node.gradient) run_backward(node);
    }
  }

 private:
  struct Node {
    std::vector<std::pair<size_t, uint64_t>> inputs;  // node and bytes
    std::vector<Memory> saved;
    std::vector<Parameter*> parameters;
    uint64_t workspace = 0;
    Memory gradient;
  };

  void run_backward(Node& node) {
    Memory workspace = node.workspace ? make(node.workspace) : nullptr;
    for (auto [input, bytes] : node.inputs) {
      // The batch needs no gradient.
      if (nodes_[input].inputs.empty() && nodes_[input].parameters.empty()) continue;
      accumulate(nodes_[input].gradient, bytes);
    }
    for (Parameter* parameter : node.parameters)
      accumulate(parameter->gradient, parameter->value->bytes());
  }

  void accumulate(Memory& gradient, uint64_t bytes) {
    Memory part = make(bytes);
    gradient = gradient ? make(bytes) : std::move(part);
  }

  TraceRecorder& recorder_;
  std::vector<Node> nodes_;
};

// The loop around a model: forward, zero_grad, backward, update.
class Training : public TracedModel {
 public:
  Training(TraceRecorder& recorder, uint32_t states) : tape_(recorder), states_(states) {}

  void step(uint64_t size) final {
    forward(size);
    for (auto& parameter : parameters_) parameter->gradient.reset();
    tape_.backward();
    for (auto& parameter : parameters_) {
      while (parameter->state.size() < states_)
        parameter->state.push_back(tape_.make(parameter->value->bytes()));
    }
  }

 protected:
  virtual void forward(uint64_t size) = 0;

  Parameter* parameter(uint64_t floats) {
    parameters_.push_back(std::make_unique<Parameter>());
    parameters_.back()->value = tape_.make(floats * kFloat);
    return parameters_.back().get();
  }

  Tape tape_;

 private:
  std::vector<std::unique_ptr<Parameter>> parameters_;
  uint32_t states_;
};

// ---- ResNet-18 ----

// He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, table 1.
class ResNet18 final : public Training {
 public:
  explicit ResNet18(TraceRecorder& recorder) : Training(recorder, 1) {
    stem_ = unit(3, 64, 7, 2);
    uint64_t channels = 64;
    for (uint64_t width : {64, 64, 128, 128, 256, 256, 512, 512}) {
      uint64_t stride = width == channels ? 1 : 2;
      blocks_.push_back({unit(channels, width, 3, stride), unit(width, width, 3, 1),
                         stride == 2 ? unit(channels, width, 1, 2) : Unit{}});
      channels = width;
    }
    linear_ = {parameter(512 * 1000), parameter(1000)};
  }

 private:
  struct Unit {  // convolution and batch normalisation
    uint64_t in = 0, out = 0, kernel = 0, stride = 0;
    std::vector<Parameter*> weight, affine;
  };
  struct Block {
    Unit first, second, shortcut;
  };

  Unit unit(uint64_t in, uint64_t out, uint64_t kernel, uint64_t stride) {
    return {in,
            out,
            kernel,
            stride,
            {parameter(in * out * kernel * kernel)},
            {parameter(out), parameter(out)}};
  }

  // `side` of the image becomes that of the result.
  Variable run(const Unit& unit, Variable x, uint64_t images, uint64_t& side) {
    side /= unit.stride;
    uint64_t pixels = side * side;
    uint64_t bytes = images * unit.out * pixels * kFloat;
    uint64_t columns = unit.kernel == 1 ? 0 : unit.in * unit.kernel * unit.kernel * pixels * kFloat;
    Variable y = tape_.apply(
        {x},
        {.result = bytes, .saves_inputs = true, .workspace = columns, .parameters = unit.weight});
    return tape_.apply({y}, {.result = bytes,
                             .saves_inputs = true,
                             .saves_besides = 2 * unit.out * kFloat,
                             .parameters = unit.affine});
  }

  Variable relu(const Variable& x) {
    return tape_.apply({x}, {.result = x.data->bytes(), .saves_result = true});
  }

  void forward(uint64_t images) override {
    uint64_t side = 224;
    Variable x = tape_.input(images * 3 * side * side * kFloat);
    Variable labels = tape_.input(images * kIndex);
    x = relu(run(stem_, x, images, side));
    side /= 2;
    uint64_t pooled = images * 64 * side * side;
    x = tape_.apply({x}, {.result = pooled * kFloat, .saves_besides = pooled * kIndex});
    for (const Block& block : blocks_) {
      uint64_t before = side;
      Variable y = relu(run(block.first, x, images, side));
      y = run(block.second, y, images, side);
      Variable shortcut = block.shortcut.out ? run(block.shortcut, x, images, before) : x;
      y = tape_.apply({y, shortcut}, {.result = y.data->bytes()});
      x = relu(y);
    }
    x = tape_.apply({x}, {.result = images * 512 * kFloat});
    x = tape_.apply(
        {x}, {.result = images * 1000 * kFloat, .saves_inputs = true, .parameters = linear_});
    x = tape_.apply({x}, {.result = images * 1000 * kFloat, .saves_result = true});
    tape_.apply({x, labels}, {.result = kFloat, .saves_besides = kFloat});
  }

  Unit stem_;
  std::vector<Block> blocks_;
  std::vector<Parameter*> linear_;
};

// ---- GPT ----

// Radford and others: Language Models are Unsupervised Multitask Learners; the smallest model.
class Gpt final : public Training {
 public:
  explicit Gpt(TraceRecorder& recorder) : Training(recorder, 2) {
    embedding_ = parameter(kVocabulary * kWidth);
    positions_ = parameter(1024 * kWidth);
    for (uint64_t i = 0; i < kLayers; ++i) {
      layers_.push_back({affine(), linear(kWidth, 3 * kWidth), linear(kWidth, kWidth), affine(),
                         linear(kWidth, 4 * kWidth), linear(4 * kWidth, kWidth)});
    }
    last_ = affine();
  }

 private:
  static constexpr uint64_t kVocabulary = 50257, kWidth = 768, kLayers = 12, kHeads = 12,
                            kBatch = 8;
  using Parameters = std::vector<Parameter*>;
  struct Layer {
    Parameters norm1, qkv, projection, norm2, expand, contract;
  };

  Parameters affine() { return {parameter(kWidth), parameter(kWidth)}; }
  Parameters linear(uint64_t in, uint64_t out) { return {parameter(in * out), parameter(out)}; }

  // Rows of `floats` for every token.
  Variable rows(const std::vector<Variable>& inputs, uint64_t floats, Operation operation = {}) {
    operation.result = tokens_ * floats * kFloat;
    return tape_.apply(inputs, operation);
  }
  Variable norm(const Variable& x, const Parameters& affine) {
    return rows({x}, kWidth,
                {.result = 0,
                 .saves_inputs = true,
                 .saves_besides = 2 * tokens_ * kFloat,
                 .parameters = affine});
  }
  Variable product(const Variable& x, uint64_t floats, const Parameters& parameters) {
    return rows({x}, floats, {.result = 0, .saves_inputs = true, .parameters = parameters});
  }

  Variable attention(const Variable& x, const Layer& layer, uint64_t length) {
    Variable qkv = product(x, 3 * kWidth, layer.qkv);
    Variable q = rows({qkv}, kWidth), k = rows({qkv}, kWidth), v = rows({qkv}, kWidth);
    uint64_t scores = kHeads * length;
    Variable weights = rows({q, k}, scores, {.result = 0, .saves_inputs = true});
    weights = rows({weights}, scores);  // masked
    weights = rows({weights}, scores, {.result = 0, .saves_result = true});
    Variable y = rows({weights, v}, kWidth, {.result = 0, .saves_inputs = true});
    y = rows({y}, kWidth);  // heads side by side again
    return product(y, kWidth, layer.projection);
  }

  void forward(uint64_t length) override {
    tokens_ = kBatch * length;
    Variable indices = tape_.input(tokens_ * kIndex), labels = tape_.input(tokens_ * kIndex);
    Variable x =
        rows({indices}, kWidth, {.result = 0, .saves_inputs = true, .parameters = {embedding_}});
    x = rows({x}, kWidth, {.result = 0, .parameters = {positions_}});
    for (const Layer& layer : layers_) {
      Variable y = attention(norm(x, layer.norm1), layer, length);
      x = rows({x, y}, kWidth);
      y = product(norm(x, layer.norm2), 4 * kWidth, layer.expand);
      y = rows({y}, 4 * kWidth, {.result = 0, .saves_inputs = true});  // GELU
      y = product(y, kWidth, layer.contract);
      x = rows({x, y}, kWidth);
    }
    x = norm(x, last_);
    x = product(x, kVocabulary, {embedding_});
    x = rows({x}, kVocabulary, {.result = 0, .saves_result = true});
    tape_.apply({x, labels}, {.result = kFloat, .saves_besides = kFloat});
  }

  Parameter* embedding_;
  Parameter* positions_;
  std::vector<Layer> layers_;
  Parameters last_;
  uint64_t tokens_ = 0;
};

}  // namespace

std::unique_ptr<TracedModel> traced_resnet18(TraceRecorder& recorder) {
  return std::make_unique<ResNet18>(recorder);
}

std::unique_ptr<TracedModel> traced_gpt(TraceRecorder& recorder) {
  return std::make_unique<Gpt>(recorder);
}

}  // namespace tenon::test

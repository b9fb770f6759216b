// SPDX-License-Identifier: Apache-2.0
#include "subgraph.hpp"

#include <tenon/error.hpp>
#include <tenon/plugin.hpp>
#include <tenon/subgraph.hpp>

#include "convert/converters.hpp"

namespace tenon::onnxruntime {
namespace {

// Writes the steps of a sub-graph, one after another.
class Steps {
 public:
  Steps(const tenon_subgraph& graph, const Options& options) : values_(graph), options_(options) {}

  // Throws Refusal.
  void write(ModelWriter& model, const Step& step) {
    if (options_.excluded.contains(std::string(step.name()))) throw Refusal("it is excluded");
    convert(model, step);
    for (size_t i = 0; i < step.results(); ++i)
      if (!model.knows(&step.result(i)) && values_.uses(&step.result(i)) > 0)
        throw Refusal("ONNX has nothing for its result " + std::to_string(i) + ", which is read");
  }

 private:
  SubgraphValues values_;
  const Options& options_;
};

}  // namespace

WrittenModel write_model(const tenon_subgraph& graph, const Options& options) {
  ModelWriter model;
  WrittenModel written;
  for (uint32_t i = 0; i < graph.ninputs; ++i) {
    const tenon_tensor* input = graph.inputs[i];
    const std::string name = "input" + std::to_string(i);
    model.set_name(input, name);
    if (graph.constants[i]) {
      model.add_external(name, *input);
      written.constants.push_back(i);
      written.constant_names.push_back(name);
    } else {
      model.add_input(name, *input);
      written.inputs.push_back(i);
      written.input_names.push_back(name);
    }
  }
  Steps steps(graph, options);
  for (uint32_t i = 0; i < graph.nsteps; ++i) {
    const Step step(step_at(graph, i));
    try {
      steps.write(model, step);
    } catch (const Refusal& refusal) {
      throw Error(TENON_UNSUPPORTED, "`" + std::string(step.name()) + "`: " + refusal.what());
    }
  }
  for (uint32_t i = 0; i < graph.noutputs; ++i)
    model.add_output(written.output_names.emplace_back("output" + std::to_string(i)),
                     *graph.outputs[i]);
  written.bytes = model.model(graph.name);
  return written;
}

void find_parts(const tenon_subgraph& graph, const Options& options, uint32_t* parts) {
  ModelWriter model;
  for (uint32_t i = 0; i < graph.ninputs; ++i) model.set_name(graph.inputs[i], "input");
  Steps steps(graph, options);
  uint32_t number = 0;
  for (uint32_t i = 0; i < graph.nsteps; ++i) {
    const Step step(step_at(graph, i));
    try {
      steps.write(model, step);
      if (i == 0 || parts[i - 1] == 0) ++number;
      parts[i] = number;
    } catch (const Refusal& refusal) {
      const std::string text =
          "onnxruntime: `" + std::string(step.name()) + "` is left to kernels: " + refusal.what();
      host->log(0, text.data(), text.size());
    }
    // What a refused step makes is an input of the parts behind it.
    for (size_t k = 0; k < step.results(); ++k)
      if (!model.knows(&step.result(k))) model.set_name(&step.result(k), "made");
  }
}

}  // namespace tenon::onnxruntime

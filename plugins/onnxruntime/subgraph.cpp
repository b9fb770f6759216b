// SPDX-License-Identifier: Apache-2.0
#include "subgraph.hpp"

#include <tenon/error.hpp>
#include <tenon/plugin.hpp>

#include "convert/converters.hpp"

namespace tenon::onnxruntime {
namespace {

// Later hosts know more of a step than this plugin: steps lie as far apart as the host says.
const tenon_subgraph_step& step_at(const tenon_subgraph& graph, uint32_t index) {
  const char* first = reinterpret_cast<const char*>(graph.steps);
  return *reinterpret_cast<const tenon_subgraph_step*>(first + size_t{index} * graph.step_size);
}

// Throws Refusal.
void write_step(ModelWriter& model, const tenon_subgraph_step& raw, const Options& options) {
  const Step step(raw);
  if (options.excluded.contains(std::string(step.name()))) throw Refusal("it is excluded");
  convert(model, step);
}

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
  for (uint32_t i = 0; i < graph.nsteps; ++i) {
    try {
      write_step(model, step_at(graph, i), options);
    } catch (const Refusal& refusal) {
      throw Error(TENON_UNSUPPORTED, std::string("`") + Step(step_at(graph, i)).name().data() +
                                         "`: " + refusal.what());
    }
  }
  for (uint32_t i = 0; i < graph.noutputs; ++i) {
    const std::string& name = written.output_names.emplace_back("output" + std::to_string(i));
    try {
      model.add_output(name, *graph.outputs[i]);
    } catch (const Refusal&) {
      throw Error(TENON_UNSUPPORTED,
                  "result " + std::to_string(i) + " of the part has no form in ONNX");
    }
  }
  written.bytes = model.model(graph.name);
  return written;
}

void find_parts(const tenon_subgraph& graph, const Options& options, uint32_t* parts) {
  ModelWriter model;
  for (uint32_t i = 0; i < graph.ninputs; ++i) model.set_name(graph.inputs[i], "input");
  uint32_t number = 0;
  for (uint32_t i = 0; i < graph.nsteps; ++i) {
    const tenon_subgraph_step& step = step_at(graph, i);
    try {
      write_step(model, step, options);
      if (i == 0 || parts[i - 1] == 0) ++number;
      parts[i] = number;
    } catch (const Refusal& refusal) {
      const std::string text = std::string("onnxruntime: `") + Step(step).name().data() +
                               "` is left to kernels: " + refusal.what();
      host->log(0, text.data(), text.size());
    }
    // What a refused step makes is an input of the parts behind it.
    for (uint32_t k = 0; k < step.nouts; ++k)
      if (!model.knows(step.outs[k])) model.set_name(step.outs[k], "made");
  }
}

}  // namespace tenon::onnxruntime

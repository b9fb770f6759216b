// SPDX-License-Identifier: Apache-2.0
#include "program/dimensions.hpp"

#include <tenon/error.hpp>

#include <algorithm>

#include "program/program.hpp"
#include "rewrite/fragment.hpp"

namespace tenon::graph {
namespace {

// Sizes of one dimension at which a function is recorded: what was given, both ends, and the two
// next to what was given. An expression that fits a few of them by chance does not fit all. A size
// of 1 is left out: there, tensors are dense in many layouts, and copies are not made that others
// need.
Sizes sampled(const Dimension& dimension) {
  Sizes sizes = {dimension.recorded};
  auto add = [&](int64_t size) {
    if (size > 1 && dimension.allows(size) &&
        std::find(sizes.begin(), sizes.end(), size) == sizes.end())
      sizes.push_back(size);
  };
  const int64_t step = dimension.multiple;
  const int64_t first = (std::max<int64_t>(2, dimension.min) + step - 1) / step * step,
                last = dimension.max / step * step;
  add(first);
  add(last);
  for (int64_t distance = 1; distance <= 4 && sizes.size() < 5; ++distance) {
    add(dimension.recorded + distance * step);
    if (sizes.size() < 5) add(dimension.recorded - distance * step);
  }
  return sizes;
}

// The operators' own rules say what they make at these sizes.
void check_types(const Graph& graph, const std::string& sizes) {
  for (const Step& step : graph.steps) {
    for (const Graph& region : step.regions) check_types(region, sizes);
    if (step.kind != StepKind::kCall || step.given != 0) continue;
    // Asking one that draws random numbers would draw some.
    if (host->op_def(step.op)->flags & TENON_OP_RANDOM) continue;
    const std::vector<Type> types = inferred_types(graph, step);
    for (size_t i = 0; i < step.results.size(); ++i) {
      const Type& expected = graph.values[step.results[i]];
      if (types[i].shape != expected.shape || types[i].dtype != expected.dtype)
        throw Error(TENON_INVALID_ARGUMENT,
                    "program: for " + sizes + ", " + step_text(step) + " makes " +
                        type_text(types[i]) + ", and what was recorded at other sizes expects " +
                        type_text(expected) + "; export the function for this size");
    }
  }
}

std::string sizes_text(const std::vector<Dimension>& list, const Sizes& sizes) {
  std::string text;
  for (size_t i = 0; i < list.size(); ++i)
    text += (i ? ", " : "") + list[i].name + " = " + std::to_string(sizes[i]);
  return text;
}

}  // namespace

ProgramPtr instantiate(const Program& program, const Sizes& sizes) {
  const Dimensions& dimensions = *program.dimensions;
  ProgramPtr made = dimensions.parse(dimensions.text, &sizes);
  check_types(made->graph, sizes_text(dimensions.list, sizes));
  for (size_t i = 0; i < made->graph.leaves.size(); ++i) {
    const ValueId value = made->graph.leaves[i].value;
    made->graph.leaves[i] = program.graph.leaves[i];
    made->graph.leaves[i].value = value;
  }
  made->changes = program.changes;
  set_numerics(made->graph, program.graph.numerics);
  set_claimers(made->graph, program.graph.claimers);
  return made;
}

std::string range_text(const Dimension& dimension) {
  std::string text = dimension.name + " from " + std::to_string(dimension.min) + " to " +
                     std::to_string(dimension.max);
  if (dimension.multiple > 1) text += ", multiples of " + std::to_string(dimension.multiple);
  return text;
}

Sizes Dimensions::recorded() const {
  Sizes sizes;
  for (const Dimension& dimension : list) sizes.push_back(dimension.recorded);
  return sizes;
}

std::vector<Sizes> Dimensions::samples() const {
  std::vector<Sizes> samples = {recorded()};
  std::vector<Sizes> each;
  for (const Dimension& dimension : list) each.push_back(sampled(dimension));
  for (size_t d = 0; d < list.size(); ++d)
    for (size_t i = 1; i < each[d].size(); ++i) {
      samples.push_back(samples[0]);
      samples.back()[d] = each[d][i];
    }
  // All at once, for products of sizes.
  for (size_t i = 1; list.size() > 1 && i <= 2; ++i) {
    Sizes together;
    for (const Sizes& sizes : each)
      together.push_back(sizes[sizes.size() - std::min(i, sizes.size())]);
    if (std::find(samples.begin(), samples.end(), together) == samples.end())
      samples.push_back(std::move(together));
  }
  return samples;
}

Instances::Made Instances::get(const Sizes& sizes, const std::function<Made()>& make) {
  auto find = [&] {
    return std::find_if(made_.begin(), made_.end(),
                        [&](const auto& m) { return m.first == sizes; });
  };
  {
    std::lock_guard lock(mutex_);
    if (auto found = find(); found != made_.end()) {
      std::rotate(made_.begin(), found, found + 1);
      return made_[0].second;
    }
  }
  Made made = make();  // Other threads go on; two that make the same waste one.
  std::lock_guard lock(mutex_);
  if (find() == made_.end()) made_.insert(made_.begin(), {sizes, made});
  if (made_.size() > kKept) made_.pop_back();
  return made;
}

Instances::Made instance_for(const Program& program, tenon_tensor* const* inputs,
                             uint32_t ninputs) {
  const Dimensions& dimensions = *program.dimensions;
  Sizes sizes(dimensions.list.size(), -1);
  if (ninputs != program.graph.inputs.size())
    throw Error(TENON_INVALID_ARGUMENT, "program: expected " +
                                            std::to_string(program.graph.inputs.size()) +
                                            " inputs, got " + std::to_string(ninputs));
  for (const Dimensions::Site& site : dimensions.sites) {
    const tenon_tensor& input = *inputs[site.input];
    const Dimension& dimension = dimensions.list[site.dimension];
    const auto ndim = program.graph.values[program.graph.inputs[site.input]].shape.size();
    auto refuse = [&](const std::string& expected) {
      throw Error(TENON_INVALID_ARGUMENT, "program: input " + std::to_string(site.input) +
                                              ": expected " + expected + ", got " +
                                              type_text(type_of(input)));
    };
    if (static_cast<size_t>(input.ndim) != ndim) refuse(std::to_string(ndim) + " axes");
    const int64_t size = input.shape[site.axis];
    const std::string axis = "axis " + std::to_string(site.axis) + " of size ";
    if (!dimension.allows(size)) refuse(axis + range_text(dimension));
    int64_t& known = sizes[site.dimension];
    if (known >= 0 && known != size)
      refuse(axis + dimension.name + " = " + std::to_string(known) + " as in other inputs");
    known = size;
  }
  return instance_of(program, sizes);
}

Instances::Made instance_of(const Program& program, const Sizes& sizes) {
  return program.instances->get(sizes, [&]() -> Instances::Made {
    return {instantiate(program, sizes).release(), ReleaseProgram()};
  });
}

}  // namespace tenon::graph

// SPDX-License-Identifier: Apache-2.0
#include "onnx_file.hpp"

#include <tenon/error.hpp>
#include <tenon/schema/words.hpp>

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "graph_service.hpp"
#include "plain_thread.hpp"

namespace tenon::predictor {
namespace {

const tenon_onnx_api& onnx_service() {
  const auto* found = static_cast<const tenon_onnx_api*>(
      host->service_find(TENON_ONNX_SERVICE, TENON_ONNX_VERSION));
  if (!found)
    throw Error(TENON_UNAVAILABLE,
                "models of ONNX need the plugin `onnx`, which was not loaded; name its folder in "
                "TENON_PLUGIN_PATH, or convert the model: tenon convert model.onnx model.tenon");
  if (found->struct_size < offsetof(tenon_onnx_api, model_input) + sizeof(void*))
    throw Error(TENON_UNAVAILABLE,
                "the plugin `onnx` is older than libtenon_predictor; reinstall tenon");
  return *found;
}

std::string listed(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + ("'" + name + "'");
  return all.empty() ? "none" : all;
}

// Names of dimensions are letters, digits and _.
std::string dimension_name(const std::string& text) {
  std::string name;
  for (char c : text) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ? "_" + name : name;
}

std::string sizes_text(const std::vector<Dimension>& dimensions,
                       const std::vector<int64_t>& sizes) {
  std::string text;
  for (size_t i = 0; i < sizes.size(); ++i)
    text += (i ? ", " : "") + dimensions[i].name + "=" + std::to_string(sizes[i]);
  return text;
}

}  // namespace

bool OnnxFile::is_one(const std::string& path) {
  constexpr std::string_view kEnding = ".onnx";
  return path.size() >= kEnding.size() &&
         std::equal(
             kEnding.begin(), kEnding.end(), path.end() - kEnding.size(),
             [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

OnnxFile::OnnxFile(const Config& config)
    : path_(config.path()),
      sizes_text_(config.get("sizes")),
      shapes_text_(config.get("shapes")),
      service_(onnx_service()) {
  const ErrorSink err;
  err.check(service_.model_open(path_.c_str(), &model_, err));
  try {
    read_inputs();
  } catch (...) {
    service_.model_release(model_);
    throw;
  }
}

OnnxFile::~OnnxFile() { service_.model_release(model_); }

void OnnxFile::read_inputs() {
  std::vector<tenon_onnx_input> inputs;
  for (uint32_t i = 0; i < service_.model_inputs(model_); ++i) {
    tenon_onnx_input input = {};
    input.struct_size = sizeof input;
    const ErrorSink err;
    err.check(service_.model_input(model_, i, &input, err));
    inputs.push_back(input);
  }
  const auto sizes = parse_sizes(sizes_text_);
  const NamedShapes shapes = parse_named_shapes(shapes_text_);
  check_names(sizes, shapes, inputs);
  std::map<std::string, size_t> known;
  for (const tenon_onnx_input& input : inputs) settle(input, sizes, shapes, known);
}

void OnnxFile::check_names(const std::map<std::string, SizeRange>& sizes, const NamedShapes& shapes,
                           const std::vector<tenon_onnx_input>& inputs) const {
  std::vector<std::string> open_sizes, names;
  for (const tenon_onnx_input& input : inputs) {
    names.emplace_back(input.name);
    for (int32_t axis = 0; axis < input.ndim; ++axis)
      if (input.size_names[axis] && std::find(open_sizes.begin(), open_sizes.end(),
                                              input.size_names[axis]) == open_sizes.end())
        open_sizes.emplace_back(input.size_names[axis]);
  }
  for (const auto& [name, size] : sizes)
    if (std::find(open_sizes.begin(), open_sizes.end(), name) == open_sizes.end())
      throw Error(TENON_NOT_FOUND, "config: `sizes`: " + path_ + " has no open size '" + name +
                                       "'" + schema::did_you_mean(name, open_sizes) + "; it has " +
                                       listed(open_sizes));
  for (const auto& [name, shape] : shapes)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw Error(TENON_NOT_FOUND, "config: `shapes`: " + path_ + " has no input '" + name + "'" +
                                       schema::did_you_mean(name, names) + "; it has " +
                                       listed(names));
}

size_t OnnxFile::add_dimension(const std::string& wanted, SizeRange range) {
  std::string name = dimension_name(wanted);
  const auto is_taken = [&] {
    return std::any_of(dimensions_.begin(), dimensions_.end(),
                       [&](const Dimension& each) { return each.name == name; });
  };
  while (is_taken()) name += "_";
  dimensions_.push_back({name, range.min, range.max, 1, range.min});
  return dimensions_.size() - 1;
}

// `known`: the dimension of each open size with a name.
void OnnxFile::settle(const tenon_onnx_input& input, const std::map<std::string, SizeRange>& sizes,
                      const NamedShapes& shapes, std::map<std::string, size_t>& known) {
  Input settled{input.name, {}, {}};
  const std::string what = path_ + ": input '" + settled.name + "'";
  const size_t first = [&] {
    size_t count = 0;
    for (const Input& each : inputs_) count += each.shapes.size();
    return count;
  }();
  const auto open = [&](size_t axis, size_t dimension) {
    settled.sites.push_back({settled.shapes.size(), axis, dimension});
    sites_.push_back({first + settled.shapes.size(), axis, dimension});
    return dimensions_[dimension].recorded;
  };
  for (const auto& [name, given] : shapes) {
    if (name != settled.name) continue;
    if (!settled.shapes.empty() && !input.is_sequence)
      throw Error(TENON_INVALID_ARGUMENT, "config: `shapes`: expected one shape of '" + name +
                                              "', which is no sequence, got several");
    std::vector<int64_t> shape;
    for (size_t axis = 0; axis < given.size(); ++axis)
      shape.push_back(
          given[axis].is_open()
              ? open(axis, add_dimension(name + "_" + std::to_string(axis), given[axis]))
              : given[axis].min);
    settled.shapes.push_back(std::move(shape));
  }
  if (settled.shapes.empty() && (input.is_sequence || input.ndim < 0))
    throw Error(TENON_INVALID_ARGUMENT,
                what +
                    (input.is_sequence ? ": a sequence, whose length and shapes are open"
                                       : ": its number of axes is open") +
                    "; set the key `shapes`, to '" + settled.name + "=2x3'" +
                    (input.is_sequence ? ", once for each tensor" : ""));
  if (settled.shapes.empty()) {
    std::vector<int64_t> shape;
    for (int32_t axis = 0; axis < input.ndim; ++axis) {
      if (input.shape[axis] >= 0) {
        shape.push_back(input.shape[axis]);
        continue;
      }
      const char* name = input.size_names[axis];
      if (!name)
        throw Error(TENON_INVALID_ARGUMENT,
                    what + ": the size of axis " + std::to_string(axis) +
                        " is open and has no name; set the key `shapes`, to '" + settled.name +
                        "=' and sizes such as 1x3 or, for a range, 1:64x3");
      const auto given = sizes.find(name);
      if (given == sizes.end())
        throw Error(TENON_INVALID_ARGUMENT,
                    what + ": the size of axis " + std::to_string(axis) + ", '" + name +
                        "', is open; set the key `sizes`, to '" + name + "=8', or to '" + name +
                        "=1:64' for a size that each run chooses");
      if (!given->second.is_open()) {
        shape.push_back(given->second.min);
        continue;
      }
      const auto dimension = known.find(name);
      if (dimension == known.end()) known[name] = add_dimension(name, given->second);
      shape.push_back(open(static_cast<size_t>(axis), known[name]));
    }
    settled.shapes.push_back(std::move(shape));
  }
  inputs_.push_back(std::move(settled));
}

Program OnnxFile::at(const std::vector<int64_t>& sizes, uint32_t flags) const {
  const PlainThread plain;
  std::vector<Input> inputs = inputs_;
  std::vector<tenon_onnx_shape> shapes;
  for (Input& input : inputs) {
    for (const Site& site : input.sites)
      input.shapes[site.input][site.axis] = sizes[site.dimension];
    for (const std::vector<int64_t>& shape : input.shapes)
      shapes.push_back({input.name.c_str(), shape.data(), static_cast<uint32_t>(shape.size()), 0});
  }
  tenon_onnx_options options = {};
  options.struct_size = sizeof options;
  options.shapes = shapes.data();
  options.nshapes = static_cast<uint32_t>(shapes.size());
  options.flags = flags;
  const ErrorSink err;
  tenon_graph_program* program = nullptr;
  const tenon_status status =
      service_.model_program(model_, &options, &program, nullptr, nullptr, err);
  if (status != TENON_OK)
    throw Error(status, host->err_text(err) +
                            (sizes.empty() ? "" : " (at " + sizes_text(dimensions_, sizes) + ")"));
  return Program(program);
}

Program OnnxFile::load() {
  reason_.clear();
  if (dimensions_.empty()) return at({});
  std::vector<tenon_graph_dimension> dimensions;
  for (const Dimension& each : dimensions_)
    dimensions.push_back({.struct_size = sizeof(tenon_graph_dimension),
                          .reserved = 0,
                          .name = each.name.c_str(),
                          .min = each.min,
                          .max = each.max,
                          .multiple = each.multiple,
                          .recorded = each.recorded});
  const auto count = static_cast<uint32_t>(dimensions.size());
  const tenon_graph_service_api& graph = graph_service();
  uint32_t rows = 0;
  const ErrorSink err;
  err.check(graph.program_samples(dimensions.data(), count, nullptr, 0, &rows, err));
  std::vector<int64_t> sizes(size_t{rows} * count);
  err.check(graph.program_samples(dimensions.data(), count, sizes.data(), rows, &rows, err));
  std::vector<Program> samples;
  std::vector<const tenon_graph_program*> handles;
  for (uint32_t row = 0; row < rows; ++row) {
    const auto begin = sizes.begin() + static_cast<ptrdiff_t>(size_t{row} * count);
    samples.push_back(at({begin, begin + count}, TENON_ONNX_SAMPLE));
    handles.push_back(samples.back().get());
  }
  tenon_graph_program* program = nullptr;
  const tenon_status status =
      graph.program_unify(dimensions.data(), count, handles.data(), nullptr, rows, &program, err);
  if (status == TENON_OK) return Program(program);
  if (status != TENON_FAILED_PRECONDITION) err.check(status);
  return give_up(host->err_text(err));
}

Program OnnxFile::give_up(std::string reason) {
  reason_ = std::move(reason);
  std::vector<int64_t> recorded;
  for (const Dimension& each : dimensions_) recorded.push_back(each.recorded);
  return at(recorded);
}

}  // namespace tenon::predictor

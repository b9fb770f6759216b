// SPDX-License-Identifier: Apache-2.0
// The plugin: service "onnx".
#include <tenon/services/onnx.h>
#include <tenon/plugin.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <set>

#include "describe.hpp"
#include "importer.hpp"
#include "reader/reader.hpp"
#include "text/texts.hpp"

struct tenon_onnx_model {
  std::string name;    // of the file, for messages
  std::string folder;  // of external data
  std::shared_ptr<const tenon::onnx::MappedFile> file;
  tenon::onnx::Model model;
  std::unique_ptr<tenon::onnx::ModelFiles> files;
};

namespace tenon::onnx {
namespace {

// Runs f(); what it throws begins with the model's name.
template <class F>
tenon_status named(const std::string& name, tenon_err* err, F&& f) {
  return guarded(err, [&] {
    try {
      f();
    } catch (const Error& error) {
      throw Error(error.code(), "[onnx] " + name + ": " + error.what());
    }
  });
}

tenon_status model_open(const char* path, tenon_onnx_model** out, tenon_err* err) {
  const std::string text = path;
  const size_t slash = text.rfind('/');
  const std::string name = slash == std::string::npos ? text : text.substr(slash + 1);
  return named(name, err, [&] {
    auto model = std::make_unique<tenon_onnx_model>();
    model->name = name;
    model->folder = slash == std::string::npos ? "." : text.substr(0, slash + 1);
    model->file = MappedFile::open(text);
    model->model = read_model(model->file->bytes());
    model->files = std::make_unique<ModelFiles>(model->file, model->folder);
    *out = model.release();
  });
}

tenon_status model_read(const void* bytes, uint64_t size, tenon_onnx_model** out, tenon_err* err) {
  return named("model", err, [&] {
    auto model = std::make_unique<tenon_onnx_model>();
    model->name = "model";
    model->file = MappedFile::copy({static_cast<const char*>(bytes), static_cast<size_t>(size)});
    model->model = read_model(model->file->bytes());
    model->files = std::make_unique<ModelFiles>(model->file, model->folder);
    *out = model.release();
  });
}

void model_release(tenon_onnx_model* model) { delete model; }

void model_describe(const tenon_onnx_model* model, tenon_sink_fn sink, void* user) {
  const std::string text = describe_model(model->model);
  sink(user, text.data(), text.size());
}

ImportOptions options_of(const tenon_onnx_options* given) {
  ImportOptions options;
  if (!given) return options;
  constexpr size_t kFirst = offsetof(tenon_onnx_options, texts);
  if (given->struct_size < kFirst)
    throw Error(TENON_INVALID_ARGUMENT, "expected struct_size of the options from " +
                                            std::to_string(kFirst) + " on, got " +
                                            std::to_string(given->struct_size));
  for (uint32_t i = 0; i < given->nsizes; ++i)
    options.sizes[given->sizes[i].name] = given->sizes[i].size;
  for (uint32_t i = 0; i < given->nshapes; ++i) {
    const tenon_onnx_shape& shape = given->shapes[i];
    options.shapes[shape.name].emplace_back(shape.shape, shape.shape + shape.ndim);
  }
  for (uint32_t i = 0; i < given->nconstants; ++i)
    options.constants[given->constants[i].name] = Tensor::borrow(given->constants[i].value);
  if (given->struct_size < sizeof *given) return options;
  options.may_return_text = given->flags & TENON_ONNX_TEXT_RESULTS;
  options.is_sample = given->flags & TENON_ONNX_SAMPLE;
  for (uint32_t i = 0; i < given->ntexts; ++i) {
    const tenon_onnx_texts& texts = given->texts[i];
    const Ints shape(texts.shape, texts.shape + texts.ndim);
    const auto count = static_cast<size_t>(count_elements(shape, texts.name));
    Texts elements(texts.elements, texts.elements + count);
    for (const std::string& element : elements) decoded(element, texts.name);
    options.texts.emplace(texts.name, make_text(elements, shape));
  }
  return options;
}

// Names that a program takes: each once, "" for those that several have.
std::vector<const char*> unique_names(const Texts& names) {
  std::map<std::string, int> counts;
  for (const std::string& name : names) ++counts[name.c_str()];
  std::vector<const char*> unique;
  for (const std::string& name : names)
    unique.push_back(counts[name.c_str()] == 1 ? name.c_str() : "");
  return unique;
}

OwnedProgram with_names(OwnedProgram program, const Importer& importer) {
  const std::vector<const char*> inputs = unique_names(importer.input_names()),
                                 results = unique_names(importer.result_names());
  const ErrorSink err;
  tenon_graph_program* named;
  err.check(
      graph_service().program_name(program.get(), inputs.data(), results.data(), &named, err));
  return OwnedProgram(named);
}

tenon_status model_program(const tenon_onnx_model* model, const tenon_onnx_options* given,
                           tenon_graph_program** out, tenon_sink_fn structure, void* user,
                           tenon_err* err) {
  return named(model->name, err, [&] {
    const ImportOptions options = options_of(given);
    Importer importer(model->model, *model->files, options);
    std::vector<Importer::Result> results;
    OwnedProgram program(importer.run(results));
    program = with_names(std::move(program), importer);
    if (structure) {
      std::string text = "[";
      for (const Importer::Result& result : results) {
        if (text.size() > 1) text += ", ";
        if (result.kind == Importer::Result::kTensor) text += "1";
        if (result.kind == Importer::Result::kSequence)
          text += "[" + std::to_string(result.count) + "]";
        if (result.kind == Importer::Result::kText)
          text += "{\"texts\": " + json_texts(*result.vocabulary) + "}";
      }
      text += "]";
      structure(user, text.data(), text.size());
    }
    *out = program.release();
  });
}

// Inputs that have no initializer.
std::vector<const NamedType*> open_inputs(const Graph& graph) {
  std::set<std::string_view> initialized;
  for (const auto& data : graph.initializers) initialized.insert(data->name);
  std::vector<const NamedType*> inputs;
  for (const NamedType& input : graph.inputs)
    if (!initialized.count(input.name)) inputs.push_back(&input);
  return inputs;
}

uint32_t model_inputs(const tenon_onnx_model* model) {
  return static_cast<uint32_t>(open_inputs(model->model.graph).size());
}

tenon_status model_input(const tenon_onnx_model* model, uint32_t index, tenon_onnx_input* out,
                         tenon_err* err) {
  return named(model->name, err, [&] {
    const std::vector<const NamedType*> inputs = open_inputs(model->model.graph);
    if (index >= inputs.size())
      throw Error(TENON_OUT_OF_RANGE, "expected the index of an input, below " +
                                          std::to_string(inputs.size()) + ", got " +
                                          std::to_string(index));
    const Type* type = &inputs[index]->type;
    tenon_onnx_input filled = {};
    filled.name = inputs[index]->name.c_str();
    while ((type->kind == Type::Optional || type->kind == Type::Sequence) && type->element) {
      filled.is_sequence |= type->kind == Type::Sequence;
      type = type->element.get();
    }
    filled.dtype = type->kind == Type::Tensor ? find_dtype(type->element_type) : -1;
    filled.ndim = -1;
    if (type->shape) {
      const std::vector<Type::Dimension>& sizes = *type->shape;
      if (sizes.size() > TENON_MAX_NDIM)
        throw Error(TENON_UNSUPPORTED, std::string("input `") + filled.name +
                                           "`: expected at most " + std::to_string(TENON_MAX_NDIM) +
                                           " axes, got " + std::to_string(sizes.size()));
      filled.ndim = static_cast<int32_t>(sizes.size());
      for (size_t axis = 0; axis < sizes.size(); ++axis) {
        const bool is_known = sizes[axis].size && *sizes[axis].size >= 0;
        filled.shape[axis] = is_known ? *sizes[axis].size : -1;
        if (!is_known && !sizes[axis].name.empty())
          filled.size_names[axis] = sizes[axis].name.c_str();
      }
    }
    filled.struct_size = out->struct_size;
    std::memcpy(out, &filled, std::min<size_t>(out->struct_size, sizeof filled));
  });
}

void table(tenon_sink_fn sink, void* user) {
  const std::string text = describe_table(Table::read());
  sink(user, text.data(), text.size());
}

constexpr tenon_onnx_api kService = {.struct_size = sizeof(tenon_onnx_api),
                                     .version = TENON_ONNX_VERSION,
                                     .model_open = model_open,
                                     .model_read = model_read,
                                     .model_release = model_release,
                                     .model_describe = model_describe,
                                     .model_program = model_program,
                                     .table = table,
                                     .model_inputs = model_inputs,
                                     .model_input = model_input};

tenon_status start(const tenon_host*, tenon_err* err) {
  return host->service_register(TENON_ONNX_SERVICE, TENON_ONNX_VERSION, &kService, err);
}

// `stop` is absent: programs hold memory of the models that they were made from, which code of this library gives back.
constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "onnx",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .start = start,
};

}  // namespace
}  // namespace tenon::onnx

TENON_PLUGIN(tenon::onnx::kPlugin)

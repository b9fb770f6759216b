// SPDX-License-Identifier: Apache-2.0
// The plugin: service "onnx".
#include <tenon/services/onnx.h>
#include <tenon/plugin.hpp>

#include <cstring>

#include "describe.hpp"
#include "importer.hpp"
#include "reader/reader.hpp"

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
  if (given->struct_size < sizeof *given)
    throw Error(TENON_INVALID_ARGUMENT, "expected struct_size " + std::to_string(sizeof *given) +
                                            " of the options, got " +
                                            std::to_string(given->struct_size));
  for (uint32_t i = 0; i < given->nsizes; ++i)
    options.sizes[given->sizes[i].name] = given->sizes[i].size;
  for (uint32_t i = 0; i < given->nshapes; ++i) {
    const tenon_onnx_shape& shape = given->shapes[i];
    options.shapes[shape.name].emplace_back(shape.shape, shape.shape + shape.ndim);
  }
  for (uint32_t i = 0; i < given->nconstants; ++i)
    options.constants[given->constants[i].name] = Tensor::borrow(given->constants[i].value);
  return options;
}

tenon_status model_program(const tenon_onnx_model* model, const tenon_onnx_options* given,
                           tenon_graph_program** out, tenon_sink_fn structure, void* user,
                           tenon_err* err) {
  return named(model->name, err, [&] {
    const ImportOptions options = options_of(given);
    Importer importer(model->model, *model->files, options);
    std::vector<int64_t> results;
    tenon_graph_program* program = importer.run(results);
    if (structure) {
      std::string text = "[";
      for (int64_t result : results) {
        if (text.size() > 1) text += ", ";
        text += result > 0 ? "1" : "[" + std::to_string(-1 - result) + "]";
      }
      text += "]";
      structure(user, text.data(), text.size());
    }
    *out = program;
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
                                     .table = table};

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

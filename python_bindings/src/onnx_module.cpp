// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.onnx: models of service "onnx".
#include <nanobind/stl/string.h>
#include <tenon/services/onnx.h>

#include <deque>
#include <string>
#include <vector>

#include "host_call.hpp"
#include "modules.hpp"
#include "program_type.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

const tenon_onnx_api& onnx_service() {
  need_plugins();
  const auto* api = static_cast<const tenon_onnx_api*>(
      host->service_find(TENON_ONNX_SERVICE, TENON_ONNX_VERSION));
  if (!api) {
    raise_error(PyExc_RuntimeError,
                "tenon.onnx needs the plugin `onnx`, which was not loaded; `tenon plugins doctor` "
                "says why");
    throw nb::python_error();
  }
  return *api;
}

void append_text(void* user, const char* piece, uint64_t bytes) {
  static_cast<std::string*>(user)->append(piece, bytes);
}

class OnnxModel {
 public:
  // A path, or the bytes of a model.
  explicit OnnxModel(nb::handle source) : service_(onnx_service()) {
    if (nb::isinstance<nb::bytes>(source)) {
      const auto bytes = nb::borrow<nb::bytes>(source);
      call_unlocked([&](tenon_err* err) {
        return service_.model_read(bytes.c_str(), bytes.size(), &handle_, err);
      });
    } else {
      const auto path = nb::cast<std::string>(source);
      call_unlocked(
          [&](tenon_err* err) { return service_.model_open(path.c_str(), &handle_, err); });
    }
  }
  ~OnnxModel() { service_.model_release(handle_); }
  OnnxModel(const OnnxModel&) = delete;
  OnnxModel& operator=(const OnnxModel&) = delete;

  std::string describe() const {
    std::string text;
    service_.model_describe(handle_, append_text, &text);
    return text;
  }

  // sizes: {name: size}; shapes: [(name, shape)]; values: {name: tensor}; texts: [(name, [text], shape)]; is_sample: of several sizes,
  // for which one program is wanted. (program, structure of its results as JSON)
  nb::tuple program(const nb::dict& sizes, nb::handle shapes, const nb::dict& values,
                    nb::handle texts, bool is_sample) const {
    std::deque<std::string> names;
    std::deque<std::vector<int64_t>> numbers;
    std::vector<tenon_onnx_size> given_sizes;
    std::vector<tenon_onnx_shape> given_shapes;
    std::vector<tenon_onnx_constant> given_values;
    const auto name_of = [&](nb::handle name) {
      return names.emplace_back(nb::cast<std::string>(name)).c_str();
    };
    for (const auto& [name, size] : sizes)
      given_sizes.push_back({name_of(name), nb::cast<int64_t>(size)});
    for (nb::handle item : nb::iter(shapes)) {
      std::vector<int64_t>& shape = numbers.emplace_back();
      for (nb::handle size : nb::iter(item[1])) shape.push_back(nb::cast<int64_t>(size));
      given_shapes.push_back(
          {name_of(item[0]), shape.data(), static_cast<uint32_t>(shape.size()), 0});
    }
    for (const auto& [name, value] : values)
      given_values.push_back({name_of(name), tensor_argument(value, "onnx")});
    std::deque<std::vector<const char*>> lists;
    std::vector<tenon_onnx_texts> given_texts;
    for (nb::handle item : nb::iter(texts)) {
      std::vector<const char*>& elements = lists.emplace_back();
      for (nb::handle text : nb::iter(item[1])) elements.push_back(name_of(text));
      std::vector<int64_t>& shape = numbers.emplace_back();
      for (nb::handle size : nb::iter(item[2])) shape.push_back(nb::cast<int64_t>(size));
      given_texts.push_back({name_of(item[0]), elements.data(), shape.data(),
                             static_cast<uint32_t>(shape.size()), 0});
    }
    const tenon_onnx_options options = {
        .struct_size = sizeof options,
        .nsizes = static_cast<uint32_t>(given_sizes.size()),
        .sizes = given_sizes.data(),
        .shapes = given_shapes.data(),
        .constants = given_values.data(),
        .nshapes = static_cast<uint32_t>(given_shapes.size()),
        .nconstants = static_cast<uint32_t>(given_values.size()),
        .texts = given_texts.data(),
        .ntexts = static_cast<uint32_t>(given_texts.size()),
        .flags = TENON_ONNX_TEXT_RESULTS | (is_sample ? TENON_ONNX_SAMPLE : 0U)};
    tenon_graph_program* program;
    std::string structure;
    call_unlocked([&](tenon_err* err) {
      return service_.model_program(handle_, &options, &program, append_text, &structure, err);
    });
    return nb::make_tuple(Program(program), structure);
  }

 private:
  const tenon_onnx_api& service_;
  tenon_onnx_model* handle_ = nullptr;
};

std::string table() {
  std::string text;
  onnx_service().table(append_text, &text);
  return text;
}

}  // namespace

void add_onnx_functions(nb::module_& module) {
  nb::class_<OnnxModel>(module, "OnnxModel",
                        "A model that was read; tenon.onnx.load makes a program of it.")
      .def(nb::init<nb::handle>(), nb::arg("source"))
      .def("describe", &OnnxModel::describe)
      .def("program", &OnnxModel::program, nb::arg("sizes"), nb::arg("shapes"), nb::arg("values"),
           nb::arg("texts"), nb::arg("is_sample"));
  module.def("onnx_table", &table);
}

}  // namespace tenon::python

// SPDX-License-Identifier: Apache-2.0
#include "composed.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <vector>

#include "host_call.hpp"
#include "modules.hpp"
#include "tensor_object.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

const tenon_parts_api* parts = nullptr;

const tenon_parts_api& parts_service() {
  const tenon_parts_api* api = require_parts();
  if (!api) throw nb::python_error();
  return *api;
}

const tenon_parts_kind& kind_named(const std::string& name) {
  const tenon_parts_kind* kind = parts_service().kind_find(name.c_str());
  if (kind) return *kind;
  raise_error(PyExc_ValueError, "expected the layout of a kind of composed tensors, got '%s'",
              name.c_str());
  throw nb::python_error();
}

const tenon_parts_kind& kind_of(const tenon_tensor* tensor, const char* function) {
  const tenon_parts_kind* kind = parts_service().kind(tensor);
  if (kind) return *kind;
  raise_error(PyExc_TypeError,
              "%s: expected a tensor that is composed of others, got layout strided", function);
  throw nb::python_error();
}

nb::object taken(tenon_tensor* owned) { return nb::steal(wrap(owned)); }

nb::object compose(const std::string& name, const std::vector<int64_t>& shape, nb::list tensors,
                   const std::vector<int64_t>& words) {
  const tenon_parts_kind& kind = kind_named(name);
  if (tensors.size() != kind.nparts || words.size() != kind.nwords) {
    raise_error(PyExc_ValueError, "%s: expected %u parts and %u words, got %zu and %zu", kind.name,
                kind.nparts, kind.nwords, tensors.size(), words.size());
    throw nb::python_error();
  }
  std::vector<tenon_tensor*> handles;
  for (nb::handle tensor : tensors) handles.push_back(tensor_argument(tensor, kind.name));
  ErrorSink err;
  tenon_tensor* made;
  check(parts_service().create(&kind, static_cast<int32_t>(shape.size()), shape.data(),
                               handles.data(), words.data(), &made, err),
        err);
  return taken(made);
}

nb::tuple parts_of(nb::handle tensor) {
  tenon_tensor* whole = tensor_argument(tensor, "parts_of");
  const tenon_parts_kind& kind = kind_of(whole, "parts_of");
  nb::list list;
  for (uint32_t i = 0; i < kind.nparts; ++i)
    list.append(nb::steal(wrap_borrowed(parts_service().part(whole, i))));
  return nb::tuple(list);
}

std::vector<int64_t> words_of(nb::handle tensor) {
  tenon_tensor* whole = tensor_argument(tensor, "words_of");
  const tenon_parts_kind& kind = kind_of(whole, "words_of");
  std::vector<int64_t> words;
  for (uint32_t i = 0; i < kind.nwords; ++i) words.push_back(parts_service().word(whole, i));
  return words;
}

nb::object with_values(nb::handle tensor, nb::handle values) {
  tenon_tensor* whole = tensor_argument(tensor, "with_values");
  kind_of(whole, "with_values");
  ErrorSink err;
  tenon_tensor* made;
  check(parts_service().with_values(whole, tensor_argument(values, "with_values"), &made, err),
        err);
  return taken(made);
}

nb::object convert_layout(nb::handle tensor, const std::string& layout) {
  tenon_tensor* whole = tensor_argument(tensor, "convert_layout");
  ErrorSink err;
  tenon_tensor* made;
  check(parts_service().convert(whole, layout.c_str(), &made, err), err);
  return taken(made);
}

nb::object coalesce(nb::handle tensor) {
  tenon_tensor* whole = tensor_argument(tensor, "coalesce");
  ErrorSink err;
  tenon_tensor* made;
  check(parts_service().coalesce(whole, &made, err), err);
  return taken(made);
}

}  // namespace

const tenon_parts_api* require_parts() {
  if (parts) return parts;
  if (!ensure_loaded()) return nullptr;
  parts = static_cast<const tenon_parts_api*>(
      host->service_find(TENON_PARTS_SERVICE, TENON_PARTS_VERSION));
  if (parts) return parts;
  return raise_error(PyExc_RuntimeError,
                     "tensors that are composed of others need the parts plugin, which is not "
                     "loaded; tenon.plugins.doctor() says why");
}

tenon_tensor* part_with_history(tenon_tensor* tensor) {
  if (!is_composed(tensor)) return tensor;
  const tenon_parts_api* api = require_parts();
  if (!api) return nullptr;
  const tenon_parts_kind* kind = api->kind(tensor);
  return kind && kind->layer < 0 ? api->part(tensor, kind->values) : tensor;
}

PyObject* wrap_with_values(const tenon_tensor* like, Tensor values) {
  const tenon_parts_api* api = require_parts();
  if (!api) return nullptr;
  ErrorSink err;
  tenon_tensor* made;
  const tenon_status status = api->with_values(like, values.get(), &made, err);
  return status == TENON_OK ? wrap(made) : raise(status, err);
}

const char* layout_of(const tenon_tensor* tensor) {
  if (!is_composed(tensor)) return "strided";
  const tenon_parts_api* api = require_parts();
  const tenon_parts_kind* kind = api ? api->kind(tensor) : nullptr;
  PyErr_Clear();
  return kind ? kind->name : "composed";
}

bool refuse_composed(const tenon_tensor* tensor, const char* what) {
  if (std::strcmp(layout_of(tensor), "sharded") == 0) {
    raise_error(PyExc_TypeError,
                "%s: expected a tensor with memory, got one of layout sharded, of which this rank "
                "has a part; use .full_tensor() first, or .to_local() for the part",
                what);
    return false;
  }
  raise_error(
      PyExc_TypeError,
      "%s: expected a tensor with memory, got one of layout %s, which is composed of others; "
      "use .to_dense() first, or its parts",
      what, layout_of(tensor));
  return false;
}

void add_composed_functions(nb::module_& module) {
  module.def("compose", &compose, nb::arg("layout"), nb::arg("shape"), nb::arg("parts"),
             nb::arg("words") = std::vector<int64_t>{});
  module.def("parts_of", &parts_of);
  module.def("words_of", &words_of);
  module.def("with_values", &with_values);
  module.def("convert_layout", &convert_layout);
  module.def("coalesce", &coalesce);
}

}  // namespace tenon::python

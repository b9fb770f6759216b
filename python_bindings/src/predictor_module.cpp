// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.inference.Predictor, over libtenon_predictor: what holds in C holds here.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <tenon/predictor.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "host_call.hpp"
#include "modules.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

// Raises what the library reports of this thread's last call.
void check_predictor(tenon_status status) {
  if (status == TENON_OK) return;
  ErrorSink err;
  const char* text = tenon_predictor_error();
  host->fail(err, status, 0, text, std::strlen(text));
  check(status, err);
}

template <class Call>
void call_predictor(Call&& call) {
  tenon_status status;
  {
    nb::gil_scoped_release unlocked;
    status = call();
  }
  check_predictor(status);
}

class Predictor {
 public:
  Predictor(const std::string& path,
            const std::vector<std::pair<std::string, std::string>>& settings) {
    need_plugins();
    tenon_config* config = nullptr;
    check_predictor(tenon_config_create(path.c_str(), &config));
    tenon_status status = TENON_OK;
    for (const auto& [key, value] : settings)
      if (status == TENON_OK) status = tenon_config_set(config, key.c_str(), value.c_str());
    if (status == TENON_OK) {
      nb::gil_scoped_release unlocked;
      status = tenon_predictor_create(config, &handle_);
    }
    tenon_config_free(config);
    check_predictor(status);
  }
  explicit Predictor(tenon_predictor* owned) : handle_(owned) {}
  Predictor(Predictor&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), hook_(std::move(other.hook_)) {}
  ~Predictor() {
    if (handle_) tenon_predictor_free(handle_);
  }
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  tenon_predictor* handle() const { return handle_; }

  Predictor clone() const {
    tenon_predictor* made = nullptr;
    check_predictor(tenon_predictor_clone(handle_, &made));
    return Predictor(made);
  }

  // Runs on these inputs, and lets them go.
  nb::list run(const std::vector<std::string>& names, nb::handle tensors,
               const std::vector<std::string>& outputs) const {
    nb::list made;
    const Unbind unbind{handle_};
    size_t index = 0;
    for (nb::handle tensor : nb::iter(tensors)) {
      tenon_tensor* bound = tensor_argument(tensor, "Predictor.run");
      check_predictor(tenon_predictor_bind_input_tensor(handle_, names.at(index++).c_str(), bound));
    }
    call_predictor([&] { return tenon_predictor_run(handle_); });
    for (const std::string& output : outputs) {
      tenon_tensor* owned = nullptr;
      check_predictor(tenon_predictor_output_tensor(handle_, output.c_str(), &owned));
      made.append(nb::steal(wrap(owned)));
    }
    return made;
  }

  // `function(index, name, file, line, results)`, or None.
  void set_hook(nb::object function) {
    hook_ = std::move(function);
    check_predictor(
        tenon_predictor_set_hook(handle_, hook_.is_none() ? nullptr : &Predictor::tell, this));
  }

 private:
  struct Unbind {
    tenon_predictor* predictor;
    ~Unbind() { tenon_predictor_unbind_inputs(predictor); }
  };

  // A Python error stays pending, and is what the run raises.
  static tenon_status tell(void* user, const tenon_predictor_step* step,
                           const tenon_predictor_view* results, uint32_t nresults) {
    nb::gil_scoped_acquire locked;
    try {
      nb::list values;
      for (uint32_t i = 0; i < nresults; ++i) values.append(copied(results[i]));
      static_cast<const Predictor*>(user)->hook_(step->index, step->name, step->file, step->line,
                                                 values);
      return TENON_OK;
    } catch (nb::python_error& error) {
      error.restore();
    } catch (const std::exception& error) {
      raise_error(PyExc_RuntimeError, "%s", error.what());
    }
    return TENON_CANCELLED;
  }

  static nb::object copied(const tenon_predictor_view& view) {
    ErrorSink err;
    tenon_tensor* made;
    check(host->tensor_create(host->device_host(), view.dtype, view.ndim, view.shape, &made, err),
          err);
    if (view.bytes > 0) std::memcpy(made->data, view.data, view.bytes);
    return nb::steal(wrap(made));
  }

  tenon_predictor* handle_ = nullptr;
  nb::object hook_ = nb::none();
};

// (name, dtype, shape with -1 for open sizes, dimension of each axis)
template <class Count, class Name, class TypeOf>
nb::list values_of(const Predictor& predictor, Count count_of, Name name_of, TypeOf type_of) {
  uint32_t count = 0;
  check_predictor(count_of(predictor.handle(), &count));
  nb::list values;
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    tenon_predictor_type type = {};
    type.struct_size = sizeof type;
    check_predictor(name_of(predictor.handle(), i, &name));
    check_predictor(type_of(predictor.handle(), i, &type));
    nb::list shape, dimensions;
    for (int32_t axis = 0; axis < type.ndim; ++axis) {
      shape.append(type.shape[axis]);
      dimensions.append(type.dimensions[axis]);
    }
    values.append(nb::make_tuple(name, nb::steal(dtype_object(type.dtype)), nb::tuple(shape),
                                 nb::tuple(dimensions)));
  }
  return values;
}

template <class Text>
std::string text_of(const Predictor& predictor, Text get) {
  const char* text = nullptr;
  check_predictor(get(predictor.handle(), &text));
  return text;
}

// (name, min, max, multiple, recorded)
nb::list dimensions_of(const Predictor& predictor) {
  uint32_t count = 0;
  check_predictor(tenon_predictor_dimension_count(predictor.handle(), &count));
  nb::list list;
  for (uint32_t i = 0; i < count; ++i) {
    tenon_predictor_dimension dimension = {};
    dimension.struct_size = sizeof dimension;
    check_predictor(tenon_predictor_dimension_at(predictor.handle(), i, &dimension));
    list.append(nb::make_tuple(dimension.name, dimension.min, dimension.max, dimension.multiple,
                               dimension.recorded));
  }
  return list;
}

// (name, default, text, is it available)
nb::list keys() {
  nb::list list;
  for (uint32_t i = 0; i < tenon_config_key_count(); ++i) {
    tenon_config_key_info info = {};
    info.struct_size = sizeof info;
    check_predictor(tenon_config_key(i, &info));
    list.append(nb::make_tuple(info.name, info.default_value, info.text, info.is_available != 0));
  }
  return list;
}

}  // namespace

void add_predictor_type(nb::module_& module) {
  nb::class_<Predictor>(module, "Predictor",
                        "A predictor of libtenon_predictor; tenon.inference.Predictor has its "
                        "interface.")
      .def(nb::init<const std::string&, const std::vector<std::pair<std::string, std::string>>&>(),
           nb::arg("path"), nb::arg("settings"))
      .def("clone", &Predictor::clone)
      .def("run", &Predictor::run, nb::arg("names"), nb::arg("tensors"), nb::arg("outputs"))
      .def("set_hook", &Predictor::set_hook, nb::arg("function").none())
      .def("inputs",
           [](const Predictor& self) {
             return values_of(self, tenon_predictor_input_count, tenon_predictor_input_name,
                              tenon_predictor_input_type);
           })
      .def("outputs",
           [](const Predictor& self) {
             return values_of(self, tenon_predictor_output_count, tenon_predictor_output_name,
                              tenon_predictor_output_type);
           })
      .def("dimensions", &dimensions_of)
      .def(
          "setting",
          [](const Predictor& self, const std::string& key) {
            const char* value = nullptr;
            check_predictor(tenon_predictor_setting(self.handle(), key.c_str(), &value));
            return std::string(value);
          },
          nb::arg("key"))
      .def("cancel",
           [](const Predictor& self) { check_predictor(tenon_predictor_cancel(self.handle())); })
      .def(
          "warmup",
          [](const Predictor& self, const std::string& shapes) {
            call_predictor([&] { return tenon_predictor_warmup(self.handle(), shapes.c_str()); });
          },
          nb::arg("shapes"))
      .def("explain", [](const Predictor& self) { return text_of(self, tenon_predictor_explain); })
      .def("profile", [](const Predictor& self) { return text_of(self, tenon_predictor_profile); })
      .def("program", [](const Predictor& self) { return text_of(self, tenon_predictor_program); })
      .def(
          "save_optimized",
          [](const Predictor& self, const std::string& path) {
            call_predictor(
                [&] { return tenon_predictor_save_optimized(self.handle(), path.c_str()); });
          },
          nb::arg("path"))
      .def("memory",
           [](const Predictor& self) {
             tenon_predictor_memory_use use = {};
             use.struct_size = sizeof use;
             check_predictor(tenon_predictor_memory(self.handle(), &use));
             return nb::make_tuple(use.weights, use.results);
           })
      .def("shrink_memory", [](const Predictor& self) {
        uint64_t released = 0;
        call_predictor([&] { return tenon_predictor_shrink_memory(self.handle(), &released); });
        return released;
      });
  module.def("predictor_keys", &keys);
}

}  // namespace tenon::python

// SPDX-License-Identifier: Apache-2.0
// The functions of tenon/predictor.h. Nothing is thrown out of here: what goes wrong is a status, and a text of the
// thread.
#include <tenon/predictor.h>
#include <tenon/program.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "config.hpp"
#include "graph_service.hpp"
#include "handles.hpp"
#include "predictor.hpp"
#include "view.hpp"

namespace tenon::predictor {
namespace {

thread_local std::string last_error;

tenon_status failed(tenon_status code, const char* text) noexcept {
  try {
    last_error = text;
  } catch (const std::bad_alloc&) {
    last_error.clear();  // no memory for a text
  }
  return code;
}

// The host of the process, with its plugins. Tried again where it failed.
void need_host() {
  static std::atomic<bool> is_there{false};
  if (is_there.load(std::memory_order_acquire)) return;
  start();
  is_there.store(true, std::memory_order_release);
}

template <class F>
tenon_status answer(F&& f) noexcept {
  try {
    need_host();
    f();
    return TENON_OK;
  } catch (const Error& error) {
    return failed(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return failed(TENON_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::exception& error) {
    return failed(TENON_INTERNAL, error.what());
  } catch (...) {
    return failed(TENON_INTERNAL, "an exception of an unknown kind");
  }
}

using Configs = HandleTable<Config, tenon_config>;
using Predictors = HandleTable<Predictor, tenon_predictor>;

// Never destroyed: threads may use them while the process ends.
Configs& configs() {
  static auto& table = *new Configs("a configuration", 1);
  return table;
}
Predictors& predictors() {
  static auto& table = *new Predictors("a predictor", 2);
  return table;
}

// f(predictor) while no other thread uses it.
template <class F>
tenon_status with_predictor(tenon_predictor* handle, F&& f,
                            Predictor::Turn::Purpose purpose = Predictor::Turn::kOther) noexcept {
  return answer([&] {
    const std::shared_ptr<Predictor> predictor = predictors().find(handle);
    const Predictor::Turn turn(*predictor, purpose);
    f(*predictor);
  });
}

// f(model), which never changes.
template <class F>
tenon_status with_model(tenon_predictor* handle, F&& f) noexcept {
  return answer([&] { f(*predictors().find(handle)->model()); });
}

template <class T>
T* need(T* pointer, const char* what) {
  if (!pointer) throw Error(TENON_INVALID_ARGUMENT, std::string("expected ") + what + ", got NULL");
  return pointer;
}

// Fills what the caller's version of the structure has.
template <class Struct>
void write_out(Struct* out, Struct filled) {
  need(out, "a structure to fill");
  if (out->struct_size < sizeof(uint32_t))
    throw Error(TENON_INVALID_ARGUMENT,
                "expected a structure whose struct_size is set to its size, got " +
                    std::to_string(out->struct_size));
  filled.struct_size = out->struct_size;
  std::memcpy(out, &filled, std::min<size_t>(out->struct_size, sizeof filled));
}

template <class List>
const typename List::value_type& at(const List& list, uint32_t index, const char* what) {
  if (index >= list.size())
    throw Error(TENON_OUT_OF_RANGE, std::string("expected the index of ") + what + ", below " +
                                        std::to_string(list.size()) + ", got " +
                                        std::to_string(index));
  return list[index];
}

tenon_predictor_type type_of(const Value& value) {
  tenon_predictor_type type = {};
  type.dtype = value.dtype;
  type.ndim = static_cast<int32_t>(value.shape.size());
  for (size_t axis = 0; axis < value.shape.size(); ++axis) {
    type.dimensions[axis] = value.dimensions[axis];
    type.shape[axis] = value.dimensions[axis] == TENON_GRAPH_SIZE_FIXED ? value.shape[axis] : -1;
  }
  return type;
}

}  // namespace
}  // namespace tenon::predictor

using namespace tenon::predictor;  // NOLINT: this file is the functions of that namespace
using tenon::Error;
using tenon::host;
using tenon::Tensor;

extern "C" {

// -- this library -------------------------------------------------------------------------------------

uint32_t tenon_predictor_version(void) {
  return TENON_PREDICTOR_EPOCH << 16 | TENON_PREDICTOR_REVISION;
}

const char* tenon_predictor_error(void) { return last_error.c_str(); }

const char* tenon_predictor_status_name(tenon_status status) {
  static constexpr const char* kNames[] = {"OK",
                                           "CANCELLED",
                                           "UNKNOWN",
                                           "INVALID_ARGUMENT",
                                           "DEADLINE_EXCEEDED",
                                           "NOT_FOUND",
                                           "ALREADY_EXISTS",
                                           "PERMISSION_DENIED",
                                           "OUT_OF_MEMORY",
                                           "FAILED_PRECONDITION",
                                           "ABORTED",
                                           "OUT_OF_RANGE",
                                           "UNSUPPORTED",
                                           "INTERNAL",
                                           "UNAVAILABLE",
                                           "DATA_LOSS",
                                           "UNAUTHENTICATED",
                                           "TYPE_MISMATCH"};
  return status >= 0 && status < static_cast<tenon_status>(std::size(kNames)) ? kNames[status]
                                                                              : nullptr;
}

const char* tenon_predictor_dtype_name(int32_t dtype) {
  const char* name = nullptr;
  answer([&] {
    if (dtype >= 0 && dtype < TENON_DTYPE_COUNT) name = host->dtype_name(dtype);
  });
  return name;
}

uint32_t tenon_predictor_dtype_size(int32_t dtype) {
  uint32_t size = 0;
  answer([&] {
    if (dtype >= 0 && dtype < TENON_DTYPE_COUNT) size = host->dtype_size(dtype);
  });
  return size;
}

int32_t tenon_predictor_dtype_find(const char* name) {
  int32_t found = -1;
  answer([&] { found = host->dtype_find(need(name, "the name of a dtype")); });
  return found;
}

int32_t tenon_predictor_process_threads(void) {
  int32_t count = 0;
  answer([&] { count = host->thread_count(); });
  return count;
}

tenon_status tenon_predictor_set_process_threads(int32_t count) {
  return answer([&] {
    if (count < 1)
      throw Error(TENON_INVALID_ARGUMENT,
                  "expected at least 1 thread, got " + std::to_string(count));
    host->set_thread_count(count);
  });
}

// -- configuration --------------------------------------------------------------------------------

tenon_status tenon_config_create(const char* path, tenon_config** out) {
  return answer([&] {
    need(out, "where to put the configuration");
    *out = configs().add(std::make_shared<Config>(need(path, "the path of a program")));
  });
}

tenon_status tenon_config_set(tenon_config* config, const char* key, const char* value) {
  return answer([&] {
    configs().change(config,
                     [&](Config& each) { each.set(need(key, "a key"), need(value, "a value")); });
  });
}

tenon_status tenon_config_get(tenon_config* config, const char* key, const char** value) {
  return answer([&] {
    need(value, "where to put the value");
    configs().change(config, [&](Config& each) { *value = each.get(need(key, "a key")).c_str(); });
  });
}

uint32_t tenon_config_key_count(void) { return static_cast<uint32_t>(config_keys().size()); }

tenon_status tenon_config_key(uint32_t index, tenon_config_key_info* out) {
  return answer([&] { write_out(out, at(config_keys(), index, "a key")); });
}

tenon_status tenon_config_free(tenon_config* config) {
  return answer([&] { configs().take(config, [](const Config&) {}); });
}

// -- predictors -------------------------------------------------------------------------------------

tenon_status tenon_predictor_create(tenon_config* config, tenon_predictor** out) {
  return answer([&] {
    need(out, "where to put the predictor");
    Config copy("");
    configs().change(config, [&](const Config& each) { copy = each; });
    *out = predictors().add(Predictor::load(copy));
  });
}

tenon_status tenon_predictor_clone(tenon_predictor* predictor, tenon_predictor** out) {
  return answer([&] {
    need(out, "where to put the clone");
    const std::shared_ptr<const Model> model = predictors().find(predictor)->model();
    *out = predictors().add(std::make_shared<Predictor>(model));
  });
}

tenon_status tenon_predictor_free(tenon_predictor* predictor) {
  return answer([&] {
    predictors().take(predictor, [](const Predictor& each) {
      if (each.is_busy())
        throw Error(TENON_FAILED_PRECONDITION,
                    "the predictor is at work for another call; free it when that has returned");
    });
  });
}

tenon_status tenon_predictor_setting(tenon_predictor* predictor, const char* key,
                                     const char** value) {
  return with_model(predictor, [&](const Model& model) {
    need(value, "where to put the value");
    *value = model.setting(need(key, "a key")).c_str();
  });
}

tenon_status tenon_predictor_input_count(tenon_predictor* predictor, uint32_t* count) {
  return with_model(predictor, [&](const Model& model) {
    *need(count, "where to put the count") = static_cast<uint32_t>(model.signature().inputs.size());
  });
}

tenon_status tenon_predictor_input_name(tenon_predictor* predictor, uint32_t index,
                                        const char** name) {
  return with_model(predictor, [&](const Model& model) {
    need(name, "where to put the name");
    *name = at(model.signature().inputs, index, "an input").name.c_str();
  });
}

tenon_status tenon_predictor_input_find(tenon_predictor* predictor, const char* name,
                                        uint32_t* index) {
  return with_model(predictor, [&](const Model& model) {
    need(index, "where to put the index");
    *index = model.signature().find(model.signature().inputs, name);
  });
}

tenon_status tenon_predictor_input_type(tenon_predictor* predictor, uint32_t index,
                                        tenon_predictor_type* out) {
  return with_model(predictor, [&](const Model& model) {
    write_out(out, type_of(at(model.signature().inputs, index, "an input")));
  });
}

tenon_status tenon_predictor_output_count(tenon_predictor* predictor, uint32_t* count) {
  return with_model(predictor, [&](const Model& model) {
    *need(count, "where to put the count") =
        static_cast<uint32_t>(model.signature().outputs.size());
  });
}

tenon_status tenon_predictor_output_name(tenon_predictor* predictor, uint32_t index,
                                         const char** name) {
  return with_model(predictor, [&](const Model& model) {
    need(name, "where to put the name");
    *name = at(model.signature().outputs, index, "an output").name.c_str();
  });
}

tenon_status tenon_predictor_output_find(tenon_predictor* predictor, const char* name,
                                         uint32_t* index) {
  return with_model(predictor, [&](const Model& model) {
    need(index, "where to put the index");
    *index = model.signature().find(model.signature().outputs, name);
  });
}

tenon_status tenon_predictor_output_type(tenon_predictor* predictor, uint32_t index,
                                         tenon_predictor_type* out) {
  return with_model(predictor, [&](const Model& model) {
    write_out(out, type_of(at(model.signature().outputs, index, "an output")));
  });
}

tenon_status tenon_predictor_dimension_count(tenon_predictor* predictor, uint32_t* count) {
  return with_model(predictor, [&](const Model& model) {
    *need(count, "where to put the count") =
        static_cast<uint32_t>(model.signature().dimensions.size());
  });
}

tenon_status tenon_predictor_dimension_at(tenon_predictor* predictor, uint32_t index,
                                          tenon_predictor_dimension* out) {
  return with_model(predictor, [&](const Model& model) {
    const Dimension& dimension = at(model.signature().dimensions, index, "a dimension");
    write_out(out, {.struct_size = 0,
                    .reserved = 0,
                    .name = dimension.name.c_str(),
                    .min = dimension.min,
                    .max = dimension.max,
                    .multiple = dimension.multiple,
                    .recorded = dimension.recorded});
  });
}

// -- running ----------------------------------------------------------------------------------------

tenon_status tenon_predictor_bind_input(tenon_predictor* predictor, const char* name, int32_t dtype,
                                        int32_t ndim, const int64_t* shape, const void* data,
                                        uint64_t bytes) {
  return with_predictor(predictor, [&](Predictor& each) {
    const Signature& signature = each.model()->signature();
    const uint32_t index = signature.find(signature.inputs, name);
    each.bindings().bind_input(
        index, dtype, checked_shape("input '" + std::string(name) + "'", ndim, shape), data, bytes);
    each.drop_outputs();
  });
}

tenon_status tenon_predictor_bind_output(tenon_predictor* predictor, const char* name,
                                         int32_t dtype, int32_t ndim, const int64_t* shape,
                                         void* data, uint64_t bytes) {
  return with_predictor(predictor, [&](Predictor& each) {
    const Signature& signature = each.model()->signature();
    const uint32_t index = signature.find(signature.outputs, name);
    each.bindings().bind_output(index, dtype,
                                checked_shape("output '" + std::string(name) + "'", ndim, shape),
                                data, bytes);
    each.drop_outputs();  // one may be the memory that was bound before
  });
}

tenon_status tenon_predictor_bind_input_tensor(tenon_predictor* predictor, const char* name,
                                               tenon_tensor* tensor) {
  return with_predictor(predictor, [&](Predictor& each) {
    const Signature& signature = each.model()->signature();
    const uint32_t index = signature.find(signature.inputs, name);
    each.bindings().bind_input(index, Tensor::borrow(need(tensor, "a tensor")));
    each.drop_outputs();
  });
}

tenon_status tenon_predictor_unbind_inputs(tenon_predictor* predictor) {
  return with_predictor(predictor, [](Predictor& each) {
    each.drop_outputs();
    each.bindings().unbind_inputs();
  });
}

tenon_status tenon_predictor_unbind_outputs(tenon_predictor* predictor) {
  return with_predictor(predictor, [](Predictor& each) {
    each.drop_outputs();
    each.bindings().unbind_outputs();
  });
}

tenon_status tenon_predictor_run(tenon_predictor* predictor) {
  return with_predictor(
      predictor, [](Predictor& each) { each.run(); }, Predictor::Turn::kRun);
}

tenon_status tenon_predictor_output(tenon_predictor* predictor, const char* name,
                                    tenon_predictor_view* out) {
  return with_predictor(predictor, [&](Predictor& each) {
    const Signature& signature = each.model()->signature();
    write_out(out, view_of(each.host_output(signature.find(signature.outputs, name))));
  });
}

tenon_status tenon_predictor_output_tensor(tenon_predictor* predictor, const char* name,
                                           tenon_tensor** out) {
  return with_predictor(predictor, [&](Predictor& each) {
    need(out, "where to put the tensor");
    const Signature& signature = each.model()->signature();
    *out = each.owned_output(signature.find(signature.outputs, name)).release();
  });
}

tenon_status tenon_predictor_cancel(tenon_predictor* predictor) {
  return answer([&] { predictors().find(predictor)->cancel(); });
}

tenon_status tenon_predictor_warmup(tenon_predictor* predictor, const char* shapes) {
  return with_predictor(predictor,
                        [&](Predictor& each) { each.warmup(need(shapes, "shapes, as a text")); });
}

// -- looking inside ---------------------------------------------------------------------------------

tenon_status tenon_predictor_set_hook(tenon_predictor* predictor, tenon_predictor_hook_fn hook,
                                      void* user) {
  return with_predictor(predictor, [&](Predictor& each) { each.set_hook(hook, user); });
}

tenon_status tenon_predictor_explain(tenon_predictor* predictor, const char** text) {
  return with_predictor(predictor, [&](Predictor& each) {
    need(text, "where to put the text");
    each.explained = each.model()->explain();
    *text = each.explained.c_str();
  });
}

tenon_status tenon_predictor_profile(tenon_predictor* predictor, const char** text) {
  return with_predictor(predictor, [&](Predictor& each) {
    need(text, "where to put the text");
    if (!each.model()->config().is_on("profile"))
      throw Error(TENON_FAILED_PRECONDITION,
                  "profile: runs are not timed; set the key `profile` to true before the predictor "
                  "is created");
    each.profiled = each.profile().text(*each.model());
    *text = each.profiled.c_str();
  });
}

tenon_status tenon_predictor_program(tenon_predictor* predictor, const char** text) {
  return with_predictor(predictor, [&](Predictor& each) {
    need(text, "where to put the text");
    each.program_text.clear();
    graph_service().program_print(each.model()->recorded().program.get(), append_to_string,
                                  &each.program_text);
    *text = each.program_text.c_str();
  });
}

tenon_status tenon_predictor_memory(tenon_predictor* predictor, tenon_predictor_memory_use* out) {
  return with_model(predictor, [&](const Model& model) {
    tenon_graph_memory use = {};
    use.struct_size = sizeof use;
    graph_service().program_memory(model.recorded().program.get(), &use);
    write_out(
        out,
        {.struct_size = 0, .reserved = 0, .weights = model.weight_bytes(), .results = use.planned});
  });
}

tenon_status tenon_predictor_save_optimized(tenon_predictor* predictor, const char* path) {
  return with_predictor(predictor,
                        [&](Predictor& each) { each.save_optimized(need(path, "a path")); });
}

tenon_status tenon_predictor_shrink_memory(tenon_predictor* predictor, uint64_t* released) {
  return with_predictor(predictor, [&](Predictor& each) {
    each.drop_outputs();
    uint64_t bytes = 0;
    const tenon::ErrorSink err;
    err.check(host->memory_trim(each.model()->device(), &bytes, err));
    if (released) *released = bytes;
  });
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// tenon/predictor.h in C++: handles that free themselves, errors that are thrown, elements by their type.
//
//   tenon::Predictor predictor("model.tenon", {{"warmup", "recorded"}});
//   predictor.bind_input<float>("x", {1, 784}, pixels);         // read by each run, not copied
//   predictor.run();
//   for (float score : predictor.output<float>("scores")) ...   // until the next run
//
// Link Tenon::predictor. All functions throw PredictorError. An object serves one thread at a time; others take clones.
#pragma once

#include <tenon/predictor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace tenon {

class PredictorError : public std::runtime_error {
 public:
  explicit PredictorError(tenon_status status)
      : std::runtime_error(tenon_predictor_error()), status_(status) {}
  tenon_status status() const { return status_; }

 private:
  tenon_status status_;
};

// What the functions above return, as an exception.
inline void check_predictor(tenon_status status) {
  if (status != TENON_OK) throw PredictorError(status);
}

// The dtype of elements of a C++ type. Others (float16, ...) are bound with their dtype and `const void*`.
template <class T>
constexpr int32_t predictor_dtype() {
  using Element = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<Element, bool>) return TENON_DTYPE_BOOL;
  if constexpr (std::is_same_v<Element, float>) return TENON_DTYPE_F32;
  if constexpr (std::is_same_v<Element, double>) return TENON_DTYPE_F64;
  if constexpr (std::is_integral_v<Element> && !std::is_same_v<Element, bool>) {
    constexpr int32_t kSigned[] = {TENON_DTYPE_I8, TENON_DTYPE_I16, TENON_DTYPE_I32,
                                   TENON_DTYPE_I64};
    constexpr int32_t kUnsigned[] = {TENON_DTYPE_U8, TENON_DTYPE_U16, TENON_DTYPE_U32,
                                     TENON_DTYPE_U64};
    constexpr int kLog = sizeof(Element) == 1   ? 0
                         : sizeof(Element) == 2 ? 1
                         : sizeof(Element) == 4 ? 2
                                                : 3;
    return std::is_signed_v<Element> ? kSigned[kLog] : kUnsigned[kLog];
  }
  return -1;
}

class Predictor {
 public:
  using Settings = std::map<std::string, std::string>;  // keys and values of tenon_config_set
  using Shape = std::vector<int64_t>;

  explicit Predictor(const std::string& path, const Settings& settings = {}) {
    tenon_config* config = nullptr;
    check_predictor(tenon_config_create(path.c_str(), &config));
    const std::unique_ptr<tenon_config, decltype(&tenon_config_free)> owned(config,
                                                                            &tenon_config_free);
    for (const auto& [key, value] : settings)
      check_predictor(tenon_config_set(config, key.c_str(), value.c_str()));
    tenon_predictor* made = nullptr;
    check_predictor(tenon_predictor_create(config, &made));
    handle_.reset(made);
  }

  // Shares the weights; nothing is bound.
  Predictor clone() const {
    tenon_predictor* made = nullptr;
    check_predictor(tenon_predictor_clone(handle(), &made));
    return Predictor(made);
  }

  std::vector<std::string> inputs() const {
    return names(tenon_predictor_input_count, tenon_predictor_input_name);
  }
  std::vector<std::string> outputs() const {
    return names(tenon_predictor_output_count, tenon_predictor_output_name);
  }
  tenon_predictor_type input_type(const std::string& name) const {
    return type(name, tenon_predictor_input_find, tenon_predictor_input_type);
  }
  tenon_predictor_type output_type(const std::string& name) const {
    return type(name, tenon_predictor_output_find, tenon_predictor_output_type);
  }

  // The caller keeps the memory until it is bound anew or the object goes.
  void bind_input(const std::string& name, int32_t dtype, const Shape& shape, const void* data,
                  uint64_t bytes) {
    check_predictor(tenon_predictor_bind_input(handle(), name.c_str(), dtype,
                                               static_cast<int32_t>(shape.size()), shape.data(),
                                               data, bytes));
  }
  template <class T>
  void bind_input(const std::string& name, const Shape& shape, std::span<const T> elements) {
    static_assert(predictor_dtype<T>() >= 0, "pass the dtype and a pointer for this type");
    bind_input(name, predictor_dtype<T>(), shape, elements.data(), elements.size_bytes());
  }
  void bind_output(const std::string& name, int32_t dtype, const Shape& shape, void* data,
                   uint64_t bytes) {
    check_predictor(tenon_predictor_bind_output(handle(), name.c_str(), dtype,
                                                static_cast<int32_t>(shape.size()), shape.data(),
                                                data, bytes));
  }
  template <class T>
  void bind_output(const std::string& name, const Shape& shape, std::span<T> elements) {
    static_assert(predictor_dtype<T>() >= 0, "pass the dtype and a pointer for this type");
    bind_output(name, predictor_dtype<T>(), shape, elements.data(), elements.size_bytes());
  }

  void run() { check_predictor(tenon_predictor_run(handle())); }
  // From any thread.
  void cancel() const { check_predictor(tenon_predictor_cancel(handle())); }

  // Valid until the next run.
  tenon_predictor_view output(const std::string& name) const {
    tenon_predictor_view view = {};
    view.struct_size = sizeof view;
    check_predictor(tenon_predictor_output(handle(), name.c_str(), &view));
    return view;
  }
  template <class T>
  std::span<const T> output(const std::string& name) const {
    const tenon_predictor_view view = output(name);
    if (view.dtype != predictor_dtype<T>())
      throw std::invalid_argument("output '" + name + "' is of " +
                                  tenon_predictor_dtype_name(view.dtype) +
                                  "; read it with output(name), which tells its dtype");
    return {static_cast<const T*>(view.data), view.bytes / sizeof(T)};
  }

  // A .tenon file with packed weights.
  void save_optimized(const std::string& path) const {
    check_predictor(tenon_predictor_save_optimized(handle(), path.c_str()));
  }

  std::string explain() const { return text(tenon_predictor_explain); }
  std::string profile() const { return text(tenon_predictor_profile); }
  std::string program() const { return text(tenon_predictor_program); }
  tenon_predictor* handle() const { return handle_.get(); }

 private:
  struct Free {
    void operator()(tenon_predictor* predictor) const { tenon_predictor_free(predictor); }
  };
  explicit Predictor(tenon_predictor* owned) : handle_(owned) {}

  template <class Count, class Name>
  std::vector<std::string> names(Count count_of, Name name_of) const {
    uint32_t count = 0;
    check_predictor(count_of(handle(), &count));
    std::vector<std::string> names;
    for (uint32_t i = 0; i < count; ++i) {
      const char* name = nullptr;
      check_predictor(name_of(handle(), i, &name));
      names.emplace_back(name);
    }
    return names;
  }
  template <class Find, class Type>
  tenon_predictor_type type(const std::string& name, Find find, Type type_of) const {
    uint32_t index = 0;
    check_predictor(find(handle(), name.c_str(), &index));
    tenon_predictor_type type = {};
    type.struct_size = sizeof type;
    check_predictor(type_of(handle(), index, &type));
    return type;
  }
  template <class Text>
  std::string text(Text text_of) const {
    const char* text = nullptr;
    check_predictor(text_of(handle(), &text));
    return text;
  }

  std::unique_ptr<tenon_predictor, Free> handle_;
};

}  // namespace tenon

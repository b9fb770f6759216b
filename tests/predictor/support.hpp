// SPDX-License-Identifier: Apache-2.0
// Predictors for tests, in few words.
#pragma once

#include <gtest/gtest.h>
#include <tenon/predictor.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon::test {

inline std::string model(const std::string& name) {
  const bool has_ending = name.find('.') != std::string::npos;
  return TENON_TEST_MODELS + name + (has_ending ? "" : ".tenon");
}

// Frees its handle. Tests that free by themselves release() it first.
class Handle {
 public:
  using Settings = std::vector<std::pair<std::string, std::string>>;

  explicit Handle(const std::string& name, const Settings& settings = {}) {
    tenon_config* config = nullptr;
    EXPECT_EQ(tenon_config_create(model(name).c_str(), &config), TENON_OK);
    for (const auto& [key, value] : settings)
      EXPECT_EQ(tenon_config_set(config, key.c_str(), value.c_str()), TENON_OK)
          << tenon_predictor_error();
    EXPECT_EQ(tenon_predictor_create(config, &predictor_), TENON_OK) << tenon_predictor_error();
    EXPECT_EQ(tenon_config_free(config), TENON_OK);
  }
  explicit Handle(tenon_predictor* owned) : predictor_(owned) {}
  ~Handle() {
    if (predictor_) tenon_predictor_free(predictor_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  tenon_predictor* release() { return std::exchange(predictor_, nullptr); }
  operator tenon_predictor*() const { return predictor_; }

 private:
  tenon_predictor* predictor_ = nullptr;
};

inline tenon_status bind(tenon_predictor* predictor, const char* name,
                         const std::vector<int64_t>& shape, const std::vector<float>& elements) {
  return tenon_predictor_bind_input(predictor, name, TENON_DTYPE_F32,
                                    static_cast<int32_t>(shape.size()), shape.data(),
                                    elements.data(), elements.size() * sizeof(float));
}

inline tenon_predictor_view empty_view() {
  tenon_predictor_view view = {};
  view.struct_size = sizeof view;
  return view;
}

inline std::vector<float> output(tenon_predictor* predictor, const char* name) {
  tenon_predictor_view view = empty_view();
  EXPECT_EQ(tenon_predictor_output(predictor, name, &view), TENON_OK) << tenon_predictor_error();
  const auto* data = static_cast<const float*>(view.data);
  return {data, data + view.bytes / sizeof(float)};
}

// Expects the status and a piece of its text.
inline void expect_error(tenon_status got, tenon_status expected, const std::string& piece) {
  EXPECT_STREQ(tenon_predictor_status_name(got), tenon_predictor_status_name(expected));
  EXPECT_NE(std::string(tenon_predictor_error()).find(piece), std::string::npos)
      << "expected '" << piece << "' in: " << tenon_predictor_error();
}

}  // namespace tenon::test

// SPDX-License-Identifier: Apache-2.0
// The plugin, opened as a library and called through its table; errors end the test with their
// text.
#pragma once

#include <gtest/gtest.h>
#include <tenon/tensor.hpp>

#include <cstring>
#include <string>
#include <vector>

namespace opencl_test {

using tenon::host;

const tenon_plugin* plugin();

// An error sink that says what it holds.
class Error {
 public:
  Error() : err_(host->err_create()) {}
  ~Error() { host->err_destroy(err_); }
  operator tenon_err*() const { return err_; }
  std::string text() const { return host->err_text(err_); }

 private:
  tenon_err* err_;
};

#define EXPECT_OK(expression)                           \
  do {                                                  \
    Error error_;                                       \
    tenon_err* err = error_;                            \
    EXPECT_EQ((expression), TENON_OK) << error_.text(); \
  } while (0)
// The call fails with this code, and its text holds this part.
#define EXPECT_FAILS(code, part, expression)                                 \
  do {                                                                       \
    Error error_;                                                            \
    tenon_err* err = error_;                                                 \
    EXPECT_EQ((expression), code);                                           \
    EXPECT_NE(error_.text().find(part), std::string::npos) << error_.text(); \
  } while (0)

// An open device; tests are skipped, with the plugin's reason, where there is none.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  const tenon_device_api* api() const { return plugin()->device; }
  const tenon_async_api* async() const { return api()->async; }
  const tenon_compile_api* compile() const { return api()->compile; }

  void* allocate(uint64_t bytes, uint64_t align = 512);  // freed in TearDown
  tenon_stream new_stream();                             // destroyed in TearDown
  tenon_event new_event();                               // likewise
  tenon_program build(const std::string& source, const char* name = "test/program");  // likewise
  tenon_kernel kernel(tenon_program program, const char* name);

  void write(void* to, const void* from, uint64_t bytes, tenon_stream stream = nullptr);
  void read(void* to, const void* from, uint64_t bytes, tenon_stream stream = nullptr);
  void move(void* to, const void* from, uint64_t bytes, tenon_stream stream = nullptr);
  void set(void* to, uint64_t offset, uint64_t bytes, const void* pattern, uint32_t pattern_bytes,
           tenon_stream stream = nullptr);
  void launch(tenon_kernel kernel, const std::vector<tenon_launch_arg>& args, uint32_t groups,
              uint32_t group_size, tenon_stream stream = nullptr);
  tenon_launch_request request_for(tenon_kernel kernel, const std::vector<tenon_launch_arg>& args,
                                   uint32_t groups, uint32_t group_size,
                                   tenon_stream stream = nullptr);

  template <class T>
  std::vector<T> values(const void* from, size_t count, tenon_stream stream = nullptr) {
    std::vector<T> result(count);
    read(result.data(), from, count * sizeof(T), stream);
    return result;
  }
  template <class T>
  void* device_copy(const std::vector<T>& values) {
    void* memory = allocate(values.size() * sizeof(T));
    write(memory, values.data(), values.size() * sizeof(T));
    return memory;
  }

  tenon_device device_ = nullptr;

 private:
  std::vector<std::pair<void*, uint64_t>> memory_;
  std::vector<tenon_stream> streams_;
  std::vector<tenon_event> events_;
  std::vector<tenon_program> programs_;
};

inline tenon_launch_arg buffer(const void* memory) { return {TENON_LAUNCH_BUFFER, 0, memory, 0}; }
template <class T>
tenon_launch_arg value(const T& number) {
  return {TENON_LAUNCH_VALUE, sizeof number, &number, 0};
}

}  // namespace opencl_test

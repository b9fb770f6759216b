// SPDX-License-Identifier: Apache-2.0
// Runs an exported classifier of images on batches of several sizes, from two threads.
#include <tenon/program.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <thread>

namespace {

// Images whose pixels are known on the other side, too.
tenon::Tensor images(int64_t count, int64_t pixels) {
  std::vector<float> values;
  for (int64_t i = 0; i < count * pixels; ++i) values.push_back(static_cast<float>(i % 17) / 16);
  return tenon::make_tensor<float>({count, pixels}, values);
}

std::string classified(const tenon::Program& program, int64_t count) {
  const tenon::Tensor scores = program({images(count, 784)})[0];
  const std::vector<float> values = tenon::elements<float>(scores);
  const int64_t classes = tenon::shape_of(scores).back();
  std::string text = std::to_string(count) + " images:";
  for (int64_t i = 0; i < count; ++i) {
    const auto begin = values.begin() + i * classes;
    text += " " + std::to_string(std::max_element(begin, begin + classes) - begin);
  }
  return text;
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 2) {
    std::fprintf(stderr, "usage: run_program MODEL.tenon\n");
    return 2;
  }
  tenon::start();
  const tenon::Program program = tenon::Program::load(arguments[1]);
  std::string one, many;
  std::thread other([&] { many = classified(program, 5); });
  one = classified(program, 1);
  other.join();
  std::printf("%s\n%s\n", one.c_str(), many.c_str());
  try {
    program({images(3, 100)});
  } catch (const tenon::Error& error) {
    std::printf("%s\n", error.what());
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

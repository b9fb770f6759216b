// SPDX-License-Identifier: Apache-2.0
// Files, read without Python.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "mutations.hpp"
#include "support.hpp"

namespace tenon::test {
namespace {

using Values = std::vector<float>;

std::string json_text(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

// A file with x * weight, weight = (10, 20).
std::string sample_file(const std::string& offsets = "[0,8]", const std::string& shape = "[2]") {
  Tensor x = tensor({2}, {1, 2}), weight = tensor({2}, {10, 20});
  Program program = record({x}, [&] {
    return std::vector{call("multiply", {boxed(x.get()), boxed(weight.get())})};
  });
  std::string header = R"({"__metadata__":{"tenon.program":")" + json_text(text_of(program)) +
                       R"("},"leaf.0":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" +
                       offsets + "}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  const float data[] = {10, 20};
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  file += header;
  return file.append(reinterpret_cast<const char*>(data), sizeof data);
}

Program load(const std::string& contents) {
  const std::string path = testing::TempDir() + "/tenon_graph_" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << contents;
  ErrorSink err;
  tenon_graph_program* program = nullptr;
  const tenon_status status = graph->program_load(path.c_str(), &program, err);
  std::remove(path.c_str());
  err.check(status);
  return Program(program);
}

TEST(File, LoadsAndRuns) {
  Program program = load(sample_file());
  EXPECT_EQ(values(run(program, {tensor({2}, {3, 4})})[0]), (Values{30, 80}));
}

TEST(File, SaysWhatIsWrong) {
  auto error = [](const std::string& contents) { return error_of([&] { load(contents); }); };
  EXPECT_NE(error("").find("is no file with a program"), std::string::npos);
  EXPECT_NE(error("abc").find("cut short"), std::string::npos);
  EXPECT_NE(error(sample_file().substr(0, 40)).find("cut short"), std::string::npos);
  EXPECT_NE(error(sample_file("[0,80]")).find("does not lie inside the file"), std::string::npos);
  EXPECT_NE(error(sample_file("[8,0]")).find("offsets that are no range"), std::string::npos);
  EXPECT_NE(error(sample_file("[4,12]")).find("does not lie inside the file"), std::string::npos);
  EXPECT_NE(error(sample_file("[0,8]", "[3]")).find("is not the float32[2]"), std::string::npos);
}

// What still loads also runs, or says why not.
TEST(File, MutatedFilesAreRefusedOrRun) {
  const std::string original = sample_file();
  const uint64_t count = mutations(3000);
  uint64_t refused = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    Draw draw{seed};
    const std::string contents = mutated(original, draw);
    refused += !error_of([&] {
                  Program program = load(contents);
                  if (graph->program_inputs(program.get()) == 1)
                    run(program, {tensor({2}, {3, 4})});
                }).empty();
  }
  EXPECT_GT(refused, count / 3 * 2);
  EXPECT_LT(refused, count);
}

// Of views, writes and branches.
TEST(File, MutatedProgramsAreRefusedOrRun) {
  Tensor x = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  Program program = record({x}, [&] {
    Tensor product = call("multiply", {boxed(x.get()), boxed(x.get())});
    Tensor row = call("select", {boxed(product.get()), boxed(0), boxed(1)});
    call_into(row, "add", {boxed(row.get()), boxed(1.5)});
    const int64_t axis = 1;
    Tensor sum = call("sum", {boxed(product.get()), boxed(&axis, 1), boxed(true)});
    tenon_tensor* both[] = {sum.get(), sum.get()};
    Tensor joined = call("concat", {boxed(both, 2), boxed(1)});
    return std::vector{joined, call("less", {boxed(joined.get()), boxed(8.0)})};
  });
  std::string text = text_of(program);
  const std::string end = text.substr(text.rfind("return"));
  text.erase(text.rfind("return"));
  text +=
      "%6: float32[3] cpu:0 = view(%0, strides=[1], base_strides=[3, 1], offset=2)\n"
      "%7: float32[2] cpu:0 = scan(%0, carried=0, scanned=1) {\n"
      "  input %0: float32[3] cpu:0\n"
      "  %1: float32[] cpu:0 = tenon::sum(%0)\n  return %1\n}\n" +
      end;
  run(parse(text), {x});
  const uint64_t count = mutations(4000);
  uint64_t refused = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    Draw draw{seed};
    const std::string changed = mutated(text, draw);
    refused += !error_of([&] {
                  Program other = parse(changed);
                  std::vector<Tensor> inputs(graph->program_inputs(other.get()), x);
                  if (graph->program_leaves(other.get()) == 0) run(other, inputs);
                }).empty();
  }
  EXPECT_GT(refused, count / 2);
  EXPECT_LT(refused, count);
}

// A file with the packed filters of a convolution, and what it gives for ones.
std::string packed_file(std::vector<float>* result) {
  std::vector<float> filters(16 * 16 * 9);
  for (size_t i = 0; i < filters.size(); ++i) filters[i] = static_cast<float>(i % 13) / 8 - 1;
  Tensor x = tensor({1, 16, 8, 8}, std::vector<float>(16 * 64, 1)),
         weight = tensor({16, 16, 3, 3}, filters);
  const int64_t one[] = {1, 1};
  Program recorded = record({x}, [&] {
    return std::vector{call("conv2d", {boxed(x.get()), boxed(weight.get()), tenon_value{},
                                       boxed(one, 2), boxed(one, 2), boxed(one, 2), boxed(1)})};
  });
  const ErrorSink err;
  tenon_graph_program* frozen = nullptr;
  err.check(graph->program_optimize(recorded.get(), "freeze", &frozen, err));
  const Program program(frozen);
  *result = values(run(program, {x})[0]);
  const std::string path = testing::TempDir() + "/tenon_packed_" + std::to_string(getpid());
  err.check(graph->program_save(program.get(), path.c_str(), err));
  std::ifstream file(path, std::ios::binary);
  std::string contents((std::istreambuf_iterator<char>(file)), {});
  std::remove(path.c_str());
  return contents;
}

TEST(File, KeepsPackedWeights) {
  std::vector<float> expected;
  const std::string file = packed_file(&expected);
  EXPECT_NE(file.find("tenon.packed 1"), std::string::npos);
  EXPECT_NE(file.find("\"packed.0\""), std::string::npos);
  Program program = load(file);
  Tensor x = tensor({1, 16, 8, 8}, std::vector<float>(16 * 64, 1));
  EXPECT_EQ(values(run(program, {x})[0]), expected);
}

// Headers that are damaged, with the data behind them, of which half are cut.
TEST(File, MutatedPackedFilesAreRefusedOrRun) {
  std::vector<float> expected;
  const std::string original = packed_file(&expected);
  const size_t header = original.find_last_not_of(' ', 65535) + 1;
  Tensor x = tensor({1, 16, 8, 8}, std::vector<float>(16 * 64, 1));
  const uint64_t count = mutations(1500);
  uint64_t refused = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    Draw draw{seed};
    std::string contents = mutated(original.substr(0, header), draw);
    contents.resize(65536, ' ');
    contents += original.substr(65536);
    if (seed % 2) contents.resize(draw.below(contents.size()));
    refused += !error_of([&] {
                  Program program = load(contents);
                  if (graph->program_inputs(program.get()) == 1) run(program, {x});
                }).empty();
  }
  EXPECT_GT(refused, count / 3);
  EXPECT_LT(refused, count);
}

}  // namespace
}  // namespace tenon::test

// SPDX-License-Identifier: Apache-2.0
// Programs of many sizes, from recordings and from their text.
#include <algorithm>

#include "mutations.hpp"
#include "support.hpp"

namespace tenon::test {
namespace {

using Values = std::vector<float>;

tenon_graph_dimension dimension(int64_t min, int64_t max, int64_t multiple, int64_t recorded) {
  return {.struct_size = sizeof(tenon_graph_dimension),
          .reserved = 0,
          .name = "n",
          .min = min,
          .max = max,
          .multiple = multiple,
          .recorded = recorded};
}

std::vector<int64_t> samples(const tenon_graph_dimension& n) {
  ErrorSink err;
  uint32_t count = 0;
  std::vector<int64_t> sizes(16);
  err.check(graph->program_samples(&n, 1, sizes.data(), 16, &count, err));
  sizes.resize(count);
  return sizes;
}

Program unified(const tenon_graph_dimension& n, const std::vector<Program>& programs,
                const std::vector<std::string>& requirements) {
  std::vector<const tenon_graph_program*> handles;
  std::vector<const char*> lines;
  for (const Program& program : programs) handles.push_back(program.get());
  for (const std::string& text : requirements) lines.push_back(text.c_str());
  ErrorSink err;
  tenon_graph_program* made = nullptr;
  err.check(graph->program_unify(&n, 1, handles.data(), lines.data(),
                                 static_cast<uint32_t>(handles.size()), &made, err));
  return Program(made);
}

Tensor ones(int64_t count) { return tensor({count}, std::vector<float>(size_t(count), 1)); }

// x[1:] + the number of elements
Program shortened(int64_t size) {
  Tensor x = ones(size);
  return record({x}, [&] {
    const int64_t axis = 0, start = 1, stop = size, step = 1;
    Tensor rest = call("slice", {boxed(x.get()), boxed(&axis, 1), boxed(&start, 1), boxed(&stop, 1),
                                 boxed(&step, 1)});
    return std::vector{call("add", {boxed(rest.get()), boxed(2 * size)})};
  });
}

Program any_size() {
  const tenon_graph_dimension n = dimension(2, 40, 1, 4);
  std::vector<Program> programs;
  std::vector<std::string> requirements;
  for (int64_t size : samples(n)) {
    programs.push_back(shortened(size));
    requirements.push_back(std::to_string(size) + " <= 50\n" + std::to_string(size - 1) +
                           " % 64 == " + std::to_string(size - 1) + "\n7 < 8\n");
  }
  return unified(n, programs, requirements);
}

TEST(Sizes, AreRecordedAtBothEndsAndBetween) {
  EXPECT_EQ(samples(dimension(1, 64, 1, 4)), (std::vector<int64_t>{4, 2, 64, 5, 3}));
  EXPECT_EQ(samples(dimension(3, 64, 8, 16)), (std::vector<int64_t>{16, 8, 64, 24, 32}));
  EXPECT_EQ(samples(dimension(4, 5, 1, 5)), (std::vector<int64_t>{5, 4}));
}

TEST(Sizes, NumbersBecomeExpressions) {
  const Program program = any_size();
  const std::string text = text_of(program);
  for (const char* part : {"dimension n from 2 to 40 by 1 at 4\n", "require n <= 50\n",
                           "require (n - 1) % 64 == (n - 1)\n", "input %0: float32[n] cpu:0\n",
                           "%1: float32[n - 1] cpu:0", "stops=[n]", "y=2*n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(text.find("7 < 8"), std::string::npos);
  EXPECT_EQ(values(run(program, {ones(3)})[0]), (Values{7, 7}));
  EXPECT_EQ(values(run(program, {ones(40)})[0]), Values(39, 81));
  Program again = parse(text);
  EXPECT_EQ(text_of(again), text);
  EXPECT_EQ(values(run(again, {ones(5)})[0]), Values(4, 11));
  EXPECT_EQ(graph->program_dimensions(again.get()), 1u);
}

TEST(Sizes, OthersAreRefused) {
  const Program program = any_size();
  EXPECT_EQ(error_of([&] { run(program, {ones(41)}); }),
            "program: input 0: expected axis 0 of size n from 2 to 40, got float32[41] cpu:0");
  EXPECT_EQ(error_of([&] {
              run(program, {tensor({1, 3}, {1, 2, 3})});
            }),
            "program: input 0: expected 1 axes, got float32[1, 3] cpu:0");
  std::string text = text_of(program);
  text.replace(text.find("n <= 50"), 7, "n <= 30");
  const Program fewer = parse(text);
  EXPECT_EQ(values(run(fewer, {ones(30)})[0]).size(), 29u);
  EXPECT_EQ(
      error_of([&] { run(fewer, {ones(31)}); }),
      "program: it was recorded for sizes with `n <= 30`, got n = 31; export the function for "
      "these");
}

TEST(Sizes, WhatDiffersOtherwiseIsNoProgram) {
  const tenon_graph_dimension n = dimension(2, 40, 1, 4);
  std::vector<Program> programs;
  for (int64_t size : samples(n)) programs.push_back(shortened(size == 40 ? 39 : size));
  const std::vector<std::string> none(programs.size());
  EXPECT_NE(error_of([&] {
              unified(n, programs, none);
            }).find("is no expression of the sizes (a sum of products): at n = 4\n    input"),
            std::string::npos);
  programs.pop_back();
  EXPECT_NE(error_of([&] { unified(n, programs, none); }).find("expected 5 samples"),
            std::string::npos);
}

TEST(Sizes, TextSaysWhatIsWrong) {
  const std::string text = text_of(any_size());
  auto error = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    return error_of([&] { run(parse(other), {ones(4)}); });
  };
  auto finds = [&](const std::string& from, const std::string& to, const std::string& expected) {
    EXPECT_NE(error(from, to).find(expected), std::string::npos) << error(from, to);
  };
  finds("by 1 at 4", "by 3 at 4", "expected sizes from 1 on and the recorded one among them");
  finds("from 2 to", "from 0 to", "expected sizes from 1 on");
  finds("dimension n", "dimension float32", "another name for a dimension");
  finds("dimension n", "dimension m", "expected an integer or a dimension, got 'n");
  finds("float32[n] cpu:0\n", "float32[n + 0] cpu:0\n", "'n' is the size of no axis of an input");
  finds("y=2*n", "y=2*n*9223372036854775807", "too large for 64 bits");
  finds("float32[n - 1]", "float32[(n - 1)/2]", "3 is no multiple of 2 for n = 4");
  finds("float32[n - 1]", "float32[(n - 1)/0]", "expected a divisor that is not 0 or -1");
  finds("float32[n - 1]", "float32[n]", "");
  finds("n <= 50", "n = 50", "expected a comparison");
  finds("float32[n] cpu:0\n", "float32[?] cpu:0\n", "expected an integer");
  EXPECT_EQ(error("float32[n - 1]", "float32[?]"), "");
  finds("stops=[n]", "stops=[n - 1]", "makes float32[2] cpu:0, and what was recorded at other");
  finds("n <= 50", std::string(100, '(') + "n <= 50", "too many parentheses");
}

TEST(Sizes, MutatedProgramsAreRefusedOrRun) {
  const std::string text = text_of(any_size());
  const uint64_t count = mutations(4000);
  uint64_t refused = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    Draw draw{seed};
    const std::string changed = mutated(text, draw);
    refused +=
        !error_of([&] {
           Program other = parse(changed);
           for (int64_t size : {4, 9, 40})
             if (graph->program_leaves(other.get()) == 0)
               run(other, std::vector<Tensor>(graph->program_inputs(other.get()), ones(size)));
         }).empty();
  }
  EXPECT_GT(refused, count / 2);
  EXPECT_LT(refused, count);
}

}  // namespace
}  // namespace tenon::test

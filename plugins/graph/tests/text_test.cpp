// SPDX-License-Identifier: Apache-2.0
// The text form: it reads back, and a text that is wrong says where.
#include "support.hpp"

namespace tenon::test {
namespace {

using Values = std::vector<float>;

Program sample() {
  Tensor x = tensor({2, 3}, {1, 2, 3, 4, 5, 6}), weight = tensor({3}, {1, 0, -1});
  return record({x}, [&] {
    Tensor product = call("multiply", {boxed(x.get()), boxed(weight.get())});
    const int64_t axis = 1;
    Tensor sum = call("sum", {boxed(product.get()), boxed(&axis, 1), boxed(true)});
    call_into(sum, "add", {boxed(sum.get()), boxed(0.1)});
    return std::vector{sum};
  });
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(Text, ReadsBack) {
  Program program = sample();
  const std::string text = text_of(program);
  Program again = parse(text);
  EXPECT_EQ(text_of(again), text);
  Tensor x = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  Program bound = bind(again, {tensor({3}, {1, 0, -1})});
  EXPECT_EQ(values(run(bound, {x})[0]), values(run(program, {x})[0]));
}

TEST(Text, LooksLikeThis) {
  const std::string text = text_of(sample());
  EXPECT_NE(text.find("input %0: float32[2, 3] cpu:0\nleaf %1: float32[3] cpu:0\n"
                      "%2: float32[2, 3] cpu:0 = tenon::multiply(%0, %1)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("= tenon::sum(%2, axis=[1], keepdim=true)"), std::string::npos) << text;
  EXPECT_NE(text.find("%3 = tenon::add(%3, y=0.1"), std::string::npos) << text;
  EXPECT_NE(text.find("\nreturn %3\n"), std::string::npos) << text;
}

TEST(Text, NamesInputsAndResults) {
  Program program = sample();
  const char *inputs[] = {"a \"b\" %1"}, *results[] = {"sum"};
  auto named = [&](const char* const* in, const char* const* out) {
    ErrorSink err;
    tenon_graph_program* made;
    err.check(graph->program_name(program.get(), in, out, &made, err));
    return Program(made);
  };
  const std::string text = text_of(named(inputs, results));
  EXPECT_EQ(text.rfind("tenon.program 2\n", 0), 0u) << text;
  EXPECT_NE(text.find("input %0: float32[2, 3] cpu:0 \"a \\\"b\\\" %1\"\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\nreturn %3 \"sum\"\n"), std::string::npos) << text;
  Program again = parse(text);
  EXPECT_EQ(text_of(again), text);
  tenon_graph_value_info info = {};
  info.struct_size = sizeof info;
  ErrorSink err;
  ASSERT_EQ(graph->program_input(again.get(), 0, &info, err), TENON_OK);
  EXPECT_STREQ(info.name, "a \"b\" %1");
  EXPECT_EQ(info.ndim, 2);
  ASSERT_EQ(graph->program_result(program.get(), 0, &info, err), TENON_OK);
  EXPECT_STREQ(info.name, "output_0");
  EXPECT_EQ(graph->program_result(program.get(), 1, &info, err), TENON_OUT_OF_RANGE);
  // Format 1 has no names, and a program without names is of format 1.
  EXPECT_NE(error_of([&] {
              parse(replaced(text, "tenon.program 2", "tenon.program 1"));
            }).find("expected the end of the line"),
            std::string::npos);
  const char* none[] = {nullptr};
  EXPECT_EQ(text_of(named(none, none)), text_of(program));
  EXPECT_EQ(text_of(named(nullptr, nullptr)), text_of(program));
}

TEST(Text, NamesAreEachOnesOwn) {
  Tensor x = tensor({}, {1}), y = tensor({}, {2});
  const Program program = record({x, y}, [&] {
    return std::vector{call("add", {boxed(x.get()), boxed(y.get())})};
  });
  auto error = [&](const char* first, const char* second) {
    const char* inputs[] = {first, second};
    ErrorSink err;
    tenon_graph_program* made = nullptr;
    const tenon_status status = graph->program_name(program.get(), inputs, nullptr, &made, err);
    Program owned(made);
    return status == TENON_OK ? "" : std::string(host->err_text(err));
  };
  EXPECT_EQ(error("a", "b"), "");
  EXPECT_EQ(error("a", "a"), "program: expected another name for each input, got 'a' twice");
  EXPECT_EQ(error("input_1", nullptr),
            "program: expected another name for each input, got 'input_1' twice");
  EXPECT_NE(error(std::string(70000, 'a').c_str(), "b").find("more than 65536 bytes"),
            std::string::npos);
}

TEST(Text, LeavesNeedTensors) {
  Program again = parse(text_of(sample()));
  EXPECT_EQ(error_of([&] {
              run(again, {tensor({2, 3}, {1, 2, 3, 4, 5, 6})});
            }),
            "program: leaf 0 has no tensor; give one with bind");
  EXPECT_EQ(error_of([&] {
              bind(again, {tensor({2}, {1, 2})});
            }),
            "program: leaf 0: expected float32[3] cpu:0, got float32[2] cpu:0");
}

TEST(Text, SaysWhatIsWrong) {
  const std::string text = text_of(sample());
  auto error = [&](const std::string& from, const std::string& to) {
    return error_of([&] { parse(replaced(text, from, to)); });
  };
  EXPECT_EQ(error("tenon.program 1", "program 1"),
            "program, line 1: expected the first line 'tenon.program 1' or '... 2'");
  EXPECT_EQ(
      error("program 1", "program 3"),
      "program, line 1: expected a program of format 1 or 2, got one of format 3; load it with "
      "a later version of Tenon, or export it again with this one");
  EXPECT_NE(error("operator tenon::sum ", "operator tenon::sum 1").find("expected the schema hash"),
            std::string::npos);
  const size_t hash = text.find("operator tenon::sum ") + 20;
  std::string other = text;
  other[hash] = other[hash] == 'f' ? 'e' : 'f';
  EXPECT_NE(error_of([&] { parse(other); }).find("the program was made with another one"),
            std::string::npos);
  EXPECT_NE(error("operator tenon::sum", "operator tenon::summ").find("'tenon::summ' is unknown"),
            std::string::npos);
  EXPECT_NE(error("multiply(%0, %1)", "multiply(%0, %7)").find("%7 is used before"),
            std::string::npos);
  EXPECT_NE(error("axis=[1]", "axes=[1]").find("no parameter `axes`"), std::string::npos);
  EXPECT_NE(error("axis=[1]", "axis=1.5").find("argument `axis` is of another kind"),
            std::string::npos);
  EXPECT_NE(error("multiply(%0, %1)", "multiply(%0)").find("argument `y`"), std::string::npos);
  EXPECT_NE(error("float32[3]", "float31[3]").find("unknown dtype 'float31'"), std::string::npos);
  EXPECT_NE(error("[3] cpu:0", "[-3] cpu:0").find("type that no tensor can have"),
            std::string::npos);
  EXPECT_NE(error("return %3", "return %9").find("%9 is used before"), std::string::npos);
  EXPECT_NE(error("return %3", "").find("line"), std::string::npos);
}

TEST(Text, ViewsStayInsideTheirMemory) {
  const std::string text =
      "tenon.program 1\ninput %0: float32[4] cpu:0\n"
      "%1: float32[4] cpu:0 = view(%0, strides=[1], base_strides=[1], offset=1)\nreturn %1\n";
  Program program = parse(text);
  EXPECT_NE(error_of([&] { run(program, {tensor({4}, {1, 2, 3, 4})}); }), "");
  EXPECT_NE(error_of([&] {
              parse(replaced(text, "strides=[1]", "strides=[1, 2]"));
            }).find("expected a stride for each axis"),
            std::string::npos);
}

TEST(Text, BranchesAndLoopsRun) {
  const std::string greater = text_of(record({tensor({}, {1})}, [] {
    Tensor x = tensor({}, {1});
    return std::vector{call("less", {boxed(x.get()), boxed(8.0)}),
                       call("multiply", {boxed(x.get()), boxed(2.0)})};
  }));
  // The lines that declare the operators, with the hashes of this build.
  const size_t begin = greater.find("operator"), end = greater.find("input");
  const std::string operators = greater.substr(begin, end - begin);
  const std::string text = "tenon.program 1\n" + operators + R"(input %0: float32[] cpu:0
%1: float32[] cpu:0 = while(%0, carried=1) {
  input %0: float32[] cpu:0
  %1: bool[] cpu:0 = tenon::less(%0, y=8.0)
  return %1
} {
  input %0: float32[] cpu:0
  %1: float32[] cpu:0 = tenon::multiply(%0, y=2.0)
  return %1
}
%2: bool[] cpu:0 = tenon::less(%1, y=10.0)
%3: float32[] cpu:0 = cond(%2, %1) {
  input %0: float32[] cpu:0
  return %0
} {
  input %0: float32[] cpu:0
  %1: float32[] cpu:0 = tenon::multiply(%0, y=100.0)
  return %1
}
return %1, %3
)";
  Program program = parse(text);
  EXPECT_EQ(text_of(program), text);
  auto results = run(program, {tensor({}, {1})});
  EXPECT_EQ(values(results[0]), (Values{8}));
  EXPECT_EQ(values(results[1]), (Values{8}));
  results = run(program, {tensor({}, {3})});
  EXPECT_EQ(values(results[0]), (Values{12}));
  EXPECT_EQ(values(results[1]), (Values{1200}));
}

}  // namespace
}  // namespace tenon::test

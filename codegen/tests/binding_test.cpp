// SPDX-License-Identifier: Apache-2.0
// Binding files: what is refused, with line and reason, and what comes from the rest.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "binding/binding.hpp"
#include "run.hpp"

namespace tenon::codegen::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOperators = R"(namespace: acme
ops:
- op: shift
  doc: "Adds."
  sig: (Tensor x, Tensor y, float by=1.0, bool twice=false, int[]? axis=none) -> Tensor
  kind: kernel
  dtypes: {allow: floating}
  shape: same(x)
- op: join
  doc: "Joins."
  sig: (Tensor[] parts, Tensor? mask=none, int count=2, int? axis=none, Scalar value=0, str mode='end', int[] steps=[1]) -> Tensor
  kind: kernel
  dtypes: {allow: floating}
  shape: native
  decompose: native
- op: twice
  doc: "Doubles."
  sig: (Tensor x) -> Tensor
  kind: composite
  decompose: shift(x, x)
)";

struct Bound {
  BindingSet set;
  std::vector<std::string> errors;
};

// Binds an operator by the lines of an entry after `- op:`.
Bound binding_of(const std::string& lines, const std::string& op = "shift",
                 const std::string& kinds = "") {
  const fs::path folder = fs::path(::testing::TempDir()) / ("binding_" + std::to_string(getpid()));
  fs::create_directories(folder);
  const std::string operators = folder / "operators.yaml", bindings = folder / "bindings.yaml";
  std::ofstream(operators) << kOperators;
  std::ofstream(bindings) << "namespace: acme\nheader: call.hpp\nlibrary: acme 1.0\n"
                          << kinds << "bindings:\n- op: acme::" << op << "\n"
                          << lines;
  Loaded loaded;
  load({}, {operators}, loaded);
  EXPECT_EQ(std::vector<std::string>{}, loaded.errors);
  Bound bound;
  load_bindings(bindings, loaded.package, bound.set, bound.errors);
  for (std::string& error : bound.errors) error = error.substr(bindings.size() + 1);
  fs::remove_all(folder);
  // The operators die with `loaded`: what a test reads is text.
  for (const OutputFile& file :
       bound.errors.empty() ? emit_bindings(bound.set) : std::vector<OutputFile>{})
    bound.errors.push_back(file.text);
  return bound;
}

std::string refusal(const std::string& lines) {
  const Bound bound = binding_of(lines);
  return bound.errors.empty() ? "" : bound.errors[0];
}

constexpr const char* kRest =
    "  dtypes: float32\n  only: {twice: false, axis: none}\n  source: page\n";

TEST(Binding, MakesAKernelOfAnEntry) {
  const std::string code =
      binding_of(
          "  call: acmeShift(Tensor x, Tensor y, Scalar by, Scalar 2, int64 -1, bool true, "
          "dtype out, Tensor out)\n" +
          std::string(kRest))
          .errors.at(1);
  EXPECT_NE(code.find("Function function_shift{.name = \"acmeShift\"};"), std::string::npos);
  EXPECT_NE(
      code.find(
          "call.run(call.tensor(args[0]), call.tensor(args[1]), call.scalar(args[2]), "
          "call.scalar(int64_t{2}), int64_t{-1}, true, call.dtype(outs[0]), call.tensor(outs[0]))"),
      std::string::npos)
      << code;
  EXPECT_NE(
      code.find("return takes_shapes(args, nargs) && (tenon_arg_bool(&args[3]) != 0) == false && "
                "args[4].tag == TENON_VALUE_NONE;"),
      std::string::npos)
      << code;
  EXPECT_NE(code.find(".dtype_mask = 0x2000u"), std::string::npos);
}

TEST(Binding, TakesAxesAndNumbersOfAxes) {
  const std::string code =
      binding_of(
          "  call: acmeShift(Tensor x, Tensor y, double by, axes axis of x, Tensor out)\n"
          "  dtypes: float16|float32\n  only: {twice: true, x.ndim: 2}\n  source: page\n")
          .errors.at(1);
  EXPECT_NE(code.find("tenon_arg_float(&args[2]), call.axes(args[4], args[0])"), std::string::npos)
      << code;
  EXPECT_NE(code.find("tenon_arg_tensor(&args[0])->ndim == 2"), std::string::npos) << code;
}

constexpr const char* kUnneeded =
    "  unneeded: [mask, count, axis, value, mode, steps]\n  source: page\n";

TEST(Binding, CallsTheMethodsThatThePluginAddsAsKinds) {
  const std::string kinds = "kinds: [list, either]\n";
  const std::string code =
      binding_of(
          "  call: acmeJoin(list parts 'ordered', either axis count -1 0.5, Tensor out)\n"
          "  dtypes: float32\n  unneeded: [mask, value, mode, steps]\n  source: page\n",
          "join", kinds)
          .errors.at(1);
  EXPECT_NE(code.find("call.run(call.list(args[0], \"ordered\")"), std::string::npos) << code;
  EXPECT_NE(code.find("call.either(args[3], args[2], int64_t{-1}, double{0.5})"), std::string::npos)
      << code;
  EXPECT_EQ(
      "7: `call`: `either axes count`: join has no parameter or result `axes`; text is written in "
      "single quotes",
      binding_of(
          "  call: acmeJoin(list parts, either axes count, Tensor out)\n  dtypes: float32\n" +
              std::string(kUnneeded),
          "join", kinds)
          .errors.at(0));
}

TEST(Binding, ComparesPropertiesListsAndText) {
  const std::string code = binding_of(
                               "  call: acmeJoin(Tensor out)\n  dtypes: float32\n"
                               "  only: {parts.count: 1, parts.dtype: float16|float32, mask.numel: "
                               "\">= 2\", mask.dtype: float32,\n"
                               "    count: \"< 8\", axis: given, value: int, mode: end, steps: 1}\n"
                               "  unneeded: [parts, mask]\n  source: page\n",
                               "join")
                               .errors.at(1);
  for (const char* condition :
       {"tenon_arg_count(&args[0]) == 1", "all_have(args[0], 0x",
        "(args[1].tag == TENON_VALUE_NONE || tenon_arg_tensor(&args[1])->numel >= 2)",
        "tenon_arg_int(&args[2]) < 8", "args[3].tag != TENON_VALUE_NONE",
        "args[4].tag == TENON_VALUE_INT", "std::string_view(tenon_arg_string(&args[5])) == \"end\"",
        "all_are(args[6], 1)"})
    EXPECT_NE(code.find(condition), std::string::npos) << condition << "\n" << code;
}

TEST(Binding, RefusesACompositeThatAlwaysRunsAsItsParts) {
  EXPECT_EQ(
      "5: `op`: acme::twice is a composite without a shape rule, which always runs as its parts; "
      "give it a `shape` in its operator file",
      binding_of("  call: acmeTwice(Tensor x, Tensor out)\n  dtypes: float32\n  source: page\n",
                 "twice")
          .errors.at(0));
}

TEST(Binding, SaysWhichKernelsAreNotDeterministic) {
  const std::string lines =
      "  call: acmeJoin(Tensor out)\n  dtypes: float32\n  unneeded: [parts, mask, count, axis, "
      "value, "
      "mode, steps]\n  source: page\n";
  EXPECT_EQ(std::string::npos,
            binding_of(lines, "join").errors.at(1).find("TENON_KERNEL_NONDETERMINISTIC"));
  EXPECT_NE(std::string::npos, binding_of(lines + "  deterministic: false\n", "join")
                                   .errors.at(1)
                                   .find(".traits = TENON_KERNEL_NONDETERMINISTIC"));
}

TEST(Binding, SaysWhosePlansServeOneCall) {
  const std::string lines =
      "  call: acmeShift(Tensor x, Tensor y, Scalar by, Tensor out)\n" + std::string(kRest);
  EXPECT_EQ(std::string::npos, binding_of(lines).errors.at(1).find("is_reusable"));
  EXPECT_NE(std::string::npos,
            binding_of(lines + "  reusable: false\n")
                .errors.at(1)
                .find("function_shift{.name = \"acmeShift\", .is_reusable = false};"));
  EXPECT_EQ("10: `reusable`: expected false, or no such key",
            binding_of(lines + "  reusable: 1\n").errors.at(0));
}

TEST(Binding, RefusesPropertiesAndUnneededParametersThatAreNot) {
  const auto refused = [](const std::string& lines) {
    return binding_of("  call: acmeJoin(Tensor out)\n  dtypes: float32\n" + lines, "join")
        .errors.at(0);
  };
  EXPECT_EQ(
      "8: `only`: expected `ndim`, `numel` or `dtype` of a tensor or `count` of a list, with a "
      "number or dtypes, or `x.shape: y.shape`, got `mask.count: 1`; join is (Tensor[] parts, "
      "Tensor? mask=none, int "
      "count=2, int? axis=none, Scalar value=0, str mode='end', int[] steps=[1]) -> Tensor",
      refused("  only: {mask.count: 1}\n" + std::string(kUnneeded)));
  EXPECT_EQ("8: `unneeded`: expected a parameter of join that the entry does not use, got `out`",
            refused("  unneeded: [out]\n  source: page\n"));
}

TEST(Binding, RefusesACallThatDropsAParameter) {
  EXPECT_EQ(
      "6: the call does not use the parameter `by` of shift; pass it on, or write the value that "
      "the function "
      "assumes in `only`",
      refusal("  call: acmeShift(Tensor x, Tensor y, Tensor out)\n" + std::string(kRest)));
}

TEST(Binding, RefusesWhatAParameterCannotBeMadeOf) {
  EXPECT_EQ(
      "6: `call`: Tensor is made of a tensor parameter or a result; got `Tensor by` for "
      "shift(Tensor x, Tensor y, float by=1.0, bool twice=false, int[]? axis=none) -> Tensor",
      refusal("  call: acmeShift(Tensor x, Tensor y, Tensor by, Tensor out)\n" +
              std::string(kRest)));
  EXPECT_EQ(
      "6: `call`: unknown kind of parameter `Tensr`; did you mean `Tensor`?; known: Tensor Scalar "
      "int64 int8 int "
      "bool double ints axes dtype",
      refusal("  call: acmeShift(Tensr x, Tensor y, Scalar by, Tensor out)\n" +
              std::string(kRest)));
  EXPECT_EQ(
      "6: `call`: expected parameters like `Tensor x` or `axes axis of x`, got `x`",
      refusal("  call: acmeShift(x, Tensor y, Scalar by, Tensor out)\n" + std::string(kRest)));
  EXPECT_EQ(
      "6: `call`: expected parameters like `Tensor x` or `axes axis of x`, got `Tensor x of y`",
      refusal("  call: acmeShift(Tensor x of y, Scalar by, Tensor out)\n" + std::string(kRest)));
  EXPECT_EQ("6: `call`: expected `function(Kind name, ...)`, got `acmeShift`",
            refusal("  call: acmeShift\n" + std::string(kRest)));
}

TEST(Binding, RefusesDtypesAndConditionsThatTheOperatorDoesNotHave) {
  const std::string call = "  call: acmeShift(Tensor x, Tensor y, Scalar by, Tensor out)\n";
  EXPECT_EQ(
      "7: `dtypes`: shift does not take int32",
      refusal(call +
              "  dtypes: float32|int32\n  only: {twice: false, axis: none}\n  source: page\n"));
  EXPECT_EQ(
      "8: `only`: expected a value of `bool twice`, got `maybe`",
      refusal(call + "  dtypes: float32\n  only: {twice: maybe, axis: none}\n  source: page\n"));
  EXPECT_EQ("5: expected the key `source` in a binding",
            refusal(call + "  dtypes: float32\n  only: {twice: false, axis: none}\n"));
}

}  // namespace
}  // namespace tenon::codegen::testing

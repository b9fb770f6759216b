// SPDX-License-Identifier: Apache-2.0
// Files of another library's calls: what is refused, with line and reason, and what comes from the
// rest.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "bridge/bridge.hpp"
#include "run.hpp"

namespace tenon::codegen::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOperators = R"(namespace: tenon
ops:
- op: add
  doc: "Sums."
  sig: (Tensor x, Tensor y) -> Tensor
  kind: kernel
  dtypes: {allow: floating}
  shape: same(x)
  decompose: native
- op: sum
  doc: "Sums all."
  sig: (Tensor x, int[]? axis=none, *, bool keepdim=false) -> Tensor
  kind: kernel
  dtypes: {allow: floating}
  shape: same(x)
  decompose: native
)";

constexpr const char* kSignatures = R"(# of a test
core add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
sum(Tensor self, int[] dim=[0, 1], str mode='a, b') -> Tensor
)";

struct Told {
  Bridge bridge;
  ForeignSignatures signatures;
  std::string errors, text;
};

Told told(const std::string& lines, const std::string& signatures_text = kSignatures) {
  const fs::path folder = fs::path(::testing::TempDir()) / ("bridge_" + std::to_string(getpid()));
  fs::create_directories(folder);
  const std::string operators = folder / "operators.yaml", calls = folder / "calls.yaml",
                    signatures = folder / "signatures.txt";
  std::ofstream(operators) << kOperators;
  std::ofstream(signatures) << signatures_text;
  std::ofstream(calls) << "library: aten\ncalls:\n" << lines;
  Loaded loaded;
  load({}, {operators}, loaded);
  Told told;
  EXPECT_TRUE(loaded.errors.empty());
  try {
    told.signatures = load_signatures(signatures);
    std::vector<std::string> errors;
    load_bridge(calls, loaded.package, told.signatures, told.bridge, errors);
    for (const std::string& error : errors) told.errors += error.substr(calls.size() + 1) + "\n";
    told.text = emit_bridge(told.bridge, told.signatures).text;
  } catch (const Error& error) {
    told.errors = std::string(error.what()).substr(signatures.size() + 1);
  }
  return told;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Bridge, TellsInfixOnTensorsAsCalls) {
  const Told result = told(
      "  add.Tensor(self, other, alpha):\n"
      "  - {when: alpha == 1 && other.ndim > 0, as: self + other}\n"
      "  - as: [\"twice = add(other, other)\", \"self + twice\"]\n");
  EXPECT_EQ(result.errors, "");
  EXPECT_TRUE(holds(result.text, "return ((alpha == 1) and (other.ndim > 0))")) << result.text;
  EXPECT_TRUE(holds(result.text, "return call(\"add\", self, other)")) << result.text;
  EXPECT_TRUE(holds(result.text,
                    "    twice = call(\"add\", other, other)\n"
                    "    return call(\"add\", self, twice)\n"));
  EXPECT_TRUE(holds(result.text, "(\"alpha\", \"Scalar\", 1)")) << result.text;
  EXPECT_TRUE(holds(result.text, "CORE = (\n    \"add.Tensor\",\n)")) << result.text;
}

TEST(Bridge, TellsHostValuesAsPython) {
  const Told result =
      told("  sum(self, dim): \"sum(self, dim == none ? [0] : dim, keepdim=len(dim) > 1)\"\n");
  EXPECT_EQ(result.errors, "");
  EXPECT_TRUE(holds(result.text,
                    "call(\"sum\", self, ([0] if (dim is None) else dim), keepdim=(len(dim) > 1))"))
      << result.text;
  EXPECT_TRUE(holds(result.text, "(\"mode\", \"str\", 'a, b')")) << result.text;
}

constexpr const char* kOptional = R"(norm(Tensor self, Tensor? mean, bool whole) -> Tensor
fill(Tensor self, float? nan=None, float? inf=None) -> Tensor
)";

TEST(Bridge, TellsConditionsAsPythonWhateverTheyConnect) {
  const Told result = told(
      "  norm(self, mean, whole):\n"
      "  - {when: whole && mean == none, as: self}\n"
      "  - {when: \"!(whole || mean != none)\", as: \"sum(self)\"}\n",
      kOptional);
  EXPECT_EQ(result.errors, "");
  EXPECT_TRUE(holds(result.text, "    return (whole and (mean is None))\n")) << result.text;
  EXPECT_TRUE(holds(result.text, "    return (not (whole or (mean is not None)))\n"))
      << result.text;
}

TEST(Bridge, TellsParametersThatAreCalledAsNumbersAre) {
  const Told result =
      told("  fill(self, nan): \"add(self, nan == none ? inf : nan)\"\n", kOptional);
  EXPECT_EQ(result.errors, "");
  EXPECT_TRUE(holds(result.text, "call(\"add\", self, (float(\"inf\") if (nan is None) else nan))"))
      << result.text;
}

struct Case {
  const char *lines, *error;
};

TEST(Bridge, RefusesWithLineAndReason) {
  const Case cases[] = {
      {"  ad.Tensor(self): self\n",
       "3: `ad.Tensor` is not in the list of signatures; did you mean `add.Tensor`?\n"},
      {"  add.Tensor(self, othr): self\n",
       "3: `add.Tensor` has no parameter `othr`, only self other alpha; did you mean `other`?\n"},
      {"  add.Tensor(self): self\n",
       "3: `add.Tensor`: expected its parameter `other` among those that the line names, as it has "
       "no default\n"},
      {"  add.Tensor(self, other): add(self, alpha)\n",
       "3: `alpha` is no parameter that the line names, which are self other\n"},
      {"  add.Tensor(self, other): ad(self, other)\n",
       "3: `ad` is no operator; did you mean `add`?\n"},
      {"  add.Tensor(self, other): add(self)\n",
       "3: `add`: expected `y`, see tenon::add(Tensor x, Tensor y) -> Tensor\n"},
      {"  add.Tensor(self, other): add(self, other, 1)\n",
       "3: `add`: argument 3 is none of tenon::add(Tensor x, Tensor y) -> Tensor\n"},
      {"  sum(self): sum(self, none, true)\n",
       "3: `sum`: argument 3 is none of tenon::sum(Tensor x, int[]? axis=none, *, bool "
       "keepdim=false) -> Tensor\n"},
      {"  sum(self): sum(self).size\n", "3: `.size`: expected one of shape ndim dtype numel\n"},
      {"  sum(self): {as: self, native: sum}\n",
       "3: expected one of `as`, `native` and `refuse` in a case\n"},
      {"  sum(self): self\n  sum(self, dim): self\n", "4: `sum` is already told at calls.yaml:3\n"},
      {"  sum: self\n", "3: expected `name(parameter, ...)`, got `sum`\n"},
  };
  for (const Case& each : cases) EXPECT_EQ(told(each.lines).errors, each.error) << each.lines;
}

TEST(Bridge, RefusesSignaturesThatAreNone) {
  EXPECT_EQ(told("", "sum Tensor\n").errors,
            "1: expected `name(parameters) -> results`, got `sum Tensor`");
  EXPECT_EQ(told("", "sum(Tensor) -> Tensor\n").errors,
            "1: expected `type name` as a parameter, got `Tensor`");
  EXPECT_EQ(told("", "a() -> Tensor\na() -> Tensor\n").errors, "2: `a` is there already");
}

}  // namespace
}  // namespace tenon::codegen::testing

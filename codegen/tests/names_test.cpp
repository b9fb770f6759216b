// SPDX-License-Identifier: Apache-2.0
// The file of names: what it holds, and what is refused with its line.
#include "load/names.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "run.hpp"

namespace tenon::codegen::testing {
namespace {

// The one message for a file of this text, without the path; "" if it is taken.
std::string refusal(const std::string& text) {
  const std::string path = std::filesystem::path(::testing::TempDir()) / "tenon_names_test.yaml";
  std::ofstream(path) << text;
  Package package;
  std::vector<std::string> errors;
  load_names(path, package, errors);
  std::filesystem::remove(path);
  if (errors.empty()) return "";
  return errors.size() == 1 ? errors[0].substr(path.size() + 1) : "several messages";
}

TEST(Names, AreRefusedWithLineAndReason) {
  EXPECT_EQ("", refusal("functions: {}\nkeywords: {}\n"));
  EXPECT_EQ("1: expected the key `keywords` in a file of names", refusal("functions: {}\n"));
  EXPECT_EQ("1: unknown key `ops` in a file of names", refusal("ops: []\n"));
  EXPECT_EQ("2: unknown key `tarch` in tensor; did you mean `torch`?",
            refusal("functions:\n  tensor: {tarch: tensor}\nkeywords: {}\n"));
  EXPECT_EQ(
      "2: torch: expected a name, or a name and a signature, as `neg(input, *, out=None)`, got "
      "`.x`",
      refusal("functions:\n  tensor: {torch: .x}\nkeywords: {}\n"));
  EXPECT_EQ("3: `dim`: expected `takes` or `means`, got neither",
            refusal("functions: {}\nkeywords:\n  dim: {}\n"));
  EXPECT_EQ("3: unknown key `take` in keyword `dim`; did you mean `takes`?",
            refusal("functions: {}\nkeywords:\n  dim: {take: axis}\n"));
  EXPECT_EQ("3: expected keyword `dim` as a mapping `key: value`",
            refusal("functions: {}\nkeywords:\n  dim: axis\n"));
  EXPECT_EQ("", refusal("functions: {}\nkeywords: {}\nmethods: {torch: [argwhere, arccos_]}\n"));
  EXPECT_EQ("3: unknown key `tarch` in methods; did you mean `torch`?",
            refusal("functions: {}\nkeywords: {}\nmethods: {tarch: [argwhere]}\n"));
  EXPECT_EQ("3: torch: expected the name of a method, got `linalg.inv`",
            refusal("functions: {}\nkeywords: {}\nmethods: {torch: [linalg.inv]}\n"));
  EXPECT_EQ("3: `argwhere` is a method already, of `paddle`",
            refusal("functions: {}\nkeywords: {}\n"
                    "methods: {paddle: [argwhere], torch: [argwhere]}\n"));
}

TEST(Names, OfAFileThatIsNotThereAreAnError) {
  Package package;
  std::vector<std::string> errors;
  load_names("/no/such/names.yaml", package, errors);
  EXPECT_EQ(std::vector<std::string>{"/no/such/names.yaml:1: cannot read this file"}, errors);
}

}  // namespace
}  // namespace tenon::codegen::testing

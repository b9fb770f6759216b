// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "expression/parser.hpp"
#include "model/signature.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

const Location kHere{"here.yaml", 7};

std::string parsed(const char* text) { return text_of(parse_expression(text, kHere, "expr")); }

std::string refused(const char* text) {
  try {
    parsed(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Expression, BindsAsDocumented) {
  EXPECT_EQ(parsed("a + b * c - d"), "((a + (b * c)) - d)");
  EXPECT_EQ(parsed("a || b && !c == d"), "(a || (b && (!c == d)))");
  EXPECT_EQ(parsed("a | b ^ c & d << 1 == e"), "((a | (b ^ (c & (d << 1)))) == e)");
  EXPECT_EQ(parsed("a ? b : c ? d : e"), "(a ? b : (c ? d : e))");
  EXPECT_EQ(parsed("-x.shape[0] // 2 % 3"), "((-x.shape[0] // 2) % 3)");
  EXPECT_EQ(parsed("f(x, [1, -2.5e-3], axis=none, mode='tanh', flag=true).values"),
            "f(x, [1, -2.5e-3], axis=none, mode='tanh', flag=true).values");
  EXPECT_EQ(parsed("acme::f(inf)"), "acme::f(inf)");
}

TEST(Expression, SaysWhereItStopped) {
  EXPECT_EQ(refused("a + "), "here.yaml:7: expr: expected a value, got the end at column 5");
  EXPECT_EQ(refused("f(a"), "here.yaml:7: expr: expected `,`, got the end at column 4");
  EXPECT_EQ(refused("a b"), "here.yaml:7: expr: expected the end, got `b` at column 3");
  EXPECT_EQ(refused("a < b < c"),
            "here.yaml:7: expr: comparisons do not chain; write `a < b && b < c`");
  EXPECT_EQ(refused("a @ b"), "here.yaml:7: expr: unknown character `@` at column 3");
  EXPECT_EQ(refused("'a"),
            "here.yaml:7: expr: expected `'` after the text that starts at column 1");
  EXPECT_EQ(refused("f(a=1, b)"),
            "here.yaml:7: expr: in the call of `f`: positional argument after `a=`");
  EXPECT_EQ(refused("99999999999999999999"),
            "here.yaml:7: expr: `99999999999999999999` does not fit into 64 bits");
}

TEST(Expression, RefusesWhatWouldUseUpTheStack) {
  std::string deep(100000, '(');
  EXPECT_EQ(refused(deep.c_str()), "here.yaml:7: expr: nested more than 200 deep");
  EXPECT_EQ(refused(std::string(100000, '-').c_str()),
            "here.yaml:7: expr: nested more than 200 deep");
}

TEST(Expression, StepsHaveNames) {
  Step step = parse_step("y = x + 1", kHere, "decompose");
  EXPECT_EQ(step.name, "y");
  EXPECT_EQ(text_of(step.expression), "(x + 1)");
  EXPECT_EQ(parse_step("x == 1", kHere, "decompose").name, "");
}

std::string canonical(const char* text) { return parse_signature(text, kHere).canonical(); }

TEST(Signature, HasOneCanonicalText) {
  EXPECT_EQ(
      canonical("( Tensor x,Tensor? bias = none , *, int axis=-1, float[] s=[ 1,0.5 ]) -> Tensor"),
      "(Tensor x, Tensor? bias=none, *, int axis=-1, float[] s=[1, 0.5]) -> Tensor");
  EXPECT_EQ(canonical("() -> (Tensor values, Tensor indices)"),
            "() -> (Tensor values, Tensor indices)");
  EXPECT_EQ(canonical("(Tensor[] xs) -> Tensor[]"), "(Tensor[] xs) -> Tensor[]");
  EXPECT_EQ(canonical("(str mode='a b', dtype d=float32, float p=inf) -> Tensor"),
            "(str mode='a b', dtype d=float32, float p=inf) -> Tensor");
}

TEST(Signature, HashIsFnv1a) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
}

}  // namespace
}  // namespace tenon::codegen

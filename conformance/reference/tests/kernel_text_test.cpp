// SPDX-License-Identifier: Apache-2.0
// What becomes of Kernel C on its way to the compiler.
#include "../runtime/kernel_text.hpp"

#include <gtest/gtest.h>

namespace reference::test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

std::string finish(const std::string& text) {
  std::string why;
  std::string result = finish_kernel_text(text, &why);
  EXPECT_EQ(why, "");
  return result;
}

TEST(KernelText, GivesEachKernelAFunctionThatUnpacksItsArguments) {
  const std::string text = finish(
      "tk_mark_kernel void scale(float* x,\n# 3 \"kernel\"\n  struct size n, long long  count) { "
      "}");
  EXPECT_TRUE(contains(text, "static void scale(float* x,"));
  EXPECT_TRUE(contains(
      text,
      "scale(*(float**)arguments[0], *(struct size*)arguments[1], *(long long*)arguments[2]);"));
  EXPECT_TRUE(contains(text, "{-1u,sizeof(struct size),sizeof(long long),0}"));
  EXPECT_TRUE(contains(text, "{\"scale\", tk_call_scale, tk_parameters_scale, 3, 0}"));
}

TEST(KernelText, TakesKernelsWithoutParameters) {
  EXPECT_TRUE(contains(
      finish("tk_mark_kernel void a() {} tk_mark_kernel void b(void) {}"),
      "{\"a\", tk_call_a, tk_parameters_a, 0, 0}, {\"b\", tk_call_b, tk_parameters_b, 0, 0}"));
}

TEST(KernelText, SharesLocalArraysAndLeavesPointersToThemAlone) {
  const std::string text = finish(
      "float f(tk_mark_local float* p); void g() { tk_mark_local float tile[64]; "
      "tk_mark_local int n; }");
  EXPECT_TRUE(contains(text, "float f( float* p);"));
  EXPECT_TRUE(
      contains(text, "{ static _Thread_local float tile[64]; static _Thread_local int n; }"));
}

TEST(KernelText, TellsWhetherItemsUseBarriers) {
  const std::string prelude = "static void tk_barrier(void) {}\n";
  EXPECT_TRUE(contains(finish(prelude + "tk_mark_kernel void k() { tk_barrier(); }"),
                       "tk_parameters_k, 0, 1}"));
  EXPECT_TRUE(contains(finish(prelude + "tk_mark_kernel void k() {}"), "tk_parameters_k, 0, 0}"));
}

TEST(KernelText, RefusesWhatIsNoKernel) {
  for (const char* text :
       {"tk_mark_kernel int k() {}", "tk_mark_kernel", "tk_mark_kernel void",
        "tk_mark_kernel void k(", "tk_mark_kernel void k(,) {}", "tk_mark_kernel void () {}"}) {
    std::string why;
    finish_kernel_text(text, &why);
    EXPECT_EQ(why, "expected `TK_KERNEL void name(type parameter, ...)`") << text;
  }
}

TEST(KernelText, NamesTheSourceInMessages) {
  EXPECT_TRUE(
      contains(with_prelude("tenon/add_f32", "int x;"), "#line 1 \"tenon/add_f32\"\nint x;\n"));
  EXPECT_TRUE(contains(with_prelude("a\"\nb", ""), "#line 1 \"a__b\"\n"));
}

}  // namespace
}  // namespace reference::test

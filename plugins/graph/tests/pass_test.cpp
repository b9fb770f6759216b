// SPDX-License-Identifier: Apache-2.0
// Passes of plugins: what they see, what they may change, and that a wrong one does no harm.
#include "support.hpp"

namespace tenon::test {
namespace {

using Values = std::vector<float>;
using Run = std::function<void(tenon_graph_editor*, const tenon_graph_editor_api&, tenon_err*)>;

// A pass for the length of a test. What it throws is its failure.
class Pass {
 public:
  Pass(const char* name, Run run) : name_(name), run_(std::move(run)) {
    tenon_graph_pass pass = {};
    pass.struct_size = sizeof pass;
    pass.name = name;
    pass.user = this;
    pass.run = [](void* user, tenon_graph_editor* editor, const tenon_graph_editor_api* api,
                  tenon_err* err) {
      return guarded(err, [&] { static_cast<Pass*>(user)->run_(editor, *api, err); });
    };
    const ErrorSink err;
    err.check(graph->pass_add(&pass, err));
  }
  ~Pass() { EXPECT_EQ(graph->pass_remove(name_, nullptr), TENON_OK); }

 private:
  const char* name_;
  Run run_;
};

Program optimized(const Program& program, const char* passes) {
  const ErrorSink err;
  tenon_graph_program* changed = nullptr;
  err.check(graph->program_optimize(program.get(), passes, &changed, err));
  return Program(changed);
}

std::string changes_of(const Program& program) {
  std::string text;
  graph->program_changes(
      program.get(),
      [](void* user, const char* line, uint64_t bytes) {
        static_cast<std::string*>(user)->append(line, bytes);
      },
      &text);
  return text;
}

uint32_t result_of(const tenon_graph_editor* editor, const tenon_graph_editor_api& api,
                   uint32_t step) {
  const ErrorSink err;
  uint32_t id = 0;
  err.check(api.result(editor, step, 0, &id, err));
  return id;
}

uint32_t operand_of(const tenon_graph_editor* editor, const tenon_graph_editor_api& api,
                    uint32_t step, uint32_t index) {
  const ErrorSink err;
  tenon_graph_operand operand = {};
  err.check(api.operand(editor, step, index, &operand, err));
  EXPECT_EQ(operand.kind, TENON_GRAPH_VALUES);
  return operand.ids[0];
}

tenon_graph_value value_of(const tenon_graph_editor* editor, const tenon_graph_editor_api& api,
                           uint32_t id) {
  const ErrorSink err;
  tenon_graph_value value = {};
  value.struct_size = sizeof value;
  err.check(api.value(editor, id, &value, err));
  return value;
}

Program negative_twice_and_exp(const Tensor& x) {
  return record({x}, [&] {
    Tensor once = call("negative", {boxed(x.get())});
    Tensor twice = call("negative", {boxed(once.get())});
    return std::vector{call("exp", {boxed(twice.get())})};
  });
}

TEST(Pass, SeesAndChangesSteps) {
  Tensor x = tensor({2}, {0, 1});
  const Program program = negative_twice_and_exp(x);
  const Pass pass("drop_double_negative", [](auto* editor, const auto& api, tenon_err* err) {
    ASSERT_EQ(api.steps(editor), 3u);
    tenon_graph_step step = {};
    step.struct_size = sizeof step;
    ASSERT_EQ(api.step(editor, 1, &step, err), TENON_OK);
    EXPECT_STREQ(step.name, "tenon::negative");
    EXPECT_EQ(step.kind, TENON_GRAPH_STEP_CALL);
    EXPECT_EQ(step.nresults, 1u);
    const uint32_t input = operand_of(editor, api, 0, 0), twice = result_of(editor, api, 1);
    EXPECT_TRUE(value_of(editor, api, input).is_outside);
    EXPECT_EQ(value_of(editor, api, twice).uses, 1u);
    EXPECT_EQ(value_of(editor, api, twice).shape[0], 2);
    ASSERT_EQ(api.replace(editor, twice, input, err), TENON_OK);
    ASSERT_EQ(api.remove(editor, 1, err), TENON_OK);
    ASSERT_EQ(api.remove(editor, 0, err), TENON_OK);
  });
  const Program changed = optimized(program, "drop_double_negative");
  EXPECT_EQ(graph->program_steps(changed.get()), 1u);
  EXPECT_EQ(changes_of(changed), "pass drop_double_negative: of 3 steps 1 are left\n");
  EXPECT_EQ(values(run(changed, {x})[0]), values(run(program, {x})[0]));
  EXPECT_EQ(graph->program_steps(program.get()), 3u);  // programs do not change
}

TEST(Pass, InsertsCallsAndConstants) {
  Tensor x = tensor({2}, {1, 2});
  const Program program = record({x}, [&] { return std::vector{call("exp", {boxed(x.get())})}; });
  const Pass pass("add_ten", [](auto* editor, const auto& api, tenon_err* err) {
    Tensor ten = tensor({2}, {10, 20});
    uint32_t constant = 0, sum = 0;
    ASSERT_EQ(api.insert_constant(editor, ten.get(), &constant, err), TENON_OK);
    const uint32_t result = result_of(editor, api, 0);
    const tenon_graph_operand operands[] = {{TENON_GRAPH_VALUES, 1, &result, kNoValue},
                                            {TENON_GRAPH_VALUES, 1, &constant, kNoValue}};
    const tenon_op* add = host->op_find("add");
    ASSERT_EQ(api.insert_call(editor, 1, add, operands, 2, &sum, err), TENON_OK);
    EXPECT_EQ(value_of(editor, api, sum).dtype, TENON_DTYPE_F32);
    // Data of the program can be read while it is changed.
    EXPECT_EQ(static_cast<float*>(value_of(editor, api, constant).constant->data)[1], 20.0f);
    ASSERT_EQ(api.steps(editor), 2u);
  });
  const Program changed = optimized(program, "add_ten");
  EXPECT_NE(text_of(changed).find("tenon::add("), std::string::npos);
  EXPECT_EQ(graph->program_steps(optimized(changed, "dce").get()), 1u);  // no step reads the sum
}

TEST(Pass, MayNotShareOrLoseMemory) {
  Tensor x = tensor({2}, {1, 2});
  const Program program = record({x}, [&] {
    Tensor copy = call("negative", {boxed(x.get())});
    return std::vector{call("exp", {boxed(copy.get())})};
  });
  const Pass pass("wrong", [](auto* editor, const auto& api, tenon_err*) {
    const uint32_t input = operand_of(editor, api, 0, 0), result = result_of(editor, api, 1);
    auto refused = [&](auto&& action) {
      return error_of([&] {
        const ErrorSink err;
        err.check(action(err));
      });
    };
    EXPECT_EQ(refused([&](tenon_err* err) { return api.replace(editor, result, input, err); }),
              "editor: callers see the memory of the value, and would see that of another one; "
              "insert a call of tenon::clone");
    EXPECT_EQ(refused([&](tenon_err* err) { return api.remove(editor, 0, err); }),
              "editor: step 0, `tenon::negative`, has a result that is read");
    EXPECT_EQ(refused([&](tenon_err* err) { return api.remove(editor, 7, err); }),
              "editor: step 7 is out of range, there are 2");
    EXPECT_EQ(refused([&](tenon_err* err) {
                tenon_graph_operand none = {};
                return api.operand(editor, 0, 5, &none, err);
              }),
              "editor: operand 5 is out of range, there are 1");
    EXPECT_EQ(refused([&](tenon_err* err) {
                uint32_t id = 0;
                const uint32_t unknown = 99;
                const tenon_graph_operand operand = {TENON_GRAPH_VALUES, 1, &unknown, kNoValue};
                return api.insert_call(editor, 0, host->op_find("exp"), &operand, 1, &id, err);
              }),
              "editor: value 99 is out of range, there are 3");
  });
  EXPECT_EQ(values(run(optimized(program, "wrong"), {x})[0]), values(run(program, {x})[0]));
}

TEST(Pass, AFailureLeavesTheProgram) {
  Tensor x = tensor({2}, {1, 2});
  const Program program = negative_twice_and_exp(x);
  const Pass pass("gives_up", [](auto* editor, const auto& api, tenon_err* err) {
    ASSERT_EQ(api.replace(editor, result_of(editor, api, 1), operand_of(editor, api, 0, 0), err),
              TENON_OK);
    throw Error(TENON_UNSUPPORTED, "not today");
  });
  EXPECT_EQ(error_of([&] { optimized(program, "dce,gives_up"); }), "pass `gives_up`: not today");
  EXPECT_EQ(graph->program_steps(program.get()), 3u);
}

TEST(Pass, WhatItLeavesIsVerified) {
  Tensor x = tensor({2}, {1, 2});
  const Program program = negative_twice_and_exp(x);
  // The first step reads what a later one makes.
  const Pass pass("reads_the_future", [](auto* editor, const auto& api, tenon_err* err) {
    const uint32_t last = result_of(editor, api, 2);
    uint32_t id = 0;
    const tenon_graph_operand operand = {TENON_GRAPH_VALUES, 1, &last, kNoValue};
    ASSERT_EQ(api.insert_call(editor, 0, host->op_find("exp"), &operand, 1, &id, err), TENON_OK);
  });
  EXPECT_EQ(
      error_of([&] { optimized(program, "reads_the_future"); }),
      "pass `reads_the_future`: it left a program that cannot run: program: step 0, `tenon::exp`: "
      "expected arguments that earlier steps made, got value 3");
}

TEST(Pass, NamesAreChecked) {
  const auto add = [](const char* name) {
    tenon_graph_pass pass = {};
    pass.struct_size = sizeof pass;
    pass.name = name;
    pass.run = [](void*, tenon_graph_editor*, const tenon_graph_editor_api*, tenon_err*) {
      return tenon_status{TENON_OK};
    };
    return error_of([&] {
      const ErrorSink err;
      err.check(graph->pass_add(&pass, err));
    });
  };
  EXPECT_EQ(add("dce"), "pass `dce` exists already; choose another name");
  EXPECT_EQ(add("a,b"),
            "pass: expected a name of letters, digits and _, and a function, got 'a,b'");
  EXPECT_EQ(error_of([] {
              const ErrorSink err;
              err.check(graph->pass_remove("unknown", err));
            }),
            "there is no pass `unknown` of a plugin");
}

}  // namespace
}  // namespace tenon::test

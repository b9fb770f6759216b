// SPDX-License-Identifier: Apache-2.0
// Ways to run a program: into the caller's memory, told of each step, on another device's types.
#include "support.hpp"

namespace tenon::test {
namespace {

using Values = std::vector<float>;

std::vector<tenon_tensor*> handles(const std::vector<Tensor>& tensors) {
  std::vector<tenon_tensor*> list;
  for (const Tensor& tensor : tensors) list.push_back(tensor.get());
  return list;
}

std::vector<Tensor> run_with(const Program& program, const std::vector<Tensor>& inputs,
                             const tenon_graph_run_options& options) {
  const auto given = handles(inputs);
  std::vector<tenon_tensor*> results(graph->program_results(program.get()));
  ErrorSink err;
  err.check(graph->program_run_with(program.get(), given.data(),
                                    static_cast<uint32_t>(given.size()), results.data(),
                                    static_cast<uint32_t>(results.size()), &options, err));
  std::vector<Tensor> owned;
  for (tenon_tensor* result : results) owned.push_back(Tensor::adopt(result));
  return owned;
}

tenon_graph_run_options options_into(const std::vector<tenon_tensor*>& into) {
  tenon_graph_run_options options = {};
  options.struct_size = sizeof options;
  options.into = into.data();
  return options;
}

// x * 2, its sum over the last axis, and x as it came; then the product is read again.
Program sample(const Tensor& x) {
  return record({x}, [&] {
    Tensor product = call("multiply", {boxed(x.get()), boxed(2.0)});
    const int64_t axis = 1;
    Tensor sum = call("sum", {boxed(product.get()), boxed(&axis, 1), boxed(false)});
    return std::vector{product, sum, x};
  });
}

TEST(RunOptions, ResultsGoWhereTheCallerWants) {
  const Tensor x = tensor({2, 2}, {1, 2, 3, 4});
  const Program program = sample(x);
  const std::vector<Tensor> mine = {tensor({2, 2}, {0, 0, 0, 0}), tensor({2}, {0, 0}),
                                    tensor({2, 2}, {0, 0, 0, 0})};
  const std::vector<tenon_tensor*> into = handles(mine);
  const std::vector<Tensor> results = run_with(program, {x}, options_into(into));
  for (size_t i = 0; i < mine.size(); ++i) EXPECT_EQ(results[i].get(), mine[i].get());
  EXPECT_EQ(values(mine[0]), (Values{2, 4, 6, 8}));
  EXPECT_EQ(values(mine[1]), (Values{6, 14}));
  EXPECT_EQ(values(mine[2]), (Values{1, 2, 3, 4}));
  for (const Tensor& each : mine)
    EXPECT_EQ(host->tensor_use_count(each.get()), 2u);  // and `results`
  // Some of them, and the rest as ever.
  const std::vector<Tensor> again = run_with(program, {tensor({2, 2}, {5, 6, 7, 8})},
                                             options_into({nullptr, mine[1].get(), nullptr}));
  EXPECT_EQ(again[1].get(), mine[1].get());
  EXPECT_EQ(values(again[0]), (Values{10, 12, 14, 16}));
  EXPECT_EQ(values(mine[1]), (Values{22, 30}));
}

TEST(RunOptions, GroupsWriteThereToo) {
  const std::vector<float> elements(20000, 0.5f);
  const Tensor x = tensor({20000}, elements);
  const Program program = record({x}, [&] {
    Tensor y = x;
    for (int i = 0; i < 4; ++i) y = call("multiply", {boxed(y.get()), boxed(2.0)});
    return std::vector{y};
  });
  const Tensor mine = tensor({20000}, std::vector<float>(20000));
  std::string plan;
  graph->program_plan(
      program.get(),
      [](void* user, const char* text, uint64_t bytes) {
        static_cast<std::string*>(user)->append(text, bytes);
      },
      &plan);
  EXPECT_NE(plan.find("steps 0 to 3"), std::string::npos) << plan;
  EXPECT_EQ(run_with(program, {x}, options_into({mine.get()}))[0].get(), mine.get());
  EXPECT_EQ(values(mine), std::vector<float>(20000, 8));
}

TEST(RunOptions, ResultsCanBeTheCallersOwn) {
  const Tensor x = tensor({2, 2}, {1, 2, 3, 4}), weight = tensor({2, 2}, {5, 6, 7, 8});
  const int64_t flat = 4;
  const Program program = record({x}, [&] {
    Tensor product = call("multiply", {boxed(x.get()), boxed(weight.get())});
    return std::vector{product, x, weight, call("reshape", {boxed(weight.get()), boxed(&flat, 1)})};
  });
  tenon_graph_run_options options = {};
  options.struct_size = sizeof options;
  auto shares = [](const Tensor& a, const Tensor& b) { return a->data == b->data; };
  std::vector<Tensor> results = run_with(program, {x}, options);
  EXPECT_TRUE(shares(results[1], x) && shares(results[3], weight));
  options.flags = TENON_GRAPH_RUN_OWN_RESULTS;
  results = run_with(program, {x}, options);
  for (const Tensor& result : results) EXPECT_FALSE(shares(result, x) || shares(result, weight));
  EXPECT_EQ(values(results[0]), (Values{5, 12, 21, 32}));
  EXPECT_EQ(values(results[1]), (Values{1, 2, 3, 4}));
  EXPECT_EQ(values(results[3]), (Values{5, 6, 7, 8}));
}

TEST(RunOptions, SaysWhatDoesNotFit) {
  const Tensor x = tensor({2, 2}, {1, 2, 3, 4});
  const Program program = sample(x);
  auto error = [&](const Tensor& second) {
    return error_of([&] {
      run_with(program, {x}, options_into({nullptr, second.get(), nullptr}));
    });
  };
  EXPECT_EQ(error(tensor({3}, {0, 0, 0})),
            "program: output 1: expected float32[2] cpu:0, got float32[3] cpu:0; give a tensor of "
            "the result's type");
  const Tensor wide = tensor({4}, {0, 0, 0, 0});
  const int64_t size = 2, stride = 2;
  tenon_tensor* view;
  ErrorSink err;
  err.check(host->tensor_view(wide.get(), TENON_DTYPE_F32, 1, &size, &stride, 0, &view, err));
  EXPECT_EQ(error(Tensor::adopt(view)),
            "program: output 1: expected dense memory, got another layout");
}

struct Told {
  int before = 0, stop_before = 1000;
  std::vector<std::pair<uint32_t, uint32_t>> after;
  Values last;
};

tenon_status before(void* user, tenon_err* err) {
  auto& told = *static_cast<Told*>(user);
  return ++told.before > told.stop_before ? fail(err, TENON_CANCELLED, "enough") : TENON_OK;
}

tenon_status after(void* user, uint32_t begin, uint32_t end, tenon_tensor* const* results,
                   uint32_t nresults, tenon_err*) {
  auto& told = *static_cast<Told*>(user);
  told.after.emplace_back(begin, end);
  if (nresults > 0) told.last = values(Tensor::borrow(results[0]));
  return TENON_OK;
}

TEST(RunOptions, TellsOfStepsAndEndsWhereItShould) {
  const Tensor x = tensor({2, 2}, {1, 2, 3, 4});
  const Program program = sample(x);
  Told told;
  tenon_graph_run_options options = {};
  options.struct_size = sizeof options;
  options.flags = TENON_GRAPH_RUN_ONE_BY_ONE;
  options.user = &told;
  options.before = before;
  options.after = after;
  run_with(program, {x}, options);
  EXPECT_EQ(told.before, 2);
  EXPECT_EQ(told.after, (std::vector<std::pair<uint32_t, uint32_t>>{{0, 1}, {1, 2}}));
  EXPECT_EQ(told.last, (Values{6, 14}));
  told = {};
  told.stop_before = 1;
  EXPECT_EQ(error_of([&] { run_with(program, {x}, options); }), "enough");
  EXPECT_EQ(told.after.size(), 1u);
}

TEST(RunOptions, StepsAreDescribed) {
  const Tensor x = tensor({2, 2}, {1, 2, 3, 4});
  const Program program = sample(x);
  std::vector<tenon_graph_step> steps;
  graph->program_each_step(
      program.get(),
      [](void* user, const tenon_graph_step* step) {
        static_cast<std::vector<tenon_graph_step>*>(user)->push_back(*step);
      },
      &steps);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_STREQ(steps[1].name, "tenon::sum");
  EXPECT_EQ(steps[1].dtype, TENON_DTYPE_F32);
  EXPECT_EQ(steps[1].device, host->device_host());
  EXPECT_EQ(steps[0].bytes, 16u);
  EXPECT_EQ(steps[1].bytes, 8u);
  EXPECT_EQ(steps[1].depth, 0);
}

TEST(RunOptions, AProgramMovesWhereItIs) {
  const Tensor x = tensor({2, 2}, {1, 2, 3, 4});
  const Program program = sample(x);
  ErrorSink err;
  tenon_graph_program* made;
  err.check(graph->program_move(program.get(), host->device_host(), &made, err));
  const Program moved(made);
  EXPECT_EQ(text_of(moved), text_of(program));
  EXPECT_EQ(values(run(moved, {x})[1]), (Values{6, 14}));
}

}  // namespace
}  // namespace tenon::test

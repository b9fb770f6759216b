// SPDX-License-Identifier: Apache-2.0
// Recording and running, as a C++ program does it.
#include "support.hpp"

#include <cstdio>

namespace tenon::test {
namespace {

using Values = std::vector<float>;

TEST(Program, RunsWhatWasRecordedOnOtherInputs) {
  Tensor x = tensor({2}, {1, 2}), weight = tensor({2}, {10, 20});
  Program program = record({x}, [&] {
    Tensor product = call("multiply", {boxed(x.get()), boxed(weight.get())});
    return std::vector{call("add", {boxed(product.get()), boxed(1.0)})};
  });
  EXPECT_EQ(graph->program_inputs(program.get()), 1u);
  EXPECT_EQ(graph->program_leaves(program.get()), 1u);
  EXPECT_EQ(graph->program_steps(program.get()), 2u);
  EXPECT_EQ(values(run(program, {tensor({2}, {3, 4})})[0]), (Values{31, 81}));
  call_into(weight, "multiply", {boxed(weight.get()), boxed(2.0)});  // by reference
  EXPECT_EQ(values(run(program, {tensor({2}, {3, 4})})[0]), (Values{61, 161}));
}

TEST(Program, WritesInPlaceWhereTheFunctionDid) {
  Tensor x = tensor({2}, {1, 2}), total = tensor({2}, {0, 0});
  Program program = record({x}, [&] {
    call_into(total, "add", {boxed(total.get()), boxed(x.get())});
    return std::vector{call("negative", {boxed(total.get())})};
  });
  EXPECT_EQ(values(total), (Values{1, 2}));
  EXPECT_EQ(values(run(program, {x})[0]), (Values{-2, -4}));
  EXPECT_EQ(values(total), (Values{2, 4}));
}

TEST(Program, SharesMemoryWhereTheFunctionDid) {
  Tensor x = tensor({2, 2}, {1, 2, 3, 4});
  Program program = record({x}, [&] {
    Tensor copy = call("clone", {boxed(x.get())});
    Tensor row = call("select", {boxed(copy.get()), boxed(0), boxed(1)});
    call_into(row, "multiply", {boxed(row.get()), boxed(10.0)});
    return std::vector{copy};
  });
  EXPECT_EQ(values(run(program, {tensor({2, 2}, {5, 6, 7, 8})})[0]), (Values{5, 6, 70, 80}));
}

TEST(Program, FollowsMemoryThatNoOperatorShared) {
  Tensor x = tensor({4}, {1, 2, 3, 4});
  Program program = record({x}, [&] {
    Tensor copy = call("clone", {boxed(x.get())});
    const int64_t shape = 2, stride = 2;
    tenon_tensor* view;
    ErrorSink err;
    err.check(host->tensor_view(copy.get(), TENON_DTYPE_F32, 1, &shape, &stride, 1, &view, err));
    Tensor odd = Tensor::adopt(view);
    call_into(odd, "multiply", {boxed(odd.get()), boxed(10.0)});
    return std::vector{copy};
  });
  EXPECT_NE(text_of(program).find("view("), std::string::npos);
  EXPECT_EQ(values(run(program, {tensor({4}, {1, 1, 1, 1})})[0]), (Values{1, 10, 1, 10}));
}

// A caller whose lines are looked up when the recording ends, once for each mark.
struct Caller {
  uint64_t mark = 0;
  int looked_up = 0;
};

TEST(Program, LooksUpMarksOnceAndAtTheEnd) {
  Caller caller;
  tenon_graph_recording_options options = {};
  options.struct_size = sizeof options;
  options.user = &caller;
  options.mark = [](void* user) { return static_cast<Caller*>(user)->mark; };
  ErrorSink err;
  Tensor x = tensor({2}, {1, 2});
  tenon_tensor* handle = x.get();
  tenon_graph_recording* recording = nullptr;
  EXPECT_NE(graph->record_begin(&handle, 1, &options, &recording, err), TENON_OK);
  EXPECT_STREQ(host->err_text(err), "export: expected mark and locate_mark, or none of them");
  host->err_clear(err);
  options.locate_mark = [](void* user, uint64_t mark, char* file, uint32_t room) {
    ++static_cast<Caller*>(user)->looked_up;
    std::snprintf(file, room, "train.c");
    return static_cast<int32_t>(mark);
  };
  err.check(graph->record_begin(&handle, 1, &options, &recording, err));
  Tensor y = x;
  for (uint64_t mark : {7, 9, 7, 0}) {
    caller.mark = mark;
    y = call("negative", {boxed(y.get())});
  }
  EXPECT_EQ(caller.looked_up, 0);
  tenon_tensor* result = y.get();
  tenon_graph_program* recorded = nullptr;
  err.check(graph->record_end(recording, &result, 1, &recorded, err));
  const Program program(recorded);
  EXPECT_EQ(caller.looked_up, 2);
  const std::string text = text_of(program);
  const size_t first = text.find("at \"train.c\":7"), second = text.find("at \"train.c\":9");
  EXPECT_LT(first, second);
  EXPECT_LT(second, text.rfind("at \"train.c\":7"));
  EXPECT_EQ(values(run(program, {tensor({2}, {3, 4})})[0]), (Values{3, 4}));
}

TEST(Program, RefusesOtherShapes) {
  Tensor x = tensor({2}, {1, 2});
  Program program = record({x}, [&] { return std::vector{call("exp", {boxed(x.get())})}; });
  EXPECT_EQ(error_of([&] {
              run(program, {tensor({3}, {1, 2, 3})});
            }),
            "program: input 0: expected float32[2] cpu:0, got float32[3] cpu:0; convert it, or "
            "export the function for these inputs");
}

TEST(Program, NamesTheStepThatFails) {
  Tensor x = tensor({2}, {1, 2}),
         index = call("cast", {boxed(x.get()), boxed_dtype(TENON_DTYPE_I64)});
  Tensor table = tensor({3}, {10, 20, 30});
  Program program = record({index}, [&] {
    return std::vector{call("index_select", {boxed(table.get()), boxed(index.get())})};
  });
  EXPECT_EQ(values(run(program, {index})[0]), (Values{20, 30}));
  call_into(index, "add", {boxed(index.get()), boxed(5)});
  const std::string text = error_of([&] { run(program, {index}); });
  EXPECT_EQ(text.find("program: tenon::"), 0u) << text;
  EXPECT_NE(text.find("(float32[3] cpu:0, int64[2] cpu:0) > ["), std::string::npos) << text;
}

TEST(Program, RefusesShapesThatDependOnData) {
  Tensor x = tensor({2}, {1, 0});
  const std::string text = error_of(
      [&] { record({x}, [&] { return std::vector{call("nonzero", {boxed(x.get())})}; }); });
  EXPECT_NE(text.find("depends on data"), std::string::npos) << text;
}

TEST(Program, ReadingWhileRecordingFailsTheRecording) {
  Tensor x = tensor({1}, {1});
  const std::string text = error_of([&] {
    record({x}, [&] {
      EXPECT_NE(graph->record_read("item()", nullptr), TENON_OK);  // and its status is ignored
      return std::vector{x};
    });
  });
  EXPECT_EQ(text.find("export: item() takes data past the program"), 0u) << text;
  EXPECT_EQ(graph->record_read("item()", nullptr), TENON_OK);
}

TEST(Passes, DropWhatNobodyReads) {
  NoGradients off;
  Tensor x = tensor({2}, {1, 2});
  Program program = record({x}, [&] {
    call("exp", {boxed(x.get())});
    Tensor a = call("sin", {boxed(x.get())}), b = call("sin", {boxed(x.get())});
    return std::vector{call("add", {boxed(a.get()), boxed(b.get())})};
  });
  ErrorSink err;
  tenon_graph_program* changed;
  err.check(graph->program_optimize(program.get(), "dce,cse", &changed, err));
  Program optimized(changed);
  EXPECT_EQ(graph->program_steps(program.get()), 4u);
  EXPECT_EQ(graph->program_steps(optimized.get()), 2u);
  EXPECT_EQ(values(run(program, {x})[0]), values(run(optimized, {x})[0]));
}

TEST(Passes, KeepWritesAndWhatIsReadAcrossThem) {
  Tensor x = tensor({2}, {1, 2}), total = tensor({2}, {1, 1});
  Program program = record({x}, [&] {
    Tensor before = call("multiply", {boxed(total.get()), boxed(2.0)});
    call_into(total, "add", {boxed(total.get()), boxed(x.get())});
    Tensor after = call("multiply", {boxed(total.get()), boxed(2.0)});
    return std::vector{call("subtract", {boxed(after.get()), boxed(before.get())})};
  });
  ErrorSink err;
  tenon_graph_program* changed;
  err.check(graph->program_optimize(program.get(), "dce,cse", &changed, err));
  Program optimized(changed);
  EXPECT_EQ(graph->program_steps(optimized.get()), 4u);
  EXPECT_EQ(values(run(optimized, {x})[0]), (Values{2, 4}));
}

TEST(Passes, ViewsAreMadeWithWhatTheyLookAt) {
  NoGradients off;
  Tensor x = tensor({2}, {1, 2});
  const auto step_of = [](const Program& program, const char* name) {
    std::string text;
    graph->program_print(
        program.get(),
        [](void* user, const char* part, uint64_t bytes) {
          static_cast<std::string*>(user)->append(part, bytes);
        },
        &text);
    return text.find(std::string("= tenon::") + name + "(");
  };
  Program program = record({x}, [&] {
    Tensor a = call("exp", {boxed(x.get())}), b = call("sin", {boxed(a.get())});
    call_into(b, "add", {boxed(b.get()), boxed(1.0)});
    Tensor view = call("unsqueeze", {boxed(a.get()), boxed(int64_t{0})});
    Tensor c = call("cos", {boxed(x.get())}),
           late = call("unsqueeze", {boxed(x.get()), boxed(int64_t{0})});
    return std::vector{call("add", {boxed(view.get()), boxed(late.get())}), b, c};
  });
  ErrorSink err;
  tenon_graph_program* changed;
  err.check(graph->program_optimize(program.get(), "views", &changed, err));
  Program optimized(changed);
  EXPECT_GT(step_of(optimized, "unsqueeze"), step_of(optimized, "sin"));  // not before the write
  EXPECT_LT(step_of(optimized, "unsqueeze"), step_of(optimized, "cos"));
  EXPECT_EQ(values(run(program, {x})[0]), values(run(optimized, {x})[0]));
}

TEST(Passes, KeepWhatGradientsSumSeparately) {
  Tensor x = tensor({2}, {1, 2});
  Program program = record({x}, [&] {
    Tensor a = call("sin", {boxed(x.get())}), b = call("sin", {boxed(x.get())});
    return std::vector{call("add", {boxed(a.get()), boxed(b.get())})};
  });
  ErrorSink err;
  tenon_graph_program* changed;
  err.check(graph->program_optimize(program.get(), "dce,cse", &changed, err));
  EXPECT_EQ(graph->program_steps(Program(changed).get()), 3u);
}

TEST(Passes, DropCopiesOfWhatIsNotUsedOtherwise) {
  NoGradients off;
  Tensor x = tensor({2}, {1, 2});
  Program program = record({x}, [&] {
    Tensor a = call("exp", {boxed(x.get())}), b = call("sin", {boxed(x.get())});
    Tensor copy = call("clone", {boxed(a.get())}), kept = call("clone", {boxed(b.get())});
    Tensor given = call("clone", {boxed(x.get())});
    for (Tensor* each : {&copy, &kept, &given})
      call_into(*each, "add", {boxed(each->get()), boxed(1.0)});
    return std::vector{copy, kept, b, given};
  });
  ErrorSink err;
  tenon_graph_program* changed;
  err.check(graph->program_optimize(program.get(), "copies", &changed, err));
  Program optimized(changed);
  EXPECT_EQ(graph->program_steps(optimized.get()), 7u);  // of the three copies two are needed
  auto got = run(optimized, {x}), want = run(program, {x});
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(values(got[i]), values(want[i]));
}

TEST(Passes, TwoResultsStayTwoTensors) {
  NoGradients off;
  Tensor x = tensor({2}, {1, 2});
  Program program = record({x}, [&] {
    return std::vector{call("exp", {boxed(x.get())}), call("exp", {boxed(x.get())})};
  });
  ErrorSink err;
  tenon_graph_program* changed;
  err.check(graph->program_optimize(program.get(), "cse", &changed, err));
  Program optimized(changed);
  auto results = run(optimized, {x});
  EXPECT_NE(results[0].get(), results[1].get());
  EXPECT_EQ(error_of([&] {
              ErrorSink failure;
              tenon_graph_program* none;
              failure.check(graph->program_optimize(program.get(), "unroll", &none, failure));
            }),
            "program: expected passes among dce, cse, copies, views, rewrites, recompute, freeze, "
            "fold, batch_norms, got 'unroll'");
}

}  // namespace
}  // namespace tenon::test

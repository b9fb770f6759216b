// SPDX-License-Identifier: Apache-2.0
// Programs that are built call by call: types by the operators' rules, composites, writes, and what is refused.
#include "support.hpp"

namespace tenon::test {
namespace {

using Values = std::vector<float>;

class Builder {
 public:
  Builder() {
    const ErrorSink err;
    err.check(graph->builder_begin(TENON_DEVICE_NONE, &handle_, err));
  }
  ~Builder() { graph->builder_abandon(handle_); }

  Tensor input(std::vector<int64_t> shape) {
    const ErrorSink err;
    tenon_tensor* value;
    err.check(graph->builder_input(handle_, TENON_DTYPE_F32, static_cast<int32_t>(shape.size()),
                                   shape.data(), TENON_DEVICE_NONE, &value, err));
    return Tensor::adopt(value);
  }
  Tensor leaf(const Tensor& tensor, const char* name, bool is_constant = false) {
    const ErrorSink err;
    tenon_tensor* value;
    err.check(graph->builder_leaf(handle_, tensor.get(), name, is_constant, &value, err));
    return Tensor::adopt(value);
  }
  Tensor call(const char* name, std::vector<tenon_value> args, const Tensor& out = {}) {
    const ErrorSink err;
    tenon_value result = out ? boxed(out.get()) : kNoValue;
    err.check(graph->builder_call(handle_, host->op_find(name), args.data(),
                                  static_cast<uint32_t>(args.size()), &result, 1, err));
    auto* made = static_cast<tenon_tensor*>(result.v.p);
    return out ? out : Tensor::adopt(made);
  }
  Program finish(const std::vector<Tensor>& results) {
    std::vector<tenon_tensor*> handles;
    for (const Tensor& result : results) handles.push_back(result.get());
    const ErrorSink err;
    tenon_graph_program* program = nullptr;
    err.check(graph->builder_end(std::exchange(handle_, nullptr), handles.data(),
                                 static_cast<uint32_t>(handles.size()), &program, err));
    return Program(program);
  }
  tenon_graph_builder* handle() const { return handle_; }

 private:
  tenon_graph_builder* handle_ = nullptr;
};

TEST(Builder, BuildsWhatIsRecorded) {
  Tensor x = tensor({2, 2}, {1, -2, 3, -4}), w = tensor({2, 2}, {1, 2, 3, 4});
  Builder builder;
  Tensor input = builder.input({2, 2});
  Tensor weight = builder.leaf(w, "weight");
  graph->builder_locate(builder.handle(), "net.onnx", 7);
  Tensor product = builder.call("matmul", {boxed(input.get()), boxed(weight.get())});
  EXPECT_EQ(product->device, TENON_DEVICE_META);
  EXPECT_EQ(product->shape[1], 2);
  Tensor sum = builder.call("add", {boxed(product.get()), boxed(1.5)});
  const Program built = builder.finish({builder.call("relu", {boxed(sum.get())})});
  const Program recorded = record({x}, [&] {
    Tensor y = call("matmul", {boxed(x.get()), boxed(w.get())});
    y = call("add", {boxed(y.get()), boxed(1.5)});
    return std::vector{call("relu", {boxed(y.get())})};
  });
  EXPECT_EQ(values(run(built, {x})[0]), values(run(recorded, {x})[0]));
  EXPECT_NE(text_of(built).find("\"weight\""), std::string::npos) << text_of(built);
  EXPECT_NE(text_of(built).find("at \"net.onnx\":7"), std::string::npos) << text_of(built);
}

TEST(Builder, GivesTheOperatorsOwnErrors) {
  Builder builder;
  Tensor a = builder.input({2, 3}), b = builder.input({4, 5});
  const std::string own = error_of([&] {
    call("matmul",
         {boxed(tensor({2, 3}, Values(6)).get()), boxed(tensor({4, 5}, Values(20)).get())});
  });
  EXPECT_EQ(error_of([&] { builder.call("matmul", {boxed(a.get()), boxed(b.get())}); }), own);
  EXPECT_FALSE(own.empty());
  // The failed call has left nothing behind.
  const Program program = builder.finish({builder.call("relu", {boxed(a.get())})});
  EXPECT_EQ(graph->program_steps(program.get()), 1u);
}

TEST(Builder, RefusesValuesOfOthers) {
  Builder builder, other;
  Tensor foreign = other.input({2});
  EXPECT_NE(error_of([&] {
              builder.call("relu", {boxed(foreign.get())});
            }).find("expected values of this builder"),
            std::string::npos);
}

TEST(Builder, ReadsTensorsByReferenceAndOnce) {
  Tensor w = tensor({2}, {1, 2});
  Builder builder;
  Tensor x = builder.input({2});
  Tensor sum = builder.call("add", {boxed(x.get()), boxed(w.get())});
  sum = builder.call("add", {boxed(sum.get()), boxed(w.get())});
  const Program program = builder.finish({sum});
  EXPECT_EQ(graph->program_leaves(program.get()), 1u);
  static_cast<float*>(w->data)[0] = 10;
  EXPECT_EQ(values(run(program, {tensor({2}, {0, 0})})[0]), (Values{20, 4}));
}

TEST(Builder, CreatesOnTheProgramsDevice) {
  Builder builder;
  Tensor x = builder.input({2});
  const int64_t shape[] = {2};
  Tensor zeros = builder.call("zeros", {boxed(shape, 1)});
  EXPECT_EQ(zeros->device, TENON_DEVICE_META);
  const Program program =
      builder.finish({builder.call("add", {boxed(x.get()), boxed(zeros.get())})});
  EXPECT_EQ(values(run(program, {tensor({2}, {3, 4})})[0]), (Values{3, 4}));
}

TEST(Builder, WritesIntoLeavesAndNotIntoConstants) {
  Tensor counter = tensor({2}, {0, 0});
  {
    Builder builder;
    Tensor x = builder.input({2}), state = builder.leaf(counter, "state");
    builder.call("add", {boxed(state.get()), boxed(x.get())}, state);
    const Program program = builder.finish({});
    run(program, {tensor({2}, {1, 2})});
    run(program, {tensor({2}, {1, 2})});
    EXPECT_EQ(values(counter), (Values{2, 4}));
  }
  Builder builder;
  Tensor x = builder.input({2}), state = builder.leaf(counter, nullptr, true);
  tenon_device_id device;
  tenon_tensor* constant;
  ASSERT_EQ(graph->builder_value(builder.handle(), state.get(), &device, &constant, nullptr),
            TENON_OK);
  EXPECT_EQ(constant, counter.get());
  EXPECT_EQ(device, host->device_host());
  builder.call("add", {boxed(state.get()), boxed(x.get())}, state);
  EXPECT_NE(error_of([&] { builder.finish({}); }).find("writes into a constant"),
            std::string::npos);
}

// Parts of composites stand in the program where no kernel serves the whole, as in a recording.
TEST(Builder, TakesCompositesApart) {
  Tensor x = tensor({4}, {1, 2, 3, 4});
  auto steps = [&](const Program& program) { return graph->program_steps(program.get()); };
  Builder builder;
  Tensor input = builder.input({4});
  const Program built = builder.finish(
      {builder.call("normalize", {boxed(input.get()), boxed(2.0), boxed(int64_t{0})})});
  const Program recorded = record({x}, [&] {
    return std::vector{call("normalize", {boxed(x.get()), boxed(2.0), boxed(int64_t{0})})};
  });
  EXPECT_EQ(steps(built), steps(recorded)) << text_of(built) << text_of(recorded);
  EXPECT_EQ(values(run(built, {x})[0]), values(run(recorded, {x})[0]));
}

}  // namespace
}  // namespace tenon::test

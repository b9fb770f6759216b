// SPDX-License-Identifier: Apache-2.0
// What a program is made of, as its users read it, and that reading changes nothing.
#include "support.hpp"

namespace tenon::test {
namespace {

using Ids = std::vector<uint32_t>;
using Read = std::function<void(const tenon_graph_editor*, const tenon_graph_editor_api&)>;

void read(const Program& program, const Read& function) {
  const ErrorSink err;
  err.check(graph->program_read(
      program.get(),
      [](void* user, const tenon_graph_editor* editor, const tenon_graph_editor_api* api,
         tenon_err* err) {
        return guarded(err, [&] { (*static_cast<const Read*>(user))(editor, *api); });
      },
      const_cast<Read*>(&function), err));
}

Ids ids(const tenon_graph_editor* editor, const tenon_graph_editor_api& api, int32_t whose) {
  Ids list(api.ids(editor, whose, nullptr, 0));
  EXPECT_EQ(api.ids(editor, whose, list.data(), static_cast<uint32_t>(list.size())), list.size());
  return list;
}

// w += x, and x + w
Program adds_to_a_leaf(const Tensor& x, const Tensor& w) {
  const NoGradients off;
  return record({x}, [&] {
    call_into(w, "add", {boxed(w.get()), boxed(x.get())});
    return std::vector{call("add", {boxed(x.get()), boxed(w.get())})};
  });
}

TEST(Read, StepsAndValues) {
  const Tensor x = tensor({2}, {1, 2}), w = tensor({2}, {3, 4});
  const Program program = adds_to_a_leaf(x, w);
  size_t calls = 0;
  read(program, [&](const auto* editor, const auto& api) {
    ++calls;
    const ErrorSink err;
    const Ids inputs = ids(editor, api, TENON_GRAPH_INPUTS),
              leaves = ids(editor, api, TENON_GRAPH_LEAVES),
              results = ids(editor, api, TENON_GRAPH_RESULTS);
    ASSERT_EQ(inputs.size(), 1u);
    ASSERT_EQ(leaves.size(), 1u);
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(api.ids(editor, 7, nullptr, 0), 0u);
    uint32_t untouched = 99;
    EXPECT_EQ(api.ids(editor, TENON_GRAPH_INPUTS, &untouched, 0), 1u);
    EXPECT_EQ(untouched, 99u);
    ASSERT_EQ(api.steps(editor), 2u);
    tenon_graph_step step = {};
    step.struct_size = sizeof step;
    err.check(api.step(editor, 0, &step, err));
    EXPECT_EQ(step.given, 1u);
    uint32_t written = 0, sum = 0;
    err.check(api.result(editor, 0, 0, &written, err));
    err.check(api.result(editor, 1, 0, &sum, err));
    EXPECT_EQ(written, leaves[0]);
    EXPECT_EQ(sum, results[0]);
    tenon_graph_operand operand = {};
    err.check(api.operand(editor, 1, 0, &operand, err));
    ASSERT_EQ(operand.count, 1u);
    EXPECT_EQ(operand.ids[0], inputs[0]);
  });
  EXPECT_EQ(calls, 1u);
}

TEST(Read, ChangesNothing) {
  const Tensor x = tensor({2}, {1, 2}), w = tensor({2}, {3, 4});
  const Program program = adds_to_a_leaf(x, w);
  const std::string before = text_of(program);
  read(program, [&](const auto* editor, const auto& api) {
    auto* writable = const_cast<tenon_graph_editor*>(editor);
    const auto refused = [](auto&& action) {
      return error_of([&] {
        const ErrorSink err;
        err.check(action(err));
      });
    };
    const std::string expected =
        "editor: expected a pass, which may change its program, got program_read";
    uint32_t id = 0;
    EXPECT_EQ(refused([&](tenon_err* err) {
                return api.insert_call(writable, 0, host->op_find("exp"), nullptr, 0, &id, err);
              }),
              expected);
    EXPECT_EQ(
        refused([&](tenon_err* err) { return api.insert_constant(writable, x.get(), &id, err); }),
        expected);
    EXPECT_EQ(refused([&](tenon_err* err) { return api.replace(writable, 0, 1, err); }), expected);
    EXPECT_EQ(refused([&](tenon_err* err) { return api.remove(writable, 1, err); }), expected);
  });
  EXPECT_EQ(text_of(program), before);
}

TEST(Read, HandsOnAFailure) {
  const Tensor x = tensor({2}, {1, 2}), w = tensor({2}, {3, 4});
  const Program program = adds_to_a_leaf(x, w);
  EXPECT_EQ(error_of([&] {
              read(program, [](const auto*, const auto&) {
                throw Error(TENON_UNSUPPORTED, "not this program");
              });
            }),
            "not this program");
}

TEST(Read, SitesOfDimensions) {
  const Program program = parse(
      "tenon.program 1\n"
      "dimension n from 2 to 40 by 1 at 4\n"
      "dimension m from 1 to 9 by 1 at 3\n"
      "input %0: float32[2, n] cpu:0\n"
      "input %1: float32[m, n] cpu:0\n"
      "return %0, %1\n");
  tenon_graph_site sites[4] = {};
  ASSERT_EQ(graph->program_sites(program.get(), sites, 4), 3u);
  const auto is = [](const tenon_graph_site& site, uint32_t input, uint32_t axis, uint32_t of) {
    return site.input == input && site.axis == axis && site.dimension == of;
  };
  EXPECT_TRUE(is(sites[0], 0, 1, 0));
  EXPECT_TRUE(is(sites[1], 1, 0, 1));
  EXPECT_TRUE(is(sites[2], 1, 1, 0));
  sites[1] = {.input = 9, .axis = 9, .dimension = 9};
  EXPECT_EQ(graph->program_sites(program.get(), sites, 1), 3u);  // no more than there is room for
  EXPECT_TRUE(is(sites[1], 9, 9, 9));
  const Tensor x = tensor({2}, {1, 2}), w = tensor({2}, {3, 4});
  EXPECT_EQ(graph->program_sites(adds_to_a_leaf(x, w).get(), nullptr, 0), 0u);
}

TEST(Prepare, MakesAPlan) {
  const Tensor x = tensor({2}, {1, 2}), w = tensor({2}, {3, 4});
  const Program program = adds_to_a_leaf(x, w);
  const ErrorSink err;
  err.check(graph->program_prepare(program.get(), err));
  EXPECT_EQ(values(w), (std::vector<float>{4, 6}));  // as the recording left it: nothing has run
  EXPECT_EQ(values(run(program, {x})[0]), (std::vector<float>{6, 10}));
}

}  // namespace
}  // namespace tenon::test

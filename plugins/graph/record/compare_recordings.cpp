// SPDX-License-Identifier: Apache-2.0
#include "record/compare_recordings.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_set>

#include "ir/verify.hpp"
#include "support/host.hpp"
#include "text/text.hpp"

namespace tenon::graph {
namespace {

// "tenon::adam_update(..., step=2)"
bool is_optimizer_step(const std::string& what) {
  return what.find("_update(") != what.npos && what.find("step=") != what.npos;
}

[[noreturn]] void fail_different(const std::string& what) {
  throw Error(TENON_FAILED_PRECONDITION,
              "export: the function does something else when it is called again: " + what +
                  ". What changes from call to call has to be a tensor: an input, or one that the "
                  "function writes into" +
                  (is_optimizer_step(what) ? "; Adam and AdamW count their steps in one with "
                                             "capturable=True"
                                           : ""));
}

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return line;
}

// The first step at which the programs differ, in words.
[[noreturn]] void fail_at_difference(const Program& first, const Program& second) {
  const std::string texts[] = {program_text(first), program_text(second)},
                    bare[] = {program_text(first, false), program_text(second, false)};
  std::string_view a = bare[0], b = bare[1], full_a = texts[0], full_b = texts[1];
  for (;;) {
    const std::string_view line_a = take_line(a), line_b = take_line(b);
    const std::string_view shown_a = take_line(full_a), shown_b = take_line(full_b);
    if (line_a != line_b)
      fail_different("first\n    " + std::string(shown_a) + "\n  and then\n    " +
                     std::string(shown_b) + "\n ");
    if (a.empty() && b.empty()) fail_different("more or fewer steps");
  }
}

// The same as text without locations, told without making the texts. False where that is not certain.
bool is_same(const Graph& a, const Graph& b);

bool is_same(const Leaf& a, const Leaf& b) {
  return a.value == b.value && a.is_constant == b.is_constant && a.name == b.name;
}
bool is_same(const GradUpdate& a, const GradUpdate& b) {
  return a.tensor == b.tensor && a.grad == b.grad && a.from_none == b.from_none;
}
bool is_same(const Step& a, const Step& b) {
  auto are_same = [](const Graph& x, const Graph& y) { return is_same(x, y); };
  return a.kind == b.kind && a.op == b.op && a.schema_hash == b.schema_hash && a.name == b.name &&
         a.is_recorded == b.is_recorded && a.given == b.given && a.results == b.results &&
         a.operands == b.operands && a.offset == b.offset && a.strides == b.strides &&
         a.base_strides == b.base_strides && a.carried == b.carried && a.scanned == b.scanned &&
         std::equal(a.regions.begin(), a.regions.end(), b.regions.begin(), b.regions.end(),
                    are_same);
}

template <class List>
bool are_same(const List& a, const List& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return is_same(x, y); });
}

bool is_same(const Graph& a, const Graph& b) {
  return a.values == b.values && a.inputs == b.inputs && a.results == b.results &&
         are_same(a.leaves, b.leaves) && are_same(a.steps, b.steps) && are_same(a.grads, b.grads);
}

bool is_same(const Program& a, const Program& b) {
  if (a.is_detached == b.is_detached && a.needs_disjoint_inputs == b.needs_disjoint_inputs &&
      !a.dimensions && !b.dimensions && is_same(a.graph, b.graph))
    return true;
  return program_text(a, false) == program_text(b, false);
}

const Tensor& contents(const Leaf& leaf) { return leaf.original ? leaf.original : leaf.tensor; }

}  // namespace

bool is_same_memory(const tenon_tensor& a, const tenon_tensor& b) {
  return a.data == b.data && a.byte_offset == b.byte_offset && a.numel > 0 && a.device == b.device;
}

bool has_same_bytes(const Tensor& a, const Tensor& b) {
  if (a->device == TENON_DEVICE_META || a->numel == 0) return true;
  const Tensor here = on_host(a), there = on_host(b);
  const auto bytes = static_cast<size_t>(a->numel) * host->dtype_size(a->dtype);
  return std::memcmp(here->data, there->data, bytes) == 0;
}

ProgramPtr copy_program(const Program& program) {
  ProgramPtr copy(new Program);
  copy->graph = program.graph;
  copy->is_detached = program.is_detached;
  copy->refuses_gradients = program.refuses_gradients;
  copy->changes = program.changes;
  copy->needs_disjoint_inputs = program.needs_disjoint_inputs;
  copy->is_verified = program.is_verified;
  return copy;
}

ProgramPtr compare_recordings(const Program& first, const Program& second) {
  if (!is_same(first, second)) fail_at_difference(first, second);
  ProgramPtr program(new Program);
  program->graph = second.graph;
  program->is_detached = second.is_detached;
  program->refuses_gradients = second.refuses_gradients;
  std::unordered_set<const void*> made;
  for (const Tensor& tensor : first.made)
    if (tensor->numel) made.insert(host->tensor_storage(tensor.get()));
  for (size_t i = 0; i < program->graph.leaves.size(); ++i) {
    Leaf& leaf = program->graph.leaves[i];
    const Leaf& before = first.graph.leaves[i];
    if (!is_same_memory(*leaf.tensor.get(), *before.tensor.get())) {
      if (made.contains(host->tensor_storage(leaf.tensor.get())))
        throw Error(TENON_FAILED_PRECONDITION,
                    "export: the function keeps a tensor " +
                        type_text(type_of(*leaf.tensor.get())) +
                        " that it made, and uses it when it is called again; a program cannot "
                        "assign Python's variables: write into a tensor, as in "
                        "tenon.add(state, x, out=state)");
      // Made anew in each call: data that the function holds, or that Python computed.
      if (!has_same_bytes(contents(leaf), contents(before)))
        fail_different("it makes a tensor " + type_text(type_of(*leaf.tensor.get())) +
                       " with other elements");
      leaf.is_constant = true;
      leaf.grad = {};
      leaf.tensor = copy_of(contents(leaf));
    }
    leaf.original = {};
  }
  for (const HostRead& read : second.host_reads)
    for (const Leaf& leaf : program->graph.leaves)
      if (leaf.value == read.leaf && !leaf.is_constant) throw Error(TENON_UNSUPPORTED, read.text);
  verify(program->graph);
  return program;
}

}  // namespace tenon::graph

// SPDX-License-Identifier: Apache-2.0
#include "settle.hpp"

#include <tenon/error.hpp>

#include <cstring>
#include <string_view>
#include <unordered_set>

#include "support.hpp"
#include "text.hpp"

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
  copy->needs_inputs_apart = program.needs_inputs_apart;
  copy->plan.build(copy->graph);
  return copy;
}

ProgramPtr settle(const Program& first, const Program& second) {
  if (program_text(first, false) != program_text(second, false)) fail_at_difference(first, second);
  ProgramPtr settled(new Program);
  settled->graph = second.graph;
  settled->is_detached = second.is_detached;
  settled->refuses_gradients = second.refuses_gradients;
  std::unordered_set<const void*> made;
  for (const Tensor& tensor : first.made)
    if (tensor->numel) made.insert(host->tensor_storage(tensor.get()));
  for (size_t i = 0; i < settled->graph.leaves.size(); ++i) {
    Leaf& leaf = settled->graph.leaves[i];
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
  settled->plan.build(settled->graph);
  return settled;
}

}  // namespace tenon::graph

// SPDX-License-Identifier: Apache-2.0
// Steps of a program that run together instead of one by one: what the executor knows of them,
// however they do it.
//
// Each kind of group has a function `find`, which groups/find_groups.cpp lists.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.hpp"

namespace tenon::graph {

// By value, the program's own data that no step changes.
using Constants = std::unordered_map<ValueId, tenon_tensor*>;

// What finding groups has to know of a program.
struct GroupContext {
  const Graph& graph;
  // Is the value read after the step, or when all have run?
  std::function<bool(ValueId value, uint32_t step)> is_needed_after;
  Constants constants;
};

class Group {
 public:
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // Its steps are begin, ..., end - 1.
  uint32_t begin() const { return begin_; }
  uint32_t end() const { return end_; }
  // Is the result of one of its steps a tensor that others need?
  virtual bool makes_tensor(ValueId value) const = 0;

  enum class Outcome : uint8_t {
    kDone,      // `values` has received owned tensors for the results that others need
    kDeclined,  // nothing was done: the steps have to run one by one
    kBroken,    // a kernel failed when another one had written in place
  };
  // Runs all steps on `values`, by value of the program. Any thread.
  virtual Outcome run(std::vector<tenon_tensor*>& values) const = 0;

  // Where `values` has a tensor for a result already, does `run` write into that?
  virtual bool writes_into_given_results() const { return false; }

  // False: its steps run one by one, at least as long as plugins and layers stay as they are.
  virtual bool runs_as_one() const { return true; }
  // A line without its end: which steps run how, or why they run one by one.
  virtual std::string describe() const = 0;
  // Who has claimed the steps ("cpu:0"), or ""; `problem` receives why kernels run them all the same.
  virtual std::string claimer(std::string* /*problem*/) const { return ""; }

  // A look at a run in which the steps run one by one, from before the first one until all have
  // run.
  class Observation {
   public:
    virtual ~Observation() = default;
    virtual void finish(const std::vector<tenon_tensor*>& values) = 0;
  };
  // NULL: the group has nothing to learn from it.
  virtual std::unique_ptr<Observation> observe(const std::vector<tenon_tensor*>& /*values*/) const {
    return nullptr;
  }

 protected:
  Group(const Graph& graph, uint32_t begin, uint32_t end)
      : graph_(&graph), begin_(begin), end_(end) {}
  std::string steps_text() const;  // "steps 3 to 7"

  const Graph* graph_;
  uint32_t begin_, end_;
};
using GroupPtr = std::unique_ptr<Group>;

}  // namespace tenon::graph

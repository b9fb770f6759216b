// SPDX-License-Identifier: Apache-2.0
// A program: values in SSA form, and the steps that make them. An operation is an operator of the
// host's table; a few structural steps stand beside it.
//
// Memory is explicit: a step may write into a value that exists (`out=`, in place), and values may
// share memory as tensors do. Steps run in order, so that both mean what they meant when the
// program was recorded.
#pragma once

#include <tenon/tensor.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/interned_text.hpp"
#include "support/small_vector.hpp"

namespace tenon::graph {

class Claimer;

using ValueId = uint32_t;
inline constexpr ValueId kNoValueId = ~ValueId{0};

// An integer for each axis: a shape, or strides.
using Axes = SmallVector<int64_t, 4>;

struct Type {
  int32_t dtype = TENON_DTYPE_F32;
  tenon_device_id device = TENON_DEVICE_META;
  Axes shape;
  bool operator==(const Type&) const = default;
};
Type type_of(const tenon_tensor& tensor);
int64_t element_count(const Type& type);
int64_t byte_count(const Type& type);
std::string type_text(const Type& type);  // "float32[2, 3] cpu:0"
std::string device_text(tenon_device_id device);

// An owned copy of a tenon_value that holds no tensor. Lists and texts never change, and copies
// share them.
class Attribute {
 public:
  Attribute() = default;
  // Throws Error for values that a program cannot hold.
  explicit Attribute(const tenon_value& value);

  int32_t tag() const { return value_.tag; }
  tenon_value value() const { return value_; }    // borrowed from this object
  bool operator==(const Attribute& other) const;  // bit for bit, so that NaN equals NaN

 private:
  size_t shared_bytes() const;

  tenon_value value_ = kNoValue;  // lists and texts lie in `shared_`
  std::shared_ptr<const int64_t[]> shared_;
};

// What a step is given for one parameter.
struct Operand {
  enum Kind : uint8_t { kAttribute, kValue, kList };
  Kind kind = kAttribute;
  ValueId value = kNoValueId;  // kValue
  std::vector<ValueId> list;   // kList
  Attribute attribute;         // kAttribute; no value: the argument is absent
  bool operator==(const Operand&) const = default;

  static Operand of(ValueId value) { return {kValue, value, {}, {}}; }
  static Operand of(Attribute attribute) {
    return {kAttribute, kNoValueId, {}, std::move(attribute)};
  }
};

struct Location {
  InternedText file;
  int32_t line = 0;  // 0: unknown
};

enum class StepKind : uint8_t {
  kCall,    // an operator
  kView,    // a window on the memory of a value, by strides
  kDetach,  // the same elements without a history of gradients
  kCond,    // operands: predicate, then what both regions get
  kWhile,   // operands: the carried values, then the others; regions: condition, body
  kScan,    // operands: the carried values, the scanned ones, then the others; region: body
};

struct Graph;

struct Step {
  StepKind kind = StepKind::kCall;
  bool is_recorded = true;       // kCall: gradients were on
  bool copies_dense = false;     // kCall: a dense copy of a tensor that was dense already
  const tenon_op* op = nullptr;  // kCall
  uint64_t schema_hash = 0;      // kCall
  InternedText name;  // kCall: "tenon::add"; the operator may be unloaded, its name stays
  std::vector<Operand> operands;
  SmallVector<ValueId, 2> results;
  uint32_t given = 0;  // bit i: results[i] existed, and the step writes into it
  // kView: elements between the first one of the base and of the view, and the layouts of both.
  int64_t offset = 0;
  std::vector<int64_t> strides, base_strides;
  uint32_t carried = 0, scanned = 0;  // kWhile, kScan
  std::vector<Graph> regions;
  Location location;
  // While the step's recording goes on: a number for the location (record/sources.hpp). 0: none.
  uint32_t source = 0;
};

// A tensor from outside: a weight, or data that the recorded function made itself.
struct Leaf {
  ValueId value = kNoValueId;
  Tensor tensor;
  std::string name;          // "" if it has none
  bool is_constant = false;  // the program's own data, the same at the begin of every run
  Tensor original;           // what it held before the recorded function wrote into it, if that did
  Tensor grad;  // if set: its .grad has to be this tensor still, which the program adds to
};

// What a run does to .grad of an input or a leaf, when all steps have run.
struct GradUpdate {
  ValueId tensor = kNoValueId;
  ValueId grad = kNoValueId;  // kNoValueId: none
  bool from_none = false;     // it has to be none when the run begins: the program would add to it
};

// The program as a whole, or a region of a structural step. Regions see their inputs alone.
struct Graph {
  std::vector<Type> values;  // by ValueId
  std::vector<ValueId> inputs;
  std::vector<Leaf> leaves;  // of the whole program only
  std::vector<Step> steps;
  std::vector<GradUpdate> grads;  // of the whole program only
  std::vector<ValueId> results;
  // Of the whole program only: one for each input and result, "" where it has none; or nothing at all.
  std::vector<std::string> input_names, result_names;
  // How far results may be from those of the steps' own kernels: TENON_GRAPH_EXACT, ...
  int32_t numerics = 0;
  // Who is offered its steps before devices are, in this order.
  std::vector<std::shared_ptr<const Claimer>> claimers;

  ValueId add_value(Type type) {
    values.push_back(std::move(type));
    return static_cast<ValueId>(values.size() - 1);
  }
};

// "tenon::add", "view", "cond".
const char* step_name(const Step& step);
// "`tenon::add` at train.py:12".
std::string step_text(const Step& step);
std::string location_text(const Location& location);  // "train.py:12", or ""
// "tenon::add(float32[2] cpu:0, float32[2] cpu:0)"; for messages.
std::string call_text(const Graph& graph, const Step& step);

template <class Visit>
void for_each_operand(const Step& step, Visit&& visit) {
  for (const Operand& operand : step.operands) {
    if (operand.kind == Operand::kValue) visit(operand.value);
    if (operand.kind == Operand::kList)
      for (ValueId value : operand.list) visit(value);
  }
}

// Does it, or a step of its regions, draw random numbers?
bool is_random(const Step& step);

// Values that are live when all steps have run: others see them.
template <class Visit>
void for_each_live_out(const Graph& graph, Visit&& visit) {
  for (ValueId value : graph.results) visit(value);
  for (const GradUpdate& update : graph.grads) {
    visit(update.tensor);
    if (update.grad != kNoValueId) visit(update.grad);
  }
}

// Of the graph and of all regions in it.
void set_numerics(Graph& graph, int32_t numerics);
void set_claimers(Graph& graph, const std::vector<std::shared_ptr<const Claimer>>& claimers);

// Operands of the step, and values that are live at the end of the program: each becomes by[it].
void replace_operands(Step& step, const std::vector<ValueId>& by);
void replace_live_outs(Graph& graph, const std::vector<ValueId>& by);

// Steps that read or write `value` do so with `by`, and the program returns it.
void replace_value(Graph& graph, ValueId value, ValueId by);

inline bool is_given(const Step& step, size_t result) {
  return result < 32 && step.given >> result & 1;
}

}  // namespace tenon::graph

// SPDX-License-Identifier: Apache-2.0
// If, Loop, Scan, SequenceMap. What is known when the model is imported is chosen and written out: a branch, rounds one after
// another. What depends on the inputs is a cond, while or scan step of the program.
#include <algorithm>
#include <limits>
#include <optional>

#include "convert/converters.hpp"
#include "convert/region.hpp"

namespace tenon::onnx {
namespace {

constexpr size_t kMaxRounds = size_t{1} << 16;
// Of a Loop whose number of rounds is known: up to so many are written out, and more, up to the other number, are a step
// if they can be.
constexpr int64_t kMaxWritten = 32, kMaxCounted = int64_t{1} << 24;

void count_round(Conversion& c, const std::vector<Values>& rounds) {
  if (rounds.size() >= kMaxRounds)
    c.refuse("more than " + std::to_string(kMaxRounds) +
             " rounds, which are written out one after another");
}

Values list_from(const Values& list, size_t begin) {
  return Values(list.begin() + static_cast<ptrdiff_t>(std::min(begin, list.size())), list.end());
}

Values list_to(const Values& list, size_t end) {
  return Values(list.begin(), list.begin() + static_cast<ptrdiff_t>(std::min(end, list.size())));
}

bool depends_on_inputs(const Value& value) {
  const Tensor* tensor = value.get<Tensor>();
  return tensor && !is_known(*tensor);
}

bool are_tensors(const Values& values) {
  return std::all_of(values.begin(), values.end(),
                     [](const Value& value) { return value.is_tensor(); });
}

bool are_known(const Values& values) {
  return std::none_of(values.begin(), values.end(), depends_on_inputs);
}

Tensor stacked(Conversion& c, const std::vector<Values>& rounds, size_t index, int64_t axis,
               bool is_reversed) {
  Values pieces;
  for (const Values& round : rounds) pieces.push_back(round.at(index));
  if (is_reversed) std::reverse(pieces.begin(), pieces.end());
  if (pieces.empty()) c.refuse("results of no round, whose sizes nothing says");
  return c.call("stack", {pieces, axis});
}

void append(Values& values, const std::vector<Tensor>& tensors) {
  values.insert(values.end(), tensors.begin(), tensors.end());
}

// Values that go from round to round have one type; steps have no others.
void check_carried(Conversion& c, const Values& before, const Values& after) {
  if (!have_same_types(before, after))
    c.refuse(
        "expected a body that keeps the dtypes and shapes of what goes from round to round, as "
        "its rounds are a step of the program; it is given " +
        types_text(before) + " and makes " + types_text(after));
}

// A result of one branch: lists that are as long in both are taken apart.
void flatten(const Value& value, Values& flat) {
  if (const Values* list = value.get<Values>())
    for (const Value& item : *list) flatten(item, flat);
  else
    flat.push_back(value);
}

Value unflatten(const Value& like, const Values& flat, size_t& at) {
  const Values* list = like.get<Values>();
  if (!list) return flat.at(at++);
  Values items;
  for (const Value& item : *list) items.push_back(unflatten(item, flat, at));
  return items;
}

Values branch_step(Conversion& c) {
  const Graph* graphs[] = {&c.graph("then_branch"), &c.graph("else_branch")};
  const Captures captures({graphs[0], graphs[1]}, c.scope);
  Values predicate{truth_of(c, c.input("cond"), "cond")}, results[2], flat[2];
  append(predicate, captures.operands());
  OwnedProgram regions[2];
  for (int side = 0; side < 2; ++side) {
    Region region(c);
    region.capture(captures);
    results[side] = region.run(*graphs[side], {});
    for (const Value& result : results[side]) flatten(result, flat[side]);
    if (are_tensors(flat[side])) regions[side] = region.finish(flat[side]);
  }
  if (!regions[0] || !regions[1] || !have_same_types(flat[0], flat[1]))
    c.refuse(
        "expected branches with results of one dtype and shape, as `cond` depends on the "
        "inputs; then_branch makes " +
        types_text(flat[0]) + ", else_branch " + types_text(flat[1]) +
        ". A condition that is known when the model is loaded chooses one: fix what it follows "
        "from by values={...}");
  const Values made = c.importer.steps().control(
      TENON_GRAPH_STEP_COND, predicate, 0, 0, {regions[0].get(), regions[1].get()}, flat[0].size());
  Values lists;
  size_t at = 0;
  for (const Value& result : results[0]) lists.push_back(unflatten(result, made, at));
  return lists;
}

// What Loop is given.
struct Rounds {
  const Graph& body;
  Value trips, goes_on;  // none: no limit, true
  Values carried;
  size_t scans() const { return body.outputs.size() - 1 - carried.size(); }
};

// From round `first` on, as a step that ends by its data.
Values while_step(Conversion& c, const Rounds& loop, int64_t first) {
  if (loop.scans() > 0)
    c.refuse(
        "its number of rounds depends on the inputs, and with it the size of a result; expected "
        "`M` "
        "and `cond` to be known when the model is loaded: fix them by values={...}");
  if (!are_tensors(loop.carried))
    c.refuse(
        "its number of rounds depends on the inputs, so that tensors alone go from round to round, "
        "got " +
        types_text(loop.carried) +
        "; expected `M` and `cond` to be known when the model is loaded: fix them by values={...}");
  Captures captures({&loop.body}, c.scope);
  const bool has_limit = !loop.trips.is_none();
  if (has_limit) captures.add(loop.trips);
  Values carried{known_int(first),
                 loop.goes_on.is_tensor() ? truth_of(c, loop.goes_on, "cond") : known_truth(true)};
  carried.insert(carried.end(), loop.carried.begin(), loop.carried.end());
  const auto add_inputs = [&](Region& region) {
    Values inputs;
    for (const Value& value : carried) inputs.emplace_back(region.input(value.tensor("a value")));
    region.capture(captures);
    return inputs;
  };
  OwnedProgram regions[2];
  {
    Region region(c);
    const Values inputs = add_inputs(region);
    Value goes_on = inputs[1];
    if (has_limit) {
      const Tensor limit = c.call("reshape", {region.inside(loop.trips), Ints{}});
      goes_on = c.call("logical_and", {goes_on, c.call("less", {inputs[0], limit})});
    }
    regions[0] = region.finish({goes_on});
  }
  {
    Region region(c);
    const Values inputs = add_inputs(region);
    Values results = region.run(loop.body, inputs);
    check_carried(c, loop.carried, list_from(results, 1));
    results[0] = truth_of(c, results[0], "cond of the body");
    results.insert(results.begin(), c.call("add", {inputs[0], known_int(1)}));
    regions[1] = region.finish(results);
  }
  Values operands = carried;
  append(operands, captures.operands());
  const Values made =
      c.importer.steps().control(TENON_GRAPH_STEP_WHILE, operands, carried.size(), 0,
                                 {regions[0].get(), regions[1].get()}, carried.size());
  return list_from(made, 2);
}

// A known number of rounds whose condition holds always; nothing where a round is another than the first.
std::optional<Values> counted_step(Conversion& c, const Rounds& loop, int64_t count) {
  if (!are_tensors(loop.carried) || count > kMaxCounted) return std::nullopt;
  try {
    const Captures captures({&loop.body}, c.scope);
    const Tensor indices = c.call("arange", {0, count, 1, Dtype{TENON_DTYPE_I64}});
    OwnedProgram body;
    size_t made = 0;
    {
      Region region(c);
      Values inputs;
      for (const Value& value : loop.carried)
        inputs.emplace_back(region.input(value.tensor("a value")));
      const Tensor index = region.element_input(indices);
      region.capture(captures);
      inputs.insert(inputs.begin(), {index, known_truth(true)});
      const Values results = region.run(loop.body, inputs);
      if (depends_on_inputs(results[0]) || !bool_of(results[0], "cond")) return std::nullopt;
      check_carried(c, loop.carried, list_to(list_from(results, 1), loop.carried.size()));
      made = results.size() - 1;
      body = region.finish(list_from(results, 1));
    }
    Values operands = loop.carried;
    operands.emplace_back(indices);
    append(operands, captures.operands());
    return c.importer.steps().control(TENON_GRAPH_STEP_SCAN, operands, loop.carried.size(), 1,
                                      {body.get()}, made);
  } catch (const Error& error) {
    if (error.code() != TENON_UNSUPPORTED) throw;
    return std::nullopt;  // what a round does depends on its number
  }
}

// What Scan is given, with the axes of its scans first and in the order of the rounds.
struct Scanned {
  const Graph& body;
  Values states, inputs;
  int64_t length;
};

std::optional<Values> scan_step(Conversion& c, const Scanned& scan) {
  if (!are_tensors(scan.states) || are_known(scan.inputs)) return std::nullopt;
  try {
    const Captures captures({&scan.body}, c.scope);
    OwnedProgram body;
    {
      Region region(c);
      Values inputs;
      for (const Value& value : scan.states)
        inputs.emplace_back(region.input(value.tensor("a state")));
      for (const Value& value : scan.inputs)
        inputs.emplace_back(region.element_input(value.tensor("a scan input")));
      region.capture(captures);
      const Values results = region.run(scan.body, inputs);
      check_carried(c, scan.states, list_to(results, scan.states.size()));
      body = region.finish(results);
    }
    Values operands = scan.states;
    operands.insert(operands.end(), scan.inputs.begin(), scan.inputs.end());
    append(operands, captures.operands());
    return c.importer.steps().control(TENON_GRAPH_STEP_SCAN, operands, scan.states.size(),
                                      scan.inputs.size(), {body.get()}, scan.body.outputs.size());
  } catch (const Error& error) {
    if (error.code() != TENON_UNSUPPORTED) throw;
    return std::nullopt;
  }
}

Values scan_rounds(Conversion& c, const Scanned& scan) {
  Values carried = scan.states;
  std::vector<Values> rounds;
  for (int64_t i = 0; i < scan.length; ++i) {
    count_round(c, rounds);
    Values given = carried;
    for (const Value& input : scan.inputs) given.emplace_back(c.call("select", {input, 0, i}));
    const Values results = c.importer.run_graph(scan.body, c.scope, given);
    carried = list_to(results, scan.states.size());
    rounds.push_back(list_from(results, scan.states.size()));
  }
  for (size_t k = 0; k + scan.states.size() < scan.body.outputs.size(); ++k)
    carried.emplace_back(stacked(c, rounds, k, 0, false));
  return carried;
}

}  // namespace

Values convert_if(Conversion& c) {
  if (depends_on_inputs(c.input("cond"))) return branch_step(c);
  const bool is_taken = bool_of(c.input("cond"), "cond");
  return c.importer.run_graph(c.graph(is_taken ? "then_branch" : "else_branch"), c.scope, {});
}

Values convert_loop(Conversion& c) {
  const Value none;
  Rounds loop{c.graph("body"), c.inputs().empty() ? none : c.inputs()[0],
              c.inputs().size() > 1 ? c.inputs()[1] : none, list_from(c.inputs(), 2)};
  const size_t states = loop.carried.size();
  if (loop.body.outputs.size() < states + 1 || loop.body.inputs.size() != states + 2)
    c.fail("body: expected " + std::to_string(states + 2) + " inputs and at least " +
           std::to_string(states + 1) + " results");
  if (depends_on_inputs(loop.trips) || depends_on_inputs(loop.goes_on))
    return while_step(c, loop, 0);
  const int64_t count =
      loop.trips.is_none() ? std::numeric_limits<int64_t>::max() : int_of(loop.trips, "M");
  const bool begins = loop.goes_on.is_none() || bool_of(loop.goes_on, "cond");
  if (begins && !loop.trips.is_none() && count > kMaxWritten)
    if (std::optional<Values> made = counted_step(c, loop, count)) return *made;
  std::vector<Values> rounds;
  for (int64_t i = 0; i < count; ++i) {
    if (depends_on_inputs(loop.goes_on)) return while_step(c, loop, i);
    if (!loop.goes_on.is_none() && !bool_of(loop.goes_on, "cond")) break;
    count_round(c, rounds);
    Values inputs{known_int(i), loop.goes_on.is_tensor() ? loop.goes_on : known_truth(true)};
    inputs.insert(inputs.end(), loop.carried.begin(), loop.carried.end());
    const Values results = c.importer.run_graph(loop.body, c.scope, inputs);
    loop.goes_on = results[0];
    loop.carried = list_to(list_from(results, 1), states);
    rounds.push_back(list_from(results, 1 + states));
  }
  Values results = loop.carried;
  for (size_t k = 0; k < loop.scans(); ++k) results.emplace_back(stacked(c, rounds, k, 0, false));
  return results;
}

Values convert_scan(Conversion& c) {
  Scanned scan{c.graph("body"), {}, {}, -1};
  const auto scans = static_cast<size_t>(std::max<int64_t>(c.integer("num_scan_inputs"), 0));
  if (scans == 0 || scans > c.inputs().size())
    c.fail("attribute `num_scan_inputs`: expected 1 to " + std::to_string(c.inputs().size()));
  const size_t states = c.inputs().size() - scans;
  if (scan.body.outputs.size() < states) c.fail("body: expected a result for each state");
  const size_t results_count = scan.body.outputs.size() - states;
  const Ints axes = c.integers("scan_input_axes", Ints(scans, 0)),
             directions = c.integers("scan_input_directions", Ints(scans, 0)),
             result_axes = c.integers("scan_output_axes", Ints(results_count, 0)),
             result_directions = c.integers("scan_output_directions", Ints(results_count, 0));
  if (axes.size() != scans || directions.size() != scans || result_axes.size() != results_count ||
      result_directions.size() != results_count)
    c.fail("expected an axis and a direction for each scan");
  scan.states = list_to(c.inputs(), states);
  for (size_t k = 0; k < scans; ++k) {
    Tensor x = c.inputs()[states + k].tensor("scan input");
    const int64_t axis = normal_axis(axes[k], x->ndim, "scan_input_axes"), size = x->shape[axis];
    if (scan.length >= 0 && size != scan.length) c.fail("expected scans of one length");
    scan.length = size;
    if (axis != 0) x = c.call("movedim", {x, Ints{axis}, Ints{0}});
    if (directions[k] != 0) x = c.call("flip", {x, Ints{0}});
    scan.inputs.emplace_back(x);
  }
  const std::optional<Values> step = scan_step(c, scan);
  Values results = step ? *step : scan_rounds(c, scan);
  for (size_t k = 0; k < results_count; ++k) {
    Tensor made = results[states + k].tensor("scan result");
    if (result_directions[k] != 0) made = c.call("flip", {made, Ints{0}});
    const int64_t axis = normal_axis(result_axes[k], made->ndim, "scan_output_axes");
    if (axis != 0) made = c.call("movedim", {made, Ints{0}, Ints{axis}});
    results[states + k] = made;
  }
  return results;
}

Values convert_sequence_map(Conversion& c) {
  const Graph& body = c.graph("body");
  const Values* sequence = c.inputs().at(0).get<Values>();
  if (!sequence) c.fail("expected a sequence, got " + c.inputs()[0].describe());
  std::vector<Values> results(body.outputs.size());
  for (size_t i = 0; i < sequence->size(); ++i) {
    Values given{(*sequence)[i]};
    for (size_t k = 1; k < c.inputs().size(); ++k) {
      const Values* list = c.inputs()[k].get<Values>();
      if (list && i >= list->size()) c.fail("expected sequences of one length");
      given.push_back(list ? (*list)[i] : c.inputs()[k]);
    }
    const Values made = c.importer.run_graph(body, c.scope, given);
    for (size_t k = 0; k < made.size(); ++k) results[k].push_back(made[k]);
  }
  Values lists;
  for (Values& list : results) lists.emplace_back(std::move(list));
  return lists;
}

}  // namespace tenon::onnx

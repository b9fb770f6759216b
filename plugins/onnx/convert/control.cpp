// SPDX-License-Identifier: Apache-2.0
// If, Loop, Scan, SequenceMap where what they do is known when the model is imported: a branch is chosen, and rounds are
// written out one after another.
#include <algorithm>
#include <limits>

#include "convert/converters.hpp"
#include "importer.hpp"

namespace tenon::onnx {
namespace {

constexpr size_t kMaxRounds = size_t{1} << 16;

void count_round(Conversion& c, const std::vector<Values>& rounds) {
  if (rounds.size() >= kMaxRounds)
    c.refuse("more than " + std::to_string(kMaxRounds) +
             " rounds, which are written out one after another");
}

Values list_from(const Values& list, size_t begin) {
  return Values(list.begin() + static_cast<ptrdiff_t>(std::min(begin, list.size())), list.end());
}

void need_known(Conversion& c, const Value& value, const std::string& name) {
  const Tensor* tensor = value.get<Tensor>();
  if (tensor && !is_known(*tensor))
    c.refuse("expected `" + name +
             "` to be known when the model is loaded, got one that depends on the inputs; fix it "
             "by values={...}");
}

Tensor stacked(Conversion& c, const std::vector<Values>& rounds, size_t index, int64_t axis,
               bool is_reversed) {
  Values pieces;
  for (const Values& round : rounds) pieces.push_back(round.at(index));
  if (is_reversed) std::reverse(pieces.begin(), pieces.end());
  if (pieces.empty()) c.refuse("results of no round, whose sizes nothing says");
  return c.call("stack", {pieces, axis});
}

}  // namespace

Values convert_if(Conversion& c) {
  need_known(c, c.input("cond"), "cond");
  const bool is_taken = bool_of(c.input("cond"), "cond");
  return c.importer.run_graph(c.graph(is_taken ? "then_branch" : "else_branch"), c.scope, {});
}

Values convert_loop(Conversion& c) {
  const Graph& body = c.graph("body");
  const Value trips = c.inputs().empty() ? Value() : c.inputs()[0],
              first = c.inputs().size() > 1 ? c.inputs()[1] : Value();
  need_known(c, trips, "M");
  need_known(c, first, "cond");
  const int64_t count = trips.is_none() ? std::numeric_limits<int64_t>::max() : int_of(trips, "M");
  Values carried = list_from(c.inputs(), 2);
  const size_t states = carried.size();
  if (body.outputs.size() < states + 1 || body.inputs.size() != states + 2)
    c.fail("body: expected " + std::to_string(states + 2) + " inputs and at least " +
           std::to_string(states + 1) + " results");
  Value goes_on = first.is_none() ? Value(true) : first;
  std::vector<Values> rounds;
  Tensor truth = make_known(TENON_DTYPE_BOOL, {});
  *static_cast<bool*>(truth->data) = true;
  for (int64_t i = 0; i < count && bool_of(goes_on, "cond"); ++i) {
    count_round(c, rounds);
    Values inputs{known_int(i), goes_on.is_tensor() ? goes_on : Value(truth)};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    Values results = c.importer.run_graph(body, c.scope, inputs);
    goes_on = results[0];
    need_known(c, goes_on, "cond of the body");
    carried.assign(results.begin() + 1, results.begin() + 1 + static_cast<ptrdiff_t>(states));
    rounds.push_back(list_from(results, 1 + states));
  }
  const size_t scans = body.outputs.size() - 1 - states;
  for (size_t k = 0; k < scans; ++k) carried.emplace_back(stacked(c, rounds, k, 0, false));
  return carried;
}

Values convert_scan(Conversion& c) {
  const Graph& body = c.graph("body");
  Values inputs = c.inputs();
  const auto scans = static_cast<size_t>(std::max<int64_t>(c.integer("num_scan_inputs"), 0));
  if (scans == 0 || scans > inputs.size())
    c.fail("attribute `num_scan_inputs`: expected 1 to " + std::to_string(inputs.size()));
  const size_t states = inputs.size() - scans;
  if (body.outputs.size() < states) c.fail("body: expected a result for each state");
  const size_t results_count = body.outputs.size() - states;
  const Ints axes = c.integers("scan_input_axes", Ints(scans, 0)),
             directions = c.integers("scan_input_directions", Ints(scans, 0)),
             result_axes = c.integers("scan_output_axes", Ints(results_count, 0)),
             result_directions = c.integers("scan_output_directions", Ints(results_count, 0));
  if (axes.size() != scans || directions.size() != scans || result_axes.size() != results_count ||
      result_directions.size() != results_count)
    c.fail("expected an axis and a direction for each scan");
  Values carried(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(states));
  int64_t length = -1;
  for (size_t k = 0; k < scans; ++k) {
    const Tensor& x = inputs[states + k].tensor("scan input");
    const int64_t size = x->shape[normal_axis(axes[k], x->ndim, "scan_input_axes")];
    if (length >= 0 && size != length) c.fail("expected scans of one length");
    length = size;
  }
  std::vector<Values> rounds;
  for (int64_t i = 0; i < length; ++i) {
    count_round(c, rounds);
    Values given = carried;
    for (size_t k = 0; k < scans; ++k)
      given.emplace_back(
          c.call("select", {inputs[states + k], axes[k], directions[k] != 0 ? length - 1 - i : i}));
    const Values results = c.importer.run_graph(body, c.scope, given);
    carried.assign(results.begin(), results.begin() + static_cast<ptrdiff_t>(states));
    rounds.push_back(list_from(results, states));
  }
  for (size_t k = 0; k < results_count; ++k)
    carried.emplace_back(stacked(c, rounds, k, result_axes[k], result_directions[k] != 0));
  return carried;
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

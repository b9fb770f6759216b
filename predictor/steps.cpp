// SPDX-License-Identifier: Apache-2.0
#include "steps.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <tuple>

#include "formats/json_fields.hpp"
#include "graph_service.hpp"

namespace tenon::predictor {
namespace {

// The first object of the list `kernels` of what the host explains: the kernel that is tried first.
std::string first_plugin(const std::string& json) {
  const size_t list = json.find("\"kernels\"");
  const size_t begin = list == json.npos ? list : json.find_first_of("{]", list);
  if (begin == json.npos || json[begin] == ']') return "";
  JsonFields kernel;
  const size_t end = json.find('}', begin);
  if (end == json.npos || !parse_json_fields({json.data() + begin, end + 1 - begin}, kernel))
    return "";
  return kernel.strings["plugin"];
}

// What runs an operator.
struct Runner {
  Route route = Route::kNone;
  std::string plugin;
};

// As the dispatcher decides for the step's device and dtype.
Runner runner_for(const tenon_graph_step& from) {
  std::string json;
  const ErrorSink err;
  err.check(host->op_explain(from.op, from.device, from.dtype, append_to_string, &json, err));
  JsonFields fields;
  if (!parse_json_fields(json, fields))
    throw Error(TENON_INTERNAL,
                std::string("explain: the host's answer for ") + from.name + " is no JSON");
  const std::string& route = fields.strings["route"];
  if (route == "native") {
    const std::string& otherwise = fields.strings["if_all_decline"];
    return {otherwise == "host" || otherwise == "none" ? Route::kMayDecline : Route::kKernel,
            first_plugin(json)};
  }
  if (route == "lowered") return {Route::kParts, ""};
  return {route == "host" || route == "none" ? Route::kHost : Route::kNone, ""};
}

// By operator, device and dtype: the host's answers take longer than anything else that loading does.
using Runners = std::map<std::tuple<const tenon_op*, tenon_device_id, int32_t>, Runner>;

void find_route(const tenon_graph_step& from, Runners& known, Step& step) {
  if (!from.op || host->op_def(from.op)->flags & TENON_OP_VIEW) return;
  const auto [at, is_new] = known.try_emplace({from.op, from.device, from.dtype});
  if (is_new) at->second = runner_for(from);
  step.route = at->second.route;
  step.plugin = at->second.plugin;
}

void for_each_claim(const tenon_graph_program* program,
                    const std::function<void(const tenon_graph_claim&)>& visit) {
  const ErrorSink err;
  err.check(graph_service().program_claims(
      program,
      [](void* user, const tenon_graph_claim* claim) {
        (*static_cast<const std::function<void(const tenon_graph_claim&)>*>(user))(*claim);
      },
      const_cast<void*>(static_cast<const void*>(&visit)), err));
}

std::string runner_of(const Step& step) {
  if (!step.claimer.empty()) return step.claimer;
  switch (step.route) {
    case Route::kKernel:
      return step.plugin;
    case Route::kMayDecline:
      return step.is_on_host ? step.plugin : step.plugin + ", or the host";
    case Route::kParts:
      return "its parts";
    case Route::kHost:
      return "the host";
    default:
      return "-";
  }
}

// Rows with columns as wide as their widest cell.
template <size_t columns>
std::string table(const std::vector<std::array<std::string, columns>>& rows) {
  std::array<size_t, columns> widths = {};
  for (const auto& row : rows)
    for (size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < columns; ++i)
      line += row[i] + std::string(i + 1 < columns ? widths[i] - row[i].size() + 2 : 0, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string Step::place() const { return file.empty() ? "" : file + ":" + std::to_string(line); }

std::string device_text(tenon_device_id device) {
  if (device == TENON_DEVICE_NONE) return "-";
  const char* kind = host->device_kind_name(TENON_DEVICE_KIND(device));
  return std::string(kind ? kind : "?") + ":" + std::to_string(TENON_DEVICE_INDEX(device));
}

std::vector<Step> steps_of(const tenon_graph_program* program) {
  std::vector<tenon_graph_step> raw;
  graph_service().program_each_step(
      program,
      [](void* user, const tenon_graph_step* step) {
        static_cast<std::vector<tenon_graph_step>*>(user)->push_back(*step);
      },
      &raw);
  std::vector<Step> steps;
  Runners runners;
  for (const tenon_graph_step& from : raw) {
    Step step;
    step.name = from.name;
    step.file = from.file;
    step.line = from.line;
    step.depth = from.depth;
    step.bytes = from.bytes;
    step.device = device_text(from.device);
    step.dtype = host->dtype_name(from.dtype);
    step.is_on_host = from.device == host->device_host();
    find_route(from, runners, step);
    steps.push_back(std::move(step));
  }
  return steps;
}

void find_claims(const tenon_graph_program* program, const std::set<std::string>& claimers,
                 std::vector<Step>& steps) {
  for_each_claim(program, [&](const tenon_graph_claim& claim) {
    if (*claim.problem || !claimers.contains(claim.claimer)) return;
    for (uint32_t i = claim.begin; i < claim.end; ++i) steps[i].claimer = claim.claimer;
  });
}

std::string claim_problems(const tenon_graph_program* program,
                           const std::set<std::string>& claimers) {
  std::string text;
  for_each_claim(program, [&](const tenon_graph_claim& claim) {
    if (claimers.contains(claim.claimer) && *claim.problem)
      text += "\n  steps " + std::to_string(claim.begin) + " to " + std::to_string(claim.end - 1) +
              ": " + claim.problem;
  });
  return text;
}

std::string bytes_text(uint64_t bytes) {
  if (bytes < 10240) return std::to_string(bytes) + " B";
  if (bytes < (uint64_t{10} << 20)) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes >> 20) + " MiB";
}

std::string explain(const tenon_graph_program* program, const std::vector<Step>& steps) {
  std::vector<std::array<std::string, 7>> rows = {
      {"step", "operator", "device", "dtype", "run by", "results", "source"}};
  size_t index = 0;
  for (const Step& step : steps)
    rows.push_back({step.depth == 0 ? std::to_string(index++) : "",
                    std::string(2 * static_cast<size_t>(step.depth), ' ') + step.name, step.device,
                    step.dtype, runner_of(step), step.bytes ? bytes_text(step.bytes) : "-",
                    step.place()});
  std::string text = table(rows);
  graph_service().program_plan(program, append_to_string, &text);
  tenon_graph_memory memory = {};
  memory.struct_size = sizeof memory;
  graph_service().program_memory(program, &memory);
  return text + "results take at most " + bytes_text(memory.planned) + " at once\n";
}

}  // namespace tenon::predictor

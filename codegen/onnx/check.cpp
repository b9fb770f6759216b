// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "expression/parser.hpp"
#include "onnx/onnx.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// Of schema.txt: the names that an expression may use.
struct Version {
  int64_t since = 0;
  std::set<std::string> names;
};
using Versions = std::map<std::string, std::vector<Version>>;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// "Conv 11 (X, W, B?) auto_pad:string="NOTSET" group:int=1 -> Y"
Versions versions_of(const std::vector<std::string>& schemas) {
  Versions versions;
  for (const std::string& line : schemas) {
    const size_t open = line.find('('), close = line.find(')'), end = line.find(" -> ");
    const size_t space = line.find(' ');
    Version version;
    version.since = std::stoll(line.substr(space + 1));
    const auto add_names = [&](const std::string& text, const char* ends) {
      for (size_t start = 0; start < text.size();) {
        size_t stop = start;
        while (stop < text.size() && is_letter(text[stop])) ++stop;
        if (stop > start && (!ends || (stop < text.size() && text[stop] == *ends)))
          version.names.insert(text.substr(start, stop - start));
        start = std::max(stop, start) + 1;
      }
    };
    add_names(line.substr(open + 1, close - open - 1), nullptr);
    add_names(line.substr(close + 1, end - close - 1), ":");
    versions[line.substr(0, space)].push_back(version);
  }
  return versions;
}

class OnnxChecker {
 public:
  OnnxChecker(const OnnxTable& table, const Package& package, std::vector<std::string>& errors)
      : table_(table), package_(package), errors_(errors), versions_(versions_of(table.schemas)) {
    for (const OnnxLine& line : table.lines) lines_[line.name].push_back(&line);
    for (const auto& op : package.operators)
      for (const OnnxLine& line : op->onnx) lines_[line.name].push_back(&line);
  }

  void run() {
    for (const auto& [name, lines] : lines_)
      for (const OnnxLine* line : lines) guarded([&] { check_line(*line); });
    for (const OnnxRefusal& refusal : table_.refusals) guarded([&] { check_refusal(refusal); });
    check_coverage();
  }

 private:
  template <class Check>
  void guarded(Check check) {
    try {
      check();
    } catch (const Error& error) {
      errors_.push_back(error.what());
    }
  }

  const std::vector<Version>& versions(const std::string& name, const Location& where) const {
    const auto found = versions_.find(name);
    if (found != versions_.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& entry : versions_) names.push_back(entry.first);
    throw Error(where, cat("`onnx`: ONNX has no operator `", name, "`", did_you_mean(name, names)));
  }

  bool is_refused(const std::string& name, int64_t since) const {
    return std::any_of(table_.refusals.begin(), table_.refusals.end(), [&](const OnnxRefusal& one) {
      return one.name == name && (one.since == 0 || one.since == since);
    });
  }

  // The line that holds for a version.
  const OnnxLine* line_of(const std::string& name, int64_t since) const {
    const OnnxLine* best = nullptr;
    const auto found = lines_.find(name);
    if (found == lines_.end()) return nullptr;
    for (const OnnxLine* line : found->second)
      if (line->since <= since && (!best || line->since > best->since)) best = line;
    return best;
  }

  void check_line(const OnnxLine& line) const {
    const std::vector<Version>& all = versions(line.name, line.where);
    for (const OnnxLine* other : lines_.at(line.name))
      if (other != &line && other->since == line.since)
        throw Error(line.where, cat("`onnx`: `", line.name, "` since ", line.since,
                                    " is imported at ", other->where.origin(), ", too"));
    std::set<std::string> names = {"inputs", "outputs", "opset", "inf", "nan"};
    bool is_used = false;
    for (const Version& version : all)
      if (line_of(line.name, version.since) == &line) {
        is_used = true;
        names.insert(version.names.begin(), version.names.end());
      }
    if (!is_used)
      throw Error(line.where, cat("`onnx`: no version of `", line.name, "` from ", line.since,
                                  " on is left to this line"));
    if (line.is_native) return;
    for (const std::string& text : lines_of(line.text)) {
      const Step step = parse_step(text, line.where, "onnx");
      check_expression(step.expression, line, names);
      if (!step.name.empty()) names.insert(step.name);
    }
  }

  void check_expression(const Node& root, const OnnxLine& line,
                        const std::set<std::string>& names) const {
    walk(root, [&](const Node& node) {
      if (node.kind == NodeKind::Name && !names.count(node.text) && !schema::find_dtype(node.text))
        throw Error(
            line.where,
            cat("`onnx`: `", node.text, "` is no input or attribute of ", line.name, " since ",
                line.since,
                did_you_mean(node.text, std::vector<std::string>(names.begin(), names.end()))));
      if (node.kind == NodeKind::Call) check_call(node, line);
    });
  }

  void check_call(const Node& node, const OnnxLine& line) const {
    const std::vector<std::string>& functions = onnx_functions();
    const bool is_function =
        std::find(functions.begin(), functions.end(), node.text) != functions.end();
    const Operator* op = package_.find(node.text, "tenon");
    if (!op && !is_function) {
      std::vector<std::string> known = package_.operator_names();
      known.insert(known.end(), functions.begin(), functions.end());
      throw Error(line.where, cat("`onnx`: no operator or function `", node.text, "`",
                                  did_you_mean(node.text, known)));
    }
    for (const std::string& keyword : node.keywords)
      if (!keyword.empty() && (!op || op->signature.find_param(keyword) < 0))
        throw Error(line.where, cat("`onnx`: `", node.text, "` has no parameter `", keyword, "`"));
    if (op && !is_function && node.children.size() > op->signature.params.size())
      throw Error(line.where, cat("`onnx`: `", node.text, "` takes at most ",
                                  op->signature.params.size(), " arguments"));
  }

  void check_refusal(const OnnxRefusal& refusal) const {
    const std::vector<Version>& all = versions(refusal.name, refusal.where);
    const bool is_there =
        refusal.since == 0 || std::any_of(all.begin(), all.end(), [&](const Version& version) {
          return version.since == refusal.since;
        });
    if (!is_there)
      throw Error(refusal.where, cat("`refused`: ONNX has no version ", refusal.since, " of `",
                                     refusal.name, "`"));
  }

  void check_coverage() const {
    for (const auto& [name, all] : versions_)
      for (const Version& version : all)
        if (!is_refused(name, version.since) && !line_of(name, version.since))
          errors_.push_back(cat("opdefs/onnx: ", name, " since ", version.since,
                                " is neither imported nor refused; write a line, or a reason in "
                                "opdefs/onnx/refused.yaml"));
  }

  const OnnxTable& table_;
  const Package& package_;
  std::vector<std::string>& errors_;
  const Versions versions_;
  std::map<std::string, std::vector<const OnnxLine*>> lines_;
};

}  // namespace

const std::vector<std::string>& onnx_functions() {
  static const std::vector<std::string> names = {"min",
                                                 "max",
                                                 "sqrt",
                                                 "exp",
                                                 "log",
                                                 "floor",
                                                 "ceil",
                                                 "pow",
                                                 "prod",
                                                 "repeat",
                                                 "slice",
                                                 "input",
                                                 "dtype",
                                                 "ints",
                                                 "floats",
                                                 "int",
                                                 "float",
                                                 "is_known",
                                                 "len",
                                                 "range",
                                                 "reversed",
                                                 "insert",
                                                 "remove",
                                                 "replace",
                                                 "contains",
                                                 "axes",
                                                 "axis",
                                                 "inverse",
                                                 "broadcast_shapes",
                                                 "is_floating",
                                                 "is_complex",
                                                 "is_integer",
                                                 "is_signed",
                                                 "known",
                                                 "refuse",
                                                 "as_dtype"};
  return names;
}

void check_onnx(const OnnxTable& table, const Package& package, std::vector<std::string>& errors) {
  OnnxChecker(table, package, errors).run();
}

}  // namespace tenon::codegen

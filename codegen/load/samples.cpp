// SPDX-License-Identifier: Apache-2.0
#include "load/samples.hpp"

#include <algorithm>
#include <cstdlib>

#include "expression/parser.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// NumPy text is run by the tests; brackets that do not match are found here, with the line.
std::string reference_text(const std::string& text, const Location& where) {
  for (const char* pair : {"()", "[]"})
    if (std::count(text.begin(), text.end(), pair[0]) !=
        std::count(text.begin(), text.end(), pair[1]))
      throw Error(where, cat("reference: expected brackets that match, got `", text,
                             "`; put quotes around text with `: ` or ` #`"));
  return text;
}

double number_of(const YamlEntry& map, const std::string& key) {
  const std::string text = map.text(key);
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size() || !(number >= 0))
    throw Error(map.where(key),
                cat("samples.", key, ": expected a number of at least 0, got `", text, "`"));
  return number;
}

Node parse_call(const std::string& text, const Location& where) {
  TokenStream tokens(text, where, "samples");
  Node call = parse_operand(tokens);
  tokens.expect_end();
  return call;
}

void read_grad(const YamlEntry& map, Sample& sample) {
  if (map.has("grad") != map.has("why"))
    throw Error(sample.where,
                "samples: expected `grad` and `why` together, got one of them; write `grad: none` "
                "or the parameters to differentiate, and `why: the reason that others are left "
                "out`");
  if (!map.has("grad")) return;
  sample.why = map.text("why");
  sample.grad.emplace();
  const YAML::Node node = map.find("grad");
  if (node.IsScalar() && node.Scalar() == "none") return;
  for (const auto& [name, where] : map.scalars(node, "grad")) sample.grad->push_back(name);
}

const std::vector<std::string> kSampleKeys = {
    "call", "label", "reference", "grad", "why", "dtype", "rtol", "atol", "differentiable_results"};

// `label: call` in place of `call: ..., label: ...`.
bool is_labelled_call(const YAML::Node& node) {
  return node.IsMap() && node.size() == 1 && node.begin()->second.IsScalar() &&
         std::find(kSampleKeys.begin(), kSampleKeys.end(), node.begin()->first.Scalar()) ==
             kSampleKeys.end();
}

Sample read_sample(const YAML::Node& node, const YamlEntry& entry, const Operator& op) {
  Sample sample;
  sample.where = entry.location(node);
  if (!node.IsMap()) {
    sample.text = entry.scalar(node, "samples");
  } else if (is_labelled_call(node)) {
    sample.label = node.begin()->first.Scalar();
    sample.text = node.begin()->second.Scalar();
  } else {
    YamlEntry map(node, op.file, "a sample");
    map.check_keys(kSampleKeys);
    sample.text = map.text("call");
    sample.where = map.where("call");
    sample.label = map.text_or("label", "");
    sample.reference = reference_text(map.text_or("reference", ""), map.where("reference"));
    sample.dtype = map.text_or("dtype", "");
    if (map.has("rtol")) sample.rtol = number_of(map, "rtol");
    if (map.has("atol")) sample.atol = number_of(map, "atol");
    if (map.has("differentiable_results"))
      sample.smooth = static_cast<int64_t>(number_of(map, "differentiable_results"));
    read_grad(map, sample);
  }
  sample.call = parse_call(sample.text, sample.where);
  return sample;
}

Range read_range(const YamlEntry& entry, const YAML::Node& node, const std::string& key) {
  std::vector<double> ends;
  std::vector<std::string> texts;
  for (const auto& [text, where] : entry.scalars(node, key)) {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (*end == 0) ends.push_back(number);
    texts.push_back(text);
  }
  if (texts.size() != 2 || ends.size() != 2 || !(ends[0] < ends[1]))
    entry.fail(node, cat("`", key,
                         "`: expected the lowest and the highest argument, like `[0.5, 3]`, "
                         "got `[",
                         join(texts, ", "), "]`"));
  return {node[0].Scalar(), node[1].Scalar(), ends[0], ends[1]};
}

// One range for all tensors, or a map from parameter to range.
void read_domain(const YamlEntry& entry, Operator& op) {
  const YAML::Node node = entry.find("domain");
  if (!node) return;
  const auto is_tensor = [](const Param& param) { return param.is_tensor(); };
  if (!node.IsMap()) {
    const Range range = read_range(entry, node, "domain");
    for (const Param& param : op.signature.params)
      if (is_tensor(param)) op.domain[param.name] = range;
    return;
  }
  YamlEntry map(node, op.file, "domain");
  for (const auto& [name, value] : map.items()) {
    const int index = op.signature.find_param(name);
    if (index < 0 || !is_tensor(op.signature.params[static_cast<size_t>(index)]))
      map.fail(value,
               cat("domain: expected a tensor parameter of `", op.name, "`, got `", name, "`"));
    op.domain[name] = read_range(map, value, cat("domain.", name));
  }
}

// A tensor argument of a sample that is made: booleans for a mask, else numbers of the domain.
std::string made_argument(const Operator& op, const Param& param, const std::string& shape,
                          bool booleans) {
  const auto checked = op.dtypes.checked.find(param.name);
  if (checked != op.dtypes.checked.end()) booleans = checked->second == bool_dtypes();
  if (booleans) return cat("booleans(", shape, ")");
  const auto range = op.domain.find(param.name);
  const std::string ends = range == op.domain.end()
                               ? std::string("-3, 3")
                               : cat(range->second.low_text, ", ", range->second.high_text);
  const bool floating = (op.dtypes.allow & floating_dtypes()) != 0;
  return cat(floating ? "uniform(" : "integers(", ends, ", ", shape, ")");
}

void make_sample(const YamlEntry& entry, Operator& op, const char* label, bool booleans,
                 const std::vector<const char*>& shapes) {
  std::vector<std::string> arguments;
  for (const Param& param : op.signature.params)
    if (!param.default_value && !param.optional)
      arguments.push_back(
          made_argument(op, param, shapes[arguments.size() % shapes.size()], booleans));
  Sample sample;
  sample.where = entry.where("reference");
  sample.text = cat(op.name, "(", join(arguments, ", "), ")");
  sample.label = label;
  sample.is_made = true;
  sample.call = parse_call(sample.text, sample.where);
  op.samples.push_back(std::move(sample));
}

// For an operator with a reference whose arguments are tensors alone.
void make_samples(const YamlEntry& entry, Operator& op) {
  size_t tensors = 0;
  for (const Param& param : op.signature.params) {
    if (param.default_value || param.optional) continue;
    if (param.kind != ParamKind::Tensor)
      throw Error(entry.where("reference"),
                  cat("reference: expected `samples`, which give `", param.name,
                      "` a value; write `samples: [\"", op.name, "(...)\"]`"));
    ++tensors;
  }
  const bool booleans = !(op.dtypes.allow & floating_dtypes()) && (op.dtypes.allow & bool_dtypes());
  make_sample(entry, op, "", false, {"3, 4"});
  if (booleans) make_sample(entry, op, "bool", true, {"3, 4", "4"});
  if (tensors > 1 && op.is_elementwise())
    make_sample(entry, op, "broadcast", false, {"3, 1", "4", "2, 1, 4"});
}

}  // namespace

void read_samples(const YamlEntry& entry, Operator& op) {
  op.reference = reference_text(entry.text_or("reference", ""), entry.where("reference"));
  read_domain(entry, op);
  const YAML::Node node = entry.find("samples");
  if (!node) {
    if (!op.reference.empty()) make_samples(entry, op);
    return;
  }
  if (!node.IsSequence() || node.size() == 0)
    entry.fail(node, cat("`samples`: expected a list of calls, `- ", op.name,
                         "(normal(3, 4))`, got ", node.IsScalar() ? "text" : "no list"));
  for (const YAML::Node& item : node) {
    Sample sample = read_sample(item, entry, op);
    if (sample.label.empty() && !op.samples.empty())
      sample.label = std::to_string(op.samples.size() + 1);
    for (const Sample& other : op.samples)
      if (other.label == sample.label)
        throw Error(sample.where, cat("samples: expected labels that differ, got `", sample.label,
                                      "` twice; change one of them"));
    op.samples.push_back(std::move(sample));
  }
}

}  // namespace tenon::codegen

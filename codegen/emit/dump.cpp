// SPDX-License-Identifier: Apache-2.0
// The model as JSON, for tests and tools that enumerate operators.
#include <sstream>

#include "emit/emit.hpp"
#include "emit/python_text.hpp"
#include "formats/json_writer.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// A JSON string literal, quotes included.
std::string json_quoted(std::string_view text) {
  JsonWriter json;
  json.string("", text);
  return json.text();
}
template <class Range, class Function>
std::string json_list(const Range& range, Function text_of) {
  return "[" + join(range, ", ", text_of) + "]";
}
std::string json_strings(const std::vector<std::string>& items) {
  return json_list(items, json_quoted);
}
const char* json_bool(bool truth) { return truth ? "true" : "false"; }

std::string param(const Operator& op, const Param& param) {
  auto checked = op.dtypes.checked.find(param.name);
  return cat(
      "{\"name\": ", json_quoted(param.name), ", \"type\": ", json_quoted(yaml_name(param.kind)),
      ", \"optional\": ", json_bool(param.optional),
      ", \"keyword_only\": ", json_bool(param.keyword_only),
      ", \"default\": ", param.default_value ? json_quoted(param.default_text) : "null",
      ", \"promoted\": ", json_bool(op.dtypes.is_promoted(param.name)), ", \"dtypes\": ",
      checked == op.dtypes.checked.end() ? "null" : json_quoted(describe(checked->second)), "}");
}

std::vector<std::string> dtype_names(DtypeMask mask) {
  std::vector<std::string> names;
  for (size_t id = 0; id < dtypes().size(); ++id)
    if (mask >> id & 1) names.push_back(dtypes()[id].name);
  return names;
}

const char* compute_name(Compute compute) {
  static constexpr const char* names[] = {"first", "promote", "promote_float", "output"};
  return names[static_cast<int>(compute)];
}

std::string out_name(const OutDtype& out) {
  static constexpr const char* names[] = {"same",       "bool",  "int64", "real",
                                          "accumulate", "float", "param", "native"};
  return out.rule == OutDtype::Param ? cat("param(", out.param, ")") : names[out.rule];
}

std::string shape_name(const Operator& op) {
  if (!op.shape) return "null";
  static constexpr const char* names[] = {"broadcast", "same",   "reduce",
                                          "of",        "native", "data_dependent"};
  return json_quoted(names[op.shape->kind]);
}

std::string number_or_null(const std::optional<double>& number) {
  if (!number) return "null";
  std::ostringstream text;
  text << *number;
  return text.str();
}

// Arguments are Python: calls of the random generators, and array() of numbers.
std::string sample(const Operator& op, const Sample& sample) {
  std::vector<std::string> positional, named;
  for (size_t i = 0; i < sample.call.children.size(); ++i) {
    const std::string& keyword = sample.call.keywords[i];
    const size_t index =
        keyword.empty() ? i : static_cast<size_t>(op.signature.find_param(keyword));
    std::string text = json_quoted(
        python_sample_argument(sample.call.children[i], op.signature.params[index].kind));
    if (keyword.empty())
      positional.push_back(text);
    else
      named.push_back(cat(json_quoted(keyword), ": ", text));
  }
  const std::string& reference = sample.reference.empty() ? op.reference : sample.reference;
  return cat("{\"call\": ", json_quoted(sample.text),
             ", \"origin\": ", json_quoted(sample.where.origin()),
             ", \"label\": ", json_quoted(sample.label), ", \"arguments\": [",
             join(positional, ", "), "], \"keywords\": {", join(named, ", "),
             "}, \"reference\": ", reference.empty() ? "null" : json_quoted(reference),
             ", \"dtype\": ", sample.dtype.empty() ? "null" : json_quoted(sample.dtype),
             ", \"grad\": ", sample.grad ? json_strings(*sample.grad) : "null",
             ", \"why\": ", json_quoted(sample.why), ", \"rtol\": ", number_or_null(sample.rtol),
             ", \"atol\": ", number_or_null(sample.atol),
             ", \"made\": ", sample.is_made ? "true" : "false",
             ", \"smooth\": ", sample.smooth < 0 ? "null" : std::to_string(sample.smooth), "}");
}

std::string domain(const Operator& op) {
  return cat("{",
             join(op.domain, ", ",
                  [](const auto& each) {
                    return cat(json_quoted(each.first), ": [", each.second.low_text, ", ",
                               each.second.high_text, "]");
                  }),
             "}");
}

std::string entry(const Operator& op) {
  std::vector<std::string> gradients;
  for (const Gradient& gradient : op.gradients)
    gradients.insert(gradients.end(), gradient.params.begin(), gradient.params.end());
  std::vector<std::string> devices;
  for (const WrittenKernel& kernel : op.kernels) devices.push_back(kernel.device);
  bool generated = !op.cases.empty() || op.reduction;
  bool decomposes = op.decompose_native || !op.decompose.empty();
  std::vector<std::pair<std::string, std::string>> fields = {
      {"name", json_quoted(op.qualified_name())},
      {"kind", json_quoted(yaml_name(op.kind))},
      {"signature", json_quoted(op.signature.canonical())},
      {"schema_hash", json_quoted(hex64(fnv1a(op.schema())))},
      {"origin", json_quoted(op.where.origin())},
      {"doc", json_quoted(op.doc)},
      {"params", json_list(op.signature.params, [&](const Param& p) { return param(op, p); })},
      {"results",
       json_list(op.signature.results, [](const Result& r) { return json_quoted(r.name); })},
      {"list_result", json_bool(op.signature.list_result())},
      {"compute", json_quoted(compute_name(op.dtypes.compute))},
      {"dtypes", json_strings(dtype_names(op.dtypes.allow))},
      {"interior", op.dtypes.float32_interior ? json_quoted("float32") : "null"},
      {"out_dtypes",
       json_list(op.dtypes.outs, [](const OutDtype& out) { return json_quoted(out_name(out)); })},
      {"shape", shape_name(op)},
      {"gradients", json_strings(gradients)},
      {"amp", json_quoted(yaml_name(op.amp))},
      {"never_differentiable", json_bool(op.never_differentiable)},
      {"generated_kernel", json_bool(generated)},
      {"decomposes", json_bool(decomposes)},
      {"kernels", json_strings(devices)},
      {"in_place", json_bool(op.has_in_place_form())},
      {"out_form", json_bool(op.has_out_form())},
      {"method", json_bool(op.method)},
      {"tags", json_strings({op.tags.begin(), op.tags.end()})},
      {"names", cat("{",
                    join(op.names, ", ",
                         [](const auto& item) {
                           return cat(json_quoted(item.first), ": ",
                                      json_list(item.second, [](const Spelling& each) {
                                        return json_quoted(each.name);
                                      }));
                         }),
                    "}")},
      {"examples",
       json_list(op.examples, [](const Example& example) { return json_quoted(example.text); })},
      {"domain", domain(op)},
      {"reference", op.reference.empty() ? "null" : json_quoted(op.reference)},
      {"samples",
       cat("[", op.samples.empty() ? "" : "\n     ",
           join(op.samples, ",\n     ", [&](const Sample& each) { return sample(op, each); }),
           "]")},
  };
  return cat("  {",
             join(fields, ",\n   ",
                  [](const auto& field) { return cat("\"", field.first, "\": ", field.second); }),
             "}");
}

}  // namespace

std::vector<OutputFile> emit_dump(const Package& package, const EmitOptions&) {
  std::string text =
      cat("{\"namespace\": ", json_quoted(package.name_space), ",\n \"operators\": [\n",
          join(package.emitted, ",\n", [](const Operator* op) { return entry(*op); }), "\n]}\n");
  return {{"operators.json", text}};
}

}  // namespace tenon::codegen

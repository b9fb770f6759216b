// SPDX-License-Identifier: Apache-2.0
#include "binding/binding.hpp"
#include "binding/call_parser.hpp"
#include "binding/property.hpp"
#include "binding/prototype.hpp"
#include "binding/source.hpp"
#include "load/yaml_entry.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// `approximate: false`
std::string read_condition(const Location& where, const Operator& op, const std::string& name,
                           const std::string& value, std::set<int>& used) {
  if (name.find('.') != std::string::npos) return read_property(where, op, name, value);
  const int i = op.signature.find_param(name);
  if (i < 0)
    throw Error(where, cat("`only`: ", op.name, " has no parameter `", name, "`; it is ",
                           op.signature.canonical()));
  used.insert(i);
  const Param& param = op.signature.params[static_cast<size_t>(i)];
  const std::string arg = cat("args[", i, "]");
  const bool is_flag = value == "true" || value == "false";
  if (value == "none" && param.optional) return cat(arg, ".tag == TENON_VALUE_NONE");
  if (value == "given" && param.optional) return cat(arg, ".tag != TENON_VALUE_NONE");
  if (param.kind == ParamKind::Bool && is_flag)
    return cat("(tenon_arg_bool(&", arg, ") != 0) == ", value);
  if (param.kind == ParamKind::Dtype && !param.optional)
    return cat("(uint64_t{", hex64(read_dtypes(value, where, "only")), "} >> ", arg,
               ".v.i & 1) != 0");
  if (param.kind == ParamKind::Int && !param.optional)
    if (const std::optional<std::string> test = comparison(value, true))
      return cat("tenon_arg_int(&", arg, ")", *test);
  if (param.kind == ParamKind::Ints && is_integer(value))
    return cat("all_are(", arg, ", ", value, ")");
  if (param.kind == ParamKind::String && !value.empty())
    return cat("std::string_view(tenon_arg_string(&", arg, ")) == \"", value, "\"");
  if (param.kind == ParamKind::Scalar && value == "int") return cat(arg, ".tag == TENON_VALUE_INT");
  if (param.kind == ParamKind::Float && !param.optional)
    if (const std::optional<std::string> test = comparison(value, false))
      return cat("tenon_arg_float(&", arg, ")", *test);
  throw Error(where, cat("`only`: expected a value of `", yaml_name(param.kind), " ", name,
                         "`, got `", value, "`"));
}

// What a file says of all its entries.
struct FileRules {
  std::vector<std::string> methods;  // kinds of parameters that the plugin adds
  Language language;
};

// An entry: one binding, or one for each dtype where the language has types.
std::vector<Binding> read_binding(const YAML::Node& node, const std::string& path,
                                  const Package& package, const FileRules& rules) {
  YamlEntry entry(node, path, "a binding");
  entry.check_keys({"op", "call", "dtypes", "only", "unneeded", "deterministic", "reusable",
                    "broadcast", "returns", "assumes", "source"});
  Binding common;
  common.where = entry.where();
  const std::string name = entry.text("op");
  common.op = package.find(name, "tenon");
  if (!common.op)
    throw Error(entry.where("op"), cat("`op`: unknown operator `", name, "`",
                                       did_you_mean(name, package.operator_names())));
  common.dtypes = read_dtypes(entry.text("dtypes"), entry.where("dtypes"), "dtypes");
  if (const DtypeMask more = common.dtypes & ~common.op->dtypes.allow)
    throw Error(entry.where("dtypes"),
                cat("`dtypes`: ", common.op->name, " does not take ", describe(more)));
  for (const auto& [key, flag] :
       {std::pair{"deterministic", &common.deterministic}, {"reusable", &common.reusable}}) {
    const YAML::Node value = entry.find(key);
    if (!value) continue;
    if (value.Scalar() != "false")
      throw Error(entry.where(key), cat("`", key, "`: expected false, or no such key"));
    *flag = false;
  }
  common.broadcasts = entry.flag_or("broadcast", false);
  common.assumes = entry.text_or("assumes", "");
  if (common.op->is_composite() && !common.op->shape)
    throw Error(entry.where("op"),
                cat("`op`: ", name,
                    " is a composite without a shape rule, which always runs as its "
                    "parts; give it a `shape` in its operator file"));
  std::set<int> used;
  if (const YAML::Node only = entry.find("only"))
    for (const auto& [key, value] : YamlEntry(only, path, "`only`").items())
      common.conditions.push_back(
          read_condition(entry.where("only"), *common.op, key, value.Scalar(), used));
  std::vector<Binding> bindings;
  const std::string call = entry.text("call");
  const std::map<int, std::string>& types = rules.language.types;
  if (types.empty()) {
    parse_call(call, entry.where("call"), rules.methods, common, used);
    bindings.push_back(common);
  }
  for (int dtype = 0; !types.empty() && dtype < TENON_DTYPE_COUNT; ++dtype) {
    const DtypeMask bit = DtypeMask{1} << dtype;
    if (!(common.dtypes & bit)) continue;
    if (!types.count(dtype))
      throw Error(entry.where("dtypes"),
                  cat("`dtypes`: `types` of the file has none for ", describe(bit)));
    bindings.push_back(common);
    bindings.back().dtypes = bit;
    parse_prototype(call, entry.where("call"), rules.language, dtype, bindings.back(), used);
    if (entry.has("returns"))
      parse_returned(entry.text("returns"), entry.where("returns"), rules.language, dtype,
                     bindings.back());
  }
  // The shape, dtype and device of a result say what some parameters do; others are for gradients alone.
  if (const YAML::Node unneeded = entry.find("unneeded")) {
    for (const YAML::Node& one : unneeded) {
      const int i = common.op->signature.find_param(one.Scalar());
      if (i < 0 || !used.insert(i).second)
        throw Error(entry.where("unneeded"),
                    cat("`unneeded`: expected a parameter of ", common.op->name,
                        " that the entry does not use, got `", one.Scalar(), "`"));
    }
  }
  // An argument that the vendor's function never sees would be a silent wrong answer.
  for (size_t i = 0; i < common.op->signature.params.size(); ++i)
    if (!used.count(static_cast<int>(i)))
      throw Error(entry.where("call"),
                  cat("the call does not use the parameter `", common.op->signature.params[i].name,
                      "` of ", common.op->name,
                      "; pass it on, or write the value that the function assumes in `only`"));
  const std::string source = entry.text("source");
  for (Binding& binding : bindings) binding.source = source;
  return bindings;
}

// `types: {float32: float}`
void read_dtype_map(const YamlEntry& file, const std::string& path, const std::string& key,
                    std::map<int, std::string>& map) {
  const YAML::Node node = file.find(key);
  if (!node) return;
  for (const auto& [name, value] : YamlEntry(node, path, cat("`", key, "`")).items()) {
    const std::optional<int> dtype = find_dtype(name);
    if (!dtype)
      throw Error(file.where(key), cat("`", key, "`: unknown dtype `", name, "`",
                                       did_you_mean(name, dtype_class_names())));
    map[*dtype] = value.Scalar();
  }
}

FileRules read_rules(const YamlEntry& file, const std::string& path) {
  FileRules rules;
  if (const YAML::Node kinds = file.find("kinds"))
    for (const YAML::Node& kind : kinds) rules.methods.push_back(kind.Scalar());
  read_dtype_map(file, path, "types", rules.language.types);
  read_dtype_map(file, path, "letters", rules.language.letters);
  rules.language.scope = file.text_or("scope", "");
  if (const YAML::Node global = file.find("global_types"))
    for (const YAML::Node& name : global) rules.language.global_types.push_back(name.Scalar());
  return rules;
}

}  // namespace

void load_bindings(const std::string& path, const Package& package, BindingSet& set,
                   std::vector<std::string>& errors) {
  try {
    YamlEntry file(YAML::LoadFile(path), path, "a binding file");
    file.check_keys({"namespace", "header", "library", "kinds", "types", "letters", "scope",
                     "global_types", "bindings"});
    // One table comes from all files of a run.
    const auto read_common = [&](const char* key, std::string& common) {
      const std::string text = file.text(key);
      if (!common.empty() && common != text)
        throw Error(file.where(key), cat("files of one run share `", key, "`: expected `", common,
                                         "`, got `", text, "`"));
      common = text;
    };
    read_common("namespace", set.name_space);
    read_common("header", set.header);
    read_common("library", set.library);
    set.files.push_back(path);
    const FileRules rules = read_rules(file, path);
    for (const YAML::Node& node : file.require("bindings")) {
      try {
        for (Binding& binding : read_binding(node, path, package, rules))
          set.bindings.push_back(std::move(binding));
      } catch (const Error& error) {
        errors.push_back(error.what());
      }
    }
  } catch (const YAML::BadFile&) {
    errors.push_back(cat(path, ":1: cannot read this file"));
  } catch (const YAML::Exception& error) {
    errors.push_back(cat(path, ":", error.mark.line + 1, ": not valid YAML: ", error.msg));
  } catch (const Error& error) {
    errors.push_back(error.what());
  }
}

}  // namespace tenon::codegen

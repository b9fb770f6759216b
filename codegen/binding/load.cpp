// SPDX-License-Identifier: Apache-2.0
#include "binding/binding.hpp"
#include "binding/call_parser.hpp"
#include "binding/prototype.hpp"
#include "load/yaml_entry.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// "float16|float32"
DtypeMask read_dtypes(const std::string& text, const Location& where, const std::string& key) {
  DtypeMask mask = 0;
  std::istringstream list(text);
  for (std::string name; std::getline(list, name, '|');) {
    const std::optional<DtypeMask> one = find_dtype_class(trimmed(name));
    if (!one)
      throw Error(where, cat("`", key, "`: unknown dtype `", trimmed(name), "`",
                             did_you_mean(trimmed(name), dtype_class_names())));
    mask |= *one;
  }
  return mask;
}

// `index.ndim: 1`, of a tensor that the call takes.
std::optional<std::string> read_ndim_condition(const Operator& op, const std::string& name,
                                               const std::string& value) {
  constexpr std::string_view kEnd = ".ndim";
  if (name.size() <= kEnd.size() || name.compare(name.size() - kEnd.size(), kEnd.size(), kEnd) != 0)
    return std::nullopt;
  const int i = op.signature.find_param(name.substr(0, name.size() - kEnd.size()));
  if (i < 0 || !op.signature.params[static_cast<size_t>(i)].is_tensor() ||
      value.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return cat("tenon_arg_tensor(&args[", i, "])->ndim == ", value);
}

// `x.shape: y.shape`, of two tensors.
std::optional<std::string> read_shape_condition(const Operator& op, const std::string& name,
                                                const std::string& value) {
  constexpr std::string_view kEnd = ".shape";
  std::string compared;
  for (const std::string& one : {name, value}) {
    if (one.size() <= kEnd.size() ||
        one.compare(one.size() - kEnd.size(), kEnd.size(), kEnd) != 0)
      return std::nullopt;
    const int i = op.signature.find_param(one.substr(0, one.size() - kEnd.size()));
    if (i < 0 || !op.signature.params[static_cast<size_t>(i)].is_tensor()) return std::nullopt;
    compared += cat(compared.empty() ? "" : ", ", "args[", i, "]");
  }
  return cat("same_shape(", compared, ")");
}

// `approximate: false`. Empty: the parameter may be anything.
std::string read_condition(const Location& where, const Operator& op, const std::string& name,
                           const std::string& value, std::set<int>& used) {
  if (const std::optional<std::string> found = read_ndim_condition(op, name, value)) return *found;
  if (const std::optional<std::string> found = read_shape_condition(op, name, value)) return *found;
  const int i = op.signature.find_param(name);
  if (i < 0)
    throw Error(where, cat("`only`: ", op.name, " has no parameter `", name, "`; it is ",
                           op.signature.canonical()));
  used.insert(i);
  const Param& param = op.signature.params[static_cast<size_t>(i)];
  const std::string arg = cat("args[", i, "]");
  const bool is_flag = value == "true" || value == "false";
  if (value == "any") return "";
  if (value == "integer" && param.kind == ParamKind::Scalar)
    return cat(arg, ".tag != TENON_VALUE_FLOAT");
  if (value == "given" && param.optional) return cat(arg, ".tag != TENON_VALUE_NONE");
  if (value == "none" && param.optional) return cat(arg, ".tag == TENON_VALUE_NONE");
  if (param.kind == ParamKind::Bool && is_flag)
    return cat("(tenon_arg_bool(&", arg, ") != 0) == ", value);
  if (param.kind == ParamKind::Dtype && !param.optional)
    return cat("(uint64_t{", hex64(read_dtypes(value, where, "only")), "} >> ", arg,
               ".v.i & 1) != 0");
  if (param.kind == ParamKind::Int && !param.optional && is_integer(value))
    return cat("tenon_arg_int(&", arg, ") == ", value);
  if (param.kind == ParamKind::Float && !param.optional && is_number(value))
    return cat("tenon_arg_float(&", arg, ") == ", value);
  throw Error(where, cat("`only`: expected a value of `", yaml_name(param.kind), " ", name,
                         "`, got `", value, "`"));
}

// An entry, and the binding of each dtype where the language has types.
std::vector<Binding> read_binding(const YAML::Node& node, const std::string& path,
                                  const Package& package, const Language& language) {
  YamlEntry entry(node, path, "a binding");
  entry.check_keys({"op", "call", "dtypes", "only", "broadcast", "assumes", "source"});
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
  std::set<int> used;
  if (const YAML::Node only = entry.find("only"))
    for (const auto& [key, value] : YamlEntry(only, path, "`only`").items())
      if (const std::string condition =
              read_condition(entry.where("only"), *common.op, key, value.Scalar(), used);
          !condition.empty())
        common.conditions.push_back(condition);
  std::vector<Binding> bindings;
  if (language.types.empty()) {
    parse_call(entry.text("call"), entry.where("call"), common, used);
    bindings.push_back(common);
  }
  for (int dtype = 0; !language.types.empty() && dtype < 64; ++dtype) {
    const DtypeMask bit = DtypeMask{1} << dtype;
    if (!(common.dtypes & bit)) continue;
    if (!language.types.count(dtype))
      throw Error(entry.where("dtypes"), cat("`dtypes`: `types` of the file has none for ", describe(bit)));
    bindings.push_back(common);
    bindings.back().dtypes = bit;
    parse_prototype(entry.text("call"), entry.where("call"), language, dtype, bindings.back(), used);
  }
  // An argument that the vendor's function never sees would be a silent wrong answer.
  for (size_t i = 0; i < common.op->signature.params.size(); ++i)
    if (!used.count(static_cast<int>(i)))
      throw Error(entry.where("call"),
                  cat("the call does not use the parameter `", common.op->signature.params[i].name,
                      "` of ", common.op->name,
                      "; pass it on, or write the value that the function assumes in `only`"));
  const char* const traits = entry.flag_or("broadcast", false) ? "TENON_KERNEL_BROADCAST" : "0";
  const std::string source = entry.text("source");
  const std::string assumes = entry.text_or("assumes", "");
  for (Binding& binding : bindings) {
    binding.source = source;
    binding.traits = traits;
    binding.assumes = assumes;
  }
  return bindings;
}

// `types: {float32: float}`
void read_dtype_map(YamlEntry& file, const std::string& path, const std::string& key,
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

Language read_language(YamlEntry& file, const std::string& path) {
  Language language;
  read_dtype_map(file, path, "types", language.types);
  read_dtype_map(file, path, "letters", language.letters);
  language.scope = file.text_or("scope", "");
  if (const YAML::Node global = file.find("global_types"))
    for (const YAML::Node& name : global) language.global_types.push_back(name.Scalar());
  return language;
}

}  // namespace

void load_bindings(const std::string& path, const Package& package, BindingSet& set,
                   std::vector<std::string>& errors) {
  try {
    YamlEntry file(YAML::LoadFile(path), path, "a binding file");
    file.check_keys({"namespace", "header", "library", "types", "letters", "scope", "global_types", "bindings"});
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
    const Language language = read_language(file, path);
    for (const YAML::Node& node : file.require("bindings")) {
      try {
        for (Binding& binding : read_binding(node, path, package, language))
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

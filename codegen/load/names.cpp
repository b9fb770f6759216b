// SPDX-License-Identifier: Apache-2.0
#include "load/names.hpp"

#include <algorithm>
#include <cctype>

#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// `tenon`: names that the package itself has for an operator, beside the operator's own.
const std::vector<std::string> kLibraries = {"tenon", "array_api", "numpy", "scipy",
                                             "torch", "paddle",    "onnx"};

// nn.functional.relu
bool is_dotted_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.back() != '.' &&
         !std::isdigit(static_cast<unsigned char>(name.front())) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
}

Spelling read_spelling(const std::string& text, const Location& where, const std::string& what) {
  const size_t open = text.find('(');
  Spelling spelling{text.substr(0, open), open == text.npos ? "" : text.substr(open), where};
  const auto count = [&](char c) { return std::count(text.begin(), text.end(), c); };
  if (count('(') != count(')'))
    throw Error(where, cat(what, ": parentheses do not match in `", text,
                           "`; inside {} and [] put quotes around text with commas"));
  if (!is_dotted_name(spelling.name) ||
      (!spelling.signature.empty() && spelling.signature.back() != ')'))
    throw Error(where, cat(what,
                           ": expected a name, or a name and a signature, as "
                           "`neg(input, *, out=None)`, got `",
                           text, "`"));
  return spelling;
}

// "takes: axis" or "takes: [offset, diagonal]"; nothing where the key is left out.
std::vector<std::string> parameters(const YamlEntry& entry, const char* key) {
  std::vector<std::string> names;
  if (YAML::Node node = entry.find(key))
    for (const auto& name : entry.scalars(node, key)) names.push_back(name.first);
  return names;
}

Keyword read_keyword(const std::string& name, const YAML::Node& node, const std::string& path) {
  YamlEntry entry(node, path, cat("keyword `", name, "`"));
  entry.check_keys({"takes", "means"});
  Keyword keyword{name, parameters(entry, "takes"), parameters(entry, "means")};
  if (keyword.takes.empty() && keyword.means.empty())
    throw Error(entry.where(), cat("`", name, "`: expected `takes` or `means`, got neither"));
  return keyword;
}

// "torch: [argwhere, arccos_]", in the order of the file.
void read_methods(const YAML::Node& node, const std::string& path, Package& package) {
  YamlEntry map(node, path, "methods");
  map.check_keys({"torch", "paddle"});
  std::map<std::string, std::string> libraries;  // of the methods that are known
  for (const auto& [library, value] : map.items())
    for (const auto& [name, where] : map.scalars(value, library)) {
      if (!is_dotted_name(name) || name.find('.') != std::string::npos)
        throw Error(where, cat(library, ": expected the name of a method, got `", name, "`"));
      if (auto [known, is_new] = libraries.emplace(name, library); !is_new)
        throw Error(where, cat("`", name, "` is a method already, of `", known->second, "`"));
      package.methods[library].push_back(name);
    }
}

}  // namespace

Names read_names(const YAML::Node& node, const std::string& file, const std::string& what) {
  YamlEntry map(node, file, what);
  map.check_keys(kLibraries);
  Names names;
  for (const auto& [library, value] : map.items()) {
    if (value.IsNull()) continue;
    for (const auto& [text, where] : map.scalars(value, library))
      names[library].push_back(read_spelling(text, where, library));
  }
  return names;
}

void load_names(const std::string& path, Package& package, std::vector<std::string>& errors) {
  try {
    YamlEntry file(YAML::LoadFile(path), path, "a file of names");
    file.check_keys({"functions", "keywords", "methods"});
    for (const auto& [place, names] :
         YamlEntry(file.require("functions"), path, "functions").items())
      package.functions[place] = read_names(names, path, place);
    for (const auto& [name, value] : YamlEntry(file.require("keywords"), path, "keywords").items())
      package.keywords.push_back(read_keyword(name, value, path));
    if (YAML::Node methods = file.find("methods")) read_methods(methods, path, package);
  } catch (const Error& error) {
    errors.push_back(error.what());
  } catch (const YAML::BadFile&) {
    errors.push_back(cat(path, ":1: cannot read this file"));
  } catch (const YAML::Exception& error) {
    errors.push_back(cat(path, ":", error.mark.line + 1, ": not valid YAML: ", error.msg));
  }
}

}  // namespace tenon::codegen

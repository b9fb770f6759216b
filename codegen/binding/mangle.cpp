// SPDX-License-Identifier: Apache-2.0
#include "binding/mangle.hpp"

#include <algorithm>
#include <map>

#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// On Linux with 64 bits int64_t is long and size_t is unsigned long.
const std::map<std::string, const char*> kBuiltin = {
    {"void", "v"},    {"bool", "b"},    {"char", "c"},    {"int8_t", "a"},   {"uint8_t", "h"},
    {"int16_t", "s"}, {"uint16_t", "t"}, {"int", "i"},    {"int32_t", "i"},  {"uint32_t", "j"},
    {"int64_t", "l"}, {"size_t", "m"},  {"uint64_t", "m"}, {"float", "f"},   {"double", "d"}};

class Mangler {
 public:
  Mangler(const Prototype& function, const std::vector<std::string>& global)
      : function_(function), global_(global) {}

  std::string run() {
    std::string text = "_Z";
    text += cat("N", scope(), source_name(function_.name));
    if (!function_.template_args.empty()) {
      remember(cat(scope_key(), source_name(function_.name)));
      text += "I";
      for (const auto& [parameter, value] : function_.template_args)
        text += is_number(value) ? cat("Li", value, "E") : type({CType::Kind::Name, value, {}}, false);
      text += "E";
    }
    text += "E";
    if (!function_.template_args.empty()) text += "i";  // only templates mangle what they return
    for (const CType& parameter : function_.parameters) text += type(parameter, true);
    if (function_.parameters.empty()) text += "v";
    return text;
  }

 private:
  static bool is_number(const std::string& text) {
    return text.find_first_not_of("0123456789") == std::string::npos;
  }
  static std::string source_name(const std::string& name) { return cat(name.size(), name); }

  std::vector<std::string> scope_parts() const {
    std::vector<std::string> parts;
    std::string rest = function_.scope;
    for (size_t at; (at = rest.find("::")) != std::string::npos; rest = rest.substr(at + 2))
      parts.push_back(rest.substr(0, at));
    parts.push_back(rest);
    return parts;
  }
  // What identifies a component for substitution: its mangling without substitutions.
  std::string scope_key() const { return join(scope_parts(), "", source_name); }
  std::string scope() {
    if (const std::string found = substitution(scope_key()); !found.empty()) return found;
    std::string text;
    for (const std::string& part : scope_parts()) {
      text += source_name(part);
      remember(text);
    }
    return text;
  }

  std::string substitution(const std::string& key) const {
    const auto found = std::find(seen_.begin(), seen_.end(), key);
    if (found == seen_.end()) return "";
    const size_t index = static_cast<size_t>(found - seen_.begin());
    if (index == 0) return "S_";
    std::string digits;
    for (size_t rest = index - 1;; rest /= 36) {
      digits.insert(digits.begin(), "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[rest % 36]);
      if (rest < 36) break;
    }
    return cat("S", digits, "_");
  }
  void remember(const std::string& key) { seen_.push_back(key); }

  // Makes the component `key` out of `pieces()`, or refers to an earlier one.
  template <class Pieces>
  std::string component(const std::string& key, Pieces pieces) {
    if (const std::string found = substitution(key); !found.empty()) return found;
    const std::string text = pieces();
    remember(key);
    return text;
  }

  std::string key_of(const CType& t, bool in_parameters) const {
    Mangler fresh(function_, global_);
    fresh.substitutes_ = false;
    return fresh.type(t, in_parameters);
  }

  std::string type(const CType& t, bool in_parameters) {
    if (t.kind == CType::Kind::Name && t.args.empty())
      if (const auto found = kBuiltin.find(t.name); found != kBuiltin.end()) return found->second;
    if (!substitutes_) return pieces(t, in_parameters);
    return component(key_of(t, in_parameters), [&] { return pieces(t, in_parameters); });
  }

  std::string pieces(const CType& t, bool in_parameters) {
    switch (t.kind) {
      case CType::Kind::Const:
        return cat("K", type(t.inner(), in_parameters));
      case CType::Kind::Pointer:
        return cat("P", type(t.inner(), in_parameters));
      case CType::Kind::Reference:
        return cat("R", type(t.inner(), in_parameters));
      default:
        break;
    }
    if (t.name == "std::vector") {
      const std::string name = substitutes_ ? component("St6vector", [] { return std::string("St6vector"); })
                                            : "St6vector";
      const std::string element = type(t.args[0], in_parameters);
      const CType allocator{CType::Kind::Name, "std::allocator", {t.args[0]}};
      return cat(name, "I", element, type(allocator, in_parameters), "E");
    }
    if (t.name == "std::allocator") return cat("SaI", type(t.args[0], in_parameters), "E");
    if (in_parameters)
      for (size_t i = 0; i < function_.template_args.size(); ++i)
        if (function_.template_args[i].first == t.name) return i ? cat("T", i - 1, "_") : "T_";
    if (std::find(global_.begin(), global_.end(), t.name) != global_.end())
      return source_name(t.name);
    return cat("N", substitutes_ ? scope() : scope_key(), source_name(t.name), "E");
  }

  const Prototype& function_;
  const std::vector<std::string>& global_;
  std::vector<std::string> seen_;
  bool substitutes_ = true;
};

}  // namespace

std::string mangled(const Prototype& function, const std::vector<std::string>& global) {
  return function.scope.empty() ? function.name : Mangler(function, global).run();
}

}  // namespace tenon::codegen

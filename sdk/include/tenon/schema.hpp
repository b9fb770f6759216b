// SPDX-License-Identifier: Apache-2.0
// The text of an operator's signature, parsed, as the parts of a tenon_op_def:
//
//   tenon::Schema schema("acme::swiglu(Tensor x, Tensor? g=none, *, float limit=0.0) -> Tensor");
//   tenon_op_def def = {};
//   schema.fill(def);
//
// The grammar is that of `sig` in operator files (share/tenon/opdefs/README.md), and so are
// canonical text and hash: this is the parser that tenon-codegen itself uses. It is for
// plugins, language bindings and programs that define operators at run time, and for tools that
// read signatures. Header-only, C++20, the standard library alone; nothing of the host is called.
// Thread-safe as const objects are.
#pragma once

#include <tenon/abi.h>
#include <tenon/schema/signature.hpp>

namespace tenon {

// One operator's signature. Owns all that a tenon_op_def filled by it points at: it must outlive
// the definition, for an attached plugin until plugin_unload has succeeded.
class Schema {
 public:
  // "namespace::operator(parameters) -> results". Throws SchemaError.
  explicit Schema(std::string_view text) {
    schema::TokenStream tokens(text);
    name_ = parse_name(tokens);
    signature_ = schema::parse_signature(tokens);
    canonical_ = name_ + signature_.canonical();
    hash_ = schema::fnv1a(canonical_);
    if (signature_.params.size() > 32)
      throw SchemaError(
          SchemaError::Kind::Meaning, 1,
          "expected at most 32 parameters, got " + std::to_string(signature_.params.size()));
    for (const schema::Param& param : signature_.params) params_.push_back(definition(param));
    for (const schema::Result& result : signature_.results)
      result_names_.push_back(result.name.c_str());
  }
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;

  const std::string& name() const { return name_; }            // "acme::swiglu"
  const std::string& canonical() const { return canonical_; }  // name and signature
  uint64_t hash() const { return hash_; }
  const schema::Signature& signature() const { return signature_; }
  const std::vector<schema::Param>& params() const { return signature_.params; }
  const std::vector<schema::Result>& results() const { return signature_.results; }
  // "acme" and "swiglu".
  std::string_view name_space() const { return std::string_view(name_).substr(0, colons()); }
  std::string_view short_name() const { return std::string_view(name_).substr(colons() + 2); }

  // What a signature does not say: TENON_PARAM_FLAG_PROMOTE and TENON_PARAM_FLAG_BROADCAST. Before
  // the definition is in use.
  void add_param_flags(size_t index, uint32_t flags) { params_.at(index).flags |= flags; }

  // Writes struct_size, name, schema, schema_hash, params, nparams, param_size, nouts, out_names
  // and adds TENON_OP_LIST_OUTPUT where it is due. Everything else is left as it is.
  void fill(tenon_op_def& def) const {
    def.struct_size = sizeof def;
    def.name = name_.c_str();
    def.schema = canonical_.c_str();
    def.schema_hash = hash_;
    def.params = params_.empty() ? nullptr : params_.data();
    def.nparams = static_cast<uint32_t>(params_.size());
    def.param_size = sizeof(tenon_param_def);
    def.nouts = static_cast<uint32_t>(result_names_.size());
    def.out_names = result_names_.data();
    if (signature_.list_result()) def.flags |= TENON_OP_LIST_OUTPUT;
  }

 private:
  size_t colons() const { return name_.find("::"); }

  static std::string parse_name(schema::TokenStream& tokens) {
    constexpr std::string_view kExpected = "an operator name: `namespace::operator(...) -> ...`";
    std::string space = tokens.expect_name(kExpected);
    if (!tokens.accept("::")) tokens.fail_expected("`::` after the namespace `" + space + "`");
    std::string name = tokens.expect_name("the operator's name after `::`");
    auto is_lower_case = [](std::string_view word) {
      for (char c : word)
        if (!((c >= 'a' && c <= 'z') || schema::detail::is_digit(c) || c == '_')) return false;
      return word.front() >= 'a' && word.front() <= 'z';
    };
    // `add_` is the in-place form of `add`.
    if (!is_lower_case(space) || !is_lower_case(name) || name.back() == '_')
      tokens.fail(
          "expected a name like `acme::log_softmax` ([a-z][a-z0-9_]*, not ending in _), got `" +
          space + "::" + name + "`");
    if (schema::is_reserved_word(space) || schema::is_reserved_word(name))
      tokens.fail("`" + space + "::" + name +
                  "` has a reserved word (C++, Python or generated code); choose another name");
    return space + "::" + name;
  }

  // Points into `param`, which stays where it is.
  static tenon_param_def definition(const schema::Param& param) {
    tenon_param_def def = {};
    def.name = param.name.c_str();
    def.kind = static_cast<int32_t>(param.kind);
    if (param.optional) def.flags |= TENON_PARAM_FLAG_OPTIONAL;
    if (param.keyword_only) def.flags |= TENON_PARAM_FLAG_KEYWORD_ONLY;
    if (param.default_value) {
      def.flags |= TENON_PARAM_FLAG_HAS_DEFAULT;
      std::visit([&](const auto& value) { set(def.default_value, value); }, *param.default_value);
    }
    return def;
  }

  static void set(tenon_value& out, schema::NoneValue) { out.tag = TENON_VALUE_NONE; }
  static void set(tenon_value& out, bool value) {
    out.tag = TENON_VALUE_BOOL;
    out.v.i = value;
  }
  static void set(tenon_value& out, int64_t value) {
    out.tag = TENON_VALUE_INT;
    out.v.i = value;
  }
  static void set(tenon_value& out, double value) {
    out.tag = TENON_VALUE_FLOAT;
    out.v.f = value;
  }
  static void set(tenon_value& out, schema::DtypeValue value) {
    out.tag = TENON_VALUE_DTYPE;
    out.v.i = value.id;
  }
  static void set(tenon_value& out, const std::string& value) {
    set_list(out, TENON_VALUE_STRING, value);
  }
  static void set(tenon_value& out, const std::vector<int64_t>& value) {
    set_list(out, TENON_VALUE_INTS, value);
  }
  static void set(tenon_value& out, const std::vector<double>& value) {
    set_list(out, TENON_VALUE_FLOATS, value);
  }
  template <class List>
  static void set_list(tenon_value& out, int32_t tag, const List& list) {
    out.tag = tag;
    out.aux = static_cast<uint32_t>(list.size());
    out.v.p = const_cast<typename List::value_type*>(list.data());
  }

  std::string name_;
  std::string canonical_;
  uint64_t hash_ = 0;
  schema::Signature signature_;
  std::vector<tenon_param_def> params_;
  std::vector<const char*> result_names_;
};

}  // namespace tenon

// SPDX-License-Identifier: Apache-2.0
#include "check/samples.hpp"

#include <algorithm>
#include <set>

#include "support/text.hpp"

namespace tenon::codegen {
namespace {

struct Generator {
  const char* name;
  size_t numbers;  // before the extents
  const char* form;
};
constexpr Generator kGenerators[] = {
    {"normal", 0, "normal(extents...)"},
    {"uniform", 2, "uniform(low, high, extents...)"},
    {"integers", 2, "integers(low, high, extents..., dtype=int64)"},
    {"booleans", 0, "booleans(extents...)"},
    {"spread", 0, "spread(extents...)"},
};

const Node& unsigned_part(const Node& node) {
  return node.kind == NodeKind::Unary && node.text == "-" ? node.children[0] : node;
}
bool is_integer(const Node& node) { return unsigned_part(node).kind == NodeKind::Integer; }
bool is_number(const Node& node) {
  const Node& part = unsigned_part(node);
  return part.kind == NodeKind::Integer || part.kind == NodeKind::Float ||
         part.is_infinity_or_nan();
}
bool is_list_of(const Node& node, bool (*good)(const Node&)) {
  return node.kind == NodeKind::List &&
         std::all_of(node.children.begin(), node.children.end(), good);
}
bool is_array(const Node& node) {
  return is_list_of(node, [](const Node& child) {
    return child.kind == NodeKind::Boolean || is_number(child) || is_array(child);
  });
}

class SampleChecker {
 public:
  SampleChecker(const Operator& op, const Sample& sample) : op_(op), sample_(sample) {}

  void check() {
    const Node& call = sample_.call;
    if (call.kind != NodeKind::Call || call.text != op_.name)
      fail(cat("expected a call `", op_.name, "(...)`, got `", sample_.text, "`"));
    const std::vector<Param>& params = op_.signature.params;
    std::set<std::string> given;
    for (size_t i = 0; i < call.children.size(); ++i) {
      const std::string& keyword = call.keywords[i];
      const int index = keyword.empty() ? static_cast<int>(i) : op_.signature.find_param(keyword);
      if (!keyword.empty() && index < 0)
        fail(cat("expected a parameter of `", op_.name, "`, got `", keyword, "`",
                 did_you_mean(keyword, names()), "; parameters: ", join(names(), " ")));
      if (index >= static_cast<int>(params.size()))
        fail(cat("expected at most ", params.size(), " arguments, got ", call.children.size(),
                 " in `", sample_.text, "`"));
      const Param& param = params[static_cast<size_t>(index)];
      if (keyword.empty() && param.keyword_only)
        fail(cat("expected `", param.name, "` by keyword, got it by its order; write `", param.name,
                 "=...`"));
      if (!given.insert(param.name).second)
        fail(cat("expected `", param.name, "` once, got it twice"));
      check_argument(param, call.children[i]);
    }
    for (const Param& param : params)
      if (!param.default_value && !given.count(param.name))
        fail(cat("expected a value for `", param.name, "`, which has no default, got `",
                 sample_.text, "`"));
    check_grad();
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw Error(sample_.where, cat("samples: ", text));
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Param& param : op_.signature.params) all.push_back(param.name);
    return all;
  }
  [[noreturn]] void expected(const Param& param, const std::string& what, const Node& got) const {
    fail(cat("`", param.name, "`: expected ", what, ", got `", text_of(got), "`"));
  }

  void check_argument(const Param& param, const Node& node) const {
    if (node.kind == NodeKind::None && (param.optional || !param.default_text.empty())) return;
    switch (param.kind) {
      case ParamKind::Tensor:
        return check_tensor(param, node);
      case ParamKind::Tensors:
        if (node.kind != NodeKind::List) expected(param, "a list `[normal(3), normal(4)]`", node);
        for (const Node& child : node.children) check_tensor(param, child);
        return;
      case ParamKind::Int:
        return require(is_integer(node), param, "an integer", node);
      case ParamKind::Float:
        return require(is_number(node), param, "a number", node);
      case ParamKind::Bool:
        return require(node.kind == NodeKind::Boolean, param, "true or false", node);
      case ParamKind::Scalar:
        return require(is_number(node) || node.kind == NodeKind::Boolean, param, "a number", node);
      case ParamKind::String:
        return require(node.kind == NodeKind::String, param, "text in single quotes", node);
      case ParamKind::Dtype:
        return require(node.kind == NodeKind::Name && find_dtype(node.text), param, "a dtype",
                       node);
      case ParamKind::Ints:
        return require(is_integer(node) || is_list_of(node, is_integer), param,
                       "integers, `[2, 3]`", node);
      case ParamKind::Floats:
        return require(is_number(node) || is_list_of(node, is_number), param,
                       "numbers, `[0.5, 2.0]`", node);
      default:
        expected(param, "nothing: the tests choose the device", node);
    }
  }

  void require(bool good, const Param& param, const char* what, const Node& node) const {
    if (!good) expected(param, what, node);
  }

  void check_tensor(const Param& param, const Node& node) const {
    if (node.kind != NodeKind::Call) {
      // A number may stand for a tensor that is promoted.
      if (is_array(node) || is_number(node) || node.kind == NodeKind::Boolean) return;
      expected(param, "a generator like `normal(3, 4)`, or numbers like `[[1.0, 2.0]]`", node);
    }
    std::vector<std::string> known;
    for (const Generator& generator : kGenerators) {
      if (node.text == generator.name) return check_generator(generator, node);
      known.push_back(generator.name);
    }
    fail(cat("`", param.name, "`: unknown generator `", node.text, "`",
             did_you_mean(node.text, known), "; known: ", join(known, " ")));
  }

  void check_generator(const Generator& generator, const Node& node) const {
    bool good = node.children.size() >= generator.numbers;
    for (size_t i = 0; i < node.children.size(); ++i) {
      const Node& child = node.children[i];
      if (!node.keywords[i].empty())
        good = good && node.text == "integers" && node.keywords[i] == "dtype" &&
               child.kind == NodeKind::Name && find_dtype(child.text);
      else
        good = good && (i < generator.numbers ? is_number(child) : child.kind == NodeKind::Integer);
    }
    if (!good) fail(cat("expected ", generator.form, ", got `", text_of(node), "`"));
  }

  void check_grad() const {
    if (!sample_.grad) return;
    for (const std::string& name : *sample_.grad) {
      const int index = op_.signature.find_param(name);
      if (index < 0 || !op_.signature.params[static_cast<size_t>(index)].holds_tensors())
        fail(cat("grad: expected a tensor parameter of `", op_.name, "` or `none`, got `", name,
                 "`"));
    }
  }

  const Operator& op_;
  const Sample& sample_;
};

}  // namespace

void check_sample(const Operator& op, const Sample& sample) { SampleChecker(op, sample).check(); }

}  // namespace tenon::codegen

// SPDX-License-Identifier: Apache-2.0
#include "check/check.hpp"

#include <map>
#include <set>

#include "check/samples.hpp"
#include "expression/operator_check.hpp"
#include "expression/scalar.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

[[noreturn]] void refuse(const Operator& op, const std::string& text) {
  throw Error(op.where, cat("`", op.name, "` (", yaml_name(op.kind), "): ", text));
}

// A parameter hides the function of the same name in the C++ that is generated from both.
void check_parameter_names(const Operator& op) {
  for (const Param& param : op.signature.params)
    if (param.name == op.name)
      refuse(op,
             cat("the parameter `", param.name,
                 "` has the name of its operator, which it would hide in generated C++; give it "
                 "another name"));
}

void check_keys_of_kind(const Operator& op) {
  bool has_expression = !op.cases.empty(), has_reduction = op.reduction.has_value();
  bool has_decompose = op.decompose_native || !op.decompose.empty();
  if (has_expression && !op.is_elementwise()) refuse(op, "`expr` is for `kind: elementwise`");
  if (has_reduction && op.kind != OperatorKind::Reduction)
    refuse(op, "`reduce` is for `kind: reduction`");
  switch (op.kind) {
    case OperatorKind::Elementwise:
      if (!has_expression && !has_decompose)
        refuse(op, "expected `expr`; for a hand-written kernel say `kind: kernel`");
      break;
    case OperatorKind::Reduction:
      if (!has_reduction)
        refuse(op, "expected `reduce`; for a hand-written kernel say `kind: kernel`");
      if (op.shape->kind != ShapeRule::Reduce && op.shape->kind != ShapeRule::Native)
        refuse(op, "expected `shape: reduce(x, axis, keepdim)` or `native`");
      break;
    case OperatorKind::View:
      if (op.shape->kind != ShapeRule::Native)
        refuse(op, "views compute strides; expected `shape: native`");
      if (has_decompose) refuse(op, "a view needs no `decompose`: it runs no kernel");
      break;
    case OperatorKind::Kernel:
      break;
    case OperatorKind::Composite:
      if (!has_decompose) refuse(op, "expected `decompose`");
      if (!op.gradients.empty() || op.never_differentiable)
        refuse(op, "takes no `grad`: its parts have theirs");
      break;
  }
  if (op.signature.list_result() && !op.is_composite())
    refuse(op, "a Tensor[] result is for `kind: composite`");
  if (op.dtypes.float32_interior && !has_decompose)
    refuse(op, "`dtypes.interior` is about a decomposition, and it has none");
  if (op.data_dependent() && op.kind != OperatorKind::Kernel && !op.is_composite())
    refuse(op, "`data_dependent` is for `kind: kernel`");
}

void check_generated_kernel(const Operator& op) {
  if (op.cases.empty() && !op.reduction) return;
  if (op.signature.results.size() != 1) refuse(op, "generated kernels have one result");
  size_t tensors = 0;
  const std::vector<Param>& params = op.signature.params;
  for (size_t i = 0; i < params.size(); ++i) {
    const Param& param = params[i];
    if (param.kind == ParamKind::Tensors || (param.is_tensor() && param.optional))
      refuse(op, cat("`", param.name, "`: generated kernels take plain Tensor parameters"));
    if (param.is_tensor() && i > tensors)
      refuse(op, cat("`", param.name,
                     "`: generated kernels take their tensors before other parameters"));
    tensors += param.is_tensor();
  }
  if (tensors == 0) refuse(op, "generated kernels read at least one tensor");
  if (op.reduction && tensors != 1) refuse(op, "a reduction reads one tensor");
  if (op.reduction && op.shape->params.size() < 2 && op.signature.find_param("axis") < 0)
    refuse(op, "a reduction needs a parameter `axis`");
  OutDtype::Rule out = op.dtypes.outs[0].rule;
  if (op.is_elementwise() &&
      (out == OutDtype::Float || out == OutDtype::Param || out == OutDtype::Native))
    refuse(op, "elementwise results are `same`, `bool`, `real`, `int64` or `accumulate`");
  for (const ScalarCase& scalar_case : op.cases) check_case(op, scalar_case);
  if (op.reduction) check_reduction(op);
}

void check_element_steps_of(const Operator& op) {
  if (op.element_steps.empty()) return;
  if (op.kind != OperatorKind::Kernel || !op.has_tag("elementwise"))
    refuse(op,
           "a list in `expr` is for `kind: elementwise`, or for `kind: kernel` with `tags: "
           "[elementwise]`");
  if (op.dtypes.allow & ~floating_dtypes())
    refuse(op, "a list in `expr` is for floating dtypes; say `allow: floating`");
  bool is_first = true;
  size_t tensors = 0;
  for (const Param& param : op.signature.params) {
    if (param.kind == ParamKind::Tensors || (param.is_tensor() && (param.optional || !is_first)))
      refuse(op, cat("`", param.name,
                     "`: generated kernels take plain Tensor parameters, before all others"));
    is_first = param.is_tensor();
    tensors += param.is_tensor();
  }
  constexpr size_t kMaxInputs = 4, kMaxResults = 3;  // of the engine for Kernel C
  if (tensors == 0 || tensors > kMaxInputs || op.signature.results.size() > kMaxResults)
    refuse(op, cat("a list in `expr` reads 1 to ", kMaxInputs, " tensors and writes at most ",
                   kMaxResults));
  check_element_steps(op);
}

void check_written_kernels(const Operator& op) {
  if (op.kernels.empty()) return;
  if (op.name_space == "tenon")
    refuse(op, "`kernels` is for packages; Tenon's own kernels are in plugins/<device>/kernels");
  if (op.is_composite())
    refuse(op,
           "takes no `kernels`: it is its decomposition; with a kernel of its own it is "
           "`kind: kernel`");
  if (op.is_view()) refuse(op, "takes no `kernels`: a view runs none");
}

void check_tags(const Operator& op) {
  const std::vector<Param>& params = op.signature.params;
  if (op.has_tag("convert") &&
      !(params.size() == 2 && params[0].is_tensor() && params[1].kind == ParamKind::Dtype))
    refuse(op, "`convert` is for (Tensor x, dtype dtype) -> Tensor");
  if (op.has_tag("materialize") && !(params.size() == 1 && params[0].is_tensor()))
    refuse(op, "`materialize` is for (Tensor x) -> Tensor");
}

void check_gradients(Operator& op, const Package& package) {
  std::set<std::string> seen;
  for (const Gradient& gradient : op.gradients) {
    for (const std::string& name : gradient.params)
      if (!seen.insert(name).second)
        throw Error(gradient.where, cat("grad: `", name, "` has two entries"));
    check_gradient(op, gradient, package);
  }
  bool inexact = false;
  for (const OutDtype& out : op.dtypes.outs)
    inexact = inexact || (out.rule != OutDtype::Bool && out.rule != OutDtype::Int64);
  if (!inexact && !op.is_composite()) {
    if (!op.gradients.empty())
      refuse(op, "results are bool or int64 and carry no gradient; remove `grad`");
    op.never_differentiable = true;
  }
}

// Operators by what their decompositions call.
using Calls = std::map<const Operator*, std::set<const Operator*>>;

void add_calls(const Operator& op, const Program& program, Calls& calls) {
  auto visit = [&](const Value& value) {
    if (value.form == Value::OperatorCall) calls[&op].insert(value.op);
  };
  for (const auto& step : program.steps) walk_values(step.second, visit);
  walk_values(program.result, visit);
}

// "a -> b -> a", if calls lead from `op` back to it.
std::string circle_from(const Operator& op, const Calls& calls) {
  std::set<const Operator*> seen;
  auto path_from = [&](auto&& self, const Operator* at) -> std::string {
    auto entry = calls.find(at);
    if (entry == calls.end()) return "";
    for (const Operator* next : entry->second) {
      if (next == &op) return cat(at->name, " -> ", op.name);
      if (!seen.insert(next).second) continue;
      std::string rest = self(self, next);
      if (!rest.empty()) return cat(at->name, " -> ", rest);
    }
    return "";
  };
  return path_from(path_from, &op);
}

// A name of another library that is called by a signature, and one of `tenon` itself, is one thing.
void check_names(const Package& package, std::vector<std::string>& errors) {
  std::map<std::pair<std::string, std::string>, const Spelling*> known;
  const auto check = [&](const Names& names) {
    for (const auto& [library, spellings] : names)
      for (const Spelling& each : spellings) {
        const bool is_own = library == "tenon";
        if (!is_own && each.signature.empty()) continue;
        const auto [other, is_new] = known.emplace(std::pair(library, each.name), &each);
        if (!is_new)
          errors.push_back(cat(each.where.text(), ": names: `", each.name, "` of ", library,
                               " is said at ", other->second->where.origin(), ", too"));
        else if (is_own && package.find(each.name, "tenon"))
          errors.push_back(
              cat(each.where.text(), ": names: `", each.name, "` is an operator of its own"));
      }
  };
  for (const Operator* op : package.emitted) check(op->names);
  for (const auto& [place, names] : package.functions) check(names);
}

}  // namespace

void check_package(Package& package, std::vector<std::string>& errors) {
  Calls calls;
  // Imported operators were checked where they are from; of some, no more than the signature is known.
  const std::set<const Operator*> emitted(package.emitted.begin(), package.emitted.end());
  for (const auto& owned : package.operators) {
    if (!emitted.count(owned.get())) continue;
    Operator& op = *owned;
    auto attempt = [&](auto&& check) {
      try {
        check();
      } catch (const Error& error) {
        errors.push_back(error.what());
      }
    };
    attempt([&] { check_parameter_names(op); });
    attempt([&] { check_keys_of_kind(op); });
    attempt([&] { check_generated_kernel(op); });
    const size_t errors_before = errors.size();
    attempt([&] { check_element_steps_of(op); });
    const bool good_steps = errors.size() == errors_before;
    attempt([&] { check_written_kernels(op); });
    attempt([&] { check_tags(op); });
    attempt([&] { check_gradients(op, package); });
    attempt([&] {
      if (!op.decompose.empty() && good_steps) add_calls(op, check_decompose(op, package), calls);
    });
    for (const Example& example : op.examples)
      attempt([&] { check_example(op, example, package); });
    for (const Sample& sample : op.samples) attempt([&] { check_sample(op, sample); });
  }
  check_names(package, errors);
  for (const Operator* op : package.emitted)
    if (std::string circle = circle_from(*op, calls); !circle.empty())
      errors.push_back(cat(op->decompose.front().expression.where.text(), ": decompose: `",
                           op->name, "` is made of itself (", circle,
                           "); express one of them by others"));
}

}  // namespace tenon::codegen

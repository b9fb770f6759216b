// SPDX-License-Identifier: Apache-2.0
#include "expression/operator_check.hpp"

#include "expression/operator_checker.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// The result must give `count` tensors, the i-th of which may be a list if `lists(i)`.
void check_result(const OperatorChecker& checker, const Steps& steps, Program& program,
                  size_t count, bool list, const std::string& what) {
  Value& result = program.result;
  const Node& node = steps.back().expression;
  if (count > 1) {
    bool record =
        result.type.is(ValueType::Record) && result.type.record->signature.results.size() == count;
    bool tensors = result.form == Value::List && result.type.is(ValueType::Tensors) &&
                   result.children.size() == count;
    if (!record && !tensors)
      checker.fail(
          node, cat("expected ", count, " tensors for ", what,
                    ": a list [a, b], or a call with as many results; got ", name_of(result.type)));
    return;
  }
  ValueType expected{list ? ValueType::Tensors : ValueType::Tensor};
  if (list && result.form == Value::List && result.children.empty()) result.type = expected;
  // A number is no tensor here: nothing says what its dtype and device would be.
  if (result.type.base == expected.base) return;
  checker.fail(node, cat("expected ", name_of(expected), " for ", what, ", got ",
                         name_of(result.type), " `", text_of(node), "`"));
}

// Whether the result is that of an operator that writes over the same argument, so that this can be its output.
bool writes_over_the_argument(const Operator& op, const Value& result) {
  if (result.form != Value::OperatorCall || !result.op->writes_in_place() || result.bound[0] < 0)
    return false;
  const Value& written = result.children[static_cast<size_t>(result.bound[0])];
  return written.form == Value::Variable && written.text == op.in_place;
}

}  // namespace

Program check_decompose(const Operator& op, const Package& package) {
  OperatorChecker checker(op, package, "decompose");
  Program program = checker.program(op.decompose);
  const auto& results = op.signature.results;
  check_result(checker, op.decompose, program, results.size(), results[0].list,
               join(results, ", ", [](const Result& r) { return "`" + r.name + "`"; }));
  if (program.result.type.optional)
    checker.fail(op.decompose.back().expression, "the result may be none");
  if (op.writes_in_place() && !writes_over_the_argument(op, program.result))
    checker.fail(op.decompose.back().expression,
                 cat("`in_place` needs a last call of an operator that writes over `", op.in_place,
                     "`; write ", kByCopy, " for a result that is copied"));
  return program;
}

Program check_gradient(const Operator& op, const Gradient& gradient, const Package& package) {
  std::string names = join(gradient.params, ", ");
  OperatorChecker checker(op, package, "grad." + names);
  for (size_t i = 0; i < op.signature.results.size(); ++i) {
    const std::string& name = op.signature.results[i].name;
    int index = static_cast<int>(i);
    checker.bind(name, {{ValueType::Tensor}, Role::Output, index});
    checker.bind("d" + name, {{ValueType::Tensor}, Role::Gradient, index});
  }
  bool list = false;
  for (const std::string& name : gradient.params) {
    int index = op.signature.find_param(name);
    if (index < 0 || !op.signature.params[index].holds_tensors()) {
      std::vector<std::string> known;
      for (const Param& param : op.signature.params)
        if (param.holds_tensors()) known.push_back(param.name);
      throw Error(gradient.where,
                  cat("grad: `", name, "` is no tensor parameter of `", op.name, "`",
                      did_you_mean(name, known), "; tensor parameters: ", join(known, " ")));
    }
    list = op.signature.params[index].kind == ParamKind::Tensors;
    if (list && gradient.params.size() > 1)
      throw Error(gradient.where,
                  cat("grad: `", name, "` is a Tensor[]; give it an entry of its own"));
  }
  Program program = checker.program(gradient.steps);
  check_result(checker, gradient.steps, program, gradient.params.size(), list, "`" + names + "`");
  return program;
}

void check_example(const Operator& op, const Example& example, const Package& package) {
  Operator context;
  context.name_space = op.name_space;
  OperatorChecker checker(context, package, "example");
  checker.allow_tensor_literals();
  checker.check(example.call);
}

}  // namespace tenon::codegen

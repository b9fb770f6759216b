// SPDX-License-Identifier: Apache-2.0
#include "callee.hpp"

namespace tenon::interpreter {
namespace {

constexpr int kMaxDepth = 2000;

}  // namespace

constinit thread_local int Depth::used = 0;

Depth::Depth(Scope& scope, int cost) : cost_(cost) {
  used += cost;
  if (used <= kMaxDepth) return;
  is_enough_ = false;
  if (scope.ok())
    scope.fail(TENON_FAILED_PRECONDITION,
               "operators call each other too deep; is one made of itself, in another file?");
}

const tenon_op* Callee::find(Scope& scope) {
  const tenon_op* op = op_.load(std::memory_order_acquire);
  if (!op) {
    op = host->op_find(name_.c_str());
    if (op) op_.store(op, std::memory_order_release);
  }
  const tenon_op_def* def = op ? host->op_def(op) : nullptr;
  if (!def || !def->name) {
    scope.fail(TENON_NOT_FOUND,
               "operator " + name_ + " is not defined; load the file or plugin that defines it");
    return nullptr;
  }
  if (schema_hash_ && def->schema_hash != schema_hash_) {
    scope.fail(TENON_FAILED_PRECONDITION,
               "operator " + name_ +
                   " has another signature than when this expression was checked: " + def->schema +
                   "; load the file with the expression again");
    return nullptr;
  }
  return op;
}

bool Callee::run(Scope& scope, tenon_value* args, uint32_t nargs, tenon_value* outs,
                 uint32_t nouts) {
  if (!scope.ok()) return false;
  const tenon_op* op = find(scope);
  return op && scope.check(host->op_call(op, args, nargs, outs, nouts, scope.err()));
}

}  // namespace tenon::interpreter

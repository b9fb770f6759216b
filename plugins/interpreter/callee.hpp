// SPDX-License-Identifier: Apache-2.0
// An operator that an expression calls.
#pragma once

#include <atomic>
#include <string>
#include <tenon/tensor.hpp>

namespace tenon::interpreter {

// Those of static duration are never freed: threads may call when the program's destructors run.
class Callee {
 public:
  // `schema_hash`: of the signature that the call was checked against; 0: any.
  Callee(std::string name, uint64_t schema_hash)
      : name_(std::move(name)), schema_hash_(schema_hash) {}

  const std::string& name() const { return name_; }
  // Found at the first use: it may be defined after the operator that calls it. NULL, and the scope
  // failed: there is none of that name, or it has another signature by now.
  const tenon_op* find(Scope& scope);
  // Does nothing if an earlier call in the scope failed.
  bool run(Scope& scope, tenon_value* args, uint32_t nargs, tenon_value* outs, uint32_t nouts);

 private:
  const std::string name_;
  const uint64_t schema_hash_;
  std::atomic<const tenon_op*> op_{nullptr};
};

// Expressions within expressions take stack. True while there is enough of it; fails the scope
// otherwise. `cost`: 1 for a part of an expression, more for an operator call.
class Depth {
 public:
  Depth(Scope& scope, int cost);
  ~Depth() { used -= cost_; }
  Depth(const Depth&) = delete;
  explicit operator bool() const { return is_enough_; }

 private:
  static constinit thread_local int used;
  const int cost_;
  bool is_enough_ = true;
};

}  // namespace tenon::interpreter

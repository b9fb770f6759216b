// SPDX-License-Identifier: Apache-2.0
#include "rules.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tenon::autograd {
namespace {

constexpr uint32_t kKnownFlags =
    TENON_GRAD_RULE_REPLACE | TENON_GRAD_RULE_COMPLEX | TENON_GRAD_RULE_HOLOMORPHIC;

struct Table {
  explicit Table(uint32_t count)
      : size(count), entries(new std::atomic<const OperatorInfo*>[count]()) {}
  uint32_t size;
  std::unique_ptr<std::atomic<const OperatorInfo*>[]> entries;
};

std::atomic<const Table*> published{nullptr};

// Behind the lock. Nothing is ever freed: readers and nodes may hold any of it.
struct Registry {
  std::mutex mutex;
  std::unordered_map<std::string, const tenon_grad_rule*> rules;
  std::deque<OperatorInfo> infos;
  std::deque<std::string> names;
  std::deque<Table> tables;
};
Registry& registry() {
  static Registry* instance = new Registry;  // outlives static destructors
  return *instance;
}

std::string qualified(std::string_view name) {
  return name.find("::") == std::string_view::npos ? "tenon::" + std::string(name)
                                                   : std::string(name);
}

bool is_attribute(const tenon_param_def& param) {
  return param.kind != TENON_PARAM_TENSOR && param.kind != TENON_PARAM_TENSORS;
}

bool is_built_in(const tenon_grad_rule* rule) {
  std::less<const tenon_grad_rule*> before;
  return !before(rule, kGradRules) && before(rule, kGradRules + kGradRuleCount);
}

// Caller holds the mutex.
const OperatorInfo* describe(Registry& self, const tenon_op* op) {
  const tenon_op_def* def = host->op_def(op);
  self.names.push_back(def && def->name ? def->name : "(undefined operator)");
  auto position = self.rules.find(self.names.back());
  const tenon_grad_rule* rule = position == self.rules.end() ? nullptr : position->second;
  OperatorInfo info = {.op = op, .name = self.names.back().c_str(), .rule = rule};
  info.op_flags = def->flags;
  info.nparams = def->nparams;
  info.has_tensors = false;
  for (uint32_t i = 0; i < def->nparams; ++i) info.has_tensors |= !is_attribute(def->params[i]);
  if (!rule && !(def->flags & TENON_OP_NO_GRAD)) info.diff_args = ~uint64_t{0};
  if (rule) {
    info.diff_args = rule->diff_args;
    info.saves_args = rule->saves_args;
    info.shapes_args = rule->shapes_args;
    info.saves_outs = rule->saves_outs;
    info.is_plain_view = def->flags & TENON_OP_VIEW && is_built_in(rule);
    info.keeps_values = info.saves_args || info.shapes_args ||
                        std::any_of(def->params, def->params + def->nparams, is_attribute);
  }
  self.infos.push_back(info);
  return &self.infos.back();
}

// Publish what is known about operator `id`, in a longer table if need be. Caller holds the mutex.
void publish(Registry& self, uint32_t id, const OperatorInfo* info) {
  const Table* current = published.load(std::memory_order_relaxed);
  if (!current || id >= current->size) {
    uint32_t size = std::max(std::bit_ceil(id + 1), 1024u);
    Table& grown = self.tables.emplace_back(size);
    for (uint32_t i = 0; current && i < current->size; ++i)
      grown.entries[i].store(current->entries[i].load(std::memory_order_relaxed),
                             std::memory_order_relaxed);
    current = &grown;
    published.store(current, std::memory_order_release);
  }
  current->entries[id].store(info, std::memory_order_release);
}

[[gnu::noinline]] const OperatorInfo* describe_now(const tenon_op* op, uint32_t id) {
  try {
    Registry& self = registry();
    std::lock_guard lock(self.mutex);
    const OperatorInfo* info = describe(self, op);
    publish(self, id, info);
    return info;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

uint64_t read_by(const uint64_t* reads, uint64_t all, uint64_t needs) {
  if (!reads) return all;
  uint64_t mask = 0;
  for (uint64_t rest = needs; rest; rest &= rest - 1) mask |= reads[std::countr_zero(rest)];
  return mask & all;
}

// NULL where the rule's table is too short to have `member`, which may have been added later.
template <class Member>
Member optional(const tenon_grad_rule* rule, Member tenon_grad_rule::*member, size_t offset) {
  return rule->struct_size >= offset + sizeof(void*) ? rule->*member : nullptr;
}

bool has_backward(const tenon_grad_rule* rule) {
  return rule->backward ||
         optional(rule, &tenon_grad_rule::backward_self, offsetof(tenon_grad_rule, backward_self));
}

}  // namespace

uint64_t OperatorInfo::some_arguments_read(uint64_t needs) const {
  return read_by(optional(rule, &tenon_grad_rule::arg_reads, offsetof(tenon_grad_rule, arg_reads)),
                 saves_args, needs);
}

uint64_t OperatorInfo::some_outputs_read(uint64_t needs) const {
  return read_by(optional(rule, &tenon_grad_rule::out_reads, offsetof(tenon_grad_rule, out_reads)),
                 saves_outs, needs);
}

const OperatorInfo* operator_info(const tenon_op* op) {
  uint32_t id = host->op_id(op);
  const Table* table = published.load(std::memory_order_acquire);
  if (table && id < table->size) [[likely]]
    if (const OperatorInfo* info = table->entries[id].load(std::memory_order_acquire)) [[likely]]
      return info;
  return describe_now(op, id);
}

tenon_status run_rule(const tenon_grad_rule& rule, const tenon_value* args, uint32_t nargs,
                      tenon_tensor* const* outs, tenon_tensor* const* grad_outs, uint32_t nouts,
                      uint64_t needs, tenon_value* grad_args, tenon_err* err) {
  if (rule.backward)
    return rule.backward(host, args, nargs, outs, grad_outs, nouts, needs, grad_args, err);
  return rule.backward_self(host, args, nargs, outs, grad_outs, nouts, needs, grad_args, err,
                            rule.self);
}

tenon_status rule_register(const tenon_grad_rule* rule, tenon_err* err) {
  if (!rule || rule->struct_size < offsetof(tenon_grad_rule, backward) + sizeof(void*) ||
      !rule->op || rule->flags & ~kKnownFlags ||
      !(has_backward(rule) || rule->flags & TENON_GRAD_RULE_REPLACE))
    return fail_format(
        err, TENON_INVALID_ARGUMENT,
        "a gradient rule needs struct_size, op, known flags and a backward function");
  try {
    Registry& self = registry();
    std::lock_guard lock(self.mutex);
    std::string name = qualified(rule->op);
    bool replaces = rule->flags & TENON_GRAD_RULE_REPLACE;
    if (replaces) self.rules.erase(name);
    if (has_backward(rule) && !self.rules.try_emplace(name, rule).second) return TENON_OK;
    // The operator may have been called before its rule was known, or had another signature.
    const tenon_op* op = host->op_find(name.c_str());
    const Table* table = published.load(std::memory_order_relaxed);
    if (!op || !table) return TENON_OK;
    uint32_t id = host->op_id(op);
    if (id < table->size && table->entries[id].load(std::memory_order_relaxed))
      publish(self, id, describe(self, op));
    return TENON_OK;
  } catch (const std::bad_alloc&) {
    return fail_host_memory(err);
  }
}

}  // namespace tenon::autograd

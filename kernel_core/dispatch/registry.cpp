// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/dispatch/registry.hpp"
#include "kernel_core/dispatch/arguments.hpp"

#include <tenon/services/candidates.h>
#include <tenon/operator_traits.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/runtime/device.hpp"
#include "kernel_core/runtime/log.hpp"
#include "kernel_core/types/dtype.hpp"

namespace tenon::core {
namespace {

constexpr uint32_t kMaxOperators = 16384;

struct Registry {
  std::mutex mutex;
  std::unordered_map<std::string, Operator*> by_name;
  std::atomic<Operator*> by_id[kMaxOperators];
  std::atomic<uint32_t> count{0};
  std::atomic<Operator*> convert{nullptr}, materialize{nullptr};
  std::vector<CellRow*> rows;  // of all operators
  std::unordered_map<const Operator*, std::vector<std::unique_ptr<Kernel>>> kernels;
  // What cells point at, and once pointed at. Never freed: a reader may still hold it. What comes
  // again, with a plugin that went and returned, is used again.
  struct Answers {
    std::deque<Resolution> resolutions;
    std::deque<std::vector<const Resolution*>> candidate_lists;
  };
  std::unordered_map<const void*, Answers> answers;  // by cell
  std::vector<std::unique_ptr<Kernel>> retired;
  // Equal definitions by further plugins: one of them takes over when the plugin of the first goes.
  struct Spare {
    Operator* op;
    tenon_op_def def;
    const void* owner;
    std::string definer;
  };
  std::vector<Spare> spares;
  std::map<std::string, bool> consents;  // by plugin; "*": the others

  bool is_deterministic = false;  // kernels whose results may differ from run to run are held back

  std::atomic<uint64_t> generation{0};  // of what cells may hold

  // "*" is consent to overrides. It does not choose optional kernels: that takes the plugin's name.
  KernelState state_of(const Kernel& kernel) const {
    if (is_deterministic && kernel.def.traits & TENON_KERNEL_NONDETERMINISTIC)
      return KernelState::kHeldBack;
    auto consent = consents.find(kernel.plugin);
    if (kernel.is_optional && consent != consents.end() && consent->second)
      return KernelState::kUsed;
    if (consent == consents.end()) consent = consents.find("*");
    const bool is_allowed = consent != consents.end() && consent->second;
    if (kernel.is_override && !is_allowed) return KernelState::kHeldBack;
    return kernel.is_optional ? KernelState::kOptional : KernelState::kUsed;
  }
  bool is_used(const Kernel& kernel) const { return state_of(kernel) == KernelState::kUsed; }
};

Registry& registry() {
  static Registry* instance = new Registry;  // outlives static destructors
  return *instance;
}

std::string qualified(std::string_view name) {
  return name.find("::") == std::string_view::npos ? "tenon::" + std::string(name)
                                                   : std::string(name);
}

// An entry for a name, defined or not. Caller holds the mutex.
Operator* entry_for(Registry& self, const std::string& name) {
  auto [position, inserted] = self.by_name.try_emplace(name, nullptr);
  if (!inserted) return position->second;
  uint32_t id = self.count.load(std::memory_order_relaxed);
  if (id == kMaxOperators) {
    self.by_name.erase(position);
    return nullptr;
  }
  auto* op = new Operator{};
  op->id = id;
  op->name = name;
  position->second = op;
  self.by_id[id].store(op, std::memory_order_release);
  self.count.store(id + 1, std::memory_order_release);
  return op;
}

void clear_row(CellRow& row) {
  for (auto& cell : row) cell.store(nullptr, std::memory_order_release);
}

void clear_all_rows(Registry& self) {
  for (CellRow* row : self.rows) clear_row(*row);
  self.generation.fetch_add(1, std::memory_order_release);
}

constexpr std::string_view kInPlace = "in_place: ", kByCopy = "by_copy";

// The parameter whose tensor the only result may be written over; -1: none.
int8_t in_place_parameter(const tenon_op_def& def) {
  const std::string_view name = trait(def, kInPlace);
  for (uint32_t i = 0; i < def.nparams && def.nouts == 1; ++i)
    if (def.params[i].kind == TENON_PARAM_TENSOR && def.params[i].name == name)
      return static_cast<int8_t>(i);
  return -1;
}

tenon_status check_definition(const tenon_op_def& def, tenon_err* err) {
  bool by_rule = def.shape == TENON_SHAPE_BROADCAST;
  bool needs_infer = !by_rule && !(def.flags & (TENON_OP_DATA_DEPENDENT | TENON_OP_COMPOSITE));
  if (needs_infer && !def.infer && !def.infer_self)
    return fail(err, TENON_INVALID_ARGUMENT, "operator %s: it has no shape rule; set `infer`",
                def.name);
  if (by_rule && def.nouts != 1)
    return fail(err, TENON_INVALID_ARGUMENT,
                "operator %s: a broadcast shape has one result, got %u", def.name, def.nouts);
  if ((def.flags & TENON_OP_COMPOSITE) && !def.decompose && !def.decompose_self)
    return fail(err, TENON_INVALID_ARGUMENT, "operator %s: composite without `decompose`",
                def.name);
  if ((def.flags & TENON_OP_LIST_OUTPUT) && (!(def.flags & TENON_OP_COMPOSITE) || def.nouts != 1))
    return fail(err, TENON_INVALID_ARGUMENT,
                "operator %s: a result that is a list of tensors is the only one of a composite, "
                "which makes the list; expected 1 result and TENON_OP_COMPOSITE in flags, got %u "
                "and 0x%x; write `decompose`",
                def.name, def.nouts, static_cast<unsigned>(def.flags));
  const std::string_view written = trait(def, kInPlace);
  if (!written.empty() && written != kByCopy && in_place_parameter(def) < 0)
    return fail(err, TENON_INVALID_ARGUMENT,
                "operator %s: its traits say `in_place: %.*s`, expected one result and the name of "
                "a Tensor parameter",
                def.name, static_cast<int>(written.size()), written.data());
  return TENON_OK;
}

bool is_simple(const tenon_op_def& def) {
  if (def.shape != TENON_SHAPE_BROADCAST || def.nparams == 0 || def.flags & TENON_OP_COMPOSITE)
    return false;
  constexpr uint32_t kBoth = TENON_PARAM_FLAG_PROMOTE | TENON_PARAM_FLAG_BROADCAST;
  for (uint32_t i = 0; i < def.nparams; ++i)
    if (def.params[i].kind != TENON_PARAM_TENSOR || (def.params[i].flags & kBoth) != kBoth)
      return false;
  return def.compute == TENON_COMPUTE_PROMOTE || def.compute == TENON_COMPUTE_PROMOTE_FLOAT;
}

bool may_be_plain_view(const tenon_op_def& def) {
  auto is_tensor = [](const tenon_param_def& param) { return param.kind <= TENON_PARAM_TENSORS; };
  bool may_view = def.flags & TENON_OP_VIEW || (def.flags & TENON_OP_COMPOSITE && def.infer);
  return may_view && !(def.flags & TENON_OP_NO_GRAD) && def.compute == TENON_COMPUTE_FIRST &&
         ~def.dtype_mask << (64 - TENON_DTYPE_COUNT) == 0 && def.nouts == 1 && def.nparams > 0 &&
         std::none_of(def.params + 1, def.params + def.nparams, is_tensor);
}

void define(Registry& self, Operator& op, const tenon_op_def& def, const void* owner,
            const std::string& definer) {
  op.def = def;
  op.owner = owner;
  op.definer = definer;
  op.tensor_params_only = is_simple(def);
  op.views_first = may_be_plain_view(def);
  op.plain_defaults = has_plain_defaults(def);
  op.is_its_parts =
      def.flags & TENON_OP_COMPOSITE && def.nouts == 1 && op.plain_defaults && !op.can_infer();
  op.in_place = in_place_parameter(def);
  op.creation.store(0, std::memory_order_relaxed);
  op.is_defined = 1;
  for (auto& row : op.rows)
    if (CellRow* made = row.load(std::memory_order_acquire)) clear_row(*made);
  self.generation.fetch_add(1, std::memory_order_release);
  if (def.flags & TENON_OP_CONVERT) self.convert.store(&op, std::memory_order_release);
  if (def.flags & TENON_OP_MATERIALIZE) self.materialize.store(&op, std::memory_order_release);
}

// Is the kernel for this kind: by name, or because the kind compiles source?
bool serves(const Kernel& kernel, const KindView& kind) {
  if (kind.owner && kernel.owner != kind.owner) return false;
  return kernel.device_kind == kind.name ||
         (kind.compiles && kernel.device_kind == TENON_DEVICE_COMPILED);
}

// Device kinds with at least one kernel are worth lowering for; on others every part of a
// decomposition would run on the host, one copy after another. Where the parts are primitives, it
// is those that must be there, for this dtype.
bool kind_has_parts(Registry& self, const Operator& of, uint32_t kind, int32_t dtype) {
  const KindView view = view_device_kind(kind);
  bool wants_primitives = of.def.flags & TENON_OP_TO_PRIMITIVES;
  for (auto& [op, kernels] : self.kernels)
    for (auto& kernel : kernels)
      if (serves(*kernel, view) && self.is_used(*kernel) &&
          (!wants_primitives ||
           (op->def.flags & TENON_OP_PRIMITIVE && kernel->def.dtype_mask >> dtype & 1)))
        return true;
  return false;
}

std::vector<const Kernel*> candidates(Registry& self, const Operator& op, uint32_t kind,
                                      int32_t dtype, KernelState state = KernelState::kUsed) {
  std::vector<const Kernel*> found;
  auto position = self.kernels.find(&op);
  if (position == self.kernels.end()) return found;
  const KindView view = view_device_kind(kind);
  for (auto& kernel : position->second)
    if (serves(*kernel, view) && (kernel->def.dtype_mask >> dtype & 1) &&
        self.state_of(*kernel) == state)
      found.push_back(kernel.get());
  auto comes_first = [](const Kernel* a, const Kernel* b) {
    bool a_is_compiled = a->device_kind == TENON_DEVICE_COMPILED,
         b_is_compiled = b->device_kind == TENON_DEVICE_COMPILED;
    return a_is_compiled != b_is_compiled ? b_is_compiled : a->def.score > b->def.score;
  };
  std::stable_sort(found.begin(), found.end(), comes_first);
  return found;
}

// An operator that takes tensors to a device it is given: on the host, and its result brought back,
// it would do nothing.
bool moves_tensors(const tenon_op_def& def) {
  if (def.compute == TENON_COMPUTE_OUTPUT) return false;
  return std::any_of(def.params, def.params + def.nparams,
                     [](const tenon_param_def& param) { return param.kind == TENON_PARAM_DEVICE; });
}

Route route_without_kernel(Registry& self, const Operator& op, uint32_t kind, int32_t dtype) {
  Device* host = find_device(slots::device_host());
  bool is_host = host && TENON_DEVICE_KIND(host->id) == kind;
  bool is_primitive = op.def.flags & TENON_OP_PRIMITIVE,
       to_primitives = op.def.flags & TENON_OP_TO_PRIMITIVES;
  // Primitives are made of operators on the host, operators of primitives elsewhere: never in a
  // circle. On a device some primitives are made of others; where they are not, the host runs them.
  bool is_copy = op.def.flags & (TENON_OP_CONVERT | TENON_OP_MATERIALIZE);
  bool can_lower =
      op.can_decompose() && (to_primitives  ? !is_host
                             : is_primitive ? is_host || !(op.def.flags & TENON_OP_STRIDED)
                                            : !is_copy);
  if (can_lower && (is_host || moves_tensors(op.def) || kind_has_parts(self, op, kind, dtype)))
    return Route::kLowered;
  bool host_can = is_primitive ? op.can_decompose() : can_lower && !to_primitives;
  if (host && !is_host &&
      (host_can || !candidates(self, op, TENON_DEVICE_KIND(host->id), dtype).empty()))
    return Route::kHost;
  return can_lower && !to_primitives ? Route::kLowered : Route::kNone;
}

// The equal element of `known`, which is appended if there is none.
template <class Element, class Value>
const Element& kept(std::deque<Element>& known, const Value& wanted) {
  auto position = std::find(known.begin(), known.end(), wanted);
  return position != known.end() ? *position : known.emplace_back(wanted);
}

const Resolution* resolution_of(Registry::Answers& answers, const Operator& op,
                                const Kernel& kernel) {
  Answer answer{.route = Route::kNative,
                .traits = kernel.def.traits,
                .boxed = kernel.def.boxed,
                .kernel = &kernel};
  if (kernel.def.typed && op.def.invoke && kernel.def.schema_hash == op.def.schema_hash) {
    answer.typed = kernel.def.typed;
    answer.invoke = op.def.invoke;
  }
  return &kept(answers.resolutions, answer);
}

// A kernel of another plugin's operator on another plugin's device.
bool is_for_others(const PluginTable& table, std::string_view op, std::string_view device_kind) {
  std::string_view space = op.substr(0, op.find("::"));
  const auto& own = table.namespaces;
  bool is_own = space != "tenon" && std::find(own.begin(), own.end(), space) != own.end();
  return !is_own && device_kind != table.device_kind;
}

// A kernel that returned, after its plugin went, as the same bytes at the same place.
std::unique_ptr<Kernel> take_retired(Registry& self, const Kernel& wanted) {
  for (auto& old : self.retired)
    if (std::memcmp(&old->def, &wanted.def, sizeof old->def) == 0 && old->op == wanted.op &&
        old->device_kind == wanted.device_kind && old->plugin == wanted.plugin) {
      std::swap(old, self.retired.back());
      auto kernel = std::move(self.retired.back());
      self.retired.pop_back();
      return kernel;
    }
  return nullptr;
}

}  // namespace

tenon_status registry_add(const PluginTable& table, const void* owner, tenon_err* err) {
  Registry& self = registry();
  std::lock_guard lock(self.mutex);
  for (const tenon_op_def& def : table.ops) {
    TENON_TRY(check_definition(def, err));
    auto position = self.by_name.find(def.name);
    if (position == self.by_name.end() || !position->second->is_defined) continue;
    const Operator& existing = *position->second;
    if (existing.def.schema_hash != def.schema_hash)
      return fail(
          err, TENON_ALREADY_EXISTS,
          "operator %s is defined twice: '%s' at %s by %s, and '%s' at %s by %s; rename one",
          def.name, existing.def.schema, existing.def.origin ? existing.def.origin : "?",
          existing.definer.c_str(), def.schema, def.origin ? def.origin : "?",
          table.origin.c_str());
    log(LogLevel::kInfo, "operator %s of %s is defined alike by %s, which came first", def.name,
        table.origin.c_str(), existing.definer.c_str());
  }
  if (self.count.load(std::memory_order_relaxed) + table.ops.size() + table.kernels.size() >
      kMaxOperators)
    return fail(err, TENON_OUT_OF_RANGE, "more than %u operators", kMaxOperators);

  // Nothing below can fail.
  for (const tenon_op_def& def : table.ops) {
    Operator* op = entry_for(self, def.name);
    if (op->is_defined)
      self.spares.push_back({op, def, owner, table.origin});
    else
      define(self, *op, def, owner, table.origin);
  }
  for (const tenon_kernel_def& def : table.kernels) {
    Operator* op = entry_for(self, qualified(def.op));
    std::string device_kind = def.device ? def.device : table.device_kind;
    Kernel wanted{def, owner, table.name, op->name, device_kind, false, false, op, {}};
    auto kernel = take_retired(self, wanted);
    if (!kernel) kernel = std::make_unique<Kernel>(std::move(wanted));
    kernel->owner = owner;
    const bool for_others = is_for_others(table, op->name, device_kind);
    kernel->is_override = table.needs_consent && for_others;
    kernel->is_optional =
        (table.is_optional && for_others) || kernel->def.score <= TENON_SCORE_OPTIONAL;
    kernel->origin = table.origin;
    self.kernels[op].push_back(std::move(kernel));
  }
  // With kernels any cell may have a better answer: a lowering may become native, a host run a
  // lowering. Definitions alone cleared their own: a thousand of them take a thousand steps, not a
  // million.
  if (!table.kernels.empty() || !table.device_kind.empty()) clear_all_rows(self);
  return TENON_OK;
}

void registry_remove(const void* owner) {
  Registry& self = registry();
  std::lock_guard lock(self.mutex);
  for (auto& [op, kernels] : self.kernels) {
    auto gone = std::stable_partition(kernels.begin(), kernels.end(),
                                      [&](const auto& kernel) { return kernel->owner != owner; });
    for (auto position = gone; position != kernels.end(); ++position)
      self.retired.push_back(std::move(*position));
    kernels.erase(gone, kernels.end());
  }
  std::erase_if(self.spares, [&](const Registry::Spare& spare) { return spare.owner == owner; });
  for (auto& [name, op] : self.by_name) {
    if (op->is_defined && op->owner == owner) {
      if (self.convert.load() == op) self.convert.store(nullptr);
      if (self.materialize.load() == op) self.materialize.store(nullptr);
      op->is_defined = 0;
      op->def = {};
      op->creation.store(0, std::memory_order_relaxed);
      op->owner = nullptr;
      auto spare = std::find_if(self.spares.begin(), self.spares.end(),
                                [op = op](const Registry::Spare& one) { return one.op == op; });
      if (spare != self.spares.end()) {
        define(self, *op, spare->def, spare->owner, spare->definer);
        self.spares.erase(spare);
      }
    }
  }
  clear_all_rows(self);
}

void allow_overrides(const std::string& plugin, bool allowed) {
  Registry& self = registry();
  std::lock_guard lock(self.mutex);
  self.consents[plugin] = allowed;
  clear_all_rows(self);
}

void set_deterministic(bool on) {
  Registry& self = registry();
  std::lock_guard lock(self.mutex);
  self.is_deterministic = on;
  clear_all_rows(self);
}

bool is_deterministic() {
  Registry& self = registry();
  std::lock_guard lock(self.mutex);
  return self.is_deterministic;
}

KernelReport report_kernels(const void* owner) {
  Registry& self = registry();
  std::lock_guard lock(self.mutex);
  KernelReport report;
  for (auto& [op, kernels] : self.kernels)
    for (auto& kernel : kernels) {
      if (kernel->owner != owner) continue;
      report.overrides += kernel->is_override;
      report.held_back += self.state_of(*kernel) == KernelState::kHeldBack;
      if (!op->is_defined) report.unknown_operators.push_back(op->name);
    }
  return report;
}

Operator* find_operator(std::string_view name) {
  Registry& self = registry();
  std::lock_guard lock(self.mutex);
  auto position = self.by_name.find(qualified(name));
  return position != self.by_name.end() && position->second->is_defined ? position->second
                                                                        : nullptr;
}

uint32_t operator_count() { return registry().count.load(std::memory_order_acquire); }

Operator* operator_at(uint32_t id) {
  if (id >= operator_count()) return nullptr;
  Operator* op = registry().by_id[id].load(std::memory_order_acquire);
  return op && op->is_defined ? op : nullptr;
}

Operator* convert_operator() { return registry().convert.load(std::memory_order_acquire); }
Operator* materialize_operator() { return registry().materialize.load(std::memory_order_acquire); }

std::vector<const Kernel*> kernels_for(const Operator& op, uint32_t kind, int32_t dtype,
                                       KernelState state) {
  Registry& self = registry();
  std::lock_guard lock(self.mutex);
  return candidates(self, op, kind, dtype, state);
}

std::vector<const Resolution*> resolutions_for(Operator& op, uint32_t kind, int32_t dtype,
                                               KernelState state) {
  resolve(op, kind, dtype);  // there is a cell from here on
  Registry& self = registry();
  std::lock_guard lock(self.mutex);
  CellRow* row = op.rows[kind].load(std::memory_order_acquire);
  Registry::Answers& answers = self.answers[&(*row)[dtype]];
  std::vector<const Resolution*> found;
  for (const Kernel* kernel : candidates(self, op, kind, dtype, state))
    found.push_back(resolution_of(answers, op, *kernel));
  return found;
}

uint64_t kernel_generation() { return registry().generation.load(std::memory_order_acquire); }

std::vector<const Resolution*> answers_for(const Operator& op, uint32_t kind) {
  Registry& self = registry();
  std::lock_guard lock(self.mutex);
  std::vector<const Resolution*> found;
  const CellRow* row = op.rows[kind].load(std::memory_order_acquire);
  for (int32_t dtype = 0; row && dtype < TENON_DTYPE_COUNT; ++dtype) {
    auto position = self.answers.find(&(*row)[dtype]);
    if (position == self.answers.end()) continue;
    for (const Resolution& answer : position->second.resolutions) found.push_back(&answer);
  }
  return found;
}

const Resolution* resolve(Operator& op, uint32_t kind, int32_t dtype) {
  Registry& self = registry();
  std::lock_guard lock(self.mutex);
  CellRow* row = op.rows[kind].load(std::memory_order_acquire);
  if (!row) {
    row = reinterpret_cast<CellRow*>(new std::atomic<const Resolution*>[TENON_DTYPE_SLOTS]());
    self.rows.push_back(row);
    op.rows[kind].store(row, std::memory_order_release);
  }
  std::atomic<const Resolution*>& cell = (*row)[dtype];
  if (const Resolution* known = cell.load(std::memory_order_acquire)) return known;

  std::vector<const Kernel*> found = candidates(self, op, kind, dtype);
  Registry::Answers& answers = self.answers[&cell];
  const Resolution* answer;
  if (!found.empty() && !found.front()->def.can_run) {
    answer = resolution_of(answers, op, *found.front());
  } else {
    Answer choice{.route = route_without_kernel(self, op, kind, dtype)};
    if (!found.empty()) {
      choice.otherwise = choice.route;
      choice.route = Route::kChoose;
      std::vector<const Resolution*> list;
      for (const Kernel* kernel : found) {
        list.push_back(resolution_of(answers, op, *kernel));
        if (!kernel->def.can_run) break;  // it never declines
      }
      list.push_back(nullptr);
      choice.candidates = kept(answers.candidate_lists, list).data();
    }
    answer = &kept(answers.resolutions, choice);
  }
  cell.store(answer, std::memory_order_release);
  return answer;
}

namespace slots {

const tenon_op* op_find(const char* name) { return name ? find_operator(name) : nullptr; }
const tenon_op_def* op_def(const tenon_op* op) { return op ? &op->def : nullptr; }
uint32_t op_id(const tenon_op* op) { return op->id; }
uint32_t op_count() { return operator_count(); }
const tenon_op* op_at(uint32_t id) { return operator_at(id); }

}  // namespace slots
}  // namespace tenon::core

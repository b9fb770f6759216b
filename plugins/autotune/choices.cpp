// SPDX-License-Identifier: Apache-2.0
#include "choices.hpp"

#include <tenon/services/autotune.h>
#include <tenon/plugin.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>

#include "report.hpp"

namespace tenon::autotune {
namespace {

constexpr uint32_t kMaxCandidates = 32;

struct Known {
  Choice choice;
  uint64_t generation;
};

// All state of the process. It is never destroyed: threads may call operators while it ends.
struct Choices {
  std::mutex mutex;
  std::unordered_map<uint64_t, Known> known;             // by the hash of a call
  std::map<std::string, Decision> decisions;             // by device and call
  std::map<std::string, std::unique_ptr<Store>> stores;  // by device
};

Choices& choices() {
  static Choices* instance = new Choices;
  return *instance;
}

// Held by the thread that measures. Others do not wait for it: it may need what they hold.
std::mutex measuring;

std::string device_name(tenon_device_id device) {
  tenon_device_info info = {};
  info.struct_size = sizeof info;
  const char* kind = host->device_kind_name(TENON_DEVICE_KIND(device));
  std::string name = kind ? kind : "unknown";
  if (host->device_info(device, &info, nullptr) == TENON_OK)
    name += std::string(" ") + info.name + " " + info.arch;
  return name;
}

// Whether the plugin's table has a member: those of older plugins end before.
#define HAS_MEMBER(table, member) \
  ((table) && offsetof(tenon_kernel_library_api, member) < (table)->struct_size && (table)->member)

const tenon_kernel_library_api* library_of(const tenon_candidate& candidate) {
  const std::string service = candidate.plugin + std::string(TENON_KERNEL_LIBRARY_SUFFIX);
  return static_cast<const tenon_kernel_library_api*>(
      host->service_find(service.c_str(), TENON_KERNEL_LIBRARY_VERSION));
}

// "onednn 0.1.0, oneDNN 2.6.3": a plugin without its path, and the library that it stands on.
std::string version_of(const tenon_candidate& candidate, const char* op) {
  const std::string origin = candidate.origin;
  std::string text = origin.substr(0, origin.find(" ("));
  const tenon_kernel_library_api* table = library_of(candidate);
  if (!table) return text;
  const char* library = HAS_MEMBER(table, name_for) ? table->name_for(op) : table->name();
  if (library && !*library) return text;
  return text + ", " + (library ? library : "no library");
}

// What the library calls the algorithm; empty: the kernel has one alone, or nothing is known.
std::string algorithm_of(const tenon_candidate& candidate, const Call& call) {
  const tenon_kernel_library_api* table = library_of(candidate);
  char text[256] = {};
  if (HAS_MEMBER(table, describe))
    table->describe(candidate.kernel, call.args, call.nargs, text, sizeof text);
  return text;
}

std::string contender_name(const tenon_candidate& candidate) {
  std::string name = candidate.plugin;
  return candidate.index > 0 ? name + "/" + std::to_string(candidate.index) : name;
}

bool can_be_tuned(const tenon_op_def& def, const tenon_value* outs) {
  constexpr uint32_t kNever =
      TENON_OP_VIEW | TENON_OP_RANDOM | TENON_OP_LIST_OUTPUT | TENON_OP_DATA_DEPENDENT;
  if (def.flags & kNever) return false;
  // Where a copy goes decides how it is made, and measuring gives every call a new result.
  const bool is_copy = def.flags & (TENON_OP_MATERIALIZE | TENON_OP_CONVERT | TENON_OP_STRIDED);
  return !(is_copy && outs[0].tag != TENON_VALUE_NONE);
}

Store& store_of(Choices& self, const std::string& device) {
  auto& store = self.stores[device];
  if (!store) store = std::make_unique<Store>(device);
  return *store;
}

// The candidates of one call, as contenders.
struct Field {
  std::vector<Contender> contenders;  // the first: the dispatcher's own choice
  std::vector<std::string> declined;
  std::vector<std::pair<std::string, std::string>> algorithms;  // of contenders that tell
  std::string versions;
  uint32_t kernels = 0;  // of these dtypes, whether they accept the call or not
};

bool list_field(const Call& call, tenon_value* outs, Field& field) {
  tenon_candidate found[kMaxCandidates];
  uint32_t count = 0;
  if (candidates()->list(call.op, call.args, call.nargs, outs, call.nouts, found, kMaxCandidates,
                         &count, nullptr) != TENON_OK)
    return false;
  field.kernels = count;
  field.contenders.push_back({.name = "lowering"});
  std::set<std::string> versions;
  for (uint32_t i = 0; i < std::min(count, kMaxCandidates); ++i) {
    const tenon_candidate& each = found[i];
    versions.insert(version_of(each, host->op_def(call.op)->name));
    const std::string name = contender_name(each);
    if (each.flags & TENON_CANDIDATE_DECLINES) {
      // Those of the lowest scores stand for indices that most lists do not reach.
      if (each.kernel->score > TENON_SCORE_OPTIONAL) field.declined.push_back(name);
      continue;
    }
    if (std::string algorithm = algorithm_of(each, call); !algorithm.empty())
      field.algorithms.emplace_back(name, std::move(algorithm));
    const bool is_repeatable = !(each.kernel->traits & TENON_KERNEL_NONDETERMINISTIC);
    if (each.flags & TENON_CANDIDATE_CHOSEN)
      field.contenders[0].name = name;
    else
      field.contenders.push_back(
          {.name = name, .handle = each.handle, .is_repeatable = is_repeatable});
  }
  for (const std::string& version : versions)
    field.versions += (field.versions.empty() ? "" : "; ") + version;
  return true;
}

// The contender that a file names. It may be held back now (in deterministic mode), or its library may list fewer
// algorithms for these addresses: the fastest of the others that were measured with it then.
size_t winner_of(Field& field, const Record& record) {
  for (Contender& each : field.contenders)
    for (const auto& [name, nanoseconds] : record.nanoseconds)
      if (each.name == name) each.nanoseconds = nanoseconds;
  for (size_t i = 0; i < field.contenders.size(); ++i)
    if (field.contenders[i].name == record.winner) return i;
  return field.contenders[0].nanoseconds > 0 ? fastest(field.contenders) : 0;
}

Record record_of(const Field& field, size_t winner) {
  Record record{
      .versions = field.versions, .winner = field.contenders[winner].name, .nanoseconds = {}};
  for (const Contender& each : field.contenders)
    if (each.failure.empty()) record.nanoseconds.emplace_back(each.name, each.nanoseconds);
  return record;
}

}  // namespace

const tenon_candidates_api* candidates() {
  static const auto* service = static_cast<const tenon_candidates_api*>(
      host->service_find(TENON_CANDIDATES_SERVICE, TENON_CANDIDATES_VERSION));
  return service;
}

Choice choose(const Call& call, const CallHash& hash, const tenon_value* outs, bool may_measure) {
  const tenon_op_def& def = *host->op_def(call.op);
  Choices& self = choices();
  const uint64_t generation = candidates()->generation();
  {
    std::lock_guard lock(self.mutex);
    auto position = self.known.find(hash.call);
    if (position != self.known.end() && position->second.generation == generation)
      return position->second.choice;
  }
  if (!can_be_tuned(def, outs)) return {.is_single = !(outs[0].tag == TENON_VALUE_TENSOR)};
  Field field;
  std::vector<tenon_value> given(outs, outs + call.nouts);
  if (!list_field(call, given.data(), field)) return {.is_final = false};  // the call itself fails
  if (field.kernels <= 1) return {.is_single = true};
  if (field.contenders.size() == 1) return {};

  const std::string device = device_name(call.device);
  Decision decision{.op = def.name,
                    .device = device,
                    .dtype = host->dtype_name(hash.dtype),
                    .call = describe_call(call.op, call.args, call.nargs, outs, call.nouts),
                    .source = "file",
                    .record = {},
                    .usual = field.contenders[0].name,
                    .failures = {},
                    .refusal = {},
                    .declined = field.declined,
                    .algorithms = field.algorithms};
  const auto remember = [&](const Choice& choice) {
    self.known[hash.call] = {choice, generation};
    self.decisions[device + " | " + decision.call] = decision;
    return choice;
  };
  {
    std::lock_guard lock(self.mutex);
    if (const Record* record = store_of(self, device).find(decision.call, field.versions)) {
      const size_t winner = winner_of(field, *record);
      decision.record = *record;
      decision.record.winner = field.contenders[winner].name;
      return remember({.handle = field.contenders[winner].handle});
    }
  }
  std::unique_lock turn(measuring, std::try_to_lock);
  if (!may_measure || !turn) return {.is_final = false};
  size_t winner = 0;
  if (measure(*candidates(), call, field.contenders, &winner) != Outcome::kMeasured)
    return {.is_final = false};
  decision.source = "measured";
  decision.record = record_of(field, winner);
  for (const Contender& each : field.contenders)
    if (!each.failure.empty()) decision.failures.emplace_back(each.name, each.failure);
  std::lock_guard lock(self.mutex);
  store_of(self, device).add(decision.call, decision.record);
  return remember({.handle = field.contenders[winner].handle});
}

void give_up(const Call& call, const CallHash& hash, const tenon_value* outs,
             const std::string& reason) {
  Choices& self = choices();
  std::lock_guard lock(self.mutex);
  self.known[hash.call] = {.choice = {}, .generation = candidates()->generation()};
  const auto position =
      self.decisions.find(device_name(call.device) + " | " +
                          describe_call(call.op, call.args, call.nargs, outs, call.nouts));
  if (position == self.decisions.end()) return;
  Decision& decision = position->second;
  decision.refusal = decision.record.winner + ", which was chosen, refuses the call: " + reason;
  decision.record.winner = decision.usual;
}

void forget(bool with_files) {
  Choices& self = choices();
  std::lock_guard lock(self.mutex);
  self.known.clear();
  self.decisions.clear();
  if (with_files)
    for (auto& [device, store] : self.stores) store->remove_file();
  self.stores.clear();
}

void write_report(tenon_sink_fn sink, void* user) {
  Choices& self = choices();
  std::lock_guard lock(self.mutex);
  std::string text = "{\"files\": [";
  const char* comma = "";
  for (const auto& [device, store] : self.stores) {
    if (store->path().empty()) continue;
    text += comma + quoted(store->path());
    comma = ", ";
  }
  text += "], \"decisions\": [";
  comma = "";
  for (const auto& [name, decision] : self.decisions) {
    text += comma + decision_text(decision);
    comma = ", ";
  }
  text += "]}";
  sink(user, text.data(), text.size());
}

}  // namespace tenon::autotune

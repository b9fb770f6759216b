// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/dispatch/fallback_policy.hpp"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "formats/json_writer.hpp"
#include "kernel_core/abi/slots.hpp"
#include "kernel_core/dispatch/arguments.hpp"
#include "kernel_core/dispatch/registry.hpp"
#include "kernel_core/types/dtype.hpp"

namespace tenon::core {
namespace {

struct Entry {
  std::string device, op;  // empty: any
  FallbackPolicy policy;
};

struct Policies {
  std::mutex mutex;
  std::vector<Entry> entries{{"", "", FallbackPolicy::kWarnOnce}};
  std::string text = "warn_once";
  std::set<std::pair<uint32_t, std::string>> warned;
};

bool parse_policy(std::string_view word, FallbackPolicy* out) {
  if (word == "deny") return *out = FallbackPolicy::kDeny, true;
  if (word == "warn_once") return *out = FallbackPolicy::kWarnOnce, true;
  if (word == "allow") return *out = FallbackPolicy::kAllow, true;
  return false;
}

tenon_status parse(std::string_view text, std::vector<Entry>* out, tenon_err* err) {
  std::vector<Entry> entries{{"", "", FallbackPolicy::kWarnOnce}};
  while (!text.empty()) {
    size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
    Entry entry;
    size_t equals = part.find('=');
    std::string_view word = equals == std::string_view::npos ? part : part.substr(equals + 1);
    if (!parse_policy(word, &entry.policy))
      return fail(err, TENON_INVALID_ARGUMENT,
                  "fallback policy: expected deny, warn_once or allow, then exceptions like "
                  "acme:sort=allow; got '%.*s'",
                  static_cast<int>(part.size()), part.data());
    if (equals != std::string_view::npos) {
      std::string_view target = part.substr(0, equals);
      size_t colon = target.find(':');
      entry.device = target.substr(0, colon);
      if (colon != std::string_view::npos) entry.op = target.substr(colon + 1);
    }
    entries.push_back(entry);
  }
  *out = std::move(entries);
  return TENON_OK;
}

Policies& policies() {
  static Policies* instance = [] {
    auto* created = new Policies;
    const char* environment = std::getenv("TENON_FALLBACK");
    if (environment && *environment) {
      tenon_err err;
      if (parse(environment, &created->entries, &err) == TENON_OK)
        created->text = environment;
      else
        slots::log(2, err.text.data(), err.text.size());
    }
    return created;
  }();
  return *instance;
}

bool matches(const Entry& entry, const Operator& op, std::string_view kind) {
  return (entry.device.empty() || entry.device == kind) &&
         (entry.op.empty() || entry.op == op.name || entry.op == short_name(op));
}

FallbackPolicy lookup(const Policies& self, const Operator& op, std::string_view kind) {
  const Entry* best = &self.entries.front();
  for (const Entry& entry : self.entries) {
    auto weight = [](const Entry& e) {
      return (e.device.empty() ? 0 : 1) + (e.op.empty() ? 0 : 2);
    };
    if (matches(entry, op, kind) && weight(entry) >= weight(*best)) best = &entry;
  }
  return best->policy;
}

struct Usage {
  int64_t native = 0, lowered = 0, host = 0, host_bytes = 0;

  void add(const Resolution& cell, bool reset) {
    take(cell.native_calls, native, reset);
    take(cell.lowered_calls, lowered, reset);
    take(cell.host_calls, host, reset);
    take(cell.host_bytes, host_bytes, reset);
  }

 private:
  static void take(std::atomic<uint64_t>& counter, int64_t& sum, bool reset) {
    sum += static_cast<int64_t>(counter.load(std::memory_order_relaxed));
    if (reset) counter.store(0, std::memory_order_relaxed);
  }
};

Usage usage_of(const Operator& op, uint32_t kind, bool reset) {
  Usage usage;
  for (const Resolution* answer : answers_for(op, kind)) usage.add(*answer, reset);
  return usage;
}

std::string kind_of(const Device& device) {
  const char* name = slots::device_kind_name(TENON_DEVICE_KIND(device.id));
  return name ? name : "?";
}

}  // namespace

FallbackPolicy fallback_policy(const Operator& op, std::string_view device_kind) {
  Policies& self = policies();
  std::lock_guard lock(self.mutex);
  return lookup(self, op, device_kind);
}

tenon_status permit_fallback(const Operator& op, const Device& device, int32_t dtype,
                             tenon_err* err) {
  Policies& self = policies();
  std::string kind = kind_of(device);
  bool warn = false;
  {
    std::lock_guard lock(self.mutex);
    FallbackPolicy policy = lookup(self, op, kind);
    if (policy == FallbackPolicy::kDeny)
      return fail(err, TENON_PERMISSION_DENIED,
                  "[%s] %s has no kernel for %s and running it on the host is denied by fallback "
                  "policy '%s'; "
                  "provide a kernel, or allow it with %s:%s=allow",
                  short_name(op), device.name, dtype_name(dtype), self.text.c_str(), kind.c_str(),
                  short_name(op));
    warn = policy == FallbackPolicy::kWarnOnce && self.warned.emplace(op.id, kind).second;
  }
  if (warn) {
    std::string text = std::string("[") + short_name(op) + "] has no kernel for " +
                       dtype_name(dtype) + " on " + device.name +
                       " and runs on the host, with copies (said once; see fallback_report)";
    slots::log(2, text.data(), text.size());
  }
  return TENON_OK;
}

namespace slots {

tenon_status fallback_set_policy(const char* text, tenon_err* err) {
  Policies& self = policies();
  std::vector<Entry> entries;
  TENON_TRY(parse(text ? text : "", &entries, err));
  std::lock_guard lock(self.mutex);
  self.entries = std::move(entries);
  self.text = text && *text ? text : "warn_once";
  self.warned.clear();
  return TENON_OK;
}

void fallback_get_policy(tenon_sink_fn sink, void* user) {
  Policies& self = policies();
  std::lock_guard lock(self.mutex);
  sink(user, self.text.data(), self.text.size());
}

void fallback_report(int32_t reset, tenon_sink_fn sink, void* user) {
  JsonWriter json;
  json.array("", [&] {
    for (uint32_t id = 0; id < operator_count(); ++id) {
      Operator* op = operator_at(id);
      for (uint32_t kind = 1; op && kind < device_kind_count(); ++kind) {
        Usage usage = usage_of(*op, kind, reset);
        if (usage.native + usage.lowered + usage.host == 0) continue;
        json.object("", [&] {
          const char* name = device_kind_name(kind);
          json.string("device", name ? name : "");
          json.string("op", short_name(*op));
          json.number("native", usage.native);
          json.number("lowered", usage.lowered);
          json.number("host", usage.host);
          json.number("host_bytes", usage.host_bytes);
        });
      }
    }
  });
  sink(user, json.text().data(), json.text().size());
}

}  // namespace slots
}  // namespace tenon::core

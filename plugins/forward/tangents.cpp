// SPDX-License-Identifier: Apache-2.0
#include "tangents.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <memory>

#include "operators.hpp"

namespace tenon::forward {
namespace {

enum class Kind : uint8_t {
  kTangent,
  kUnknown,   // it has a tangent, and nothing tells it
  kConstant,  // a view through which no derivative passes, whatever its base has
};
struct Entry {
  uint64_t level;
  uint32_t version;  // of the tensor's memory when the tangent was true
  Kind kind;
  Tensor tangent;
};
using Tangents = std::vector<Entry>;

Tangents* tangents_in_slot(const tenon_tensor* x) {
  return static_cast<Tangents*>(host->ext_get(x, place.slot));
}

Entry* entry_of(const tenon_tensor* x, uint64_t level) {
  Tangents* all = tangents_in_slot(x);
  if (!all) return nullptr;
  auto found = std::find_if(all->begin(), all->end(),
                            [&](const Entry& entry) { return entry.level == level; });
  return found == all->end() ? nullptr : &*found;
}

[[noreturn]] void throw_stale() {
  throw Error(TENON_UNSUPPORTED,
              "forward mode: the memory of a dual tensor was written through another tensor that "
              "shares it; write into the "
              "tensor itself, or make a new one");
}

[[noreturn]] void throw_unknown() {
  throw Error(TENON_UNSUPPORTED,
              "forward mode: a result is used through which no gradient can pass; detach() it");
}

// A view that has no tangent of its own shows a part of its base's.
Tensor part_of_base(tenon_tensor* x, tenon_tensor* base, const Entry& entry) {
  if (entry.kind == Kind::kUnknown) throw_unknown();
  const bool is_plain = base->flags & TENON_TENSOR_CONTIGUOUS && base->dtype == x->dtype;
  if (entry.version != host->tensor_version(x) || !is_plain) throw_stale();
  const auto distance = static_cast<const char*>(x->data) - static_cast<const char*>(base->data);
  return as_strided(entry.tangent, x, distance / static_cast<int64_t>(host->dtype_size(x->dtype)));
}

void put(tenon_tensor* x, uint64_t level, Kind kind, Tensor tangent = {}) {
  Entry entry{level, host->tensor_version(x), kind, std::move(tangent)};
  if (Entry* known = entry_of(x, level)) {
    *known = std::move(entry);
    return;
  }
  Tangents* all = tangents_in_slot(x);
  if (!all) host->ext_set(x, place.slot, all = new Tangents);
  all->push_back(std::move(entry));
}

}  // namespace

// On the heap: there is little room for variables of threads in a library that is opened late.
ThreadState& thread_state() {
  static thread_local std::unique_ptr<ThreadState> state;
  if (!state) state = std::make_unique<ThreadState>();
  return *state;
}

bool is_known(const tenon_tensor* x, uint64_t level) {
  if (entry_of(x, level)) return true;
  const tenon_tensor* base = host->tensor_base(x);
  return base && entry_of(base, level);
}

bool has_tangent(const tenon_tensor* x, uint64_t level) {
  if (const Entry* own = entry_of(x, level)) return own->kind != Kind::kConstant;
  return is_known(x, level);
}

Tensor tangent_of(tenon_tensor* x, uint64_t level) {
  Entry* own = entry_of(x, level);
  if (own && own->kind == Kind::kConstant) return {};
  if (own && own->version == host->tensor_version(x)) {
    if (own->kind == Kind::kUnknown) throw_unknown();
    return own->tangent;
  }
  tenon_tensor* base = host->tensor_base(x);
  if (Entry* entry = base ? entry_of(base, level) : nullptr) {
    Tensor part = part_of_base(x, base, *entry);
    set_tangent(x, level, part);
    return part;
  }
  if (own) throw_stale();
  return {};
}

void set_tangent(tenon_tensor* x, uint64_t level, Tensor tangent) {
  if (tangent) return put(x, level, Kind::kTangent, std::move(tangent));
  // Its base may have a tangent, or get one.
  if (host->tensor_base(x)) return put(x, level, Kind::kConstant);
  Tangents* all = tangents_in_slot(x);
  if (Entry* known = entry_of(x, level)) all->erase(all->begin() + (known - all->data()));
}

void set_unknown(tenon_tensor* x, uint64_t level) { put(x, level, Kind::kUnknown); }

void copy_tangents(const tenon_tensor* from, tenon_tensor* to) {
  const Tangents* all = tangents_in_slot(from);
  if (!all || from == to) return;
  drop_tangents(tangents_in_slot(to));
  host->ext_set(to, place.slot, new Tangents(*all));
}

void drop_tangents(void* value) { delete static_cast<Tangents*>(value); }

void* copy_of_tangents(const void* value) {
  return new Tangents(*static_cast<const Tangents*>(value));
}

}  // namespace tenon::forward

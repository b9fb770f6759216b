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
}  // namespace

struct Tangents {
  std::vector<Entry> entries;
};

namespace {

using Owner = std::shared_ptr<Tangents>;  // what the slot points at

Owner* owner_in_slot(const tenon_tensor* x) {
  return static_cast<Owner*>(host->ext_get(x, place.slot));
}

std::vector<Entry>* tangents_in_slot(const tenon_tensor* x) {
  Owner* owner = owner_in_slot(x);
  return owner ? &(*owner)->entries : nullptr;
}

// Let the end of the level find them. Other threads' levels, and those that have ended, need not.
void remember(uint64_t level, const Owner& owner) {
  ThreadState& state = thread_state();
  const auto found = std::find(state.levels.rbegin(), state.levels.rend(), level);
  if (found != state.levels.rend())
    state.known[static_cast<size_t>(state.levels.rend() - found) - 1].add(owner);
}

Entry* entry_of(const tenon_tensor* x, uint64_t level) {
  std::vector<Entry>* all = tangents_in_slot(x);
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
  Owner* owner = owner_in_slot(x);
  if (!owner) {
    auto made = std::make_unique<Owner>(std::make_shared<Tangents>());
    host->ext_set(x, place.slot, owner = made.release());
  }
  remember(level, *owner);
  (*owner)->entries.push_back(std::move(entry));
}

// The entries of a view say what its base's memory shows.
void take_from_base(tenon_tensor* x, const tenon_tensor* base) {
  const std::vector<Entry>* all = tangents_in_slot(base);
  for (size_t i = 0; all && i < all->size(); ++i) {
    const uint64_t level = (*all)[i].level;
    const Entry* own = entry_of(x, level);
    const bool is_true =
        own && (own->kind == Kind::kConstant || own->version == host->tensor_version(x));
    if (is_true) continue;
    if ((*all)[i].kind == Kind::kUnknown)
      set_unknown(x, level);
    else
      tangent_of(x, level);
  }
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
  std::vector<Entry>* all = tangents_in_slot(x);
  if (Entry* known = entry_of(x, level)) all->erase(all->begin() + (known - all->data()));
}

void set_unknown(tenon_tensor* x, uint64_t level) { put(x, level, Kind::kUnknown); }

void copy_tangents(tenon_tensor* from, tenon_tensor* to) {
  if (from == to) return;
  if (const tenon_tensor* base = host->tensor_base(from)) take_from_base(from, base);
  const void* all = owner_in_slot(from);
  if (!all) return;
  void* made = copy_of_tangents(all);
  void* old = owner_in_slot(to);
  host->ext_set(to, place.slot, made);
  drop_tangents(old);
}

void drop_tangents(void* value) { delete static_cast<Owner*>(value); }

void* copy_of_tangents(const void* value) {
  const Owner& from = *static_cast<const Owner*>(value);
  auto made = std::make_unique<Owner>(std::make_shared<Tangents>(*from));
  for (const Entry& entry : from->entries) remember(entry.level, *made);
  return made.release();
}

void LevelTangents::add(const std::shared_ptr<Tangents>& owner) {
  if (known_.size() == known_.capacity()) {
    std::erase_if(known_, [](const std::weak_ptr<Tangents>& each) { return each.expired(); });
    if (known_.size() > known_.capacity() / 2) known_.reserve(2 * known_.capacity());
  }
  known_.push_back(owner);
}

void LevelTangents::drop(uint64_t level) {
  for (const std::weak_ptr<Tangents>& each : known_) {
    const std::shared_ptr<Tangents> owner = each.lock();
    if (!owner) continue;
    std::vector<Entry>& entries = owner->entries;
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const Entry& entry) { return entry.level == level; });
    if (found == entries.end()) continue;
    // The tangent dies at the end, when the list is whole: much else may die with it.
    const Entry last = std::move(*found);
    entries.erase(found);
  }
}

}  // namespace tenon::forward

// SPDX-License-Identifier: Apache-2.0
#include "cache.hpp"

#include <bit>
#include <mutex>
#include <unordered_map>

#include <tenon/plugin.hpp>

#include "library.hpp"

namespace tenon::onednn {
namespace {

// Programs hold generated code and descriptions, some ten KB each.
constexpr size_t kMaxKeys = 2048;

struct Entry {
  bool is_impossible = false;
  std::vector<std::unique_ptr<Program>> idle;  // a thread that runs a program takes it out
};

struct Cache {
  std::mutex mutex;
  std::unordered_map<std::string, Entry> entries;
};

Cache& cache() {
  static Cache* instance = new Cache;  // outlives threads that run while the process ends
  return *instance;
}

// NULL: none is idle; `*is_impossible`: and none can be built.
std::unique_ptr<Program> take(const Key& key, bool* is_impossible) {
  Cache& self = cache();
  std::lock_guard lock(self.mutex);
  auto position = self.entries.find(key.text());
  if (position == self.entries.end()) return nullptr;
  Entry& entry = position->second;
  *is_impossible = entry.is_impossible;
  if (entry.idle.empty()) return nullptr;
  std::unique_ptr<Program> program = std::move(entry.idle.back());
  entry.idle.pop_back();
  return program;
}

void give_back(const Key& key, std::unique_ptr<Program> program) {
  Cache& self = cache();
  std::unordered_map<std::string, Entry> dropped;  // destroyed after the lock is released
  std::lock_guard lock(self.mutex);
  if (self.entries.size() >= kMaxKeys && !self.entries.contains(key.text()))
    dropped.swap(self.entries);
  Entry& entry = self.entries[key.text()];
  if (program)
    entry.idle.push_back(std::move(program));
  else
    entry.is_impossible = true;
}

std::unique_ptr<Program> take_or_build(const Key& key, const Build& build) {
  bool is_impossible = false;
  std::unique_ptr<Program> program = take(key, &is_impossible);
  if (!program && !is_impossible) {
    program = build(*api());
    if (!program) give_back(key, nullptr);
  }
  return program;
}

}  // namespace

Key::Key(int kernel) {
  text_.reserve(256);
  add(int64_t{kernel}).add(int64_t{host->thread_count()});
}

Key& Key::add(int64_t number) {
  text_.append(reinterpret_cast<const char*>(&number), sizeof number);
  return *this;
}

Key& Key::add(double number) { return add(std::bit_cast<int64_t>(number)); }

Key& Key::add(const tenon_tensor* tensor) {
  if (!tensor) return add(int64_t{-1});
  add(int64_t{tensor->dtype} << 8 | tensor->ndim);
  for (int i = 0; i < tensor->ndim; ++i) {
    add(tensor->shape[i]);
    if (tensor->shape[i] > 1) add(tensor->strides[i]);
  }
  return *this;
}

bool can_build(const Key& key, const Build& build) {
  if (!api()) return false;
  const ThreadScope threads;
  std::unique_ptr<Program> program = take_or_build(key, build);
  if (!program) return false;
  give_back(key, std::move(program));
  return true;
}

tenon_status run_cached(const Key& key, const Build& build, tenon_ctx* ctx,
                        std::span<void* const> data, tenon_err* err) {
  if (!api()) return fail(err, TENON_UNAVAILABLE, library_problem());
  const ThreadScope threads;
  std::unique_ptr<Program> program = take_or_build(key, build);
  if (!program) return fail(err, TENON_UNSUPPORTED, "oneDNN has no primitive for these arguments");
  const tenon_status status = program->run(ctx, data, err);
  give_back(key, std::move(program));
  return status;
}

void clear_cache() {
  Cache& self = cache();
  std::unordered_map<std::string, Entry> dropped;
  std::lock_guard lock(self.mutex);
  dropped.swap(self.entries);
}

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
#include "recorder.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>

namespace tenon::profiler {
namespace {

// The number after `"current":` in what memory_stats says; 0 without one.
uint64_t bytes_in_use(tenon_device_id device) {
  std::string json;
  auto append = [](void* user, const char* text, uint64_t bytes) {
    static_cast<std::string*>(user)->append(text, bytes);
  };
  if (host->memory_stats(device, 0, append, &json, nullptr) != TENON_OK) return 0;
  const std::string key = "\"current\":";
  const size_t at = json.find(key);
  return at == json.npos ? 0 : std::strtoull(json.c_str() + at + key.size(), nullptr, 10);
}

// NULL: gradients are not there, or their service is older.
const tenon_autograd_api* find_autograd() {
  auto* autograd = static_cast<const tenon_autograd_api*>(
      host->service_find(TENON_AUTOGRAD_SERVICE, TENON_AUTOGRAD_VERSION));
  const bool has_member =
      autograd && autograd->struct_size > offsetof(tenon_autograd_api, running_node);
  return has_member ? autograd : nullptr;
}

}  // namespace

void Recorder::start(const tenon_record_options& options) {
  options_ = options;
  autograd_ = find_autograd();
  chunks_.clear();
  next_ = end_ = nullptr;
  drained_ = lost_ = 0;
  details_.clear();
  scopes_.clear();
  grow();
  first_ = ClockMap::now();
}

bool Recorder::grow() {
  if (chunks_.size() * kChunk >= options_.capacity) {
    ++lost_;
    return false;
  }
  next_ = chunks_.emplace_back(std::make_unique<tenon_call_record[]>(kChunk)).get();
  end_ = next_ + kChunk;
  return true;
}

void Recorder::add_call(uint64_t begin, uint64_t end, const tenon_op* op, const tenon_value* args,
                        uint32_t nargs, const tenon_value* outs, uint32_t nouts,
                        tenon_status status) {
  tenon_call_record* record = next();
  if (!record) return;
  *record = {.begin_ns = begin,
             .end_ns = end,
             .what = host->op_id(op),
             .kind = TENON_RECORD_OPERATOR,
             .flags = static_cast<uint16_t>(status == TENON_OK ? 0 : TENON_RECORD_FAILED),
             .shapes = 0,
             .stack = 0};
  if (autograd_ && autograd_->running_node()) record->flags |= TENON_RECORD_BACKWARD;
  if (options_.flags & TENON_RECORD_WITH_SHAPES) record->shapes = add_shapes(args, nargs);
  if (options_.stack) record->stack = options_.stack(options_.user);
  if (options_.flags & TENON_RECORD_WITH_MEMORY && status == TENON_OK) add_memory(outs, nouts, end);
}

uint32_t Recorder::add_shapes(const tenon_value* args, uint32_t nargs) {
  const auto at = static_cast<uint32_t>(details_.size() + 1);
  auto add = [&](const tenon_tensor& tensor) {
    details_.push_back(tensor.dtype);
    details_.push_back(tensor.ndim);
    details_.insert(details_.end(), tensor.shape, tensor.shape + tensor.ndim);
  };
  for (uint32_t i = 0; i < nargs; ++i) {
    if (args[i].tag == TENON_VALUE_TENSOR) add(*static_cast<tenon_tensor*>(args[i].v.p));
    if (args[i].tag != TENON_VALUE_TENSORS) continue;
    auto* list = static_cast<tenon_tensor* const*>(args[i].v.p);
    for (uint32_t k = 0; k < args[i].aux; ++k)
      if (list[k]) add(*list[k]);
  }
  details_.push_back(-1);
  return at;
}

void Recorder::add_memory(const tenon_value* outs, uint32_t nouts, uint64_t now) {
  if (nouts == 0 || outs[0].tag != TENON_VALUE_TENSOR) return;
  const tenon_device_id device = static_cast<tenon_tensor*>(outs[0].v.p)->device;
  if (device == TENON_DEVICE_META) return;
  if (tenon_call_record* record = next())
    *record = {.begin_ns = now,
               .end_ns = bytes_in_use(device),
               .what = device,
               .kind = TENON_RECORD_MEMORY,
               .flags = 0,
               .shapes = 0,
               .stack = 0};
}

void Recorder::scope_end() {
  if (scopes_.empty()) return;
  const Scope scope = scopes_.back();
  scopes_.pop_back();
  if (tenon_call_record* record = next())
    *record = {.begin_ns = scope.begin,
               .end_ns = ticks(),
               .what = scope.what,
               .kind = TENON_RECORD_SCOPE,
               .flags = 0,
               .shapes = 0,
               .stack = 0};
}

uint64_t Recorder::drain(tenon_call_record* out, uint64_t capacity) {
  if (chunks_.empty()) return 0;
  const ClockMap clock(first_, last_);
  const uint64_t in_last = static_cast<uint64_t>(next_ - chunks_.back().get());
  const uint64_t total = (chunks_.size() - 1) * kChunk + in_last;
  const uint64_t count = std::min(capacity, total - drained_);
  for (uint64_t i = 0; i < count; ++i, ++drained_) {
    out[i] = chunks_[drained_ / kChunk][drained_ % kChunk];
    out[i].begin_ns = clock.ns(out[i].begin_ns);
    if (out[i].kind != TENON_RECORD_MEMORY) out[i].end_ns = clock.ns(out[i].end_ns);
  }
  return count;
}

}  // namespace tenon::profiler

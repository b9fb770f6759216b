// SPDX-License-Identifier: Apache-2.0
// What one thread has recorded: 32 bytes for each call, in chunks.
#pragma once

#include <tenon/services/autograd.h>
#include <tenon/services/profiler.h>
#include <tenon/kernel.hpp>

#include <memory>
#include <vector>

#include "clock.hpp"

namespace tenon::profiler {

static_assert(sizeof(tenon_call_record) == 32);

class Recorder {
 public:
  void start(const tenon_record_options& options);
  void stop() { last_ = ClockMap::now(); }

  // A call that began at `begin`, in ticks, and has ended.
  void add_call(uint64_t begin, uint64_t end, const tenon_op* op, const tenon_value* args,
                uint32_t nargs, const tenon_value* outs, uint32_t nouts, tenon_status status);
  void scope_begin(uint32_t what) { scopes_.push_back({what, ticks()}); }
  void scope_end();

  uint64_t drain(tenon_call_record* out, uint64_t capacity);
  const std::vector<int64_t>& details() const { return details_; }
  uint64_t lost() const { return lost_; }

 private:
  static constexpr uint64_t kChunk = 16384;  // records

  tenon_call_record* next() {
    if (next_ == end_ && !grow()) return nullptr;
    return next_++;
  }
  bool grow();
  uint32_t add_shapes(const tenon_value* args, uint32_t nargs);
  void add_memory(const tenon_value* outs, uint32_t nouts, uint64_t now);

  struct Scope {
    uint32_t what;
    uint64_t begin;
  };

  tenon_record_options options_ = {};
  const tenon_autograd_api* autograd_ = nullptr;
  ClockMap::Moment first_ = {}, last_ = {};
  std::vector<std::unique_ptr<tenon_call_record[]>> chunks_;
  tenon_call_record *next_ = nullptr, *end_ = nullptr;
  uint64_t drained_ = 0, lost_ = 0;
  std::vector<int64_t> details_;
  std::vector<Scope> scopes_;
};

}  // namespace tenon::profiler

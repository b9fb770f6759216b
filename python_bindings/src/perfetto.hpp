// SPDX-License-Identifier: Apache-2.0
// Records of calls as a trace of Perfetto (perfetto_trace.proto, https://perfetto.dev/docs/reference/trace-packet-proto):
// the host's track and the counters of memory. A trace is a sequence of packets, so that tracks that are
// written elsewhere, on a sequence and with uuids of their own, can follow.
#pragma once

#include <tenon/services/profiler.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon::python {

struct CallRecords {
  std::vector<tenon_call_record> records;  // in the order in which they ended
  std::vector<int64_t> details;            // of shapes, see tenon_profiler_api
};

struct PerfettoOptions {
  int64_t process = 0, thread = 0;                          // ids of the system
  std::vector<std::pair<std::string, std::string>> scopes;  // kind and name, by number
  std::unordered_map<uint32_t, std::string> stacks;         // as text, by number
};

// uuids that it uses; others begin behind.
inline constexpr uint64_t kPerfettoProcess = 1, kPerfettoHost = 2, kPerfettoFree = 1 << 20;

std::string perfetto_trace(const CallRecords& calls, const PerfettoOptions& options);

}  // namespace tenon::python

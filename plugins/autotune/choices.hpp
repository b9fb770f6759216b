// SPDX-License-Identifier: Apache-2.0
// Which kernel runs a call: decided once for each kind of call, by what a file says or by measuring.
#pragma once

#include <cstdint>
#include <string>

#include "call_key.hpp"
#include "measure.hpp"
#include "store.hpp"

namespace tenon::autotune {

// What was decided about one kind of call, for the report.
struct Decision {
  std::string op, device, dtype, call;
  std::string source;  // "measured" or "file"
  Record record;
  std::string usual;                                          // the dispatcher's own choice
  std::vector<std::pair<std::string, std::string>> failures;  // contenders that reported an error
  std::string refusal;                                        // why the winner was given up
  std::vector<std::string> declined;                          // kernels that do not accept the call
  std::vector<std::pair<std::string, std::string>>
      algorithms;  // contenders, in their library's words
};

struct Choice {
  const void* handle = nullptr;  // of a candidate; NULL: the dispatcher's own choice
  bool is_final = true;          // for this generation of kernels, while measuring is as allowed
  bool is_single = false;        // for all calls with these dtypes: there is one kernel at most
};

// The slow path of a call that this thread has not seen: looks it up, and measures it if it `may`.
Choice choose(const Call& call, const CallHash& hash, const tenon_value* outs, bool may_measure);

// The chosen kernel has refused a call, for this reason: the dispatcher's own choice runs such calls from here on, in
// this process.
void give_up(const Call& call, const CallHash& hash, const tenon_value* outs,
             const std::string& reason);

const tenon_candidates_api* candidates();

// Forgets all decisions; `with_files`: and what the files hold.
void forget(bool with_files);

void write_report(tenon_sink_fn sink, void* user);

}  // namespace tenon::autotune

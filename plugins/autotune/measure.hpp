// SPDX-License-Identifier: Apache-2.0
// The time of one call by each of several kernels.
#pragma once

#include <tenon/services/candidates.h>

#include <string>
#include <vector>

namespace tenon::autotune {

struct Call {
  int32_t layer;
  const tenon_op* op;
  tenon_value* args;
  uint32_t nargs;
  uint32_t nouts;
  tenon_device_id device;
};

// One way to run a call.
struct Contender {
  std::string name;              // "onednn", "cuda/2"
  const void* handle = nullptr;  // NULL: what the dispatcher chooses by itself
  bool is_repeatable = true;     // false: results may differ from run to run
  double nanoseconds = 0;        // the shortest that was measured; 0: not measured
  std::string failure;           // what its call reported
};

// Which contender is to run, by their times; the first one unless another one is faster than noise explains. One whose
// results may differ from run to run has to be as much faster than the fastest of the others.
size_t fastest(const std::vector<Contender>& contenders, bool repeatable_only = false);

enum class Outcome {
  kMeasured,
  kImpossible,  // now: the stream is being recorded, or the call itself fails
};

// Measures the contenders in turns, so that a change of the machine's speed affects all of them.
// The first contender is the dispatcher's own choice; `winner` is another one only if it takes at
// most 0.97 of the first one's time, in two runs.
Outcome measure(const tenon_candidates_api& candidates, const Call& call,
                std::vector<Contender>& contenders, size_t* winner);

}  // namespace tenon::autotune

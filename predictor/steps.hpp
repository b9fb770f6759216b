// SPDX-License-Identifier: Apache-2.0
// The steps of a program, and what runs each of them on its device.
#pragma once

#include <tenon/services/graph.h>

#include <set>
#include <string>
#include <vector>

namespace tenon::predictor {

enum class Route {
  kNone,        // a view, or a structural step: no kernel
  kKernel,      // a kernel of the device
  kMayDecline,  // a kernel of the device; the host where it declines the arguments
  kParts,       // the operator decomposes into others
  kHost,        // the host computes it, with copies
};

struct Step {
  std::string name, file, device, dtype;
  std::string claimer;  // that runs the step, "" where none of those that the user chose does
  std::string plugin;   // of the kernel, "" where no kernel runs
  int32_t line = 0, depth = 0;
  uint64_t bytes = 0;
  bool is_on_host = true;  // its device is the host itself
  Route route = Route::kNone;

  std::string place() const;  // "train.py:12", or ""
};

// In the order in which they run; those of branches and loops behind their step.
std::vector<Step> steps_of(const tenon_graph_program* program);

// Writes down which of the steps claimers have claimed and, as far as is known, run. Makes the program ready to run. Throws Error.
void find_claims(const tenon_graph_program* program, const std::set<std::string>& claimers,
                 std::vector<Step>& steps);
// Why kernels run steps all the same that one of these claimers has claimed, a line for each part; "": none do.
std::string claim_problems(const tenon_graph_program* program,
                           const std::set<std::string>& claimers);

// "cpu:0"
std::string device_text(tenon_device_id device);
// "12 KiB"
std::string bytes_text(uint64_t bytes);
// For each step its device, dtype, kernel and bytes; what runs together; memory.
std::string explain(const tenon_graph_program* program, const std::vector<Step>& steps);

}  // namespace tenon::predictor

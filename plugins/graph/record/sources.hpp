// SPDX-License-Identifier: Apache-2.0
// Where the recorded program calls its operators: asked of the caller at each call, as a number where it gives one, and
// as a file and a line when the recording ends.
#pragma once

#include <tenon/services/graph.h>

#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "support/pointer_map.hpp"

namespace tenon::graph {

class Sources {
 public:
  explicit Sources(const tenon_graph_recording_options& options) : options_(options) {}

  // Notes in the step where the caller's program is now: its `source` where the caller gives marks, else its location.
  void locate(Step& step);
  Location location_of(const Step& step) const;
  // " at train.py:12", for messages about what happens now; "" if that is unknown.
  std::string where() const;
  // Gives all steps, also those of regions, their locations in place of their sources.
  void name_steps(Graph& graph);

 private:
  struct Mark {
    uint64_t mark;
    Location location;  // once the caller has told it
  };
  // What the caller says of a mark. Without marks: where it is now.
  Location look_up(uint64_t mark) const;

  tenon_graph_recording_options options_;
  std::vector<Mark> marks_;  // Step::source counts them from 1
  PointerMap by_mark_;       // numbers in marks_
};

}  // namespace tenon::graph

// SPDX-License-Identifier: Apache-2.0
#include "record/sources.hpp"

namespace tenon::graph {

void Sources::locate(Step& step) {
  step.source = 0;
  if (!options_.mark) {
    step.location = look_up(0);
    return;
  }
  step.location = {};
  const uint64_t mark = options_.mark(options_.user);
  if (mark == 0) return;
  uint32_t& number = by_mark_[reinterpret_cast<const void*>(mark)];
  if (number == PointerMap::kNone) {
    number = static_cast<uint32_t>(marks_.size());
    marks_.push_back({mark, {}});
  }
  step.source = number + 1;
}

Location Sources::look_up(uint64_t mark) const {
  constexpr uint32_t kMaxFile = 1024;  // bytes of a file's name
  Location location;
  char file[kMaxFile] = "";
  if (!options_.mark)
    location.line = options_.locate ? options_.locate(options_.user, file, sizeof file) : 0;
  else if (mark != 0)
    location.line = options_.locate_mark(options_.user, mark, file, sizeof file);
  if (location.line > 0) location.file = file;
  return location;
}

Location Sources::location_of(const Step& step) const {
  return step.source == 0 ? step.location : look_up(marks_[step.source - 1].mark);
}

std::string Sources::where() const {
  const std::string text = location_text(look_up(options_.mark ? options_.mark(options_.user) : 0));
  return text.empty() ? "" : " at " + text;
}

void Sources::name_steps(Graph& graph) {
  if (!options_.mark) return;
  for (Step& step : graph.steps) {
    if (step.source != 0) {
      Mark& known = marks_[step.source - 1];
      if (known.location.file.empty()) known.location = look_up(known.mark);
      step.location = known.location;
      step.source = 0;
    }
    for (Graph& region : step.regions) name_steps(region);
  }
}

}  // namespace tenon::graph

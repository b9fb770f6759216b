// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <cstdio>

namespace tenon::autotune {
namespace {

std::string why(const Decision& decision) {
  if (!decision.refusal.empty()) return decision.refusal;
  const Record& record = decision.record;
  double usual = 0, winner = 0;
  for (const auto& [name, nanoseconds] : record.nanoseconds) {
    if (name == decision.usual) usual = nanoseconds;
    if (name == record.winner) winner = nanoseconds;
  }
  if (record.winner == decision.usual)
    return "no other kernel takes at most 0.97 of the time of " + decision.usual;
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.2f", usual > 0 ? winner / usual : 0.0);
  return record.winner + " takes " + ratio + " of the time of " + decision.usual +
         ", which runs without autotuning";
}

template <class Pairs, class Value>
std::string object_of(const Pairs& pairs, Value&& value) {
  std::string text = "{";
  for (const auto& [name, each] : pairs)
    text += (text.size() > 1 ? ", " : "") + quoted(name) + ": " + value(each);
  return text + "}";
}

std::string microseconds(double nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", nanoseconds / 1e3);
  return text;
}

}  // namespace

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    if (static_cast<unsigned char>(letter) >= ' ') {
      result += letter;
    } else {
      result += ' ';
    }
  }
  return result + "\"";
}

std::string decision_text(const Decision& decision) {
  std::string declined;
  for (const std::string& name : decision.declined)
    declined += (declined.empty() ? "" : ", ") + quoted(name);
  return "{\"op\": " + quoted(decision.op) + ", \"device\": " + quoted(decision.device) +
         ", \"dtype\": " + quoted(decision.dtype) + ", \"call\": " + quoted(decision.call) +
         ", \"chosen\": " + quoted(decision.record.winner) + ", \"why\": " + quoted(why(decision)) +
         ", \"source\": " + quoted(decision.source) +
         ", \"versions\": " + quoted(decision.record.versions) +
         ", \"microseconds\": " + object_of(decision.record.nanoseconds, microseconds) +
         ", \"algorithms\": " + object_of(decision.algorithms, quoted) +
         ", \"failed\": " + object_of(decision.failures, quoted) + ", \"declined\": [" + declined +
         "]}";
}

}  // namespace tenon::autotune

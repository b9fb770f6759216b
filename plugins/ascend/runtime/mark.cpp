// SPDX-License-Identifier: Apache-2.0
#include "mark.hpp"

#include <tenon/plugin.hpp>
#include <tenon/shared_libraries.hpp>

#include <cstdio>
#include <cstdlib>

namespace ascend {
namespace {

constexpr const char* kVariable = "TENON_ASCEND_MARKS";
constexpr size_t kLongestName = 156;  // outside of MSPTI, which takes 255 bytes

struct Marks {
  void* domain = nullptr;  // so that msprof --mstx-domain-include=tenon shows these alone
  uint64_t (*begin)(void* domain, const char* name, Stream) = nullptr;
  void (*end)(void* domain, uint64_t range) = nullptr;
};

Marks find_marks() {
  const char* const named = secure_getenv(kVariable);
  if (!named || !*named) return {};
  const tenon::SharedLibraries libraries(kVariable, {});
  const auto create = reinterpret_cast<void* (*)(const char*)>(libraries.find("mstxDomainCreateA"));
  Marks marks;
  marks.begin = reinterpret_cast<decltype(marks.begin)>(libraries.find("mstxDomainRangeStartA"));
  marks.end = reinterpret_cast<decltype(marks.end)>(libraries.find("mstxDomainRangeEnd"));
  if (create && marks.begin && marks.end) marks.domain = create("tenon");
  if (marks.domain) return marks;
  const std::string text =
      std::string("ascend: operators are not marked: ") + kVariable +
      (libraries.empty() ? " names no library: " + libraries.problem()
       : create
           ? ": mstxDomainCreateA made no domain; is a tool such as msprof --msproftx=on running?"
           : ": the library lacks mstxDomainCreateA, mstxDomainRangeStartA or mstxDomainRangeEnd");
  tenon::host->log(2, text.data(), text.size());
  return {};
}

const Marks& marks() {
  static const Marks found = find_marks();
  return found;
}

}  // namespace

bool marks_operators() { return marks().domain; }

void Mark::begin_range(const char* op, const char* function, Stream stream) {
  char name[kLongestName + 1];
  std::snprintf(name, sizeof name, "%s: %s", op, function);
  range_ = marks().begin(marks().domain, name, stream);
}

void Mark::end() const { marks().end(marks().domain, range_); }

}  // namespace ascend

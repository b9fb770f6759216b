// SPDX-License-Identifier: Apache-2.0
// A stand-in for libms_tools_ext.so under msprof --msproftx=on, with the prototypes and rules of the pages
// mstxDomainCreateA, mstxDomainRangeStartA and mstxDomainRangeEnd of Ascend/mstx. SIMULATED_MSPROF names the file of
// the timeline; without it no tool listens, and there are neither domains nor ranges. A line is the domain, the name,
// and when the range began and ended on the host, then on the chip (0: it is on the host alone), in microseconds.
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "../failures.hpp"
#include "device_memory.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Domain {
  std::string name;
};
using Clock = std::chrono::steady_clock;

uint64_t now() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch())
          .count());
}

struct Range {
  const Domain* domain;
  std::string name;
  void* stream;
  uint64_t host_begin = now(), host_end = 0, begin = 0, end = 0;

  ~Range() {
    if (FILE* file = std::fopen(std::getenv("SIMULATED_MSPROF"), "a")) {
      std::fprintf(file, "%s|%s|%lu|%lu|%lu|%lu\n", domain->name.c_str(), name.c_str(), host_begin,
                   host_end, begin, end);
      std::fclose(file);
    }
  }
};

std::mutex mutex;
std::set<const Domain*> domains;
std::map<uint64_t, std::shared_ptr<Range>> ranges;
uint64_t last_range = 0;

uint64_t refuse(const char* text) {
  simulated::count_call("refused");
  std::fprintf(stderr, "simulated mstx: %s\n", text);
  return 0;
}

// Writes the time when the chip comes to it.
bool queue(const std::shared_ptr<Range>& range, uint64_t Range::*time) {
  using Moment = std::pair<std::shared_ptr<Range>, uint64_t Range::*>;
  return !simulated_ascend_queue(
      range->stream,
      [](void* user) {
        auto& [of, when] = *static_cast<Moment*>(user);
        (*of).*when = now();
        return 0;
      },
      [](void* user) { delete static_cast<Moment*>(user); }, new Moment(range, time));
}

}  // namespace

EXPORT Domain* mstxDomainCreateA(const char* name) {
  if (!std::getenv("SIMULATED_MSPROF")) return nullptr;
  if (!name || std::strlen(name) > 1023) return refuse("expected the name of a domain"), nullptr;
  for (const char* at = name; *at; ++at)
    if (!std::isalnum(static_cast<unsigned char>(*at)) && *at != '_')
      return refuse("a domain's name has letters, digits and _"), nullptr;
  auto* const made = new Domain{name};
  const std::lock_guard lock(mutex);
  domains.insert(made);
  return made;
}

EXPORT uint64_t mstxDomainRangeStartA(Domain* domain, const char* message, void* stream) {
  if (!std::getenv("SIMULATED_MSPROF")) return 0;
  {
    const std::lock_guard lock(mutex);
    if (!domains.count(domain)) return refuse("expected a domain");
  }
  if (!message || std::strlen(message) > 156) return refuse("a message has up to 156 bytes");
  if (stream && simulated_ascend_is_captured(stream))
    return refuse("a range on a stream that is captured");
  const auto range = std::make_shared<Range>(domain, message, stream);
  if (stream && !queue(range, &Range::begin)) return refuse("expected a stream of this chip");
  const std::lock_guard lock(mutex);
  ranges[++last_range] = range;
  return last_range;
}

EXPORT void mstxDomainRangeEnd(Domain* domain, uint64_t id) {
  std::shared_ptr<Range> range;
  {
    const std::lock_guard lock(mutex);
    const auto found = ranges.find(id);
    if (found == ranges.end() || found->second->domain != domain) {
      refuse("expected a range of this domain");
      return;
    }
    range = found->second;
    ranges.erase(found);
  }
  range->host_end = now();
  if (range->stream && !queue(range, &Range::end)) refuse("expected a stream of this chip");
}

// SPDX-License-Identifier: Apache-2.0
#include "failures.hpp"

#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

namespace simulated {
namespace {

struct Rule {
  std::string name;
  uint64_t first, last;  // number of the call
  int error;
};

struct Failures {
  std::mutex mutex;
  std::map<std::string, uint64_t, std::less<>> calls;
  uint64_t all_calls = 0;
  std::vector<Rule> rules;

  void add(const std::string& name, uint64_t n, int error, uint64_t times) {
    const uint64_t first = calls[name] + n;
    rules.push_back({name, first, first + (times ? times : 1) - 1, error});
  }

  Failures() {
    const char* text = std::getenv("SIMULATED_FAIL");
    std::istringstream list(text ? text : "");
    for (std::string item; std::getline(list, item, ',');) {
      std::istringstream fields(item);
      std::string name, field;
      std::getline(fields, name, ':');
      uint64_t numbers[3] = {1, 1, 1};
      for (uint64_t& number : numbers)
        if (std::getline(fields, field, ':')) number = std::strtoull(field.c_str(), nullptr, 10);
      add(name, numbers[0], static_cast<int>(numbers[1]), numbers[2]);
    }
  }
};

// Never destroyed: worker threads may outlive the destructors of the process.
Failures& failures() {
  static auto* instance = new Failures;
  return *instance;
}

}  // namespace

int count_call(const char* name) {
  Failures& all = failures();
  std::lock_guard lock(all.mutex);
  ++all.all_calls;
  auto found = all.calls.find(std::string_view(name));
  if (found == all.calls.end()) found = all.calls.emplace(name, 0).first;
  const uint64_t number = ++found->second;
  for (const Rule& rule : all.rules)
    if (number >= rule.first && number <= rule.last && rule.name == name) return rule.error;
  return 0;
}

uint64_t environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace simulated

void simulated_fail(const char* name, uint64_t n, int error, uint64_t times) {
  auto& all = simulated::failures();
  std::lock_guard lock(all.mutex);
  all.add(name, n, error, times);
}

void simulated_forget_failures() {
  auto& all = simulated::failures();
  std::lock_guard lock(all.mutex);
  all.rules.clear();
}

uint64_t simulated_calls(const char* name) {
  auto& all = simulated::failures();
  std::lock_guard lock(all.mutex);
  if (!name) return all.all_calls;
  auto found = all.calls.find(std::string_view(name));
  return found == all.calls.end() ? 0 : found->second;
}

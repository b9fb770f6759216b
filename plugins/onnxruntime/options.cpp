// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <tenon/error.hpp>
#include <tenon/plugin.hpp>
#include <tenon/schema/words.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace tenon::onnxruntime {
namespace {

std::string without_spaces(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

std::vector<std::string> pieces(const std::string& text, char divider) {
  std::vector<std::string> found;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(divider, begin), text.size());
    const std::string piece = without_spaces(text.substr(begin, end - begin));
    if (!piece.empty()) found.push_back(piece);
    begin = end + 1;
  }
  return found;
}

[[noreturn]] void refuse(const std::string& text) {
  throw Error(TENON_INVALID_ARGUMENT, "onnxruntime: options: " + text);
}

Provider& provider(Options& options, const std::string& name) {
  for (Provider& each : options.providers)
    if (each.name == name) return each;
  refuse("expected settings of a provider that `providers` lists before them, got '" + name +
         "'; put providers=" + name + ",CPUExecutionProvider in front");
}

int threads_of(const std::string& value) {
  int threads = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), threads);
  if (error != std::errc() || end != value.data() + value.size() || threads < 1 || threads > 1024)
    refuse("`threads`: expected a number from 1 to 1024, got '" + value + "'");
  return threads;
}

void exclude(Options& options, const std::string& name) {
  const std::string whole = name.find("::") == name.npos ? "tenon::" + name : name;
  if (!host->op_find(whole.c_str()))
    refuse("`exclude`: expected names of operators, got '" + name + "', which there is not");
  options.excluded.insert(whole);
}

}  // namespace

Options Options::parse(const std::string& text) {
  Options options;
  for (const std::string& entry : pieces(text, ';')) {
    const size_t equal = entry.find('=');
    if (equal == entry.npos || equal == 0) refuse("expected key=value, got '" + entry + "'");
    const std::string key = without_spaces(entry.substr(0, equal));
    const std::string value = without_spaces(entry.substr(equal + 1));
    const size_t point = key.find('.');
    if (key == "providers") {
      for (const std::string& name : pieces(value, ',')) options.providers.push_back({name, {}});
      if (options.providers.empty()) refuse("`providers`: expected names, got nothing");
    } else if (key == "exclude") {
      for (const std::string& name : pieces(value, ',')) exclude(options, name);
    } else if (key == "threads") {
      options.threads = threads_of(value);
    } else if (key.starts_with("config.") && key.size() > 7) {
      options.config.emplace_back(key.substr(7), value);
    } else if (point != key.npos && key.substr(0, point).ends_with("ExecutionProvider")) {
      provider(options, key.substr(0, point)).settings.emplace_back(key.substr(point + 1), value);
    } else {
      const std::vector<std::string> keys = {"providers", "exclude", "threads"};
      refuse("there is no key `" + key + "`" + schema::did_you_mean(key, keys) +
             "; the keys are providers, exclude, threads, config.<entry> and "
             "<provider>.<setting>");
    }
  }
  return options;
}

}  // namespace tenon::onnxruntime

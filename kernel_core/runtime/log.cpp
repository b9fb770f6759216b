// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/runtime/log.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "formats/json_writer.hpp"
#include "kernel_core/abi/slots.hpp"

namespace tenon::core {
namespace {

constexpr std::string_view kLevelNames[] = {"debug", "info", "warning", "error"};

int32_t read_least_level() {
  const char* wanted = std::getenv("TENON_LOG");
  const auto* found =
      std::find(std::begin(kLevelNames), std::end(kLevelNames), wanted ? wanted : "");
  if (found == std::end(kLevelNames)) return static_cast<int32_t>(LogLevel::kWarning);
  return static_cast<int32_t>(found - std::begin(kLevelNames));
}

bool is_wanted(LogLevel level) {
  static const int32_t least = read_least_level();
  return static_cast<int32_t>(level) >= least;
}

bool wants_json() {
  const char* wanted = std::getenv("TENON_LOG_FORMAT");
  return wanted && std::string_view(wanted) == "json";
}

// {"time": "2026-11-27T03:49:28.125Z", "level": "warning", "thread": 4711, "message": "text"}. False: there is
// no memory for it.
bool write_json(LogLevel level, const timespec& now, std::string_view text) noexcept try {
  tm universal;
  gmtime_r(&now.tv_sec, &universal);
  char seconds[32], time[48];
  std::strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &universal);
  std::snprintf(time, sizeof time, "%s.%03ldZ", seconds, now.tv_nsec / 1000000);
  JsonWriter json;
  json.object("", [&] {
    json.string("time", time);
    json.string("level", kLevelNames[static_cast<int32_t>(level)]);
    json.number("process", getpid());
    json.number("thread", syscall(SYS_gettid));
    json.string("message", text);
  });
  const std::string line = json.text() + "\n";
  return write(STDERR_FILENO, line.data(), line.size()) >= 0;
} catch (...) {
  return false;
}

}  // namespace

// [tenon warning 03:49:28.125 4711] text
void log_text(LogLevel level, std::string_view text) noexcept {
  if (!is_wanted(level)) return;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  static const bool is_json = wants_json();
  if (is_json && write_json(level, now, text)) return;
  tm local;
  localtime_r(&now.tv_sec, &local);
  // Written whole in one call, so that lines of different threads do not mix.
  char line[4096];
  int size =
      std::snprintf(line, sizeof line, "[tenon %s %02d:%02d:%02d.%03ld %ld] %.*s",
                    kLevelNames[static_cast<int32_t>(level)].data(), local.tm_hour, local.tm_min,
                    local.tm_sec, now.tv_nsec / 1000000, syscall(SYS_gettid),
                    static_cast<int>(std::min<size_t>(text.size(), sizeof line)), text.data());
  size = std::clamp(size, 0, static_cast<int>(sizeof line) - 2);
  std::replace(line, line + size, '\n', ' ');
  line[size] = '\n';
  if (write(STDERR_FILENO, line, static_cast<size_t>(size) + 1) < 0)
    return;  // there is no other way to report
}

void log(LogLevel level, const char* format, ...) noexcept {
  if (!is_wanted(level)) return;
  char text[4096];
  va_list arguments;
  va_start(arguments, format);
  int size = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (size > 0)
    log_text(level, {text, std::min<size_t>(static_cast<size_t>(size), sizeof text - 1)});
}

namespace slots {

void log(int32_t level, const char* text, uint64_t bytes) {
  log_text(static_cast<LogLevel>(std::clamp(level, 0, 3)), {text, bytes});
}

}  // namespace slots
}  // namespace tenon::core

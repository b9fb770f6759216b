// SPDX-License-Identifier: Apache-2.0
// One line per message on stderr. TENON_LOG=debug|info|warning|error sets the least level; default
// warning. TENON_LOG_FORMAT=json writes each as an object of JSON.
#pragma once

#include <cstdint>
#include <string_view>

namespace tenon::core {

enum class LogLevel : int32_t { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

void log_text(LogLevel level, std::string_view text) noexcept;

[[gnu::format(printf, 2, 3)]] void log(LogLevel level, const char* format, ...) noexcept;

}  // namespace tenon::core

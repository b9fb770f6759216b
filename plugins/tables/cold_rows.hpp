// SPDX-License-Identifier: Apache-2.0
// Rows that are not in memory: in RocksDB, whose library is opened when a table asks for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "part.hpp"

namespace tenon::tables {

// What is in the folder is no copy of anything: a table that is made anew begins with none.
class ColdRows {
 public:
  virtual ~ColdRows() = default;
  // Whether there was a row; `bytes` receives its record.
  virtual bool read(uint64_t id, std::vector<std::byte>& bytes) = 0;
  virtual void write(const Record& record, size_t bytes) = 0;
  virtual void erase(uint64_t id) = 0;
  // All rows of a part, by id; the function calls nothing of this object.
  virtual void each(uint32_t part, const std::function<void(const Record&)>& function) = 0;
};

// Throws Error with what is missing.
std::unique_ptr<ColdRows> open_cold_rows(const std::string& folder);

}  // namespace tenon::tables

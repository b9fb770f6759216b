// SPDX-License-Identifier: Apache-2.0
// What was measured, in one text file for each device and version of Tenon.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tenon::autotune {

struct Record {
  std::string versions;  // of the plugins and libraries that were measured
  std::string winner;    // name of a contender
  std::vector<std::pair<std::string, double>> nanoseconds;
};

// One file. Several processes may use it at once: it is replaced as a whole, under a lock.
class Store {
 public:
  // `device` becomes part of the name of the file: "cpu AMD EPYC avx512".
  explicit Store(const std::string& device);

  // NULL: the file has no such call, or its versions differ.
  const Record* find(const std::string& call, const std::string& versions) const;
  void add(const std::string& call, Record record);
  void remove_file();
  const std::string& path() const { return path_; }  // empty: nothing is written

 private:
  using Records = std::map<std::string, Record>;
  // False: it is damaged, which a warning says.
  static bool read(const std::string& path, Records& records);
  void write();

  std::string path_;
  Records records_;
  Records fresh_;  // of this process
  bool has_failed_ = false;
};

}  // namespace tenon::autotune

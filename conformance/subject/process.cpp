// SPDX-License-Identifier: Apache-2.0
#include "subject/process.hpp"

#include <dirent.h>
#include <tenon/abi.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace tenon::kit {
namespace {

int entries(const char* folder) {
  DIR* directory = ::opendir(folder);
  if (!directory) return 0;
  int count = 0;
  while (dirent* entry = ::readdir(directory)) count += entry->d_name[0] != '.';
  ::closedir(directory);
  return count;
}

}  // namespace

Holdings holdings() {
  Holdings result;
  std::ifstream pages("/proc/self/statm");
  int64_t total = 0, resident = 0, shared = 0, code = 0, library = 0, data = 0;
  pages >> total >> resident >> shared >> code >> library >> data;
  if (TENON_SANITIZER_HERE == TENON_SANITIZER_NONE) {  // sanitizers keep what is freed
    result.memory = data * ::sysconf(_SC_PAGESIZE);
    result.resident = resident * ::sysconf(_SC_PAGESIZE);
  }
  result.files = entries("/proc/self/fd");
  result.threads = entries("/proc/self/task");
  return result;
}

int settled_threads(int expected) {
  int found = 0;
  for (int i = 0; i < 100; ++i) {
    found = entries("/proc/self/task");
    if (found <= expected) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return found;
}

std::set<std::string> mapped_files() {
  std::set<std::string> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (size_t at = line.find('/'); at != std::string::npos) files.insert(line.substr(at));
  return files;
}

bool is_mapped(const std::string& path) { return mapped_files().count(path) != 0; }

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace tenon::kit

// SPDX-License-Identifier: Apache-2.0
#include "store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <tenon/cache_folder.hpp>
#include <tenon/plugin.hpp>

namespace tenon::autotune {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFirstLine = "tenon autotune 1";

void warn(const std::string& text) { host->log(2, text.data(), text.size()); }

// Empty: choices are remembered in memory alone.
std::string folder_of_choices() {
  const char* folder = secure_getenv("TENON_AUTOTUNE_CACHE");
  if (folder && std::string_view(folder) == "off") return {};
  return folder && *folder ? folder : cache_folder("autotune");
}

std::string file_name(const std::string& device) {
  std::string name = device + "-" TENON_VERSION;
  for (char& letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter)) && letter != '.') letter = '-';
  return name + ".txt";
}

std::string checksum(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (unsigned char letter : text) hash = (hash ^ letter) * 0x100000001b3u;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::stringstream stream(line);
  for (std::string field; std::getline(stream, field, '\t');) fields.push_back(field);
  return fields;
}

// call, versions, winner, contender=nanoseconds ..., checksum
std::string line_of(const std::string& call, const Record& record) {
  std::string line = call + "\t" + record.versions + "\t" + record.winner;
  for (const auto& [name, nanoseconds] : record.nanoseconds)
    line += "\t" + name + "=" + std::to_string(static_cast<int64_t>(nanoseconds));
  return line + "\t" + checksum(line);
}

bool parse_line(const std::string& line, std::string& call, Record& record) {
  const size_t last = line.rfind('\t');
  if (last == std::string::npos || checksum(line.substr(0, last)) != line.substr(last + 1))
    return false;
  const std::vector<std::string> fields = fields_of(line.substr(0, last));
  if (fields.size() < 3) return false;
  call = fields[0];
  record = {.versions = fields[1], .winner = fields[2], .nanoseconds = {}};
  for (size_t i = 3; i < fields.size(); ++i) {
    const size_t equals = fields[i].rfind('=');
    if (equals == std::string::npos) return false;
    record.nanoseconds.emplace_back(fields[i].substr(0, equals),
                                    std::strtod(fields[i].c_str() + equals + 1, nullptr));
  }
  return true;
}

// Held while the file is read and replaced.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : file_(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (file_ >= 0) ::flock(file_, LOCK_EX);
  }
  ~FileLock() {
    if (file_ >= 0) ::close(file_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

}  // namespace

Store::Store(const std::string& device) {
  const std::string folder = folder_of_choices();
  if (folder.empty()) return;
  path_ = folder + "/" + file_name(device);
  read(path_, records_);
}

bool Store::read(const std::string& path, Records& records) {
  std::ifstream file(path);
  if (!file) return true;  // nothing was measured yet
  Records found;
  std::string line, call;
  Record record;
  bool is_sound = std::getline(file, line) && line == kFirstLine;
  while (is_sound && std::getline(file, line)) {
    is_sound = parse_line(line, call, record);
    if (is_sound) found[call] = record;
  }
  if (!is_sound) {
    warn("autotune: expected lines of calls and times in " + path +
         ", got a damaged file; it is ignored and will be replaced");
    return false;
  }
  records = std::move(found);
  return true;
}

const Record* Store::find(const std::string& call, const std::string& versions) const {
  auto position = records_.find(call);
  return position != records_.end() && position->second.versions == versions ? &position->second
                                                                             : nullptr;
}

void Store::add(const std::string& call, Record record) {
  records_[call] = record;
  fresh_[call] = std::move(record);
  if (!path_.empty()) write();
}

void Store::remove_file() {
  records_.clear();
  fresh_.clear();
  std::error_code ignored;
  if (!path_.empty()) fs::remove(path_, ignored);
}

void Store::write() {
  std::error_code error;
  fs::create_directories(fs::path(path_).parent_path(), error);
  FileLock lock(path_);
  Records all;
  read(path_, all);  // what other processes have measured meanwhile
  for (const auto& [call, record] : fresh_) all[call] = record;
  const std::string draft = path_ + "." + std::to_string(::getpid());
  {
    std::ofstream file(draft, std::ios::trunc);
    file << kFirstLine << '\n';
    for (const auto& [call, record] : all) file << line_of(call, record) << '\n';
    file.close();
    if (!file) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) fs::rename(draft, path_, error);
  if (error) {
    std::error_code ignored;
    fs::remove(draft, ignored);
    if (!has_failed_)
      warn("autotune: " + path_ + " cannot be written (" + error.message() +
           "); choices are kept in memory; name another folder with TENON_AUTOTUNE_CACHE");
    has_failed_ = true;
    return;
  }
  records_ = std::move(all);
}

}  // namespace tenon::autotune

// SPDX-License-Identifier: Apache-2.0
#include "control/store.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <tenon/error.hpp>

#include "control/time.hpp"

namespace tenon::collectives {
namespace {

constexpr size_t kKeyBytes = 100;  // in a file's name each takes two of 255 letters

std::string sum_of(const std::string& key, const std::string& value, int64_t delta) {
  const int64_t number = value.empty() ? 0 : number_of(key, value);
  int64_t sum = 0;
  if (__builtin_add_overflow(number, delta, &sum))
    throw Error(TENON_OUT_OF_RANGE,
                "store: the number under \"" + key + "\" is too large to add to");
  return std::to_string(sum);
}

// Holds the folder's lock, which other processes and other handles respect.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : file_(open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    while (file_ >= 0 && flock(file_, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      close(file_);
      file_ = -1;
    }
    if (file_ < 0)
      throw Error(TENON_UNAVAILABLE, "store: cannot lock " + folder + ": " + strerror(errno));
  }
  ~FolderLock() { close(file_); }
  FolderLock(const FolderLock&) = delete;

 private:
  int file_;
};

}  // namespace

int64_t number_of(const std::string& key, const std::string& value) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size())
    throw Error(TENON_INVALID_ARGUMENT, "store: expected a number under \"" + key +
                                            "\", got something else; use other keys for add()");
  return number;
}

void never_set(const std::string& key) {
  throw Error(TENON_DEADLINE_EXCEEDED, "store: no rank has set \"" + key + "\" in time");
}

// -- of one process

void LocalStore::set(const std::string& key, const std::string& value) {
  {
    std::lock_guard lock(mutex_);
    values_[key] = value;
  }
  changed_.notify_all();
}

std::string LocalStore::get(const std::string& key, uint64_t deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (is_closed_) throw Error(TENON_UNAVAILABLE, "store: it was closed");
    if (auto found = values_.find(key); found != values_.end()) return found->second;
    const uint64_t left = std::min(time_left(deadline), 3600 * kSecond);
    if (left == 0) never_set(key);
    changed_.wait_for(lock, std::chrono::nanoseconds(left));
  }
}

int64_t LocalStore::add(const std::string& key, int64_t delta) {
  std::string sum;
  {
    std::lock_guard lock(mutex_);
    std::string& value = values_[key];
    sum = value = sum_of(key, value, delta);
  }
  changed_.notify_all();
  return number_of(key, sum);
}

std::string LocalStore::compare_set(const std::string& key, const std::string& expected,
                                    const std::string& value) {
  std::string result;
  {
    std::lock_guard lock(mutex_);
    auto found = values_.find(key);
    result = found == values_.end() ? "" : found->second;
    if (result == expected) values_[key] = result = value;
  }
  changed_.notify_all();
  return result;
}

bool LocalStore::erase(const std::string& key) {
  std::lock_guard lock(mutex_);
  return values_.erase(key) > 0;
}

void LocalStore::close() {
  {
    std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  changed_.notify_all();
}

// -- in a folder

FileStore::FileStore(const std::string& folder) : folder_(folder) {
  struct stat status;
  if (stat(folder.c_str(), &status) != 0)
    throw Error(TENON_INVALID_ARGUMENT,
                "the meeting point " + folder +
                    " does not exist: it serves one communicator, and ranks on one machine; make a "
                    "new one");
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0)
    throw Error(TENON_INVALID_ARGUMENT,
                "the meeting point " + folder + " is not a private folder of this user");
}

std::string FileStore::path(const std::string& key) const {
  if (key.size() > kKeyBytes)
    throw Error(TENON_INVALID_ARGUMENT,
                "store: expected a key of at most 100 bytes, got " + std::to_string(key.size()));
  std::string path = folder_ + "/k";
  for (const unsigned char letter : key) {
    path += "0123456789abcdef"[letter >> 4];
    path += "0123456789abcdef"[letter & 15];
  }
  return path;
}

bool FileStore::read(const std::string& key, std::string& value) const {
  const int file = open(path(key).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char piece[4096];
  ssize_t count;
  value.clear();
  while ((count = ::read(file, piece, sizeof piece)) > 0)
    value.append(piece, static_cast<size_t>(count));
  close(file);
  if (count < 0) throw Error(TENON_UNAVAILABLE, "store: cannot read \"" + key + "\"");
  return true;
}

void FileStore::set(const std::string& key, const std::string& value) {
  const std::string name = path(key);
  std::string draft = folder_ + "/dXXXXXX";
  const int file = mkostemp(draft.data(), O_CLOEXEC);
  bool is_written = file >= 0;
  for (size_t done = 0; is_written && done < value.size();) {
    const ssize_t count = write(file, value.data() + done, value.size() - done);
    is_written = count > 0;
    done += is_written ? static_cast<size_t>(count) : 0;
  }
  if (file >= 0) close(file);
  // Readers see the whole value or none.
  if (is_written && rename(draft.c_str(), name.c_str()) == 0) return;
  const std::string reason = strerror(errno);
  if (file >= 0) unlink(draft.c_str());
  throw Error(TENON_UNAVAILABLE,
              "store: cannot write \"" + key + "\" in " + folder_ + ": " + reason);
}

std::string FileStore::get(const std::string& key, uint64_t deadline) {
  std::string value;
  for (uint64_t pause = kMillisecond; !read(key, value);
       pause = std::min(2 * pause, 20 * kMillisecond)) {
    if (time_left(deadline) == 0) never_set(key);
    const timespec time = {0, static_cast<long>(pause)};
    nanosleep(&time, nullptr);
  }
  return value;
}

int64_t FileStore::add(const std::string& key, int64_t delta) {
  const FolderLock lock(folder_);
  std::string value;
  read(key, value);
  value = sum_of(key, value, delta);
  set(key, value);
  return number_of(key, value);
}

std::string FileStore::compare_set(const std::string& key, const std::string& expected,
                                   const std::string& value) {
  const FolderLock lock(folder_);
  std::string current;
  read(key, current);
  if (current != expected) return current;
  set(key, value);
  return value;
}

bool FileStore::erase(const std::string& key) {
  const FolderLock lock(folder_);
  return unlink(path(key).c_str()) == 0;
}

}  // namespace tenon::collectives

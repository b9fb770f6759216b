// SPDX-License-Identifier: Apache-2.0
#include "compile_cache.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <tenon/cache_folder.hpp>

#include <cstdio>

#include "compiler.hpp"

namespace reference {
namespace {

namespace fs = std::filesystem;

// Empty in set-user-id programs and where others could write.
fs::path own_folder() {
  const fs::path folder = tenon::cache_folder("reference");
  if (folder.empty()) return {};
  std::error_code error;
  fs::create_directories(folder, error);
  chmod(folder.c_str(), 0700);
  struct stat state;
  if (stat(folder.c_str(), &state) != 0 || state.st_uid != geteuid() || (state.st_mode & 077) != 0)
    return {};
  return folder;
}

// FNV-1a of 128 bits: no two sources meet by accident.
std::string hash_of(const std::string& text) {
  using Wide = unsigned __int128;
  constexpr Wide kPrime = (Wide{1} << 88) + 0x13b;
  Wide hash = Wide{0x6c62272e07bb0142} << 64 | 0x62b821756295c58d;
  for (unsigned char c : text) hash = (hash ^ c) * kPrime;
  char name[40];
  std::snprintf(name, sizeof name, "%016llx%016llx", static_cast<unsigned long long>(hash >> 64),
                static_cast<unsigned long long>(hash));
  return name;
}

}  // namespace

CompileCache::CompileCache(const std::string& key) {
  if (fs::path folder = own_folder(); !folder.empty()) path_ = folder / (hash_of(key) + ".so");
}

std::shared_ptr<KernelLibrary> CompileCache::find() const {
  return path_.empty() || access(path_.c_str(), R_OK) != 0 ? nullptr
                                                           : KernelLibrary::open(path_.string());
}

// Under another name first, because others may look at the same moment.
std::string CompileCache::keep(const fs::path& library) const {
  if (path_.empty()) return library.string();
  fs::path fresh = path_;
  fresh += library.parent_path().filename();  // unique: mkdtemp made it
  std::error_code error;
  fs::copy_file(library, fresh, error);
  if (!error) fs::rename(fresh, path_, error);
  if (!error) return path_.string();
  fs::remove(fresh, error);
  return library.string();
}

}  // namespace reference

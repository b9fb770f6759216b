// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/dependencies.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>

#include "kernel_core/plugin/elf_file.hpp"
#include "kernel_core/plugin/library.hpp"

namespace tenon::core {
namespace {

constexpr uint64_t kMaxTableBytes = 16 << 20;

struct Needs {
  std::vector<std::string> libraries;
  std::vector<std::string> folders;  // of its RUNPATH or RPATH, $ORIGIN resolved
};

std::vector<std::string> split_folders(std::string_view list, const std::string& origin) {
  std::vector<std::string> folders;
  std::stringstream stream{std::string(list)};
  for (std::string folder; std::getline(stream, folder, ':');) {
    for (std::string_view word : {"${ORIGIN}", "$ORIGIN"})
      if (size_t at = folder.find(word); at != folder.npos) folder.replace(at, word.size(), origin);
    if (!folder.empty()) folders.push_back(folder);
  }
  return folders;
}

Needs needs_of(const std::string& path) {
  Needs needs;
  ElfFile file;
  if (file.open(path)) return needs;
  const Elf64_Shdr* dynamic = file.find_section(uint32_t{SHT_DYNAMIC});
  const Elf64_Shdr* names = dynamic ? file.section(dynamic->sh_link) : nullptr;
  if (!names) return needs;
  std::vector<char> entries = file.contents(*dynamic, kMaxTableBytes);
  std::vector<char> strings = file.contents(*names, kMaxTableBytes);
  std::string origin = std::filesystem::path(path).parent_path();
  for (size_t at = 0; at + sizeof(Elf64_Dyn) <= entries.size(); at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    std::memcpy(&entry, entries.data() + at, sizeof entry);
    if (entry.d_tag == DT_NULL) break;
    std::string_view text = string_at(strings, entry.d_un.d_val);
    if (entry.d_tag == DT_NEEDED && !text.empty()) needs.libraries.emplace_back(text);
    if (entry.d_tag == DT_RUNPATH || entry.d_tag == DT_RPATH)
      for (std::string& folder : split_folders(text, origin))
        needs.folders.push_back(std::move(folder));
  }
  return needs;
}

// The system's cache holds sonames as NUL-terminated strings; its exact format need not be known to
// see whether one is in there.
bool is_in_system_cache(const std::string& name) {
  static const std::string& cache = *[] {
    std::ifstream file("/etc/ld.so.cache", std::ios::binary);
    return new std::string(std::istreambuf_iterator<char>(file), {});
  }();
  std::string terminated = name + '\0';
  for (size_t at = cache.find(terminated); at != cache.npos; at = cache.find(terminated, at + 1))
    if (at == 0 || cache[at - 1] == '\0' || cache[at - 1] == '/') return true;
  return false;
}

// The file that `name` resolves to in `folders`; empty if none.
std::string find_in(const std::vector<std::string>& folders, const std::string& name) {
  std::error_code ignored;
  for (const std::string& folder : folders)
    if (std::string file = folder + "/" + name; std::filesystem::exists(file, ignored)) return file;
  return {};
}

}  // namespace

std::vector<std::string> missing_libraries(const std::string& path) {
  std::vector<std::string> system_folders = {"/lib64", "/usr/lib64", "/lib", "/usr/lib"};
  if (const char* extra = ::secure_getenv("LD_LIBRARY_PATH"))
    for (std::string& folder : split_folders(extra, ""))
      system_folders.push_back(std::move(folder));

  std::vector<std::string> missing;
  std::set<std::string> seen;
  std::vector<std::string> pending = {path};
  while (!pending.empty()) {
    std::string file = std::move(pending.back());
    pending.pop_back();
    Needs needs = needs_of(file);
    for (const std::string& name : needs.libraries) {
      if (!seen.insert(name).second) continue;
      if (std::string found = find_in(needs.folders, name); !found.empty()) {
        pending.push_back(std::move(found));  // it came with the plugin: what it needs matters too
      } else if (name.find('/') == name.npos && !Library::is_mapped(name) &&
                 !is_in_system_cache(name) && find_in(system_folders, name).empty()) {
        missing.push_back(file == path ? name : name + " (needed by " + file + ")");
      }
    }
  }
  return missing;
}

}  // namespace tenon::core

// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/library_search.hpp"

#include <algorithm>
#include <filesystem>

#include "formats/elf_file.hpp"

namespace tenon::core {
namespace {

namespace fs = std::filesystem;

bool replace_origin(std::string& folder, const std::string& origin) {
  for (std::string_view token : {"${ORIGIN}", "$ORIGIN"})
    if (size_t at = folder.find(token); at != folder.npos) {
      folder.replace(at, token.size(), origin);
      return true;
    }
  return false;
}

// By hand, as std::getline drops an empty last entry, and the system does not: it takes every empty
// entry for the current folder. A list that is empty as a whole has no entries.
void append_folders(const std::string& list, const std::string& origin, LibrarySearch& search) {
  if (list.empty()) return;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    std::string folder = list.substr(begin, end - begin);
    if (replace_origin(folder, origin)) search.beside.push_back(folder);
    search.folders.push_back(std::move(folder));
    begin = end + 1;
  }
}

}  // namespace

std::string find_library(const std::string& name, const std::vector<std::string>& folders) {
  if (name.find('/') != name.npos) return name;  // the system takes it for a path
  std::error_code error;
  for (const std::string& folder : folders)
    if (fs::exists(folder + "/" + name, error)) return folder + "/" + name;
  return {};
}

LibrarySearch read_library_search(const std::string& path, int descriptor) {
  LibrarySearch search;
  ElfFile file;
  std::string text;
  auto problem = descriptor < 0 ? file.open(path, text) : file.open(descriptor, path, text);
  // A damaged section table does not keep the system from loading the file.
  if (problem != ElfFile::Problem::kNone && problem != ElfFile::Problem::kDamaged) return search;
  search.needed = file.dynamic_strings(DT_NEEDED);
  const std::string origin = fs::path(path).parent_path();
  for (int64_t tag : {int64_t{DT_RPATH}, int64_t{DT_RUNPATH}})
    for (const std::string& list : file.dynamic_strings(tag)) append_folders(list, origin, search);
  return search;
}

}  // namespace tenon::core

// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/library_search.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "formats/elf_file.hpp"

namespace tenon::core {
namespace {

namespace fs = std::filesystem;

// Folders of these names below a folder, in this order below one another, have libraries for some
// processors (glibc before 2.37).
constexpr std::string_view kHardware[] = {"tls",    "haswell", "xeon_phi", "avx512_1",
                                          "x86_64", "atomics", "aarch64"};

// Also true of a symbolic link to nothing: another user may make what it names.
bool is_there(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

void append_hardware_folders(const std::string& folder, size_t first,
                             std::vector<std::string>& folders) {
  for (size_t i = first; i < std::size(kHardware); ++i) {
    const std::string below = folder + "/" + std::string(kHardware[i]);
    if (!is_there(below)) continue;
    append_hardware_folders(below, i + 1, folders);
    folders.push_back(below);
  }
}

// A folder, and before it those below it in which the system looks first. Which of them it does
// depends on its version and on the processor, so that all are in the list.
void append_folder(const std::string& folder, std::vector<std::string>& folders) {
  const std::string variants = folder + "/glibc-hwcaps";
  std::error_code error;
  for (fs::directory_iterator at(variants, error), end; !error && at != end; at.increment(error))
    if (std::error_code ignored; !at->is_regular_file(ignored)) folders.push_back(at->path());
  if (is_there(variants)) folders.push_back(variants);  // for those who could add to it
  append_hardware_folders(folder, 0, folders);
  folders.push_back(folder);
}

// Where what follows a leading $ORIGIN begins; 0: it begins with another word.
size_t end_of_origin(const std::string& folder) {
  for (std::string_view token : {"${ORIGIN}", "$ORIGIN"})
    if (folder.starts_with(token) && (folder.size() == token.size() || folder[token.size()] == '/'))
      return token.size();
  return 0;
}

// By hand, as std::getline drops an empty last entry, and the system does not: it takes every empty
// entry for the current folder. A list that is empty as a whole has no entries.
void append_folders(const std::string& list, const std::string& origin, LibrarySearch& search) {
  if (list.empty()) return;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    std::string folder = list.substr(begin, end - begin);
    begin = end + 1;
    const size_t rest = end_of_origin(folder);
    if (folder.find('$', rest) != folder.npos) {
      search.variables.push_back(std::move(folder));
      continue;
    }
    folder.replace(0, rest, rest ? origin : "");
    if (rest) search.beside.push_back(folder);
    append_folder(folder, search.folders);
  }
}

}  // namespace

std::vector<std::string> find_library(const std::string& name,
                                      const std::vector<std::string>& folders) {
  if (name.find('/') != name.npos) return {name};  // the system takes it for a path
  std::vector<std::string> found;
  for (const std::string& folder : folders)
    if (std::string file = folder + "/" + name; is_there(file)) found.push_back(std::move(file));
  return found;
}

LibrarySearch read_library_search(const std::string& path, int descriptor) {
  LibrarySearch search;
  ElfFile file;
  std::string text;
  auto problem = descriptor < 0 ? file.open(path, text) : file.open(descriptor, path, text);
  // A damaged section table does not keep the system from loading the file.
  if (problem != ElfFile::Problem::kNone && problem != ElfFile::Problem::kDamaged) return search;
  for (int64_t tag : {int64_t{DT_NEEDED}, int64_t{DT_AUXILIARY}, int64_t{DT_FILTER}})
    for (std::string& name : file.dynamic_strings(tag))
      (name.find('$') == name.npos ? search.needed : search.variables).push_back(std::move(name));
  for (std::string& name : file.dynamic_strings(DT_SONAME)) search.name = std::move(name);
  std::vector<std::string> lists = file.dynamic_strings(DT_RUNPATH);
  search.has_runpath = !lists.empty();
  if (lists.empty()) lists = file.dynamic_strings(DT_RPATH);  // else the system ignores it
  const std::string origin = fs::path(path).parent_path();
  for (const std::string& list : lists) append_folders(list, origin, search);
  return search;
}

}  // namespace tenon::core

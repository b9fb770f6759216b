// SPDX-License-Identifier: Apache-2.0
// The file, before any of its code runs. What is wrong here pins the library in memory, binds it to
// strangers' symbols, or makes it load on its author's machine only.
#include <cstring>
#include <set>

#include "harness/session.hpp"
#include "subject/elf.hpp"
#include "subject/plugin.hpp"

namespace tenon::kit {
namespace {

Elf read(Session& session) {
  Elf elf(session.path());
  session.require(elf.is_readable(), "an ELF shared library", elf.problem(),
                  "name the plugin's .so file");
  return elf;
}

std::string join(const std::vector<std::string>& names, size_t limit = 8) {
  std::string all;
  for (size_t i = 0; i < names.size() && i < limit; ++i) all += (i ? ", " : "") + names[i];
  return names.size() > limit ? all + text(" and ", names.size() - limit, " more") : all;
}

void exports(Session& session) {
  std::vector<std::string> others;
  bool has_entry = false;
  for (const Symbol& symbol : read(session).dynamic_symbols()) {
    if (!symbol.is_defined || symbol.binding == STB_LOCAL || symbol.name.empty()) continue;
    if (symbol.name == "tenon_plugin_query")
      has_entry = true;
    else if (symbol.binding != STB_GNU_UNIQUE)  // static.gnu_unique tells of those
      others.push_back(symbol.name);
  }
  session.expect(has_entry, "the library exports tenon_plugin_query", "it does not",
                 "mark the function TENON_EXPORT");
  session.expect(others.empty(), "no other symbol is exported", join(others),
                 "link with a version script, as tenon_add_plugin() does: "
                 "{ global: tenon_plugin_query; local: *; };");
}

void gnu_unique(Session& session) {
  std::vector<std::string> found;
  for (const Symbol& symbol : read(session).dynamic_symbols())
    if (symbol.is_defined && symbol.binding == STB_GNU_UNIQUE) found.push_back(symbol.name);
  session.expect(found.empty(), "no symbol is STB_GNU_UNIQUE", join(found));
}

void textrel(Session& session) {
  Elf elf = read(session);
  session.expect(!elf.has_dynamic(DT_TEXTREL) && !elf.has_dynamic(DT_FLAGS, DF_TEXTREL),
                 "no relocations in code", "DT_TEXTREL");
}

void execstack(Session& session) {
  std::optional<uint32_t> flags = read(session).stack_flags();
  session.expect(flags && !(*flags & PF_X), "the stack is not executable",
                 flags ? "PT_GNU_STACK with the flag X" : "no PT_GNU_STACK segment");
}

void runpath(Session& session) {
  Elf elf = read(session);
  for (int64_t tag : {int64_t{DT_RUNPATH}, int64_t{DT_RPATH}})
    for (const std::string& list : elf.dynamic_strings(tag)) {
      // With one more colon: std::getline drops an empty last entry, and the system does not.
      std::istringstream folders(list.empty() ? list : list + ':');
      for (std::string folder; std::getline(folders, folder, ':');)
        session.expect(folder == "$ORIGIN" || folder.rfind("$ORIGIN/", 0) == 0 ||
                           folder.rfind("${ORIGIN}", 0) == 0,
                       "folders relative to $ORIGIN", folder.empty() ? "an empty one" : folder);
    }
}

void needed(Session& session) {
  for (const std::string& library : read(session).dynamic_strings(DT_NEEDED)) {
    bool is_host = library.rfind("libtenon.so", 0) == 0;
    bool is_python = library.rfind("libpython", 0) == 0;
    session.expect(!is_host && !is_python, "no dependency on libtenon or libpython", library,
                   is_host ? "every service of the host arrives in tenon_host: do not link libtenon"
                           : "a plugin serves programs without Python, too");
  }
}

// Also against the table, which takes running the plugin.
void note(Session& session) {
  std::optional<tenon_note> note = read(session).note();
  session.require(note.has_value(), "a section .note.tenon of the size of tenon_note", "none");
  session.expect(note->name_size == 6 && note->type == 1 &&
                     std::memcmp(note->owner, "TENON", 6) == 0 &&
                     note->desc_size == sizeof(tenon_note) - 20,
                 "owner TENON, type 1, and its size", "something else");
  session.expect(note->epoch_min <= TENON_ABI_EPOCH && TENON_ABI_EPOCH <= note->epoch_max,
                 text("epochs that include ", TENON_ABI_EPOCH),
                 text(note->epoch_min, " to ", note->epoch_max));
  auto ends = [](const char* text, size_t size) { return std::memchr(text, 0, size) != nullptr; };
  session.require(ends(note->name, sizeof note->name) &&
                      ends(note->version, sizeof note->version) &&
                      ends(note->json, sizeof note->json),
                  "texts that end", "one that does not");
  Plugin plugin(session);
  const tenon_plugin& table = *plugin.table();
  session.require(table.name && table.version, "the table has a name and a version", "NULL");
  session.expect(std::strcmp(table.name, note->name) == 0,
                 text("the table's name is the note's, ", note->name), table.name,
                 "use one name in tenon_add_plugin() and tenon_plugin.name");
  session.expect(std::strcmp(table.version, note->version) == 0,
                 text("the table's version is the note's, ", note->version), table.version,
                 "use one version in tenon_add_plugin() and tenon_plugin.version");
}

}  // namespace

const Checks& static_checks() {
  static const Checks checks = {
      {"static.exports", "The library exports one symbol.", "abi.h section 7", "", "", exports},
      {"static.gnu_unique", "No exported symbol is shared between all libraries of a process.",
       "abi.h section 7",
       "compile with -fno-gnu-unique and hide all but the entry point; such symbols keep a library "
       "mapped for ever",
       "", gnu_unique},
      {"static.textrel", "Code is not changed when it is loaded.", "abi.h section 7",
       "compile with -fPIC", "", textrel},
      {"static.execstack", "The stack stays free of code.", "abi.h section 7",
       "link with -Wl,-z,noexecstack; assembly files need a .note.GNU-stack section", "",
       execstack},
      {"static.runpath", "Libraries are looked for beside the plugin, not on its author's machine.",
       "abi.h section 7", "set INSTALL_RPATH and BUILD_WITH_INSTALL_RPATH, or -Wl,-rpath,$ORIGIN",
       "", runpath},
      {"static.needed", "The plugin links to no library of the host.", "abi.h, first paragraph", "",
       "", needed},
      {"static.note", "The pre-load note is there and agrees with the table.",
       "abi.h section 7, tenon_note", "let tenon_add_plugin() write it, or TENON_PLUGIN_NOTE", "",
       note},
  };
  return checks;
}

}  // namespace tenon::kit

// SPDX-License-Identifier: Apache-2.0
#include "api/missing_functions.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "core/host.hpp"

namespace tenon::paddle {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT;
#elif defined(__aarch64__)
constexpr uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT;
#else
constexpr uint32_t kJumpSlot = UINT32_MAX;  // none is bound: the dynamic linker's own way remains
#endif

// One function for each missing one, as only its address can tell which was called.
constexpr size_t kMaxFunctions = 64;
struct Missing {
  std::mutex mutex;
  std::vector<std::string> names;
};
Missing& missing() {
  static auto* all = new Missing;  // outlives the libraries, which stay to the end
  return *all;
}

[[noreturn]] void fail(size_t index) {
  std::string name;
  {
    std::lock_guard lock(missing().mutex);
    name = missing().names[index];
  }
  throw Error(TENON_UNSUPPORTED,
              "the function " + name +
                  " was called, which no library defines; build the source that defines it as "
                  "well, or do not call it on this device");
}
template <size_t kIndex>
[[noreturn]] void stand_in() {
  fail(kIndex);
}
using Function = void (*)();
template <size_t... kIndex>
constexpr std::array<Function, kMaxFunctions> make_table(std::index_sequence<kIndex...>) {
  return {stand_in<kIndex>...};
}
constexpr auto kStandIns = make_table(std::make_index_sequence<kMaxFunctions>());

std::string demangled(const char* symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string result = text && status == 0 ? text : symbol;
  std::free(text);
  return result;
}

// What the dynamic section of a library says about the functions that it calls.
struct Calls {
  const ElfW(Rela) * first = nullptr;
  size_t count = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;

  explicit Calls(const link_map& map) {
    size_t bytes = 0;
    bool has_addends = false;
    for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
      // Some C libraries have added the base to addresses here, and some have not.
      auto address = entry->d_un.d_ptr;
      if (address < map.l_addr) address += map.l_addr;
      if (entry->d_tag == DT_JMPREL) first = reinterpret_cast<const ElfW(Rela)*>(address);
      if (entry->d_tag == DT_PLTRELSZ) bytes = entry->d_un.d_val;
      if (entry->d_tag == DT_PLTREL) has_addends = entry->d_un.d_val == DT_RELA;
      if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(address);
      if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(address);
    }
    if (first && has_addends && symbols && names) count = bytes / sizeof(ElfW(Rela));
  }
};

}  // namespace

std::vector<std::string> bind_missing_functions(void* library) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || !map) return {};
  const Calls calls(*map);
  std::vector<std::string> found;
  Missing& all = missing();
  std::lock_guard lock(all.mutex);
  for (size_t i = 0; i < calls.count; ++i) {
    const ElfW(Rela)& slot = calls.first[i];
    if (ELF64_R_TYPE(slot.r_info) != kJumpSlot) continue;
    const ElfW(Sym)& symbol = calls.symbols[ELF64_R_SYM(slot.r_info)];
    const char* name = calls.names + symbol.st_name;
    if (symbol.st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) == STB_WEAK) continue;
    if (dlsym(library, name) || dlsym(RTLD_DEFAULT, name)) continue;
    if (all.names.size() == kMaxFunctions)
      throw Error(TENON_UNSUPPORTED,
                  "more than " + std::to_string(kMaxFunctions) +
                      " functions are called that no library defines, the last " + demangled(name));
    const auto function = kStandIns[all.names.size()];
    all.names.push_back(demangled(name));
    found.push_back(all.names.back());
    *reinterpret_cast<Function*>(map->l_addr + slot.r_offset) = function;
  }
  return found;
}

}  // namespace tenon::paddle

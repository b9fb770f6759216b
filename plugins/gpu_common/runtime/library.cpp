// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <sstream>

namespace gpu {
namespace {

void* try_open(const std::string& name, std::string* why) {
  if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return library;
  const char* reason = dlerror();
  if (!why->empty()) *why += "; ";
  *why += reason ? reason : name + ": no reason given";
  return nullptr;
}

}  // namespace

void* open_library(const char* variable, const char* names, std::string* why) {
  why->clear();
  const char* chosen = secure_getenv(variable);
  if (chosen && *chosen) return try_open(chosen, why);
  std::istringstream words(names);
  for (std::string name; words >> name;)
    if (void* library = try_open(name, why)) return library;
  return nullptr;
}

const char* find_symbols(void* library, const Symbol* symbols, size_t count, void* table) {
  for (const Symbol* symbol = symbols; symbol != symbols + count; ++symbol) {
    void* function = dlsym(library, symbol->name);
    if (!function && !symbol->optional) return symbol->name;
    *reinterpret_cast<void**>(static_cast<char*>(table) + symbol->offset) = function;
  }
  return nullptr;
}

}  // namespace gpu

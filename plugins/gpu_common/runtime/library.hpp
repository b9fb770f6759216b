// SPDX-License-Identifier: Apache-2.0
// A shared library that is opened at run time, and the functions found in it.
#pragma once

#include <tenon/shared_libraries.hpp>

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>

namespace gpu {

// The folder of Python's packages, where this plugin is in one: it then is site-packages/tenon/plugins/libtenon_*.so.
std::filesystem::path site_packages();

using tenon::find_symbols;
using tenon::Symbol;

// Opens `variable` (an environment variable that names a file, which wins) or the first of `names`
// (separated by spaces) that is there: where the loader looks, or in a package of the vendor that pip
// installed beside Tenon (site-packages/nvidia/*/lib). Returns nullptr, with the reason in `why`. The
// library stays open.
void* open_library(const char* variable, const char* names, std::string* why);

// A library of kernels, which a device can do without: how texts name it, where open_library finds it, and what is
// taken from it.
struct KernelLibrary {
  const char *title, *variable, *names, *how_to_install;
  std::span<const Symbol> symbols;
};

// What came of opening libraries. Exactly one of the texts is empty.
struct Opening {
  std::string name;     // "cuBLASLt (libcublasLt.so.13.1.0)", of several with commas between
  std::string problem;  // what is missing first, and how to install it
};

// Opens each and fills `table` with the symbols of all.
Opening open_kernel_libraries(std::initializer_list<KernelLibrary> libraries, void* table);

// The functions of one library of kernels, or of several that are of use only together. They stay open until the process
// ends, so that tables are not destroyed: `static const auto* table = new KernelTable<Library>{...}`.
template <class Functions>
class KernelTable {
 public:
  KernelTable(std::initializer_list<KernelLibrary> libraries)
      : opening_(open_kernel_libraries(libraries, &functions_)) {}
  KernelTable(const KernelTable&) = delete;
  KernelTable& operator=(const KernelTable&) = delete;

  // NULL: something is missing.
  const Functions* functions() const { return opening_.problem.empty() ? &functions_ : nullptr; }
  const char* name() const { return opening_.problem.empty() ? opening_.name.c_str() : nullptr; }
  // NULL: nothing is.
  const char* problem() const {
    return opening_.problem.empty() ? nullptr : opening_.problem.c_str();
  }

 private:
  Functions functions_ = {};
  Opening opening_;
};

}  // namespace gpu

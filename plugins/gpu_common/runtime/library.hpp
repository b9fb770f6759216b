// SPDX-License-Identifier: Apache-2.0
// A shared library that is opened at run time, and the functions found in it.
#pragma once

#include <tenon/shared_libraries.hpp>

#include <cstddef>
#include <filesystem>
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

// A library of kernels, which a device can do without. Exactly one of the texts is empty.
struct KernelLibrary {
  std::string name;     // "cuBLASLt (libcublasLt.so.13.1.0)"
  std::string problem;  // what is missing, and how to install it

  explicit operator bool() const { return problem.empty(); }
};

// Opens it as open_library does and fills `table`. `title` names it in texts.
KernelLibrary open_kernel_library(const char* title, const char* variable, const char* names,
                                  const char* how_to_install, const Symbol* symbols, size_t count,
                                  void* table);

}  // namespace gpu

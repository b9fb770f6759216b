// SPDX-License-Identifier: Apache-2.0
#include "blas.hpp"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "errors.hpp"
#include "library.hpp"

namespace gpu::blas {
namespace {

constexpr Symbol kSymbols[] = {
#define TENON_GPU_SYMBOL(member, name, parameters) \
  {TENON_GPU_NAME(cublasLt##name, hipblasLt##name), offsetof(Library, member)},
    TENON_GPU_BLAS_FUNCTIONS(TENON_GPU_SYMBOL)
#undef TENON_GPU_SYMBOL
};

// The file's own name carries the version: libcublasLt.so.13 is a link to libcublasLt.so.13.1.0.3.
std::string file_name(void* library) {
  const link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || !map->l_name) return "unknown file";
  std::error_code problem;
  const std::filesystem::path path = std::filesystem::canonical(map->l_name, problem);
  return (problem ? std::filesystem::path(map->l_name) : path).filename();
}

struct Opened {
  Library functions = {};
  std::string name, problem;

  Opened() {
    std::string why;
    void* library = open_library(vendor::kBlasVariable, vendor::kBlasNames, &why);
    const char* missing =
        library ? find_symbols(library, kSymbols, std::size(kSymbols), &functions) : nullptr;
    if (!library)
      problem =
          std::string(vendor::kBlas) + " was not found (" + why + "); " + vendor::kInstallBlas;
    else if (missing)
      problem = std::string(vendor::kBlas) + " lacks " + missing + "; " + vendor::kInstallBlas;
    else
      name = std::string(vendor::kBlas) + " (" + file_name(library) + ")";
    log(problem.empty() ? 0 : 2, "%s", (problem.empty() ? name : problem).c_str());
  }
};

const Opened& opened() {
  static const Opened* instance = new Opened;  // the library stays open until the process ends
  return *instance;
}

}  // namespace

int data_type(int dtype) {
  switch (dtype) {
    case TENON_DTYPE_F32:
      return 0;
    case TENON_DTYPE_F64:
      return 1;
    case TENON_DTYPE_F16:
      return 2;
    case TENON_DTYPE_BF16:
      return 14;
    default:
      return -1;
  }
}

const Library* library() { return opened().problem.empty() ? &opened().functions : nullptr; }
const char* library_name() { return library() ? opened().name.c_str() : nullptr; }
const char* library_problem() { return library() ? nullptr : opened().problem.c_str(); }

}  // namespace gpu::blas

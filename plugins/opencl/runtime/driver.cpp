// SPDX-License-Identifier: Apache-2.0
#include "driver.hpp"

#include <tenon/shared_libraries.hpp>

#include <iterator>
#include <mutex>
#include <string>

#include "errors.hpp"

namespace opencl {

Driver cl = {};

namespace {

std::mutex mutex;
bool loaded = false;

constexpr tenon::Symbol kSymbols[] = {
#define TENON_OPENCL_SYMBOL(name) {"cl" #name, offsetof(Driver, name)},
    TENON_OPENCL_FUNCTIONS(TENON_OPENCL_SYMBOL)
#undef TENON_OPENCL_SYMBOL
};

}  // namespace

tenon_status load_driver(tenon_err* err) {
  std::lock_guard lock(mutex);
  if (loaded) return TENON_OK;
  const std::string chosen = tenon::environment_text("TENON_OPENCL_LIBRARY");
  const std::string name = chosen.empty() ? "libOpenCL.so.1" : chosen;
  std::string reason;
  void* library = tenon::open_shared_library(name, &reason);
  if (!library) {
    return fail(
        err, TENON_UNAVAILABLE,
        "driver library %s not found (%s); install an OpenCL driver and its loader (Debian: "
        "ocl-icd-libopencl1, and pocl-opencl-icd to run on the CPU)",
        name.c_str(), reason.c_str());
  }
  Driver found = {};
  if (const char* missing = tenon::find_symbols(library, kSymbols, std::size(kSymbols), &found)) {
    return fail(err, TENON_UNAVAILABLE,
                "driver library %s lacks %s; expected OpenCL 1.2 or later, update the driver",
                name.c_str(), missing);
  }
  cl = found;
  loaded = true;
  return TENON_OK;
}

}  // namespace opencl

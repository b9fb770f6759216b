// SPDX-License-Identifier: Apache-2.0
#include "driver.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

#include "errors.hpp"

namespace opencl {

Driver cl = {};

namespace {

std::mutex mutex;
bool loaded = false;

struct Symbol {
  const char* name;
  size_t offset;
};
constexpr Symbol kSymbols[] = {
#define TENON_OPENCL_SYMBOL(name) {"cl" #name, offsetof(Driver, name)},
    TENON_OPENCL_FUNCTIONS(TENON_OPENCL_SYMBOL)
#undef TENON_OPENCL_SYMBOL
};

}  // namespace

tenon_status load_driver(tenon_err* err) {
  std::lock_guard lock(mutex);
  if (loaded) return TENON_OK;
  const char* chosen = secure_getenv("TENON_OPENCL_LIBRARY");
  const char* name = chosen && *chosen ? chosen : "libOpenCL.so.1";
  // NODELETE: drivers keep threads and exit handlers that do not survive their own unmapping.
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char* reason = dlerror();
    return fail(
        err, TENON_UNAVAILABLE,
        "driver library %s not found (%s); install an OpenCL driver and its loader (Debian: "
        "ocl-icd-libopencl1, and pocl-opencl-icd to run on the CPU)",
        name, reason ? reason : "no reason given");
  }
  Driver found = {};
  for (const Symbol& symbol : kSymbols) {
    void* function = dlsym(library, symbol.name);
    if (!function) {
      return fail(err, TENON_UNAVAILABLE,
                  "driver library %s lacks %s; expected OpenCL 1.2 or later, update the driver",
                  name, symbol.name);
    }
    *reinterpret_cast<void**>(reinterpret_cast<char*>(&found) + symbol.offset) = function;
  }
  cl = found;
  loaded = true;
  return TENON_OK;
}

}  // namespace opencl

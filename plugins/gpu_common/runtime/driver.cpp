// SPDX-License-Identifier: Apache-2.0
#include "runtime/driver.hpp"

#include <atomic>
#include <iterator>
#include <mutex>

#include "runtime/errors.hpp"
#include "runtime/library.hpp"
#include "runtime/vendor.hpp"

namespace gpu {

Driver driver = {};

namespace {

std::mutex driver_mutex;
std::atomic<bool> driver_loaded{false};

constexpr Symbol kDriverSymbols[] = {
#define TENON_GPU_SYMBOL(member, cuda, hip, parameters) \
  {TENON_GPU_NAME(cuda, hip), offsetof(Driver, member)},
    TENON_GPU_FUNCTIONS(TENON_GPU_SYMBOL)
#undef TENON_GPU_SYMBOL
};

}  // namespace

tenon_status load_driver(tenon_err* err) try {
  if (driver_loaded.load(std::memory_order_acquire)) return TENON_OK;
  std::lock_guard lock(driver_mutex);
  if (driver_loaded.load(std::memory_order_relaxed)) return TENON_OK;
  std::string why;
  void* library = open_library(vendor::kDriverVariable, vendor::kDriverNames, &why);
  if (!library)
    return fail(err, TENON_UNAVAILABLE, "the driver was not found (%s); %s", why.c_str(),
                vendor::kInstallDriver);
  Driver found = {};
  const char* missing = find_symbols(library, kDriverSymbols, std::size(kDriverSymbols), &found);
  if (!missing) missing = vendor::find_own_symbols(library);
  if (missing)
    return fail(err, TENON_UNAVAILABLE, "the driver lacks %s; expected %s or later, update it",
                missing, vendor::kOldestDriver);
  driver = found;
  if (Error error = driver.init(0)) {
    return fail_driver(err, error, "initialise the driver");
  }
  driver_loaded.store(true, std::memory_order_release);
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

}  // namespace gpu

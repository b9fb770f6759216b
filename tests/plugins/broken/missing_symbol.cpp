// SPDX-License-Identifier: Apache-2.0
// Calls a function that no library has.
#include <tenon/abi.h>

extern "C" int tenon_test_absent_function();

extern "C" TENON_EXPORT const tenon_plugin* tenon_plugin_query(uint32_t, uint32_t,
                                                               const tenon_host*, tenon_err*) {
  tenon_test_absent_function();
  return nullptr;
}

// SPDX-License-Identifier: Apache-2.0
// Linked to two libraries that are not there when it is loaded.
#include <tenon/abi.h>

extern "C" int tenon_test_absent_one();
extern "C" int tenon_test_absent_two();

extern "C" TENON_EXPORT const tenon_plugin* tenon_plugin_query(uint32_t, uint32_t,
                                                               const tenon_host*, tenon_err*) {
  tenon_test_absent_one();
  tenon_test_absent_two();
  return nullptr;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The two exported functions of the contract, with nothing behind them: from their types abidiff
 * reaches every other. Built with debug information from several states of tenon/abi.h. */
#include <tenon/abi.h>

TENON_EXPORT const tenon_host* tenon_host_get(uint32_t epoch) {
  (void)epoch;
  return 0;
}

TENON_EXPORT const tenon_plugin* tenon_plugin_query(uint32_t host_min, uint32_t host_max,
                                                    const tenon_host* host, tenon_err* err) {
  (void)host_min, (void)host_max, (void)host, (void)err;
  return 0;
}

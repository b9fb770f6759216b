// SPDX-License-Identifier: Apache-2.0
// TENON_PLUGIN(table): defines the plugin's one exported function for a C++ plugin.
#pragma once

#include <tenon/tensor.hpp>

#define TENON_PLUGIN(TABLE)                                                                 \
  extern "C" TENON_EXPORT const tenon_plugin* tenon_plugin_query(                           \
      uint32_t host_min, uint32_t host_max, const tenon_host* host_table, tenon_err* err) { \
    if (host_min > TENON_ABI_EPOCH || host_max < TENON_ABI_EPOCH) {                         \
      static constexpr char text[] = "this plugin speaks ABI epoch 1 only";                 \
      host_table->fail(err, TENON_UNSUPPORTED, 0, text, sizeof text - 1);                   \
      return nullptr;                                                                       \
    }                                                                                       \
    ::tenon::host = host_table;                                                             \
    return &(TABLE);                                                                        \
  }

// SPDX-License-Identifier: Apache-2.0
// Kind 0, "meta": shapes and dtypes without data.
#pragma once

#include <tenon/abi.h>

namespace tenon::core {

extern const tenon_device_api kMetaDevice;

}  // namespace tenon::core

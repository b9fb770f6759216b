// SPDX-License-Identifier: Apache-2.0
// The one function that the library exports. A file of its own, because the faulty variants have
// another (faults/entry.cpp) and share everything else.
#include <tenon/plugin.hpp>

#include "device.hpp"

TENON_PLUGIN(reference::kPlugin)

// SPDX-License-Identifier: Apache-2.0
// From what callers pass to what it stands for.
#pragma once

#include "device.hpp"
#include "functions.hpp"
#include "module.hpp"

namespace simulated {

Handles<Stream>& stream_handles();
Handles<Event>& event_handles();

// Fails if the device of the stream is lost.
Error find_stream(StreamHandle handle, std::shared_ptr<Stream>* out);
Error current_device(Device** out);

}  // namespace simulated

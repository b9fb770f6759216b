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

// A copy in the order of the stream, where each address is of the device that the caller says.
Error copy_peer(void* dst, const Device& to, const void* src, const Device& from, size_t bytes,
                StreamHandle stream);

}  // namespace simulated

// SPDX-License-Identifier: Apache-2.0
// What a kernel may ask about the call it serves.
#pragma once

#include "kernel_core/dispatch/operator.hpp"
#include "kernel_core/memory/scratch.hpp"
#include "kernel_core/runtime/device.hpp"
#include "kernel_core/runtime/stream.hpp"

struct tenon_ctx {
  tenon_ctx(const tenon_op* op_in, tenon::core::Device& device_in, tenon_value* outs_in,
            uint32_t nouts_in)
      : op(op_in),
        device(device_in),
        stream(tenon::core::current_stream(device_in)),
        outs(outs_in),
        nouts(nouts_in),
        scratch(device_in, stream) {}

  const tenon_op* op;
  tenon::core::Device& device;
  tenon_stream stream;
  tenon_value* outs;
  uint32_t nouts;
  tenon::core::ScratchArena scratch;
};

namespace tenon::core {

// While a call meant for another device runs on the host, random numbers come from that device's
// generator, so that falling back changes no result. NULL: the kernel's own device.
extern constinit thread_local Device* random_origin;

}  // namespace tenon::core

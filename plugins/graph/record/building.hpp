// SPDX-License-Identifier: Apache-2.0
// The layer's state of this thread while a builder calls operators.
#pragma once

#include <tenon/error.hpp>

#include "record/builder.hpp"
#include "record/layer.hpp"
#include "support/host.hpp"

namespace tenon::graph {

// While this lives the layer hands calls of this thread to the builder, and to no recording. NULL:
// to none of both. What operators do is no matter of gradients here.
class Building {
 public:
  explicit Building(Builder* builder) : before_(state) {
    const ErrorSink err;
    err.check(enable_layer(true, err));
    state.builder = builder;
    state.depth = builder ? 0 : 1;
    if (autograd()) gradients_ = autograd()->set_enabled(0);
  }
  ~Building() {
    if (autograd()) autograd()->set_enabled(gradients_);
    state = before_;
    if (!state.recording && !state.builder) enable_layer(false, nullptr);
  }
  Building(const Building&) = delete;
  Building& operator=(const Building&) = delete;

 private:
  ThreadState before_;
  int32_t gradients_ = 0;
};

}  // namespace tenon::graph

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services/amp.h>
#include <tenon/services/autograd.h>
#include <tenon/error.hpp>

namespace tenon::predictor {

// What a thread's caller has switched on and a predictor's results do not depend on: gradients and mixed precision.
class PlainThread {
 public:
  PlainThread()
      : autograd_(static_cast<const tenon_autograd_api*>(
            host->service_find(TENON_AUTOGRAD_SERVICE, TENON_AUTOGRAD_VERSION))),
        amp_(static_cast<const tenon_amp_api*>(
            host->service_find(TENON_AMP_SERVICE, TENON_AMP_VERSION))) {
    const ErrorSink err;
    if (amp_ && amp_->dtype() < 0) amp_ = nullptr;
    if (amp_) err.check(amp_->push(nullptr, err));
    if (autograd_) had_gradients_ = autograd_->set_enabled(0);
  }
  ~PlainThread() {
    if (autograd_) autograd_->set_enabled(had_gradients_);
    if (amp_) amp_->pop();
  }
  PlainThread(const PlainThread&) = delete;
  PlainThread& operator=(const PlainThread&) = delete;

 private:
  const tenon_autograd_api* autograd_;
  const tenon_amp_api* amp_;
  int32_t had_gradients_ = 0;
};

}  // namespace tenon::predictor

// SPDX-License-Identifier: Apache-2.0
#include "thread_pool.hpp"

#include <tenon/error.hpp>

namespace tenon::predictor {

ThreadPool::ThreadPool(const Config& config) {
  const std::string &threads = config.get("threads"), &spin = config.get("spin_us");
  if (threads.empty()) {
    if (!spin.empty())
      throw Error(TENON_INVALID_ARGUMENT,
                  "config: `spin_us`: expected with `threads`, whose pool waits so, got '" + spin +
                      "' alone; threads of the process's pool wait as they always do");
    return;
  }
  service_ = static_cast<const tenon_threads_api*>(
      host->service_find(TENON_THREADS_SERVICE, TENON_THREADS_VERSION));
  if (!service_)
    throw Error(TENON_UNAVAILABLE,
                "config: `threads`: this libtenon offers no pools of threads; install the one that "
                "came with this library");
  tenon_thread_pool_options options = {};
  options.struct_size = sizeof options;
  options.threads = std::stoi(threads);
  options.spin_microseconds = spin.empty() ? -1 : std::stoi(spin);
  const ErrorSink err;
  err.check(service_->pool_create(&options, &pool_, err));
}

ThreadPool::~ThreadPool() {
  if (pool_) service_->pool_destroy(pool_);
}

ThreadPool::Use::Use(const ThreadPool& pool) : service_(pool.service_) {
  if (service_) before_ = service_->pool_use(pool.pool_);
}

ThreadPool::Use::~Use() {
  if (service_) service_->pool_use(before_);
}

}  // namespace tenon::predictor

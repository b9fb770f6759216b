// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config.hpp"

#include <tenon/services/threads.h>

namespace tenon::predictor {

// The threads that runs of one predictor use: a pool of its own, or that of the process.
class ThreadPool {
 public:
  // By the keys `threads` and `spin_us`. Throws Error.
  explicit ThreadPool(const Config& config);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Loops of the calling thread run on the pool while the object lives.
  class Use {
   public:
    explicit Use(const ThreadPool& pool);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    const tenon_threads_api* service_;
    tenon_thread_pool* before_ = nullptr;
  };

 private:
  const tenon_threads_api* service_ = nullptr;  // NULL: the process's pool
  tenon_thread_pool* pool_ = nullptr;
};

}  // namespace tenon::predictor

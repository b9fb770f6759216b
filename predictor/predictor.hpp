// SPDX-License-Identifier: Apache-2.0
// One predictor: a model, the memory that is bound to it, and its runs.
#pragma once

#include <tenon/predictor.h>
#include <tenon/error.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "model.hpp"
#include "profile.hpp"
#include "thread_pool.hpp"

namespace tenon::predictor {

class Predictor {
 public:
  explicit Predictor(std::shared_ptr<const Model> model);
  // Of a model of its own, warmed up and checked as configured. Throws Error.
  static std::shared_ptr<Predictor> load(const Config& config);

  const std::shared_ptr<const Model>& model() const { return model_; }
  Bindings& bindings() { return bindings_; }
  void set_hook(tenon_predictor_hook_fn hook, void* user) { hook_ = hook, hook_user_ = user; }
  const Profile& profile() const { return profile_; }

  // Throws Error; then there are no outputs.
  void run();
  // From any thread: a run whose Turn has begun and not ended; else nothing.
  void cancel() {
    State running = State::kRunning;
    state_.compare_exchange_strong(running, State::kCancelled, std::memory_order_relaxed);
  }
  // On zeros, see parse_shapes(). What is bound stays so.
  void warmup(const std::string& shapes);
  // Writes the program as it is prepared, with the packed weights of this processor. Throws Error.
  void save_optimized(const char* path);
  // Of the last run, in memory of its own. Throws Error where there is none.
  Tensor owned_output(uint32_t index) const;
  // The same, dense in the host's memory; lives until the next run.
  const Tensor& host_output(uint32_t index);
  void drop_outputs();

 private:
  enum class State : uint8_t { kFree, kBusy, kRunning, kCancelled };

 public:
  // Held while a thread uses the predictor. Throws Error if another one does.
  class Turn {
   public:
    enum Purpose : uint8_t { kRun, kOther };  // what a cancel ends, and what it does not
    Turn(Predictor& predictor, Purpose purpose);
    ~Turn() { predictor_.state_.store(State::kFree, std::memory_order_release); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Predictor& predictor_;
  };
  bool is_busy() const { return state_.load(std::memory_order_acquire) != State::kFree; }

  std::string explained, profiled, program_text;  // texts that callers borrow

 private:
  using Clock = std::chrono::steady_clock;

  void check(tenon_status status) const;
  // Of the last run. Throws Error where there is none.
  const Tensor& output(uint32_t index) const;
  // Functions of tenon_graph_run_options; `user` is the predictor.
  static tenon_status before_step(void* user, tenon_err* err);
  static tenon_status after_step(void* user, uint32_t begin, uint32_t end,
                                 tenon_tensor* const* results, uint32_t nresults, tenon_err* err);
  void call_hook(uint32_t step, tenon_tensor* const* results, uint32_t nresults) const;

  const std::shared_ptr<const Model> model_;
  const ThreadPool threads_;
  Bindings bindings_;
  std::shared_ptr<const Prepared> running_;  // the program of the last run
  std::vector<Tensor> outputs_, host_outputs_;
  std::vector<tenon_tensor*> results_;
  Profile profile_;
  std::chrono::milliseconds deadline_;  // of a run; 0: none
  const bool is_profiled_;
  Clock::time_point begin_, last_;  // of the run under way, and of its last step's end
  tenon_predictor_hook_fn hook_ = nullptr;
  void* hook_user_ = nullptr;
  ErrorSink err_;
  std::atomic<State> state_{State::kFree};
};

}  // namespace tenon::predictor

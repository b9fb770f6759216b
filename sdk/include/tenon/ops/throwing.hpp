// SPDX-License-Identifier: Apache-2.0
// Operator calls that throw: what the functions of tenon/functions.hpp are made of. For code in
// which exceptions may travel, such as functions registered with tenon/extension.hpp, where the
// boundary turns them into errors again.
#pragma once

#include <tenon/error.hpp>
#include <tenon/ops/call.hpp>

namespace tenon {

namespace call {

// The call from the host that this thread runs; operator calls that it makes report to its error
// sink.
class Frame {
 public:
  enum Place {
    kAboveLayers,  // the parts of a composite, a gradient: layers see the calls
    kInKernel      // they do not: what a kernel does is one step of its operator
  };
  Frame(tenon_err* err, Place place) : err_(err), place_(place), below_(current) { current = this; }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() {
    current = below_;
    for (int32_t layer = 0; layers_off_ >> layer; ++layer)
      if (layers_off_ >> layer & 1) host->layer_enable(layer, 1);
  }

  static Frame* here() { return current; }
  tenon_err* err() const { return err_; }

  // Before each call. A failure that is still noted was caught by the function: it is cleared.
  void prepare() {
    if (failed_) clear_failure();
    if (place_ == kInKernel) leave_layers();
  }
  void note_failure() { failed_ = true; }
  // A failure that the function has handled must not be reported when it returns.
  void clear_failure() {
    if (failed_) host->err_clear(err_);
    failed_ = false;
  }

 private:
  void leave_layers() {
    place_ = kAboveLayers;  // once is enough
    constexpr int32_t kLayers = 8;
    for (int32_t layer = 0; layer < kLayers; ++layer)
      if (host->layer_enabled(layer)) {
        host->layer_enable(layer, 0);
        layers_off_ |= 1u << layer;
      }
  }

  static inline constinit thread_local Frame* current = nullptr;

  tenon_err* err_;
  Place place_;
  bool failed_ = false;
  uint32_t layers_off_ = 0;
  Frame* below_;
};

// The scope of one call; `done` throws if it failed.
class Throwing {
 public:
  Throwing()
      : frame_(Frame::here()),
        own_(frame_ ? nullptr : host->err_create()),
        scope_(frame_ ? frame_->err() : own_) {
    if (frame_) frame_->prepare();
  }
  Throwing(const Throwing&) = delete;
  Throwing& operator=(const Throwing&) = delete;
  ~Throwing() {
    if (own_) host->err_destroy(own_);
  }

  operator Scope&() { return scope_; }
  void done() {
    if (!scope_.ok()) [[unlikely]]
      raise();
  }
  template <class Result>
  Result done(Result&& result) {
    done();
    return std::move(result);
  }

 private:
  [[noreturn, gnu::cold, gnu::noinline]] void raise() {
    if (frame_) frame_->note_failure();
    const char* text = host->err_text(scope_.err());
    throw Error(scope_.status(), text ? text : "");
  }

  Frame* frame_;
  tenon_err* own_;
  Scope scope_;
};

}  // namespace call
}  // namespace tenon

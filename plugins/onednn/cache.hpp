// SPDX-License-Identifier: Apache-2.0
// A cache of programs, because building one takes a hundred times as long as a small call.
#pragma once

#include <functional>
#include <string>

#include "program.hpp"

namespace tenon::onednn {

// What a program depends on, as bytes: the kernel, shapes, strides, dtypes, attributes, threads.
class Key {
 public:
  explicit Key(int kernel);
  Key& add(int64_t number);
  Key& add(double number);
  Key& add(const tenon_tensor* tensor);  // NULL: none
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

using Build = std::function<std::unique_ptr<Program>(const Api&)>;

// Whether there is a program for the key; builds one to find out.
bool can_build(const Key& key, const Build& build);

// Runs the program of the key. Several threads may do so at once: each has a program of its own.
tenon_status run_cached(const Key& key, const Build& build, tenon_ctx* ctx,
                        std::span<void* const> data, tenon_err* err);

// Drops all programs.
void clear_cache();

}  // namespace tenon::onednn

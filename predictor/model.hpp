// SPDX-License-Identifier: Apache-2.0
// What clones share: the program with its weights, and what is known of it. It never changes.
#pragma once

#include <tenon/services/graph.h>

#include <memory>
#include <string>
#include <vector>

#include "config.hpp"
#include "signature.hpp"
#include "steps.hpp"

namespace tenon::predictor {

struct ReleaseProgram {
  void operator()(tenon_graph_program* program) const;
};
using Program = std::unique_ptr<tenon_graph_program, ReleaseProgram>;

class Model {
 public:
  // Loads and prepares the program. Throws Error.
  explicit Model(const Config& config);

  const Config& config() const { return config_; }
  const tenon_graph_program* program() const { return program_.get(); }
  const Signature& signature() const { return signature_; }
  const std::vector<Step>& steps() const { return steps_; }
  // Of the program itself, which a run tells of; those of regions are left out.
  const Step& step(uint32_t index) const { return steps_[outer_[index]]; }
  size_t step_count() const { return outer_.size(); }
  tenon_device_id device() const { return device_; }
  // A setting as it is in force.
  const std::string& setting(const std::string& key) const;
  uint64_t weight_bytes() const;

 private:
  void check_fallbacks() const;

  Config config_;
  Program program_;
  Signature signature_;
  std::vector<Step> steps_;
  std::vector<size_t> outer_;
  tenon_device_id device_;
  std::string device_text_;
};

}  // namespace tenon::predictor

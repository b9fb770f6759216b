// SPDX-License-Identifier: Apache-2.0
// What clones share: the program with its weights, and what is known of it. It never changes, but for programs of further sizes.
#pragma once

#include <tenon/services/graph.h>

#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config.hpp"
#include "onnx_file.hpp"
#include "program.hpp"
#include "signature.hpp"
#include "steps.hpp"

namespace tenon::predictor {

// A program as it runs.
struct Prepared {
  // `claimers`: whose claims the steps tell of.
  Prepared(Program program, const std::set<std::string>& claimers);

  const Program program;
  const std::vector<Step> steps;
  // Of the program itself, which a run tells of; those of regions are left out.
  const Step& step(uint32_t index) const { return steps[outer_[index]]; }

 private:
  std::vector<size_t> outer_;
};

class Model {
 public:
  // Loads and prepares the program. Throws Error.
  explicit Model(const Config& config);

  const Config& config() const { return config_; }
  // Of all sizes, or of the recorded ones where each size has a program of its own.
  const Prepared& recorded() const { return *recorded_; }
  // The one that runs with these inputs; it is made where it is not there yet. Throws Error.
  std::shared_ptr<const Prepared> for_inputs(const std::vector<tenon_tensor*>& inputs) const;
  // Whether the recorded program runs with all sizes.
  bool is_one_program() const { return !onnx_ || onnx_->reason().empty(); }
  const Signature& signature() const { return signature_; }
  std::string explain() const;
  tenon_device_id device() const { return device_; }
  // A setting as it is in force.
  const std::string& setting(const std::string& key) const;
  uint64_t weight_bytes() const;
  // Whether the user chose claimers, and nothing but them may compute.
  bool has_claims_alone() const;
  // Throws Error where kernels run what claimers have claimed, which shows when it has run twice.
  void check_claims() const;

 private:
  void check_fallbacks(const Prepared& prepared) const;
  void check_unclaimed(const Prepared& prepared) const;
  std::vector<int64_t> sizes_of(const std::vector<tenon_tensor*>& inputs) const;

  Config config_;
  std::unique_ptr<OnnxFile> onnx_;  // nullptr: another file
  std::shared_ptr<const Prepared> recorded_;
  Signature signature_;
  tenon_device_id device_;
  std::string device_text_;
  // Programs of one size, the last used ones first.
  using Instance = std::pair<std::vector<int64_t>, std::shared_ptr<const Prepared>>;
  mutable std::mutex mutex_;
  mutable std::list<Instance> instances_;
};

}  // namespace tenon::predictor

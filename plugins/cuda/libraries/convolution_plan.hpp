// SPDX-License-Identifier: Apache-2.0
// cuDNN's descriptors and algorithm for one convolution on one device, and the cache of these. The
// heuristic takes some ten microseconds, so that it is asked once for each shape.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "convolution_call.hpp"
#include "cudnn.hpp"
#include "device.hpp"

namespace gpu::dnn {

class ConvolutionPlan {
 public:
  // NULL: cuDNN has no deterministic algorithm for it.
  static std::unique_ptr<ConvolutionPlan> make(const Library&, Handle, const Convolution&);
  ~ConvolutionPlan();
  ConvolutionPlan(const ConvolutionPlan&) = delete;
  ConvolutionPlan& operator=(const ConvolutionPlan&) = delete;

  uint64_t workspace_bytes() const { return workspace_bytes_; }
  // Queues the convolution on the stream of the handle. Operands are those of the operator, in its
  // order; `bias` is NULL exactly if there is none.
  Status run(Handle, const void* first, const void* second, const void* bias, void* out,
             void* workspace) const;

 private:
  explicit ConvolutionPlan(const Library& library) : library_(library) {}
  bool build(Handle, const Convolution&);
  bool choose_algorithm(Handle);

  const Library& library_;
  int kind_ = kForward;
  bool is_double_ = false;
  TensorDesc x_ = nullptr, y_ = nullptr, bias_ = nullptr;
  FilterDesc w_ = nullptr;
  ConvolutionDesc convolution_ = nullptr;
  int algorithm_ = 0;
  uint64_t workspace_bytes_ = 0;
};

// The plans of one device. Every function is called with the device current, from any thread.
class ConvolutionPlans : public LibraryState {
 public:
  explicit ConvolutionPlans(const Library& library) : library_(library) {}
  ~ConvolutionPlans() override;

  // NULL: there is none, or the library cannot be used on this device.
  std::shared_ptr<const ConvolutionPlan> find(const Convolution&);
  Status run(const ConvolutionPlan&, const void* first, const void* second, const void* bias,
             void* out, void* workspace, Stream);

 private:
  const Library& library_;
  std::mutex mutex_;
  Handle handle_ = nullptr;
  bool is_broken_ = false;
  std::unordered_map<Convolution, std::shared_ptr<const ConvolutionPlan>, ConvolutionHash> plans_;
  std::mutex running_;  // the stream is part of the handle
};

}  // namespace gpu::dnn

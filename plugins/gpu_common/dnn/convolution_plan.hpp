// SPDX-License-Identifier: Apache-2.0
// The descriptors and algorithms of one convolution on one device, and the cache of these. The heuristic takes some ten
// microseconds, so that it is asked once for each shape.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "dnn/dnn.hpp"
#include "runtime/device.hpp"

namespace gpu::dnn {

// A place in the heuristic's list. The first algorithm of a fixed order is what runs where nothing was measured.
struct Rank {
  Order order = kFixedOrder;
  size_t index = 0;

  bool is_first() const { return order == kFixedOrder && index == 0; }
};

struct ConvolutionPlan {
  std::shared_ptr<Descriptors> descriptors;  // NULL: there is no such plan
  Algorithm algorithm = {};

  explicit operator bool() const { return descriptors != nullptr; }
};

// The plans of one device. Every function is called with the device current, from any thread.
class ConvolutionPlans : public LibraryState {
 public:
  ConvolutionPlans() = default;
  ~ConvolutionPlans() override;

  // None: the library lists fewer algorithms, none of a fixed order, or cannot be used on this device.
  ConvolutionPlan find(const Convolution&, Rank);
  Status run(const ConvolutionPlan&, const void* first, const void* second, const void* bias,
             void* out, void* workspace, Stream);

 private:
  struct Known {
    std::shared_ptr<Descriptors> descriptors;
    std::optional<std::vector<Algorithm>> algorithms[kOrders];  // listed when they are wanted
  };
  bool open();
  const std::vector<Algorithm>& algorithms(Known&, Order);

  std::mutex mutex_;
  Handle handle_ = nullptr;
  bool is_broken_ = false;
  std::unordered_map<Convolution, Known, ConvolutionHash> known_;
  std::mutex using_handle_;  // which has one stream at a time; taken after mutex_
};

}  // namespace gpu::dnn

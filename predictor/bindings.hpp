// SPDX-License-Identifier: Apache-2.0
// The tensors of one predictor's inputs and outputs, over memory of the caller.
#pragma once

#include <tenon/tensor.hpp>

#include <vector>

#include "model.hpp"

namespace tenon::predictor {

class Bindings {
 public:
  explicit Bindings(const Model& model);

  // Memory of the host, of `bytes`. Throws Error where it does not fit, or overlaps what must be apart.
  void bind_input(uint32_t index, int32_t dtype, const std::vector<int64_t>& shape,
                  const void* data, uint64_t bytes);
  void bind_output(uint32_t index, int32_t dtype, const std::vector<int64_t>& shape, void* data,
                   uint64_t bytes);
  void bind_input(uint32_t index, const Tensor& tensor);
  void unbind_inputs();
  void unbind_outputs();

  // What the program gets: dense, on its device. Throws Error if an input is not bound.
  const std::vector<tenon_tensor*>& inputs();
  // For each output the tensor that the program writes into, or NULL.
  const std::vector<tenon_tensor*>& targets() const { return targets_; }
  // The caller's own tensors of outputs that lie on another device than the program's; empty ones elsewhere.
  const std::vector<Tensor>& copied_outputs() const { return copied_outputs_; }

 private:
  struct Range {
    const char* begin = nullptr;
    const char* end = nullptr;
    bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
  };
  static Range range_of(const Tensor& tensor);
  void check_apart(const Tensor& tensor, const std::vector<Tensor>& others, uint32_t index,
                   const std::vector<Value>& values, const std::string& what) const;

  const Model& model_;
  std::vector<Tensor> inputs_, outputs_, copied_outputs_;
  std::vector<Tensor>
      staged_;  // inputs as the device gets them, where that is not as they are bound
  std::vector<tenon_tensor*> given_, targets_;
};

}  // namespace tenon::predictor

// SPDX-License-Identifier: Apache-2.0
// Arguments of one operator call, from a message: tensors over memory of the vendor's device.
#pragma once

#include <deque>
#include <vector>

#include "host/vendor.hpp"

namespace tenon::isolated {

class Arguments {
 public:
  explicit Arguments(const OpenDevice* device) : device_(device) {}
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  tenon_status read(Reader& message, tenon_err* err);
  tenon_status read_tensor(Reader& message, tenon_tensor** out, tenon_err* err);

  tenon_value* values() { return values_; }
  uint32_t count() const { return count_; }

 private:
  tenon_status read_value(Reader& message, tenon_value* out, tenon_err* err);
  tenon_status read_list(Reader& message, tenon_value* out, tenon_err* err);
  tenon_tensor* make_scalar(const TensorHead& head, const ScalarBytes& value);
  tenon_status wrap(const TensorHead& head, const int64_t* shape, const int64_t* strides,
                    tenon_tensor** out, tenon_err* err);

  static constexpr uint32_t kMax = 32;
  const OpenDevice* device_;
  tenon_value values_[kMax];
  uint32_t count_ = 0;
  std::vector<tenon_tensor*> tensors_;
  std::deque<tenon_tensor> scalars_;  // numbers where a tensor could be; no tensors of the host's
  std::vector<std::vector<tenon_tensor*>> lists_;
};

}  // namespace tenon::isolated

// SPDX-License-Identifier: Apache-2.0
// paddle::Tensor from inside: a handle of Tenon's, and the names of dtypes and devices on both
// sides.
#pragma once

#include <paddle/phi/api/include/tensor.h>

#include "core/host.hpp"

namespace paddle {

class TensorImpl {
 public:
  tenon::Tensor handle;  // contiguous; empty while there is no memory
  // What memory will be allocated for, while there is none.
  std::vector<int64_t> shape;
  DataType dtype = DataType::UNDEFINED;
  Place place;
};

}  // namespace paddle

namespace tenon::paddle {

namespace pd = ::paddle;

// Throw for what the other side has not.
int32_t dtype_id(pd::DataType dtype);
pd::DataType data_type(int32_t dtype_id);
tenon_device_id device_id(const pd::Place& place);
pd::Place place_of(tenon_device_id device);

// A tensor of Tenon's as an author sees it; one that is strided is copied.
pd::Tensor wrap(Tensor tensor);
// Its handle; a tensor without memory gets some. Throws for an undefined one, named by `what`.
Tensor handle_of(const pd::Tensor& tensor, const char* what = "the tensor");

// Shape of a tensor of Tenon's.
std::vector<int64_t> shape_of(const tenon_tensor& tensor);

}  // namespace tenon::paddle

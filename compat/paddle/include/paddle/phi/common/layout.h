// SPDX-License-Identifier: Apache-2.0
// paddle::DataLayout. Tensors here are dense and row-major: the layout is a name that is passed on.
#pragma once

namespace phi {

enum class DataLayout {
  UNDEFINED = 0,
  ANY = UNDEFINED,
  ALL_LAYOUT = UNDEFINED,
  NHWC = 1,
  NCHW = 2,
  NCDHW = 3,
  NDHWC = 4,
  ONEDNN = 5,
  SPARSE_COO = 6,
  SPARSE_CSR = 7,
  PSTRING_UNION = 8,
  STRIDED = 9,
};

}  // namespace phi

namespace paddle {
using DataLayout = phi::DataLayout;
namespace experimental {
using DataLayout = phi::DataLayout;
}
}  // namespace paddle

// SPDX-License-Identifier: Apache-2.0
// Reads steps of a sub-graph that are convolutions, or normalisations, by constants.
#pragma once

#include "conv/packed_conv.hpp"

#include <tenon/subgraph.hpp>
#include <tenon/tensor.hpp>

namespace tenon::cpu {

// A step's operator, told by address instead of by name.
struct KnownOperators {
  const tenon_op* conv2d = host->op_find("tenon::conv2d");
  const tenon_op* norm = host->op_find("tenon::batch_norm_inference");
  const tenon_op* add = host->op_find("tenon::add");
  const tenon_op* multiply = host->op_find("tenon::multiply");
  const tenon_op* relu = host->op_find("tenon::relu");
  const tenon_op* mean = host->op_find("tenon::mean");
  const tenon_op* concat = host->op_find("tenon::concat");
  const tenon_op* max_pool = host->op_find("tenon::max_pool2d");
  const tenon_op* avg_pool = host->op_find("tenon::avg_pool2d");
};

inline bool is_float32(const tenon_tensor* tensor, int32_t ndim) {
  return tensor && tensor->dtype == TENON_DTYPE_F32 && tensor->ndim == ndim;
}

// Values of a convolution, and constants of the normalisation behind it. NULL: there is none.
struct ConvTensors {
  const tenon_tensor *x = nullptr, *weight = nullptr, *bias = nullptr;
  const tenon_tensor *mean = nullptr, *var = nullptr, *factor = nullptr, *shift = nullptr;
  double eps = 0;
};

// An int[] of two numbers, of which one may stand for both.
bool read_pair(const tenon_value& value, int64_t (&pair)[2]);

// Whether a step is a conv2d of float32 by constants. `d` and `tensors` receive what it is.
bool read_conv(const SubgraphValues& values, const KnownOperators& known,
               const tenon_subgraph_step& step, ConvDescription& d, ConvTensors& tensors);

// Whether a step normalises `x`, of so many channels, by constants, which `tensors` receives.
bool read_norm(const SubgraphValues& values, const KnownOperators& known,
               const tenon_subgraph_step& step, const tenon_tensor* x, int64_t channels,
               ConvTensors& tensors);

// The elements of what was read.
ConvConstants constants_of(const SubgraphValues& values, const ConvTensors& tensors);

}  // namespace tenon::cpu

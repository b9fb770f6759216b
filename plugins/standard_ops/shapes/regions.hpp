// SPDX-License-Identifier: Apache-2.0
// Geometry of regions of images: boxes divided into bins.
#pragma once

#include "shapes/infer.hpp"

namespace tenon::standard_ops {

struct RoiAlign {
  int64_t image[4];
  int64_t bins[2];  // down, across
  double scale;
  int64_t ratio;  // samples along each side of a bin; 0 or less: as many as it has elements
  bool aligned;
};

// roi_align: output_size, spatial_scale, sampling_ratio, aligned from `rest`.
tenon_status read_roi_align(const char* op, const tenon_value* rest, Ints image, RoiAlign* out,
                            tenon_err* err);

// roi_align_grad, whose output_size is that of grad_out.
tenon_status read_roi_align_grad(const char* op, const tenon_value* args, Ints image, RoiAlign* out,
                                 tenon_err* err);

}  // namespace tenon::standard_ops

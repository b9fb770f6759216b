// SPDX-License-Identifier: Apache-2.0
// Forward depthwise convolution: chooses between rows of planes and bands of pixels.
#pragma once

#include "conv/depthwise.hpp"
#include "conv/depthwise_rows.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// `out` has the dtype and the layout of x. An epilogue needs NCHW images of T.
template <class T, class Owner>
tenon_status run_forward_depthwise(Owner* owner, const ConvShapes& s, const Images& x,
                                   const T* weight, const T* bias, const ConvEpilogue<T>* epilogue,
                                   void* out, tenon_err* err) {
  if (suits_depthwise_rows<T>(s, x)) {
    return run_depthwise_rows<T>(owner, s, x, weight, bias, epilogue, out, err);
  }
  return run_depthwise<T>(owner, s, ChannelReader<T>(x), weight, bias, epilogue,
                          ChannelWriter<T>(out, images_like(x, out, s.filters, s.results())), err);
}

}  // namespace tenon::cpu::TENON_CPU_ISA

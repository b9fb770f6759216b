// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set; the build gives pocketfft's namespace another name each time.
#include "passes.hpp"

// Batches run on the host's threads. Plans of recent lengths are kept.
#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_SIZE 32
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include "pocketfft/pocketfft_hdronly.h"
#pragma GCC diagnostic pop

namespace tenon::fft::TENON_FFT_ISA {
namespace {

struct Geometry {
  explicit Geometry(const Pass& pass)
      : shape(pass.shape, pass.shape + pass.ndim),
        in_strides(pass.in_strides, pass.in_strides + pass.ndim),
        out_strides(pass.out_strides, pass.out_strides + pass.ndim),
        axis(static_cast<size_t>(pass.axis)) {}
  ::pocketfft::shape_t shape;
  ::pocketfft::stride_t in_strides, out_strides;
  size_t axis;
};

template <class T>
void complex_to_complex(const Pass& pass) {
  const Geometry of(pass);
  ::pocketfft::c2c(of.shape, of.in_strides, of.out_strides, {of.axis}, pass.forward,
                   static_cast<const std::complex<T>*>(pass.in),
                   static_cast<std::complex<T>*>(pass.out), static_cast<T>(pass.scale));
}

template <class T>
void real_to_complex(const Pass& pass) {
  const Geometry of(pass);
  ::pocketfft::r2c(of.shape, of.in_strides, of.out_strides, of.axis, true,
                   static_cast<const T*>(pass.in), static_cast<std::complex<T>*>(pass.out),
                   static_cast<T>(pass.scale));
}

template <class T>
void complex_to_real(const Pass& pass) {
  const Geometry of(pass);
  ::pocketfft::c2r(of.shape, of.in_strides, of.out_strides, of.axis, false,
                   static_cast<const std::complex<T>*>(pass.in), static_cast<T*>(pass.out),
                   static_cast<T>(pass.scale));
}

}  // namespace

const Passes passes = {{complex_to_complex<float>, complex_to_complex<double>},
                       {real_to_complex<float>, real_to_complex<double>},
                       {complex_to_real<float>, complex_to_real<double>}};

}  // namespace tenon::fft::TENON_FFT_ISA

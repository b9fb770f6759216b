// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the FFT stand-in: sums in float64, axis by axis, without any fast algorithm.
#pragma once

#include <cstdint>

namespace simulated {

struct FftSide {
  long long embed[3] = {}, stride = 1, distance = 1;
};

struct Fft {
  bool is_double = false, real_in = false, real_out = false;
  int rank = 0, direction = -1;
  long long n[3] = {}, batch = 1;
  FftSide in, out;
};

uint64_t fft_element_bytes(const Fft& fft, bool of_input);
// The bytes from the first to behind the last element that one side occupies.
uint64_t fft_extent_bytes(const Fft& fft, bool of_input);

// A transform to real numbers leaves nothing of its input, and takes the imaginary parts at its ends for what they are
// not: a library says nothing of either.
void run_fft(const Fft& fft, char* in, char* out);

}  // namespace simulated

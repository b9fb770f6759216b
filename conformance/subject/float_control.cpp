// SPDX-License-Identifier: Apache-2.0
#include "subject/float_control.hpp"

#include <ios>
#include <sstream>

namespace tenon::kit {

std::string describe_float_control(uint32_t vector_control, uint16_t x87_control) {
  std::ostringstream said;
  auto rounding = [](uint32_t mode, const char* const* names) { return names[mode & 3]; };
#if defined(__x86_64__)
  static const char* const kModes[] = {"nearest", "below", "above", "zero"};
  said << "rounding to " << rounding(vector_control >> 13, kModes);
  said << ", flush-to-zero " << (vector_control & 0x8000 ? "on" : "off");
  said << ", denormals-are-zero " << (vector_control & 0x40 ? "on" : "off");
  if ((vector_control & 0x1f80) != 0x1f80) said << ", some exceptions trap";
  said << std::hex << " (MXCSR 0x" << vector_control << ", x87 control 0x" << x87_control << ")";
#elif defined(__aarch64__)
  static const char* const kModes[] = {"nearest", "above", "below", "zero"};
  (void)x87_control;
  said << "rounding to " << rounding(vector_control >> 22, kModes);
  said << ", flush-to-zero " << (vector_control & 1u << 24 ? "on" : "off");
  if (vector_control & 0x9f00) said << ", some exceptions trap";
  said << std::hex << " (FPCR 0x" << vector_control << ")";
#else
  (void)rounding, (void)x87_control;
  said << "rounding mode " << vector_control;
#endif
  return said.str();
}

}  // namespace tenon::kit

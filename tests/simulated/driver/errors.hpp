// SPDX-License-Identifier: Apache-2.0
// Error numbers that CUDA and HIP share.
#pragma once

namespace simulated {

using Error = int;

// X(name, number, text)
#define SIMULATED_ERRORS(X)                                                                       \
  X(SUCCESS, 0, "no error")                                                                       \
  X(INVALID_VALUE, 1, "invalid argument")                                                         \
  X(OUT_OF_MEMORY, 2, "out of memory")                                                            \
  X(NOT_INITIALIZED, 3, "initialization error")                                                   \
  X(NO_DEVICE, 100, "no such device is available")                                                \
  X(INVALID_DEVICE, 101, "invalid device ordinal")                                                \
  X(INVALID_IMAGE, 200, "device kernel image is invalid")                                         \
  X(INVALID_CONTEXT, 201, "invalid device context")                                               \
  X(MAP_FAILED, 205, "mapping of buffer object failed")                                           \
  X(NO_BINARY_FOR_GPU, 209, "no kernel image is available for execution on the device")           \
  X(PEER_ACCESS_UNSUPPORTED, 217, "peer access is not supported between these devices")           \
  X(OPERATING_SYSTEM, 304, "OS call failed or operation not supported on this OS")                \
  X(INVALID_HANDLE, 400, "invalid resource handle")                                               \
  X(NOT_FOUND, 500, "named symbol not found")                                                     \
  X(NOT_READY, 600, "device not ready")                                                           \
  X(ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")                             \
  X(LAUNCH_OUT_OF_RESOURCES, 701, "too many resources requested for launch")                      \
  X(LAUNCH_TIMEOUT, 702, "the launch timed out and was terminated")                               \
  X(PEER_ACCESS_ALREADY_ENABLED, 704, "peer access is already enabled")                           \
  X(PEER_ACCESS_NOT_ENABLED, 705, "peer access has not been enabled")                             \
  X(ASSERT, 710, "device-side assert triggered")                                                  \
  X(ILLEGAL_INSTRUCTION, 715, "an illegal instruction was encountered")                           \
  X(MISALIGNED_ADDRESS, 716, "misaligned address")                                                \
  X(LAUNCH_FAILED, 719, "unspecified launch failure")                                             \
  X(NOT_SUPPORTED, 801, "operation not supported")                                                \
  X(STREAM_CAPTURE_UNSUPPORTED, 900, "operation not permitted when stream is capturing")          \
  X(STREAM_CAPTURE_INVALIDATED, 901, "operation failed due to a previous error during capture")   \
  X(STREAM_CAPTURE_MERGE, 902, "operation would result in a merge of separate capture sequences") \
  X(STREAM_CAPTURE_UNMATCHED, 903, "capture was not ended in the same stream as it began")        \
  X(STREAM_CAPTURE_UNJOINED, 904, "capturing stream has unjoined work")                           \
  X(STREAM_CAPTURE_ISOLATION, 905, "dependency created on uncaptured work in another stream")     \
  X(STREAM_CAPTURE_IMPLICIT, 906,                                                                 \
    "operation would make the legacy stream depend on a capturing blocking stream")               \
  X(CAPTURED_EVENT, 907, "operation not permitted on an event last recorded in a capturing stream")

namespace error {
enum : Error {
#define SIMULATED_NUMBER(name, number, text) name = number,
  SIMULATED_ERRORS(SIMULATED_NUMBER)
#undef SIMULATED_NUMBER
};
}  // namespace error

// nullptr if there is no such error. Names are CUDA's ("CUDA_ERROR_NOT_READY") or HIP's
// ("hipErrorNotReady").
const char* error_name(Error error);
const char* error_text(Error error);

}  // namespace simulated

// Return from the enclosing function unless the result is 0.
#define TRY(expression)                                          \
  do {                                                           \
    if (::simulated::Error error_ = (expression)) return error_; \
  } while (0)

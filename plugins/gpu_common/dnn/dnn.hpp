// SPDX-License-Identifier: Apache-2.0
// The vendor's library of convolutions, cuDNN or MIOpen, as the kernels use it. The libraries have the same notions under
// functions with other parameters, so that each plugin has an implementation (cudnn_convolution.cpp,
// miopen_convolution.cpp); calls, plans and kernels are shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/abi.h>

#include "dnn/convolution_call.hpp"
#include "runtime/driver.hpp"

namespace gpu::dnn {

using Status = int;  // cudnnStatus_t, miopenStatus_t: 0 is success
using Handle = void*;

// Opens the library at the first call. False: it is absent, and library_problem says what to install.
bool is_available();
const char* library_name();     // "cuDNN (libcudnn.so.9.13.0)"; NULL: absent
const char* library_problem();  // NULL: none
const char* error_text(Status);

// A handle is used by one thread at a time, with its device current.
Status create_handle(Handle* out);
void destroy_handle(Handle);
Status set_stream(Handle, Stream);

// An algorithm that adds in any order may give other bits from run to run.
enum Order : int { kFixedOrder, kAnyOrder, kOrders };

struct Algorithm {
  uint64_t number;  // of the library
  uint64_t workspace_bytes;
  int mode;  // what else the library is told: how cuDNN multiplies, in which order MIOpen adds
};

std::string name_of(const Algorithm&);  // "algorithm 1", "solution 86"

// An algorithm that wants more memory than this is not worth it beside the tensors of a training step.
inline constexpr uint64_t kMaxWorkspaceBytes = uint64_t{1} << 30;

// The library's descriptors of one convolution.
class Descriptors {
 public:
  // NULL: the library does not compute it.
  static std::unique_ptr<Descriptors> make(const Convolution&);
  virtual ~Descriptors() = default;

  // What the library's heuristic lists, the one that it takes for the fastest first.
  virtual std::vector<Algorithm> algorithms(Handle, Order) = 0;
  // Queues the convolution on the stream of the handle. Operands are those of the operator, in its
  // order; `bias` is NULL exactly if there is none.
  virtual Status run(Handle, const Algorithm&, const void* first, const void* second,
                     const void* bias, void* out, void* workspace) = 0;
  // Queues behind it what the library cannot do: adding a bias in some dtypes.
  virtual tenon_status finish(tenon_device, tenon_stream, const void* /*bias*/, void* /*out*/,
                              tenon_err*) const {
    return TENON_OK;
  }
};

// The dtypes of the library's convolutions, as a mask of TENON_DTYPE_*.
extern const uint64_t kConvolutionDtypes;

}  // namespace gpu::dnn

// SPDX-License-Identifier: Apache-2.0
#include "elementwise/several_results.hpp"

#include "kernel.hpp"

#include <tenon/unbox.h>

namespace tenon::cpu::TENON_CPU_ISA {

tenon_status run_elementwise(const SeveralResultsKernel& kernel, tenon_ctx* ctx,
                             const tenon_value* args, uint32_t, tenon_value* outs, tenon_err* err) {
  constexpr int kMaxTensors = 12;  // of Float32Call, too
  Float32Call call(ctx, err);
  char* data[kMaxTensors];
  uint32_t count = 0;
  const tenon_tensor* first = nullptr;
  for (uint32_t i = 0; i < kernel.inputs; ++i) {
    const tenon_tensor* input = call.argument(tenon_arg_tensor(&args[i]));
    if (!first) first = input;
    data[count++] = static_cast<char*>(input->data) + input->byte_offset;
  }
  for (uint32_t i = 0; i < kernel.results; ++i) {
    tenon_tensor* result = call.argument(tenon_out_tensor(&outs[i]));
    data[count++] = static_cast<char*>(result->data) + result->byte_offset;
  }
  if (call.status() != TENON_OK) return call.status();
  const bool is_double = first->dtype == TENON_DTYPE_F64;
  const int64_t size = is_double ? 8 : 4;
  parallel(first->numel, kernel.cost, [&](int64_t begin, int64_t end) {
    char* from[kMaxTensors];
    for (uint32_t i = 0; i < count; ++i) from[i] = data[i] + begin * size;
    (is_double ? kernel.float64 : kernel.float32)(from, end - begin, args + kernel.inputs);
  });
  return call.finish(TENON_OK);
}

}  // namespace tenon::cpu::TENON_CPU_ISA

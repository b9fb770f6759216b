// SPDX-License-Identifier: Apache-2.0
// count_nonzero as one reduction, instead of a bool tensor and its sum.
#include "kernel.hpp"
#include "reduce/reduction.hpp"

#include <tenon/signatures/reduction.h>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

template <class T>
struct Count {
  using In = T;
  using Acc = int64_t;
  using Out = int64_t;
  explicit Count(const tenon_value*) {}
  bool holds(T x) const { return x != T(0); }
  Acc init() const { return 0; }
  Acc map(T x) const { return holds(x); }
  Acc combine(Acc a, Acc b) const { return a + b; }
  Out finish(Acc a, int64_t) const { return a; }
};

// Low precision floats are tested by their bits: a number is nonzero if any bit but the sign is
// set.
template <class Bits>
struct CountFloats : Count<Bits> {
  using Count<Bits>::Count;
  bool holds(Bits x) const { return (x & (Bits(~Bits(0)) >> 1)) != 0; }
  int64_t map(Bits x) const { return holds(x); }
};

const ReductionKernel kernel = {
    .op = "tenon::count_nonzero",
    .axis_argument = 1,
    .attributes = 1,
    .dtype_mask = kAllDtypes,
    .loops = {&reduction_loops<Count<bool>>, &reduction_loops<Count<uint8_t>>,
              &reduction_loops<Count<uint8_t>>, &reduction_loops<Count<uint16_t>>,
              &reduction_loops<Count<uint16_t>>, &reduction_loops<Count<uint32_t>>,
              &reduction_loops<Count<uint32_t>>, &reduction_loops<Count<uint64_t>>,
              &reduction_loops<Count<uint64_t>>, &reduction_loops<CountFloats<uint8_t>>,
              &reduction_loops<CountFloats<uint8_t>>, &reduction_loops<CountFloats<uint16_t>>,
              &reduction_loops<CountFloats<uint16_t>>, &reduction_loops<Count<float>>,
              &reduction_loops<Count<double>>, &reduction_loops<Count<std::complex<float>>>,
              &reduction_loops<Count<std::complex<double>>>}};

tenon_status run(tenon_ctx* ctx, const tenon_value* args, uint32_t nargs, tenon_value* outs,
                 uint32_t, tenon_err* err) {
  return run_reduction(kernel, ctx, args, nargs, outs, err);
}

const tenon_kernel_def kKernels[] = {reduction_kernel(kernel, run)};

}  // namespace

KernelList count_nonzero_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA

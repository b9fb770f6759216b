// SPDX-License-Identifier: Apache-2.0
// The table of native kernels. A wrong signature does not compile.
#include <iterator>

#include "kernels.hpp"
#include "numbers.hpp"

namespace reference {
namespace {

TENON_BOX_add(add_boxed, add) TENON_BOX_multiply(multiply_boxed, multiply)
    TENON_BOX_maximum(maximum_boxed, maximum) TENON_BOX_exp(exponential_boxed, exponential)
        TENON_BOX_where(where_boxed, where) TENON_BOX_sum(sum_boxed, sum)
            TENON_BOX_cumsum(cumsum_boxed, cumsum) TENON_BOX_matmul(matmul_boxed, matmul)
                TENON_BOX_cast(cast_boxed, cast) TENON_BOX_clone(clone_boxed, clone)
                    TENON_BOX_uniform(uniform_boxed, uniform)

                        constexpr uint64_t kAll = mask(TENON_DTYPE_COUNT) - 1;

// `cast` is chosen by the dtype that it reads; whether it writes the other one, it says here.
int32_t can_cast(const tenon_value* args, uint32_t nargs) {
  return nargs > 1 && (kReal >> args[1].v.i & 1);
}

constexpr tenon_kernel_def with_can_run(tenon_kernel_def row,
                                        int32_t (*can_run)(const tenon_value*, uint32_t)) {
  row.can_run = can_run;
  return row;
}

}  // namespace

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_add(add, nullptr, kReal, TENON_KERNEL_IEEE, 0),
    TENON_KERNEL_multiply(multiply, nullptr, kReal, TENON_KERNEL_IEEE, 0),
    TENON_KERNEL_maximum(maximum, nullptr, kReal, 0, 0),
    TENON_KERNEL_exp(exponential, nullptr, kFloats, 0, 0),
    TENON_KERNEL_where(where, nullptr, kAll, 0, 0),
    TENON_KERNEL_sum(sum, nullptr, kReal, TENON_KERNEL_ROWS, 0),
    TENON_KERNEL_cumsum(cumsum, nullptr, kReal, 0, 0),
    TENON_KERNEL_matmul(matmul, nullptr, kFloats | kIntegers, 0, 0),
    with_can_run(TENON_KERNEL_cast(cast, nullptr, kReal, 0, 0), can_cast),
    TENON_KERNEL_clone(clone, nullptr, kAll, TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT, 0),
    TENON_KERNEL_uniform(uniform, nullptr, kFloats, 0, 0),
};
static_assert(std::size(kKernels) == kKernelCount);

}  // namespace reference

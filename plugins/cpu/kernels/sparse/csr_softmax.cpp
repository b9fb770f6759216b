// SPDX-License-Identifier: Apache-2.0
// The softmax of the stored elements of each row of a CSR matrix, and its gradient. Rows are short more often than not: all
// exponentials of some rows, which stay in the first-level cache, are computed as one row.
#include "kernel.hpp"
#include "norm/softmax_exp.hpp"
#include "parallel_scratch.hpp"
#include "reduce/rows.hpp"
#include "sparse/structure.hpp"

#include <tenon/signatures/sparse.h>

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// Work of one element, in additions.
constexpr int64_t kForwardWork = 8, kBackwardWork = 4;

// Elements of the rows that are processed together, unless one has more.
constexpr int64_t kTogether = 2048;

// What behind the first axis is independent: F numbers, or `features` if F is 0.
template <int F>
struct Features {
  int64_t features;
  int64_t count() const { return F > 0 ? F : features; }
};

// f(Features) of the numbers that heads of attention usually have.
template <class Function>
void with_features(int64_t features, Function&& f) {
  if (features == 1) return f(Features<1>{1});
  if (features == 4) return f(Features<4>{4});
  if (features == 8) return f(Features<8>{8});
  f(Features<0>{features});
}

// f(first, last) for rows that are processed together.
template <class F>
void for_some_rows(const int64_t* offsets, int64_t first, int64_t last, int64_t features, F&& f) {
  const int64_t most = std::max<int64_t>(kTogether / features, 1);
  while (first < last) {
    int64_t next = first + 1;
    while (next < last && offsets[next + 1] - offsets[first] <= most) ++next;
    f(first, next);
    first = next;
  }
}

// to = from(begin), combined with those of all other elements of the row. `to` has a number for each feature.
template <int F, class T, class Value, class Combine>
void reduce_elements(Features<F> f, int64_t begin, int64_t end, T* to, Value value,
                     Combine combine) {
  const int64_t count = f.count();
  for (int64_t j = 0; j < count; ++j) to[j] = value(begin * count + j);
  for (int64_t k = begin + 1; k < end; ++k) {
    for (int64_t j = 0; j < count; ++j) to[j] = combine(to[j], value(k * count + j));
  }
}

template <int F, class T>
void max_of_row(Features<F> f, const T* x, int64_t begin, int64_t end, T* to) {
  if constexpr (F == 1) {
    *to = max_row(x + begin, end - begin);
  } else {
    reduce_elements(
        f, begin, end, to, [x](int64_t i) { return x[i]; }, [](T a, T b) { return a > b ? a : b; });
  }
}

template <int F, class T, class Value>
void sum_of_row(Features<F> f, int64_t begin, int64_t end, T* to, Value value) {
  if constexpr (F == 1) {
    *to = sum_row<T>(end - begin, [=](int64_t i) { return value(begin + i); });
  } else {
    reduce_elements(f, begin, end, to, value, [](T a, T b) { return a + b; });
  }
}

// out = g(x, by[feature]) for all elements of a row.
template <int F, class T, class G>
void map_elements(Features<F> f, const T* x, int64_t begin, int64_t end, const T* by, T* out, G g) {
  const int64_t count = f.count();
  for (int64_t k = begin; k < end; ++k) {
    for (int64_t j = 0; j < count; ++j) out[k * count + j] = g(x[k * count + j], by[j]);
  }
}

// `memory` has two numbers for each feature.
template <bool Log, int F, class T>
void softmax_rows(Features<F> f, const int64_t* offsets, int64_t first, int64_t last, const T* x,
                  T* out, T* memory) {
  for_some_rows(offsets, first, last, f.count(), [&](int64_t from, int64_t to) {
    const auto each_row = [&](auto&& act) {
      for (int64_t row = from; row < to; ++row) {
        if (offsets[row] < offsets[row + 1]) act(offsets[row], offsets[row + 1]);
      }
    };
    const auto subtract = [](T a, T b) { return a - b; };
    each_row([&](int64_t begin, int64_t end) {
      max_of_row(f, x, begin, end, memory);
      map_elements(f, x, begin, end, memory, out, subtract);
    });
    if constexpr (Log) {
      each_row([&](int64_t begin, int64_t end) {
        sum_of_row(f, begin, end, memory, [out](int64_t i) { return softmax_exp(out[i]); });
        for (int64_t j = 0; j < f.count(); ++j) memory[j] = math::log(memory[j]);
        map_elements(f, out, begin, end, memory, out, subtract);
      });
    } else {
      T* const powers = out + offsets[from] * f.count();
      map_row(powers, powers, (offsets[to] - offsets[from]) * f.count(),
              [](T each) { return softmax_exp(each); });
      each_row([&](int64_t begin, int64_t end) {
        sum_of_row(f, begin, end, memory, [out](int64_t i) { return out[i]; });
        for (int64_t j = 0; j < f.count(); ++j) memory[j] = T(1) / memory[j];
        map_elements(f, out, begin, end, memory, out, [](T a, T b) { return a * b; });
      });
    }
  });
}

// dx = y (g - sum(g y)), or g - exp(y) sum(g) for the logarithm.
template <bool Log, int F, class T>
void grad_rows(Features<F> f, const int64_t* offsets, int64_t first, int64_t last, const T* grad,
               const T* y, T* out, T* memory) {
  const int64_t count = f.count();
  for (int64_t row = first; row < last; ++row) {
    const int64_t begin = offsets[row], end = offsets[row + 1];
    if (begin == end) continue;
    sum_of_row(f, begin, end, memory, [=](int64_t i) { return Log ? grad[i] : grad[i] * y[i]; });
    for (int64_t k = begin; k < end; ++k) {
      for (int64_t j = 0; j < count; ++j) {
        const int64_t at = k * count + j;
        out[at] = Log ? grad[at] - softmax_exp(y[at]) * memory[j] : y[at] * (grad[at] - memory[j]);
      }
    }
  }
}

// f(Features, Type, first row, last row, memory for the numbers of a row) on several threads.
template <class F>
tenon_status for_rows_of(tenon_ctx* ctx, const char* op, const tenon_tensor* indptr,
                         const tenon_tensor* values, int64_t work, tenon_err* err, F&& f) {
  const int64_t* offsets;
  tenon_status status = read_indptr(ctx, op, indptr, values->shape[0], &offsets, err);
  if (status != TENON_OK || values->numel == 0) return status;
  const int64_t rows = indptr->numel - 1, features = values->numel / values->shape[0];
  const auto run = [&]<class T>(Type<T> type) {
    constexpr int64_t kFew = 64;
    const int64_t parts = std::min<int64_t>(rows, 8 * workers_for(values->numel, work));
    return parallel_for_with_scratch(
        ctx, parts, values->numel / parts * work,
        features > kFew ? features * static_cast<int64_t>(sizeof(T)) : 0, err,
        [&](int64_t part, void* memory) {
          T few[kFew];
          T* const numbers = features > kFew ? static_cast<T*>(memory) : few;
          const auto begin_of = [&](int64_t i) {
            if (i == 0 || i == parts) return i == 0 ? int64_t{0} : rows;
            const int64_t element = values->shape[0] / parts * i;
            return static_cast<int64_t>(std::lower_bound(offsets, offsets + rows, element) -
                                        offsets);
          };
          with_features(features, [&](auto each) {
            f(each, type, offsets, begin_of(part), begin_of(part + 1), numbers);
          });
        });
  };
  return values->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}

tenon_status csr_softmax(tenon_ctx* ctx, const tenon_tensor* indptr, const tenon_tensor* values,
                         int32_t log, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(values->dtype))
    return run_as_float32(csr_softmax, ctx, err, indptr, values, log, out);
  return for_rows_of(ctx, "csr_softmax", indptr, values, kForwardWork, err,
                     [&]<class T>(auto features, Type<T>, const int64_t* offsets, int64_t first,
                                  int64_t last, T* memory) {
                       const T* x = data_of<T>(values);
                       T* to = data_of<T>(out);
                       if (log)
                         softmax_rows<true>(features, offsets, first, last, x, to, memory);
                       else
                         softmax_rows<false>(features, offsets, first, last, x, to, memory);
                     });
}
TENON_BOX_csr_softmax(csr_softmax_boxed, csr_softmax);

tenon_status csr_softmax_grad(tenon_ctx* ctx, const tenon_tensor* indptr,
                              const tenon_tensor* grad_out, const tenon_tensor* y, int32_t log,
                              tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(y->dtype))
    return run_as_float32(csr_softmax_grad, ctx, err, indptr, grad_out, y, log, out);
  return for_rows_of(ctx, "csr_softmax_grad", indptr, y, kBackwardWork, err,
                     [&]<class T>(auto features, Type<T>, const int64_t* offsets, int64_t first,
                                  int64_t last, T* memory) {
                       const T *grad = data_of<T>(grad_out), *from = data_of<T>(y);
                       T* to = data_of<T>(out);
                       if (log)
                         grad_rows<true>(features, offsets, first, last, grad, from, to, memory);
                       else
                         grad_rows<false>(features, offsets, first, last, grad, from, to, memory);
                     });
}
TENON_BOX_csr_softmax_grad(csr_softmax_grad_boxed, csr_softmax_grad);

// The gradient is a composite operator: its arguments have not been promoted or checked yet.
int32_t grad_fits(const tenon_value* args, uint32_t) {
  for (int i = 0; i < 3; ++i)
    if (args[i].tag != TENON_VALUE_TENSOR) return 0;
  const auto* indptr = static_cast<const tenon_tensor*>(args[0].v.p);
  const auto* grad = static_cast<const tenon_tensor*>(args[1].v.p);
  const auto* y = static_cast<const tenon_tensor*>(args[2].v.p);
  return indptr->ndim == 1 && indptr->numel > 0 && (kIntegers & dtype_bit(indptr->dtype)) != 0 &&
         y->ndim > 0 && grad->dtype == y->dtype && grad->ndim == y->ndim &&
         std::equal(grad->shape, grad->shape + grad->ndim, y->shape);
}

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_csr_softmax(csr_softmax, nullptr, kFloats, 0, 0),
    with_can_run(TENON_KERNEL_csr_softmax_grad(csr_softmax_grad, nullptr, kFloats, 0, 0),
                 grad_fits)};

}  // namespace

KernelList csr_softmax_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA

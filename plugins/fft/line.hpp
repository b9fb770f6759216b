// SPDX-License-Identifier: Apache-2.0
// One long transform in vectors: the four-step algorithm (Bailey, FFTs in External or Hierarchical Memory,
// 1990). The line is a matrix of n1 rows and n2 columns; transforms down its columns, a multiplication by
// roots of unity, a transposition, and again transforms down columns. Panels of columns that fit into the
// second cache are transformed at a time.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "buffer.hpp"
#include "columns.hpp"
#include "memory.hpp"
#include "recent.hpp"

namespace tenon::fft::TENON_FFT_ISA {

template <class T>
int64_t vectors_of(int64_t count) {
  return (count + kLanes<T> - 1) / kLanes<T>;
}

template <class T>
struct LinePlan {
  using Value = Complex<Vector<T>>;

  explicit LinePlan(int64_t n) : n(n), whole(plan_of<T>(n)) {
    if (whole->convolution || n < 2 * kLanes<T>) return;
    // What vectors would do in the last, partly filled one counts as well.
    const auto cost = [](int64_t rows, int64_t columns) {
      return work_of(rows) * static_cast<double>(rows * vectors_of<T>(columns));
    };
    double least = work_of(n) * static_cast<double>(n);  // one number at a time
    for (int64_t d = 2; d * 2 <= n; ++d) {
      if (n % d != 0) continue;
      const double work = cost(d, n / d) + cost(n / d, d);
      if (work >= least) continue;
      least = work;
      n1 = d;
    }
    if (n1 == 0) return;
    n2 = n / n1;
    first = plan_of<T>(n1);
    second = plan_of<T>(n2);
    const int64_t width = vectors_of<T>(n2);
    twiddles.resize(static_cast<size_t>(n1 * width));
    for (int64_t k = 0; k < n1; ++k)
      for (int64_t j = 0; j < n2; ++j) {
        const Root<T> root = root_of_unity<T>(k * j, n);
        Value& to = twiddles[static_cast<size_t>(k * width + j / kLanes<T>)];
        to.re[j % kLanes<T>] = root.re;
        to.im[j % kLanes<T>] = root.im;
      }
  }

  int64_t n, n1 = 0, n2 = 0;  // n1 is 0 where the transform is not split
  std::shared_ptr<const Plan<T>> whole, first, second;
  std::vector<Value> twiddles;
};

template <class T>
std::shared_ptr<const LinePlan<T>> line_plan_of(int64_t n) {
  static Recent<LinePlan<T>> recent;
  return recent.get(n, [n] { return std::make_shared<const LinePlan<T>>(n); });
}

template <class T>
class LineTransform {
  using V = Vector<T>;
  using Value = Complex<V>;
  static constexpr int kWide = kLanes<T>;
  static constexpr int64_t kPanelBytes = 256 << 10;

 public:
  explicit LineTransform(int64_t n) : plan_(line_plan_of<T>(n)) {
    if (plan_->whole->convolution) {
      convolution_ = std::make_unique<LineTransform>(plan_->whole->convolution->n);
      chirped_ = Buffer<T>(2 * plan_->whole->rows());
    } else if (plan_->n1 == 0) {
      scalars_ = Buffer<Complex<T>>(2 * n);
    } else {
      const int64_t longer = std::max(plan_->n1, plan_->n2);
      panel_ = std::clamp<int64_t>(kPanelBytes / (2 * longer * int64_t{sizeof(Value)}), 1,
                                   vectors_of<T>(longer));
      panels_ = Buffer<Value>(3 * longer * panel_);
      transposed_row_ = vectors_of<T>(plan_->n1) | 1;
      transposed_ = Buffer<Value>(plan_->n2 * transposed_row_);
    }
  }

  // From n complex numbers to n others, which may be the same.
  void run(const T* in, T* out, Treatment<T> treatment) {
    if (plan_->whole->convolution)
      run_bluestein(in, out, treatment);
    else if (plan_->n1 == 0)
      run_scalars(in, out, treatment);
    else
      run_four_steps(in, out, treatment);
  }

 private:
  void run_scalars(const T* in, T* out, Treatment<T> treatment) {
    const Memory<T, T> memory = Memory<T, T>::packed(in, out, treatment, 1);
    Complex<T>* const data = scalars_.data();
    if (in == out && plan_->whole->stages.size() == 1) {  // which would write what it still reads
      for (int64_t i = 0; i < plan_->n; ++i) data[i] = memory(i, 0);
      return transform_columns<T, T>(*plan_->whole, 1, Packed<T>{data, 1}, memory, data, data);
    }
    transform_columns<T, T>(*plan_->whole, 1, memory, memory, data, data + plan_->n);
  }

  void run_four_steps(const T* in, T* out, Treatment<T> treatment) {
    const int64_t n1 = plan_->n1, n2 = plan_->n2;
    const int64_t across1 = vectors_of<T>(n1), across2 = vectors_of<T>(n2);
    for (int64_t begin = 0; begin < across2; begin += panel_) {
      const int64_t width = std::min(panel_, across2 - begin);
      Value *data = panels_.data(), *work = data + n1 * width, *result = work + n1 * width;
      const auto memory = Memory<T, V>::packed(in, out, treatment, n2);
      transform_columns<T, V>(*plan_->first, width, memory.from(begin), Packed<V>{result, width},
                              data, work);
      transpose_panel(result, begin, width);
    }
    for (int64_t begin = 0; begin < across1; begin += panel_) {
      const int64_t width = std::min(panel_, across1 - begin);
      Value *data = panels_.data(), *work = data + n2 * width;
      const auto memory = Memory<T, V>::packed(in, out, treatment, n1);
      const Packed<V> transposed{transposed_.data(), transposed_row_};
      transform_columns<T, V>(*plan_->second, width, transposed.from(begin), memory.from(begin),
                              data, work);
    }
  }

  // Multiplies a panel by the roots of unity, and writes its columns as rows.
  void transpose_panel(const Value* panel, int64_t begin, int64_t width) {
    const int64_t n1 = plan_->n1, n2 = plan_->n2;
    const int64_t across2 = vectors_of<T>(n2);
    for (int64_t c = 0; c < width; ++c)
      for (int64_t row = 0; row < n1; row += kWide) {
        V re[kWide], im[kWide];
        const int64_t rows = std::min<int64_t>(kWide, n1 - row);
        const auto twiddle = [&](int64_t i) __attribute__((always_inline)) {
          const Value z = panel[(row + i) * width + c] *
                          plan_->twiddles[static_cast<size_t>((row + i) * across2 + begin + c)];
          re[i] = z.re;
          im[i] = z.im;
        };
        if (rows == kWide) {
#pragma GCC unroll 16
          for (int i = 0; i < kWide; ++i) twiddle(i);
        } else {
          for (int64_t i = 0; i < kWide; ++i) re[i] = im[i] = V{};
          for (int64_t i = 0; i < rows; ++i) twiddle(i);
        }
        transpose<T>(re);
        transpose<T>(im);
        const int64_t column = (begin + c) * kWide;
        const int64_t columns = std::min<int64_t>(kWide, n2 - column);
        Value* to = transposed_.data() + column * transposed_row_ + row / kWide;
        if (columns == kWide) {
#pragma GCC unroll 16
          for (int l = 0; l < kWide; ++l) to[l * transposed_row_] = {re[l], im[l]};
        } else {
          for (int64_t l = 0; l < columns; ++l) to[l * transposed_row_] = {re[l], im[l]};
        }
      }
  }

  void run_bluestein(const T* in, T* out, Treatment<T> treatment) {
    const Plan<T>& plan = *plan_->whole;
    T* const data = chirped_.data();
    multiply(in, treatment.swap, plan.chirp, data, {false, T{1}});
    std::fill(data + 2 * plan.n, data + 2 * plan.rows(), T{0});
    convolution_->run(data, data, {false, T{1}});
    multiply(data, false, plan.chirp_spectrum, data, {false, T{1}});
    convolution_->run(data, data, {true, T{1}});
    multiply(data, false, plan.chirp, out, treatment);
  }

  // Multiplies as many numbers as there are roots. `in` and `out` may be the same; parts of what is read are
  // swapped if `swap`, of what is written if treatment.swap.
  static void multiply(const T* in, bool swap, const std::vector<Root<T>>& roots, T* out,
                       Treatment<T> treatment) {
    const auto count = static_cast<int64_t>(roots.size());
    const T* const by = &roots.data()->re;
    for (int64_t k = 0; k < count; k += kWide) {
      Value z = load_columns(in + 2 * k, count - k);
      if (swap) z = swapped(z);
      z = z * load_columns(by + 2 * k, count - k);
      if (treatment.swap) z = swapped(z);
      store_columns(out + 2 * k, Value{z.re * treatment.scale, z.im * treatment.scale}, count - k);
    }
  }

  std::shared_ptr<const LinePlan<T>> plan_;
  int64_t panel_ = 0;           // vectors of columns that are transformed at a time
  int64_t transposed_row_ = 0;  // odd, so that rows do not share few sets of a cache
  Buffer<Value> panels_, transposed_;
  Buffer<Complex<T>> scalars_;
  Buffer<T> chirped_;
  std::unique_ptr<LineTransform> convolution_;
};

}  // namespace tenon::fft::TENON_FFT_ISA

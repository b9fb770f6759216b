// SPDX-License-Identifier: Apache-2.0
// Elementwise steps behind a convolution, piece by piece of its results, while a cache holds them.
// Each step runs the kernel of its operator, so that it has the bits of single steps.
#pragma once

#include <tenon/abi.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tenon::cpu {

// A piece of the results: how many there are along each axis, and elements from one to the next.
struct ResultPiece {
  int64_t planes, plane, rows, row, columns;
};

struct FollowingStep {
  // What a step reads.
  struct Operand {
    enum Kind : uint8_t {
      kPlace,      // a value of an earlier step, or the results: by FollowingStep::to
      kOther,      // a tensor like the results, from outside
      kNumber,     // one number
      kAttribute,  // what is no tensor
    };
    Kind kind = kAttribute;
    uint32_t index = 0;
    float number = 0;
    tenon_value attribute = {};
  };
  tenon_boxed_fn run = nullptr;  // An elementwise kernel of float32.
  std::vector<Operand> operands;
  uint32_t to = 0;  // Where its values go: 0 is the place of the results, others are buffers.
};

class FollowingSteps {
 public:
  static constexpr uint32_t kMaxBuffers = 2;
  static constexpr size_t kMaxOperands = 8;  // Of a step, attributes included.

  FollowingSteps() = default;
  explicit FollowingSteps(std::vector<FollowingStep> steps) : steps_(std::move(steps)) {}
  bool empty() const { return steps_.empty(); }

  // Runs the steps on a piece that begins at `first`, `at` elements behind the first result of all.
  // Any thread. False: a kernel refused, and results are undefined.
  bool run(float* first, int64_t at, const float* const* others, ResultPiece piece) const {
    if (piece.rows > 1 && piece.row == piece.columns) {
      piece.columns *= std::exchange(piece.rows, 1);
    }
    if (piece.rows == 1) {  // Planes of one row are rows.
      piece.rows = std::exchange(piece.planes, 1);
      piece.row = piece.plane;
      if (piece.row == piece.columns) piece.columns *= std::exchange(piece.rows, 1);
    }
    for (int64_t p = 0; p < piece.planes; ++p) {
      for (int64_t c = 0; c < piece.columns; c += kElements) {
        const int64_t columns = std::min(kElements, piece.columns - c);
        const int64_t some = std::max<int64_t>(1, kElements / columns);
        for (int64_t r = 0; r < piece.rows; r += some) {
          const int64_t offset = p * piece.plane + r * piece.row + c;
          if (!run_rows(first + offset, at + offset, others, std::min(some, piece.rows - r),
                        piece.row, columns)) {
            return false;
          }
        }
      }
    }
    return true;
  }

 private:
  // Elements of a buffer: those of all steps fit into the L1 cache.
  static constexpr int64_t kElements = 2048;

  // The head of a tensor, as kernels read it.
  struct Head {
    tenon_tensor tensor = {};
    int64_t shape[2], strides[2];

    void set(const float* data, int64_t rows, int64_t row, int64_t columns) {
      shape[0] = rows;
      shape[1] = columns;
      strides[0] = row;
      strides[1] = 1;
      tensor.data = const_cast<float*>(data);
      tensor.ndim = 2;
      tensor.dl_dtype = {2, 32, 1};  // kDLFloat
      tensor.dtype = TENON_DTYPE_F32;
      tensor.shape = shape;
      tensor.strides = strides;
      tensor.numel = rows * columns;
      tensor.flags = rows == 1 || row == columns ? TENON_TENSOR_CONTIGUOUS : 0;
    }
    void set_number(const float* number) {
      set(number, 1, 1, 1);
      tensor.ndim = 0;
      tensor.flags |= TENON_TENSOR_HOST_SCALAR;
    }
  };

  bool run_rows(float* first, int64_t at, const float* const* others, int64_t rows, int64_t row,
                int64_t columns) const {
    alignas(64) float buffers[kMaxBuffers][kElements];
    const auto place = [&](uint32_t index, Head& head) {
      index == 0 ? head.set(first, rows, row, columns)
                 : head.set(buffers[index - 1], rows, columns, columns);
    };
    for (const FollowingStep& step : steps_) {
      Head heads[kMaxOperands], out;
      tenon_value args[kMaxOperands], result = {};
      const size_t count = step.operands.size();
      for (size_t i = 0; i < count; ++i) {
        const FollowingStep::Operand& operand = step.operands[i];
        if (operand.kind == FollowingStep::Operand::kAttribute) {
          args[i] = operand.attribute;
          continue;
        }
        if (operand.kind == FollowingStep::Operand::kPlace) {
          place(operand.index, heads[i]);
        } else if (operand.kind == FollowingStep::Operand::kOther) {
          heads[i].set(others[operand.index] + at, rows, row, columns);
        } else {
          heads[i].set_number(&operand.number);
        }
        args[i] = tensor_value(&heads[i].tensor);
      }
      place(step.to, out);
      result = tensor_value(&out.tensor);
      if (step.run(nullptr, args, static_cast<uint32_t>(count), &result, 1, nullptr) != TENON_OK) {
        return false;
      }
    }
    return true;
  }

  static tenon_value tensor_value(tenon_tensor* tensor) {
    tenon_value value = {};
    value.tag = TENON_VALUE_TENSOR;
    value.v.p = tensor;
    return value;
  }

  std::vector<FollowingStep> steps_;
};

}  // namespace tenon::cpu

// SPDX-License-Identifier: Apache-2.0
// A chain of elementwise steps as machine code: one loop that keeps what passes between the steps in
// registers.
//
// Operations are those that IEEE 754 defines, each rounded to the chain's dtype, so that results
// have the bits of the kernels that promise the same (TENON_KERNEL_IEEE), and functions that kernels
// offer (tenon/services/register_functions.h), which the loop calls. For x86-64 with AVX2 or
// AVX-512; code is made when a program first runs, in some ten microseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace tenon::graph {

enum class Arithmetic : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kMaximum,  // NaN if either is
  kMinimum,
  kBinaryFunction,  // ChainStep::function
  kFunction,
  kNegative,
  kAbsolute,
  kSquare,
  kSquareRoot,
  kReciprocal,
  kRelu,
};
// "tenon::add"; none for other operators.
std::optional<Arithmetic> arithmetic_named(std::string_view op);
int operand_count(Arithmetic arithmetic);

// One step of a chain.
struct ChainStep {
  struct Source {
    enum Kind : uint8_t {
      kResult,  // of an earlier step
      kArray,   // an element of array `index` for each element of the result
      kNumber,  // the first element of array `index`
    };
    Kind kind = kArray;
    uint32_t index = 0;
  };
  Arithmetic arithmetic = Arithmetic::kAdd;
  Source sources[2];
  const void* function = nullptr;  // takes and returns vector registers as calls pass them
  int32_t stored_to = -1;          // an array that receives the result; -1: none does
};

class JitLoop {
 public:
  static constexpr uint32_t kMaxArrays = 10;

  // NULL: this processor has no code, memory cannot be made executable, or the chain needs more
  // registers than there are. `dtype` is float32 or float64. `bytes`: of the registers that
  // functions of the chain take, 32 or 64; 0 where it has none. TENON_MACHINE_CODE in the
  // environment, read once: 0 for none, avx2 for no AVX-512.
  static std::unique_ptr<JitLoop> of(const std::vector<ChainStep>& steps, int32_t dtype,
                                     uint32_t bytes = 0);
  // The longest part from the first step on for which there are registers.
  static size_t fitting(const std::vector<ChainStep>& steps);

  ~JitLoop();
  JitLoop(const JitLoop&) = delete;
  JitLoop& operator=(const JitLoop&) = delete;

  // `arrays`: their first elements. An array that is written may be one that is read. Any thread.
  void run(void* const* arrays, int64_t count) const { function_(arrays, count); }

 private:
  JitLoop() = default;

  class Assembler;
  std::unique_ptr<Assembler> assembler_;
  void (*function_)(void* const* arrays, int64_t count) = nullptr;
};

}  // namespace tenon::graph

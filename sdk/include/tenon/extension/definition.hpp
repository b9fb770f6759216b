// SPDX-License-Identifier: Apache-2.0
// One operator, as it is being defined. Part of tenon/extension.hpp.
#pragma once

#include <tenon/extension/function.hpp>

namespace tenon {

// Of one kernel. Zero: what its typed views say, or every dtype.
struct KernelOptions {
  uint64_t dtypes = 0;  // bits 1 << TENON_DTYPE_* of the compute dtypes it serves
  int32_t score = 0;    // the highest that serves a call is taken
  uint32_t traits = 0;  // TENON_KERNEL_*: what it takes as it is, without the host's preparation
};

// A mask of element types: dtypes<float, double>.
template <class... T>
inline constexpr uint64_t dtypes = ((uint64_t{1} << dtype_of<T>) | ...);

// An operator, defined step by step. A step that does not fit the signature throws tenon::Error,
// and its text is the one with which the library is refused.
class Definition {
 public:
  explicit Definition(extension::Described& described) : described_(described) {}

  // Markdown; the first line is a summary.
  Definition& doc(std::string_view text);

  // Results have shape and dtype of this argument.
  Definition& like(std::string_view parameter);

  // F takes the arguments and returns a Meta, a shape or, for several results, a tuple, array or
  // vector of Metas. It reads shapes, dtypes and attributes; tensors may have no data.
  template <auto F>
  Definition& shape() {
    using S = extension::ShapeOfFunction<F>;
    static_assert(!S::takes_context && S::results == 0, "expected a function of the arguments");
    return shape(extension::function_of<F>(), extension::infer<F>);
  }

  // Element i of the result depends on element i of the arguments alone, which are broadcast and
  // promoted to one dtype: in-place and out= forms follow.
  Definition& elementwise();

  // The result may be written over the first argument: kernels read no element after writing it.
  Definition& in_place();

  // Which compute dtypes the operator is for, as a mask; others are a TypeError.
  Definition& dtypes(uint64_t mask);

  // F computes the operator on one kind of device. It takes the arguments and, last, the results to
  // write into (Tensor& or View<T>), or returns tensors; a KernelContext& may come first. Tensors
  // arrive contiguous.
  template <auto F>
  Definition& kernel(std::string_view device, const KernelOptions& options = {}) {
    using S = extension::ShapeOfFunction<F>;
    static_assert(std::is_void_v<typename S::Returned> || S::results == 0,
                  "a kernel writes into results or returns tensors, not both");
    return kernel(extension::function_of<F>(), device, options, extension::boxed_kernel<F>);
  }

  // F is the operator in terms of others, for devices that have no kernel.
  template <auto F>
  Definition& decompose() {
    using S = extension::ShapeOfFunction<F>;
    static_assert(!S::takes_context, "KernelContext is for kernels");
    static_assert(S::results == 0, "expected a function that returns tensors");
    return decompose(extension::function_of<F>(), extension::decompose<F>);
  }

  // F takes the gradients of the results, the arguments and, if it wants them, the results; it
  // returns a gradient for each tensor parameter, empty for none. Where there are several results,
  // a gradient that did not arrive is an absent std::optional<Tensor>. Built from operators, it can
  // be differentiated again.
  template <auto F>
  Definition& grad() {
    using S = extension::ShapeOfFunction<F>;
    static_assert(S::results == 0 && !S::takes_context, "a gradient function returns tensors");
    return grad(extension::function_of<F>(), extension::backward<F>);
  }

  // Results never carry gradients.
  Definition& no_grad();

 private:
  friend class Operators;
  Definition& shape(const extension::Function& function, tenon_infer_self_fn infer);
  Definition& kernel(const extension::Function& function, std::string_view device,
                     const KernelOptions& options, tenon_boxed_fn boxed);
  Definition& decompose(const extension::Function& function, tenon_decompose_self_fn decompose);
  Definition& grad(const extension::Function& function, tenon_backward_self_fn backward);
  Definition& whole();

  extension::Described& described_;
};

}  // namespace tenon

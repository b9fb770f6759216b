// SPDX-License-Identifier: Apache-2.0
// From a C++ function to the functions of the C ABI: boxed kernels, decompositions, shape rules and
// gradients. Part of tenon/extension.hpp.
#pragma once

#include <tenon/services/autograd.h>
#include <tenon/extension/argument.hpp>
#include <tenon/extension/result.hpp>

namespace tenon::extension {

// One parameter of a C++ function, as the check against a signature sees it.
struct Parameter {
  uint32_t kinds;
  bool takes_none;
  const char* name;
  bool is_unread;
  bool is_shape_only;
};

template <class T>
inline constexpr bool kIsContext = std::same_as<std::remove_cvref_t<T>, KernelContext>;

// A result that the host has made, for a kernel to write into.
template <class T>
inline constexpr bool kIsResult = std::same_as<T, Tensor&>;
template <class T>
inline constexpr bool kIsViewOfResult = false;
template <class T>
inline constexpr bool kIsViewOfResult<View<T>> = !std::is_const_v<T>;
template <class T>
requires kIsViewOfResult<std::remove_cvref_t<T>>
inline constexpr bool kIsResult<T> = true;

template <class T>
inline constexpr int kElementOf = -1;
template <class T>
inline constexpr int kElementOf<View<T>> = dtype_of<T>;

template <class T>
constexpr Parameter describe() {
  using Plain = std::remove_cvref_t<T>;
  return {Argument<Plain>::kinds, Argument<Plain>::takes_none, Argument<Plain>::name,
          std::same_as<Plain, Unread>, std::same_as<Plain, ShapeOnly>};
}

// What is known of a function: leading context, parameters, trailing results.
template <class Result, class... Parameters>
struct Shape {
  using Returned = Result;
  static constexpr bool takes_context = [] {
    constexpr bool flags[] = {kIsContext<Parameters>..., false};
    return flags[0];
  }();
  static constexpr size_t results = (size_t{0} + ... + kIsResult<Parameters>);
  static constexpr size_t first = takes_context;
  static constexpr size_t arguments = sizeof...(Parameters) - first - results;
  template <size_t I>
  using At = std::tuple_element_t<I, std::tuple<Parameters..., void>>;
  template <size_t I>
  using ArgumentAt = At<first + I>;
  template <size_t I>
  using ResultAt = At<first + arguments + I>;

  static_assert(
      []<size_t... I>(std::index_sequence<I...>) {
        return (!kIsResult<ArgumentAt<I>> && ...);
      }(std::make_index_sequence<arguments>()),
      "parameters by Tensor& and View<T> are results, and come last; arguments are const Tensor& "
      "and "
      "View<const T>");

  // Of the arguments, in order.
  static constexpr std::array<Parameter, arguments> parameters =
      []<size_t... I>(std::index_sequence<I...>) {
    return std::array<Parameter, arguments>{describe<ArgumentAt<I>>()...};
  }
  (std::make_index_sequence<arguments>());
  // The dtype that typed views speak of; -1: any.
  static constexpr int element() {
    int found = -1;
    ((found = found < 0 ? kElementOf<std::remove_cvref_t<Parameters>> : found), ...);
    return found;
  }
};

template <class F>
struct ShapeOf;
template <class R, class... P>
struct ShapeOf<R (*)(P...)> : Shape<R, P...> {};
template <class R, class... P>
struct ShapeOf<R (*)(P...) noexcept> : Shape<R, P...> {};
template <class C, class R, class... P>
struct ShapeOf<R (C::*)(P...) const> : Shape<R, P...> {};
template <class F>
requires requires { &F::operator(); }
struct ShapeOf<F> : ShapeOf<decltype(&F::operator())> {};

template <auto F>
using ShapeOfFunction = ShapeOf<std::remove_const_t<decltype(F)>>;

// The same for code that is no template.
struct Function {
  const Parameter* parameters;
  size_t count;
  size_t results;  // that it writes into
  int returned;    // how many it returns; 0: none; -1: a vector
  int element;
};
template <auto F>
constexpr Function function_of() {
  using S = ShapeOfFunction<F>;
  int returned = 0;
  if constexpr (!std::is_void_v<typename S::Returned>) returned = kCount<typename S::Returned>;
  return {S::parameters.data(), S::arguments, S::results, returned, S::element()};
}

// A result that is written into, and not replaced.
template <class T>
class Target {
 public:
  explicit Target(const tenon_value& value)
      : handle_(tenon_out_tensor(&value)), tensor_(Tensor::borrow(handle_)) {}
  operator Tensor&() { return tensor_; }
  void check() const {
    if (tensor_.get() != handle_)
      throw Error(TENON_INTERNAL,
                  "the kernel assigned a tensor to its result; expected that it writes into the "
                  "memory of the one it was given, or returns tensors");
  }

 private:
  tenon_tensor* handle_;
  Tensor tensor_;
};
template <class T>
requires kIsViewOfResult<std::remove_cvref_t<T>>
class Target<T> {
 public:
  explicit Target(const tenon_value& value) : view_(TensorView(tenon_out_tensor(&value))) {}
  operator const std::remove_cvref_t<T>&() const { return view_; }
  void check() const {}

 private:
  std::remove_cvref_t<T> view_;
};

// Calls F with unboxed arguments, which live until it returns.
template <auto F>
struct Invoke {
  using S = ShapeOfFunction<F>;

  static decltype(auto) with(const Call& call) {
    return [&]<size_t... I>(std::index_sequence<I...>)->decltype(auto) {
      return F(ArgumentOf<typename S::template ArgumentAt<I>>::hold(call.args[I], call)...);
    }
    (std::make_index_sequence<S::arguments>());
  }

  static decltype(auto) with(KernelContext& context, const Call& call) {
    if constexpr (S::takes_context)
      return [&]<size_t... I>(std::index_sequence<I...>)->decltype(auto) {
        return F(context,
                 ArgumentOf<typename S::template ArgumentAt<I>>::hold(call.args[I], call)...);
      }
    (std::make_index_sequence<S::arguments>());
    else return with(call);
  }

  static void into(KernelContext& context, const Call& call, const tenon_value* outs) {
    [&]<size_t... I, size_t... K>(std::index_sequence<I...>, std::index_sequence<K...>) {
      std::tuple<Target<typename S::template ResultAt<K>>...> targets(outs[K]...);
      if constexpr (S::takes_context)
        F(context, ArgumentOf<typename S::template ArgumentAt<I>>::hold(call.args[I], call)...,
          std::get<K>(targets)...);
      else
        F(ArgumentOf<typename S::template ArgumentAt<I>>::hold(call.args[I], call)...,
          std::get<K>(targets)...);
      (std::get<K>(targets).check(), ...);
    }
    (std::make_index_sequence<S::arguments>(), std::make_index_sequence<S::results>());
  }
};

// -- the functions of the ABI ---------------------------------------------------------------------

// Runs body(data). What it throws becomes an error with the operator's name in front; calls that it
// makes report to `err`.
tenon_status run(const char* name, tenon_err* err, call::Frame::Place place, void (*body)(void*),
                 void* data) noexcept;
tenon_status run_kernel(tenon_ctx* ctx, tenon_err* err, void (*body)(void*), void* data) noexcept;
const char* name_of(const Described& op);
// The shape of the argument that `like` named.
tenon_status infer_like(const tenon_value* args, uint32_t nargs, tenon_meta* outs, uint32_t nouts,
                        tenon_err* err, void* self) noexcept;

template <class Body>
tenon_status run_body(const Described& op, tenon_err* err, call::Frame::Place place, Body body) {
  return run(
      name_of(op), err, place, [](void* data) { (*static_cast<Body*>(data))(); }, &body);
}

template <auto F>
tenon_status boxed_kernel(tenon_ctx* ctx, const tenon_value* args, uint32_t nargs,
                          tenon_value* outs, uint32_t nouts, tenon_err* err) noexcept {
  auto body = [&] {
    KernelContext context(ctx, err);
    const Call call{args, nargs};
    if constexpr (std::is_void_v<typename ShapeOfFunction<F>::Returned>)
      Invoke<F>::into(context, call, outs);
    else
      with_items(Invoke<F>::with(context, call), [&](Tensor* tensors, size_t count) {
        give_from_kernel(tensors, count, context, call, outs, nouts);
      });
  };
  return run_kernel(
      ctx, err, [](void* data) { (*static_cast<decltype(body)*>(data))(); }, &body);
}

template <auto F>
tenon_status decompose(const tenon_value* args, uint32_t nargs, tenon_value* outs, uint32_t nouts,
                       tenon_err* err, void* self) noexcept {
  const auto& op = *static_cast<const Described*>(self);
  return run_body(op, err, call::Frame::kAboveLayers, [&] {
    const Call call{args, nargs};
    with_items(Invoke<F>::with(call),
               [&](Tensor* tensors, size_t count) { give(tensors, count, op, call, outs, nouts); });
  });
}

template <auto F>
tenon_status infer(const tenon_value* args, uint32_t nargs, tenon_meta* outs, uint32_t nouts,
                   tenon_err* err, void* self) noexcept {
  const auto& op = *static_cast<const Described*>(self);
  return run_body(op, err, call::Frame::kInKernel, [&] {
    const Call call{args, nargs};
    give_metas_of(Invoke<F>::with(call), call, outs, nouts);
  });
}

// A gradient function takes the gradients of the results, the operator's arguments and, if it wants
// them, the results. Everything is boxed once more, in that order.
template <auto F>
tenon_status backward(const tenon_host*, const tenon_value* args, uint32_t nargs,
                      tenon_tensor* const* outs, tenon_tensor* const* grad_outs, uint32_t nouts,
                      uint64_t, tenon_value* grad_args, tenon_err* err, void* self) noexcept {
  const auto& op = *static_cast<const Described*>(self);
  return run_body(op, err, call::Frame::kAboveLayers, [&] {
    constexpr size_t kArguments = ShapeOfFunction<F>::arguments;
    tenon_value values[kArguments];
    for (size_t i = 0; i < kArguments; ++i) {
      if (i >= nouts && i < nouts + nargs) {
        values[i] = args[i - nouts];
        continue;
      }
      tenon_tensor* tensor = i < nouts ? grad_outs[i] : outs[i - nouts - nargs];
      values[i] = tensor ? boxed(tensor) : kNoValue;
    }
    give_gradients_of(Invoke<F>::with(Call{values, static_cast<uint32_t>(kArguments)}), op,
                      grad_args);
  });
}

}  // namespace tenon::extension

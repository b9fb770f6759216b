// SPDX-License-Identifier: Apache-2.0
// From what a C++ function returns to results of an operator. Part of tenon/extension.hpp.
#pragma once

#include <tenon/extension/argument.hpp>

#include <tuple>

namespace tenon {

// What a shape rule says about one result: a shape, and a dtype unless it is the first tensor's.
struct Meta {
  std::vector<int64_t> shape;
  int32_t dtype = -1;

  Meta(std::vector<int64_t> sizes, int32_t dtype_id = -1)
      : shape(std::move(sizes)), dtype(dtype_id) {}
  // The shape and dtype of this tensor.
  Meta(const Tensor& like) : shape(like->shape, like->shape + like->ndim), dtype(like->dtype) {}
};

namespace extension {

struct Described;  // an operator, in the library

// Items that a function returned, as an array: take(items, count). Tensors, Metas or gradients.
template <class Item, class Take>
void with_items(Item&& item, Take&& take) {
  take(&item, size_t{1});
}
template <class Item, class Take>
void with_items(std::vector<Item>&& items, Take&& take) {
  take(items.data(), items.size());
}
template <class Item, size_t N, class Take>
void with_items(std::array<Item, N>&& items, Take&& take) {
  take(items.data(), N);
}
template <class Item, class... Items, class Take>
requires(std::same_as<Item, Items>&&...) void with_items(std::tuple<Item, Items...>&& items,
                                                         Take&& take) {
  std::apply(
      [&](auto&... each) {
        Item array[] = {std::move(each)...};
        take(array, 1 + sizeof...(Items));
      },
      items);
}
template <class Item, class Take>
void with_items(std::pair<Item, Item>&& items, Take&& take) {
  Item array[] = {std::move(items.first), std::move(items.second)};
  take(array, size_t{2});
}

// How many items there are; -1: that is known when the function has returned.
template <class T>
inline constexpr int kCount = 1;
template <class T>
inline constexpr int kCount<std::vector<T>> = -1;
template <>
inline constexpr int kCount<std::vector<int64_t>> = 1;  // a shape
template <class T, size_t N>
inline constexpr int kCount<std::array<T, N>> = static_cast<int>(N);
template <class... T>
inline constexpr int kCount<std::tuple<T...>> = static_cast<int>(sizeof...(T));
template <class T, class U>
inline constexpr int kCount<std::pair<T, U>> = 2;

// Results of a composite, or of a function that stands for the whole operator.
void give(Tensor* tensors, size_t count, const Described& op, const Call& call, tenon_value* outs,
          uint32_t nouts);
// Results of a kernel that returns tensors: they become the operator's own, or are copied into
// those that the host has made by the shape rule.
void give_from_kernel(Tensor* tensors, size_t count, const KernelContext& context, const Call& call,
                      tenon_value* outs, uint32_t nouts);
void give_metas(const Meta* metas, size_t count, const Call& call, tenon_meta* outs,
                uint32_t nouts);
// One gradient for each tensor parameter; of a Tensor[] parameter, a list.
void give_gradients(tenon_value* gradients, size_t count, const Described& op,
                    tenon_value* grad_args);
// Owned by the value until it is given or released.
tenon_value boxed_gradient(Tensor&& gradient);
tenon_value boxed_gradient(std::optional<Tensor>&& gradient);
tenon_value boxed_gradient(std::vector<Tensor>&& gradients);
void give_gradient_vector(std::vector<Tensor>&& gradients, const Described& op,
                          tenon_value* grad_args);

template <class Returned>
void give_metas_of(Returned&& returned, const Call& call, tenon_meta* outs, uint32_t nouts) {
  if constexpr (std::convertible_to<Returned, Meta>) {
    const Meta meta(std::move(returned));
    give_metas(&meta, 1, call, outs, nouts);
  } else {
    with_items(std::move(returned), [&](const Meta* metas, size_t count) {
      give_metas(metas, count, call, outs, nouts);
    });
  }
}

template <class Gradient>
void give_gradients_of(Gradient&& gradient, const Described& op, tenon_value* grad_args) {
  tenon_value value = boxed_gradient(std::move(gradient));
  give_gradients(&value, 1, op, grad_args);
}
inline void give_gradients_of(std::vector<Tensor>&& gradients, const Described& op,
                              tenon_value* grad_args) {
  give_gradient_vector(std::move(gradients), op, grad_args);
}
template <size_t N>
void give_gradients_of(std::array<Tensor, N>&& gradients, const Described& op,
                       tenon_value* grad_args) {
  tenon_value values[N];
  for (size_t i = 0; i < N; ++i) values[i] = boxed_gradient(std::move(gradients[i]));
  give_gradients(values, N, op, grad_args);
}
template <class... Items>
void give_gradients_of(std::tuple<Items...>&& gradients, const Described& op,
                       tenon_value* grad_args) {
  std::apply(
      [&](auto&... each) {
        tenon_value values[] = {boxed_gradient(std::move(each))...};
        give_gradients(values, sizeof...(Items), op, grad_args);
      },
      gradients);
}
template <class First, class Second>
void give_gradients_of(std::pair<First, Second>&& gradients, const Described& op,
                       tenon_value* grad_args) {
  tenon_value values[] = {boxed_gradient(std::move(gradients.first)),
                          boxed_gradient(std::move(gradients.second))};
  give_gradients(values, 2, op, grad_args);
}

}  // namespace extension
}  // namespace tenon

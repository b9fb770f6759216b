// SPDX-License-Identifier: Apache-2.0
// Whether two function pointers are called alike: equally many parameters of the same sizes, passed in
// the same registers. The plugins declare handles and addresses of the vendors as void*, and
// enumerations as int.
#pragma once

#include <type_traits>

template <class A, class B>
constexpr bool kIsPassedAlike =
    sizeof(A) == sizeof(B) && std::is_floating_point_v<A> ==
                                  std::is_floating_point_v<B>&& std::is_class_v<A> ==
                                  std::is_class_v<B>;

template <class A, class B>
constexpr bool kIsSameCall = false;

template <class R, class... P, class S, class... Q>
requires(sizeof...(P) == sizeof...(Q)) constexpr bool kIsSameCall<R (*)(P...), S (*)(Q...)> =
    kIsPassedAlike<R, S> && (kIsPassedAlike<P, Q> && ...);

#define CHECK_CALL(result, ours, parameters, theirs)                  \
  static_assert(kIsSameCall<result(*) parameters, decltype(&theirs)>, \
                #theirs " is declared otherwise in the vendor's header");

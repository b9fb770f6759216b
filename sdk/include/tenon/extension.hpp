// SPDX-License-Identifier: Apache-2.0
// Operators from C++ functions, defined at run time by the text of their signatures:
//
//   #include <tenon/extension.hpp>
//   using namespace tenon;
//
//   // In terms of other operators: runs on every device, and its gradient comes from its parts.
//   Tensor swiglu(const Tensor& x, const Tensor& g, double limit) {
//     return ops::silu(ops::clamp(x, {}, limit)) * g;
//   }
//
//   // A kernel: results are made by the shape rule, arguments arrive contiguous.
//   template <class T>
//   void scale(View<const T> x, double by, View<T> out) {
//     for (int64_t i = 0; i < x.size(); ++i) out[i] = static_cast<T>(x[i] * by);
//   }
//   Tensor scale_grad(const Tensor& dout, Unread, double by) { return dout * by; }
//
//   TENON_OPERATORS(acme, m) {
//     m.def<swiglu>("swiglu(Tensor x, Tensor g, *, float limit=7.0) -> Tensor");
//     m.def("scale(Tensor x, float by) -> Tensor")
//         .elementwise()
//         .kernel<scale<float>>("cpu")
//         .kernel<scale<double>>("cpu")
//         .grad<scale_grad>();
//   }
//
// Built by tenon.utils.cpp_extension. One TENON_OPERATORS in a library; its functions may lie in
// others of its sources.
//
// What a function may be:
//
//   m.def<F>(signature)            F calls operators, and gradients and other layers see those
//   m.def<F>(signature).grad<G>()  F stands for the whole operator, and G is its gradient
//   .kernel<F>(device)             F computes on a device's memory
//
// Without .like, .shape or .elementwise the shape of the result is not known before the function
// has run: such operators return tensors of their own, and cannot run on the device `meta`.
//
// Parameters: those of the signature, in its order, by value or const reference.
//
//   Tensor    Tensor, std::optional<Tensor>, TensorArg (which keeps a number a number);
//             in kernels also View<const T> and TensorView
//   Tensor[]  std::vector<Tensor>, TensorList
//   int       int64_t, int
//   float     double, float
//   bool      bool
//   Scalar    ScalarArg
//   str       std::string, std::string_view
//   dtype     Dtype
//   device    Device
//   int[]     std::vector<int64_t>, std::span<const int64_t>, IntList
//   float[]   std::vector<double>, std::span<const double>, FloatList
//
// and std::optional of these where the signature has `?`. Checked when the library is loaded.
//
// Results: Tensor; std::tuple, std::pair, std::array or std::vector of them for several.
//
// Ownership: arguments are borrowed for the call; what is returned is handed over.
// Threads: a function may be called from several at once.
// Errors: throw. tenon::Error picks the code, std::bad_alloc is TENON_OUT_OF_MEMORY,
// std::invalid_argument TENON_INVALID_ARGUMENT. Nothing crosses the boundary.
#pragma once

#include <tenon/extension/cpu_note.hpp>
#include <tenon/extension/operators.hpp>

// The build defines the name and the version of the plugin.
#ifndef TENON_PLUGIN_NAME
#error "build this with tenon.utils.cpp_extension, which says the name and version of the plugin"
#endif

// The table's name is the note's: a build may give the library another one afterwards.
#define TENON_OPERATORS(NAMESPACE, MODULE)                                                       \
  static void tenon_define_operators_(::tenon::Operators& MODULE);                               \
  TENON_PLUGIN_NOTE(TENON_PLUGIN_NAME, TENON_PLUGIN_VERSION,                                     \
                    "{\"kind\":\"operators\",\"namespaces\":[\"" #NAMESPACE "\"]" TENON_NOTE_CPU \
                    "}");                                                                        \
  extern "C" TENON_EXPORT const tenon_plugin* tenon_plugin_query(                                \
      uint32_t host_min, uint32_t host_max, const tenon_host* host, tenon_err* err) {            \
    return ::tenon::extension::query(                                                            \
        {tenon_plugin_note_.name, tenon_plugin_note_.version, #NAMESPACE},                       \
        tenon_define_operators_, host_min, host_max, host, err);                                 \
  }                                                                                              \
  static void tenon_define_operators_([[maybe_unused]] ::tenon::Operators& MODULE)

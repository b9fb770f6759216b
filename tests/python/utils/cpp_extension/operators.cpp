// SPDX-License-Identifier: Apache-2.0
// Operators of every form, for test_cpp_extension.py.
#include <tenon/extension.hpp>

#include <cmath>
#include <cstdlib>

namespace {

using namespace tenon;

Tensor swiglu(const Tensor& x, const Tensor& g, double limit) {
  return ops::silu(ops::minimum(x, limit)) * g;
}

// One number that every argument has a share in.
Tensor fingerprint(const Tensor& x, const std::optional<Tensor>& y, const std::vector<Tensor>& list,
                   int64_t i, double f, bool b, ScalarArg s, const std::string& text, Dtype dtype,
                   const std::vector<int64_t>& ints, std::span<const double> floats,
                   std::optional<int64_t> maybe_int, std::optional<double> maybe_float,
                   std::optional<std::string_view> maybe_text, std::optional<Dtype> maybe_dtype,
                   std::optional<Device> maybe_device,
                   std::optional<std::vector<int64_t>> maybe_ints,
                   const std::optional<FloatList>& maybe_floats) {
  Tensor sum = x + static_cast<double>(i) + f + (b ? 1000.0 : 0.0) + s.number();
  if (y) sum = sum + *y;
  for (const Tensor& tensor : list) sum += tensor;
  double more = static_cast<double>(text.size()) * 0.5 + dtype.id;
  for (int64_t item : ints) more += static_cast<double>(item);
  for (double item : floats) more += item;
  if (maybe_int) more += 1e4;
  if (maybe_float) more += 2e4;
  if (maybe_text) more += 4e4;
  if (maybe_dtype) more += 8e4;
  if (maybe_device) more += 16e4;
  if (maybe_ints) more += 32e4;
  if (maybe_floats) more += 64e4;
  return sum + more;
}

template <class T>
void cube(View<const T> x, View<T> out) {
  for (int64_t i = 0; i < x.size(); ++i) out[i] = x[i] * x[i] * x[i];
}
Tensor cube_grad(const Tensor& dout, const Tensor& x) { return dout * (x * x * 3); }

template <class T>
void scale(KernelContext& context, View<const T> x, double by, View<T> out) {
  T* copy = context.scratch<T>(x.size());
  context.parallel(x.size(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) copy[i] = x[i];
    for (int64_t i = begin; i < end; ++i) out[i] = static_cast<T>(copy[i] * by);
  });
}
Tensor scale_grad(const Tensor& dout, Unread, double by) { return dout * by; }

// Several results, any dtype; the gradients of unused results are absent.
void bounds(TensorView x, Tensor& low, Tensor& high) {
  dispatch<float, double>(x.dtype(), [&]<class T>() {
    View<const T> from(x);
    *static_cast<T*>(low->data) = *static_cast<T*>(high->data) = from[0];
    for (T item : from) {
      *static_cast<T*>(low->data) = std::min(*static_cast<T*>(low->data), item);
      *static_cast<T*>(high->data) = std::max(*static_cast<T*>(high->data), item);
    }
  });
}
std::pair<Meta, Meta> bounds_shape(const Tensor& x) {
  if (x->numel == 0) throw Error(TENON_INVALID_ARGUMENT, "expected a tensor with elements");
  Meta scalar({}, x->dtype);
  return {scalar, scalar};
}
Tensor bounds_grad(const std::optional<Tensor>& dlow, const std::optional<Tensor>& dhigh,
                   const Tensor& x, const Tensor& low, const Tensor& high) {
  Tensor gradient = ops::zeros_like(x);
  if (dlow) gradient = gradient + ops::where(ops::equal(x, low), *dlow, 0.0);
  if (dhigh) gradient = gradient + ops::where(ops::equal(x, high), *dhigh, 0.0);
  return gradient;
}

std::vector<Tensor> twice_each(const std::vector<Tensor>& list) {
  std::vector<Tensor> results;
  for (const Tensor& tensor : list) results.push_back(tensor * 2);
  return results;
}

// The whole operator is a function: its shape is not known before the call, and it has its own gradient.
Tensor doubled(const Tensor& x) { return x * 2; }
Tensor doubled_grad(const Tensor& dout, const ShapeOnly& x) {
  const IntList shape(x->shape, static_cast<uint64_t>(x->ndim));
  return ops::full(shape, 20.0, x->dtype, dout->device) * dout;
}
Tensor same(const Tensor& x) { return x; }
Tensor same_grad(const Tensor& dout, Unread) { return dout; }

// Allocates its own results; calls operators, which are no business of gradients here.
Tensor positive(const Tensor& x) { return ops::masked_select(x, x > 0); }
Tensor positive_grad(const Tensor& dout, const Tensor& x) {
  return ops::masked_scatter(ops::zeros_like(x), x > 0, dout);
}
Tensor copy_by_kernel(const Tensor& x) { return x * 1; }

Tensor sum_all(const std::vector<Tensor>& list) {
  Tensor sum = list.at(0);
  for (size_t i = 1; i < list.size(); ++i) sum = sum + list[i];
  return sum;
}
std::vector<Tensor> sum_all_grad(const Tensor& dout, const TensorList& list) {
  return std::vector<Tensor>(list.size(), dout);
}

Tensor exponential(const Tensor& x) { return ops::exp(x); }
Tensor exponential_grad(const Tensor& dout, Unread, const Tensor& out) { return dout * out; }

Tensor raise(const Tensor& x, std::string_view what) {
  if (what == "runtime_error") throw std::runtime_error("out of patience");
  if (what == "bad_alloc") throw std::bad_alloc();
  if (what == "invalid_argument") throw std::invalid_argument("not that");
  if (what == "out_of_range") throw std::out_of_range("too far");
  if (what == "error") throw Error(TENON_UNSUPPORTED, "not here");
  if (what == "int") throw 42;
  if (what == "operator") return ops::matmul(x, ops::ones({7, 7}));
  if (what == "empty") return {};
  if (what == "forgiven") {
    try {
      return ops::matmul(x, ops::ones({7, 7}));
    } catch (const Error&) {
      return x + 1;
    }
  }
  return x;
}
void raise_in_kernel(KernelContext& context, TensorView x, bool in_pool, Tensor& out) {
  if (!in_pool) throw std::runtime_error("the kernel gave up");
  (void)out;
  context.parallel(x.size(),
                   [](int64_t, int64_t) { throw std::runtime_error("a thread gave up"); });
}
void assign(const Tensor& x, Tensor& out) { out = x; }
Tensor wrong_shape(const Tensor& x) { return ops::sum(x); }
Tensor wrong_shape_grad(const Tensor& dout, Unread) { return dout; }

Tensor one_grad(const Tensor& dout, Unread, Unread, double) { return dout; }
Tensor strict_grad(const Tensor& dlow, const Tensor& dhigh, Unread) { return dlow + dhigh; }

// What the host refuses: one at a time, chosen by the environment.
void define_wrongly(Operators& m, std::string_view what) {
  if (what == "count") m.def<swiglu>("f(Tensor x, Tensor g) -> Tensor");
  if (what == "type") m.def<swiglu>("f(Tensor x, Tensor g, int limit) -> Tensor");
  if (what == "optional") m.def<swiglu>("f(Tensor x, Tensor? g, float limit) -> Tensor");
  if (what == "results") m.def<doubled>("f(Tensor x) -> (Tensor a, Tensor b)");
  if (what == "schema") m.def<doubled>("f(Tensr x) -> Tensor");
  if (what == "namespace") m.def<doubled>("tenon::f(Tensor x) -> Tensor");
  if (what == "empty") m.def("f(Tensor x) -> Tensor");
  if (what == "shape") m.def("f(Tensor x) -> Tensor").kernel<cube<float>>("cpu");
  if (what == "kernel") m.def<doubled>("f(Tensor x) -> Tensor").kernel<copy_by_kernel>("cpu");
  if (what == "like") m.def("f(Tensor x) -> Tensor").like("y").kernel<cube<float>>("cpu");
  if (what == "grad") m.def<doubled>("f(Tensor x) -> Tensor").grad<swiglu>();
  if (what == "gradients")
    m.def<swiglu>("f(Tensor x, Tensor g, float limit) -> Tensor").grad<one_grad>();
  if (what == "absent")
    m.def("f(Tensor x) -> (Tensor a, Tensor b)").kernel<bounds>("cpu").grad<strict_grad>();
  if (what == "throw") throw std::runtime_error("no operators today");
}

}  // namespace

TENON_OPERATORS(extension_test, m) {
  if (const char* what = std::getenv("EXTENSION_TEST_FAULT")) return define_wrongly(m, what);
  m.def<swiglu>("swiglu(Tensor x, Tensor g, *, float limit=7.0) -> Tensor").doc("A gated unit.");
  m.def<fingerprint>(
      "fingerprint(Tensor x, Tensor? y, Tensor[] list, *, int i=1, float f=0.25, bool b=true, "
      "Scalar s=2, str text='abc', dtype dtype=float32, int[] ints=[1, 2], float[] floats=[0.5], "
      "int? maybe_int=none, float? maybe_float=none, str? maybe_text=none, dtype? "
      "maybe_dtype=none, "
      "device? maybe_device=none, int[]? maybe_ints=none, float[]? maybe_floats=none) -> Tensor");
  m.def("cube(Tensor x) -> Tensor")
      .elementwise()
      .kernel<cube<float>>("cpu")
      .kernel<cube<double>>("cpu")
      .grad<cube_grad>();
  m.def("scale(Tensor x, float by) -> Tensor")
      .like("x")
      .in_place()
      .kernel<scale<float>>("cpu")
      .kernel<scale<double>>("cpu")
      .grad<scale_grad>();
  m.def("bounds(Tensor x) -> (Tensor low, Tensor high)")
      .shape<bounds_shape>()
      .kernel<bounds>("cpu", {.dtypes = dtypes<float, double>})
      .grad<bounds_grad>();
  m.def<twice_each>("twice_each(Tensor[] list) -> Tensor[]");
  m.def<doubled>("doubled(Tensor x) -> Tensor").grad<doubled_grad>();
  m.def<same>("same(Tensor x) -> Tensor").grad<same_grad>();
  m.def("positive(Tensor x) -> Tensor").kernel<positive>("cpu").grad<positive_grad>();
  m.def("copied(Tensor x) -> Tensor").like("x").kernel<copy_by_kernel>("cpu");
  m.def<sum_all>("sum_all(Tensor[] list) -> Tensor").grad<sum_all_grad>();
  m.def<exponential>("exponential(Tensor x) -> Tensor").like("x").grad<exponential_grad>();
  m.def("indices(Tensor x) -> Tensor").like("x").kernel<copy_by_kernel>("cpu").no_grad();
  m.def<raise>("raise_error(Tensor x, str what) -> Tensor");
  m.def("raise_in_kernel(Tensor x, bool in_pool) -> Tensor")
      .like("x")
      .kernel<raise_in_kernel>("cpu");
  m.def("assign(Tensor x) -> Tensor").like("x").kernel<assign>("cpu");
  m.def<wrong_shape>("wrong_shape(Tensor x) -> Tensor").like("x").grad<wrong_shape_grad>();
}

// SwiGLU for PyTorch, in C++: a kernel, its gradient, the autograd function that joins them, a shape rule.
#include <torch/extension.h>
#include <torch/library.h>

#include <cmath>

at::Tensor swiglu_cpu(const at::Tensor& x_in, const at::Tensor& g_in) {
  TORCH_CHECK(x_in.sizes() == g_in.sizes() && x_in.dtype() == g_in.dtype());
  at::Tensor x = x_in.contiguous(), g = g_in.contiguous(), out = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "swiglu", [&] {
    const scalar_t *xs = x.data_ptr<scalar_t>(), *gs = g.data_ptr<scalar_t>();
    scalar_t* outs = out.data_ptr<scalar_t>();
    at::parallel_for(0, x.numel(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) outs[i] = xs[i] / (1 + std::exp(-xs[i])) * gs[i];
    });
  });
  return out;
}

at::Tensor swiglu_meta(const at::Tensor& x, const at::Tensor& g) { return at::empty_like(x); }

at::Tensor swiglu(const at::Tensor& x, const at::Tensor& g) {
  static auto op = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("bench::swiglu_cpp", "")
                       .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
  return op.call(x, g);
}

struct Swiglu : torch::autograd::Function<Swiglu> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x,
                            const at::Tensor& g) {
    at::AutoDispatchBelowADInplaceOrView below;
    ctx->save_for_backward({x, g});
    return swiglu(x, g);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list douts) {
    auto saved = ctx->get_saved_variables();
    at::Tensor x = saved[0], g = saved[1], s = at::sigmoid(x);
    return {douts[0] * g * s * (1 + x * (1 - s)), douts[0] * x * s};
  }
};

at::Tensor swiglu_autograd(const at::Tensor& x, const at::Tensor& g) { return Swiglu::apply(x, g); }

TORCH_LIBRARY(bench, m) { m.def("swiglu_cpp(Tensor x, Tensor g) -> Tensor"); }
TORCH_LIBRARY_IMPL(bench, CPU, m) { m.impl("swiglu_cpp", swiglu_cpu); }
TORCH_LIBRARY_IMPL(bench, Meta, m) { m.impl("swiglu_cpp", swiglu_meta); }
TORCH_LIBRARY_IMPL(bench, Autograd, m) { m.impl("swiglu_cpp", swiglu_autograd); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}

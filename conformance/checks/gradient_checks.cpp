// SPDX-License-Identifier: Apache-2.0
// Gradients computed on the device against finite differences, which are taken on the CPU in
// float64. An operator whose gradient the CPU does not get right there (a kink, a jump) is left
// out: that is no matter of the device.
#include <tenon/services/autograd.h>

#include <cmath>
#include <cstring>

#include "operators/subjects.hpp"
#include "operators/values.hpp"

namespace tenon::kit {
namespace {

constexpr double kStep = 1e-5;

const tenon_autograd_api* autograd() {
  return static_cast<const tenon_autograd_api*>(
      real_host()->service_find(TENON_AUTOGRAD_SERVICE, TENON_AUTOGRAD_VERSION));
}

// Numbers that no operator is made for.
double weight(size_t i) { return std::cos(1.7 * double(i) + 0.3); }
double direction(size_t i) { return std::sin(2.3 * double(i) + 0.7); }

bool is_differentiable(const Tensor& tensor) { return is_floating(tensor->dtype); }

Tensor filled(Engine& engine, const Tensor& like, int32_t dtype, double (*value)(size_t)) {
  Tensor result = engine.create(engine.cpu(), TENON_DTYPE_F64, shape_of(like));
  for (int64_t i = 0; i < result->numel; ++i)
    static_cast<double*>(result->data)[i] = value(static_cast<size_t>(i));
  return engine.cast(result, dtype);
}

// Sum of weighted results, for arguments that lie in the CPU's memory as float64.
double weighted_sum(Engine& engine, const tenon_op* op, const Values& args) {
  Answer answer = engine.call(op, args);
  double sum = 0;
  for (const Tensor& out : answer.outs) {
    if (!is_differentiable(out)) continue;
    std::vector<double> values = numbers(engine, out);
    for (size_t i = 0; i < values.size(); ++i) sum += values[i] * weight(i);
  }
  return answer.ok() ? sum : std::nan("");
}

void move(std::vector<Tensor>& sources, double step) {
  for (Tensor& source : sources) {
    if (!is_differentiable(source)) continue;
    for (int64_t i = 0; i < source->numel; ++i)
      static_cast<double*>(source->data)[i] += step * direction(static_cast<size_t>(i));
  }
}

struct Slope {
  tenon_status status = TENON_OK;
  std::string error;
  double value = 0;
};

// The derivative along `direction`, from gradients where `args` lie.
Slope slope_by_gradients(Engine& engine, const tenon_op* op, const Values& args,
                         const std::vector<Tensor>& inputs) {
  Slope slope;
  Error error;
  std::vector<tenon_tensor*> outs, weights, wanted;
  for (const Tensor& input : inputs) {
    if (!is_differentiable(input)) continue;
    autograd()->set_requires_grad(input.get(), 1, error);
    wanted.push_back(input.get());
  }
  Answer answer = engine.call(op, args);
  slope.status = answer.status;
  slope.error = answer.error;
  if (!answer.ok()) return slope;
  std::vector<Tensor> kept;
  for (const Tensor& out : answer.outs) {
    if (!is_differentiable(out) || !autograd()->requires_grad(out.get())) continue;
    kept.push_back(engine.on(out->device, filled(engine, out, out->dtype, weight)));
    outs.push_back(out.get());
    weights.push_back(kept.back().get());
  }
  if (outs.empty()) {
    slope.status = TENON_UNSUPPORTED;
    return slope;
  }
  std::vector<tenon_tensor*> grads(wanted.size());
  slope.status = autograd()->gradients(
      outs.data(), weights.data(), static_cast<uint32_t>(outs.size()), wanted.data(),
      static_cast<uint32_t>(wanted.size()), grads.data(), TENON_BACKWARD_ALLOW_UNUSED, error);
  slope.error = error.text();
  if (slope.status != TENON_OK) return slope;
  for (tenon_tensor* grad : grads) {
    Tensor owned = Tensor::adopt(grad);
    if (!owned) continue;
    std::vector<double> values = numbers(engine, owned);
    for (size_t i = 0; i < values.size(); ++i) slope.value += values[i] * direction(i);
  }
  return slope;
}

bool is_near(double a, double b, double relative, double scale) {
  return std::abs(a - b) <= relative * (std::abs(b) + scale);
}

// One sample; false: nothing to check in it.
bool check_sample(Engine& engine, const Subject& subject, const Sample& sample, int32_t dtype) {
  Session& session = engine.session();
  session.step(sample.text + ": finite differences on the CPU");
  Arguments exact = make_arguments(engine, sample, TENON_DTYPE_F64);
  double here = weighted_sum(engine, sample.op, exact.cpu);
  move(exact.sources, kStep);
  double ahead = weighted_sum(engine, sample.op, exact.cpu);
  move(exact.sources, -2 * kStep);
  double behind = weighted_sum(engine, sample.op, exact.cpu);
  move(exact.sources, kStep);
  double wanted = (ahead - behind) / (2 * kStep);
  if (!std::isfinite(wanted)) return false;
  Slope on_cpu = slope_by_gradients(engine, sample.op, exact.cpu, exact.sources);
  if (on_cpu.status != TENON_OK || !is_near(on_cpu.value, wanted, 1e-5, 1 + std::abs(here)))
    return false;

  session.step(sample.text + ": gradients on the device");
  Arguments made = make_arguments(engine, sample, dtype);
  Slope on_device = slope_by_gradients(engine, sample.op, made.device, made.tensors);
  if (on_device.status == TENON_PERMISSION_DENIED) return false;  // some of it needs the host
  std::string what = text(sample.text, ", ", dtype_name(dtype), ": the gradient of ", subject.name);
  if (!session.expect(on_device.status == TENON_OK, what + " is computed, as on the CPU",
                      on_device.error))
    return true;
  double relative = dtype == TENON_DTYPE_F64 ? 1e-5 : 2e-3;
  session.expect(is_near(on_device.value, wanted, relative, 1 + 0.1 * std::abs(here)),
                 text(what, " along a direction: ", wanted), text(on_device.value),
                 "look at the operators that the gradient is made of: opdefs, `grad`");
  return true;
}

void finite_difference(Session& session) {
  Engine engine(session);
  if (!autograd()) session.absent("the plugin autograd is not beside this program");
  int checked = 0;
  auto check = [&](const Subject& subject) {
    if (subject.def().flags & (TENON_OP_NO_GRAD | TENON_OP_INTERNAL)) return;
    int32_t dtype = TENON_DTYPE_F32;
    bool runs = false;
    for (int32_t candidate : subject.dtypes) {
      runs |= candidate == TENON_DTYPE_F32 || candidate == TENON_DTYPE_F64;
      if (candidate == TENON_DTYPE_F64) dtype = candidate;
    }
    if (!runs) return;
    for (const Sample& sample : samples_of(subject.op, SampleKind::kGeneral)) {
      bool is_large = sample.text.find("[1025]") != std::string::npos;
      if (is_large || !check_sample(engine, subject, sample, dtype)) continue;
      ++checked;
      break;
    }
  };
  for_each_subject(engine, Route::kNative, check);
  if (!session.failures()) for_each_subject(engine, Route::kLowered, check);
  session.figure("gradients checked", checked, "operators");
}

}  // namespace

const Checks& gradient_checks() {
  static const Checks checks = {
      {"gradients.finite_difference", "Gradients on the device are slopes.",
       "tenon/services/autograd.h", "",
       "lifecycle.sync memory.copy_grid memory.copy_d2d memory.fill_grid ops.values ops.lowered",
       finite_difference},
  };
  return checks;
}

}  // namespace tenon::kit

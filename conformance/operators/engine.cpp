// SPDX-License-Identifier: Apache-2.0
#include "operators/engine.hpp"

#include <cstring>

#include "operators/shims.hpp"
#include "subject/device.hpp"

namespace tenon::kit {
namespace {

void append(void* user, const char* text, uint64_t bytes) {
  static_cast<std::string*>(user)->append(text, bytes);
}

}  // namespace

Engine::Engine(Session& session, const tenon_plugin* attached) : session_(session) {
  static const Engine* first = nullptr;  // whose devices a shared process goes on using
  if (first && are_devices_shared() && !attached) {
    device_ = first->device_;
    cpu_ = first->cpu_;
    cast_ = first->cast_;
    return;
  }
  attach(real_host());
  std::string kind;
  {
    Plugin plugin(session);
    kind = plugin.api().kind;
    if (!attached) shimmed_ = std::make_shared<ShimmedPlugin>(session, *plugin.table());
  }
  Error error;
  auto check = [&](tenon_status status, const std::string& what) {
    session_.require(status == TENON_OK, what, describe(status, error));
  };
  session.step("loading the operators and the CPU");
  check(host->plugin_load_default(error), "the operators and the CPU beside this program load");
  check(host->device_find("cpu", &cpu_, error), "the CPU opens");
  session.step("loading the plugin");
  check(host->plugin_attach(attached ? attached : shimmed_->table(), "conformance kit", error),
        "the host accepts the plugin");
  if (host->device_find((kind + ":0").c_str(), &device_, error) != TENON_OK)
    session.absent(kind + ":0 does not open: " + error.text());
  check(host->fallback_set_policy("deny", error), "the fallback policy can be set");
  cast_ = host->op_find("cast");
  session_.require(cast_, "the operators of the plugin standard_ops", "no operator `cast`");
  if (!are_devices_shared() || attached) return;
  first = new Engine(*this);  // never freed: the host keeps the table
}

Answer Engine::call(const tenon_op* op, Values args, const Tensors& given) {
  Answer answer;
  Values outs(host->op_def(op)->nouts, kNoValue);
  for (size_t i = 0; i < given.size() && i < outs.size(); ++i) outs[i] = boxed(given[i].get());
  Error error;
  answer.status = host->op_call(op, args.data(), static_cast<uint32_t>(args.size()), outs.data(),
                                static_cast<uint32_t>(outs.size()), error);
  answer.error = error.text();
  if (!answer.ok() || !given.empty()) return answer;
  for (const tenon_value& out : outs)
    answer.outs.push_back(Tensor::adopt(static_cast<tenon_tensor*>(out.v.p)));
  return answer;
}

std::string Engine::route(const tenon_op* op, int32_t dtype) {
  std::string json;
  Error error;
  if (host->op_explain(op, device_, dtype, append, &json, error) != TENON_OK) return "none";
  static const std::string kKey = "\"route\":\"";
  size_t at = json.find(kKey);
  if (at == std::string::npos) return "none";
  at += kKey.size();
  return json.substr(at, json.find('"', at) - at);
}

Tensor Engine::create(tenon_device_id device, int32_t dtype, const std::vector<int64_t>& shape) {
  tenon_tensor* out = nullptr;
  Error error;
  tenon_status status = host->tensor_create(device, dtype, static_cast<int32_t>(shape.size()),
                                            shape.data(), &out, error);
  if (status == TENON_OUT_OF_MEMORY) throw NoRoom{};
  session_.require(status == TENON_OK, "a tensor can be made", describe(status, error));
  return Tensor::adopt(out);
}

Tensor Engine::view(const Tensor& base, int32_t dtype, const std::vector<int64_t>& shape,
                    const std::vector<int64_t>& strides, int64_t offset) {
  tenon_tensor* out = nullptr;
  Error error;
  tenon_status status = host->tensor_view(base.get(), dtype, static_cast<int32_t>(shape.size()),
                                          shape.data(), strides.data(), offset, &out, error);
  session_.require(status == TENON_OK, "a view can be made", describe(status, error));
  return Tensor::adopt(out);
}

void Engine::copy(const Tensor& to, const Tensor& from) {
  Error error;
  tenon_status status = host->tensor_copy(to.get(), from.get(), error);
  if (status == TENON_PERMISSION_DENIED) {
    // A view of elements for which the device has no kernels, say a diagonal in float16: nothing
    // is required of the device there, and the host copies it.
    host->fallback_set_policy("allow", error);
    status = host->tensor_copy(to.get(), from.get(), error);
    host->fallback_set_policy("deny", error);
  }
  session_.require(status == TENON_OK, "tensors are copied between devices",
                   describe(status, error));
}

Tensor Engine::on(tenon_device_id device, const Tensor& source) {
  Tensor result = create(device, source->dtype, shape_of(source));
  copy(result, source);
  return result;
}

Tensor Engine::cast(const Tensor& on_cpu, int32_t dtype) {
  if (on_cpu->dtype == dtype) return on_cpu;
  Answer answer = call(cast_, {boxed(on_cpu.get()), boxed_dtype(dtype)});
  session_.require(answer.ok(), text("the CPU converts to ", dtype_name(dtype)), answer.error);
  return answer.outs[0];
}

void Engine::tally(bool was_compared) {
  Tally& mine = tallies_[session_.subject()];
  ++mine.tried;
  mine.compared += was_compared;
}

void Engine::conclude() {
  if (session_.failures() != 0) return;
  Tally all;
  std::string without;
  for (const auto& [subject, tally] : tallies_) {
    all.tried += tally.tried;
    all.compared += tally.compared;
    if (tally.compared == 0) without += (without.empty() ? "" : ", ") + subject;
  }
  if (all.tried == 0) session_.absent("the kit has no such sample of the device's kernels");
  session_.require(all.compared != 0, "a sample that runs on the device and on the CPU",
                   text("no sample ran: all ", all.tried, " failed on the CPU or left the device"),
                   "call the operators by hand: the kit has found out nothing about them");
  if (!without.empty()) session_.note("no sample ran of: " + without);
}

std::vector<int64_t> shape_of(const Tensor& tensor) {
  return {tensor->shape, tensor->shape + tensor->ndim};
}

std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0; step *= shape[i]) strides[i] = step;
  return strides;
}

const char* dtype_name(int32_t dtype) { return real_host()->dtype_name(dtype); }

bool is_floating(int32_t dtype) { return dtype >= TENON_DTYPE_F8E4M3 && dtype <= TENON_DTYPE_F64; }
bool is_complex(int32_t dtype) { return dtype == TENON_DTYPE_C64 || dtype == TENON_DTYPE_C128; }
bool is_integer(int32_t dtype) { return dtype >= TENON_DTYPE_U8 && dtype <= TENON_DTYPE_I64; }

}  // namespace tenon::kit

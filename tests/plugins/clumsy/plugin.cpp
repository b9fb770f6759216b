// SPDX-License-Identifier: Apache-2.0
// A package whose kernels do what kernels must not: for the tests of validation and of what is
// thrown.
#include <tenon/services/autograd.h>
#include <tenon/plugin.hpp>

#include <array>
#include <limits>
#include <new>
#include <stdexcept>

namespace clumsy {
namespace {

const tenon_tensor* in(const tenon_value* args) {
  return static_cast<const tenon_tensor*>(args[0].v.p);
}

float* data(const tenon_tensor* tensor) { return static_cast<float*>(tensor->data); }

// -- kernels: each computes x + 1, and one thing more or less ----------------------------------

enum class Fault {
  kNone,
  kPastEnd,
  kBeforeStart,
  kFarPast,
  kIntoInput,
  kSkipsLast,
  kWritesNothing,
  kMakesNan,
  kRounds,
};

template <Fault fault>
tenon_status plus_one(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                      uint32_t, tenon_err*) {
  const tenon_tensor* x = in(args);
  auto* out = static_cast<tenon_tensor*>(outs[0].v.p);
  if (fault == Fault::kWritesNothing) return TENON_OK;
  const int64_t count = out->numel - (fault == Fault::kSkipsLast);
  for (int64_t i = 0; i < count; ++i) data(out)[i] = data(x)[i] + 1;
  if (fault == Fault::kPastEnd) data(out)[out->numel] = 0;
  if (fault == Fault::kBeforeStart) data(out)[-1] = 0;
  if (fault == Fault::kFarPast) data(out)[out->numel + 1000] = 0;
  if (fault == Fault::kIntoInput) data(x)[1] = 7;
  if (fault == Fault::kMakesNan) data(out)[2] = std::numeric_limits<float>::quiet_NaN();
  // Only on the device that is not the host.
  const bool is_host = x->dl_device_type == 1;
  if (fault == Fault::kRounds && !is_host) data(out)[3] += 0.5f;
  (void)ctx;
  return TENON_OK;
}

// Positive elements; on the device that is not the host, all but the last of them.
tenon_status positive(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value*, uint32_t,
                      tenon_err* err) {
  const tenon_tensor* x = in(args);
  int64_t count = 0;
  for (int64_t i = 0; i < x->numel; ++i) count += data(x)[i] > 0;
  if (x->dl_device_type != 1) --count;
  tenon_tensor* out = nullptr;
  if (tenon_status status =
          tenon::host->output_alloc(ctx, 0, TENON_DTYPE_F32, 1, &count, &out, err))
    return status;
  for (int64_t i = 0, k = 0; i < x->numel && k < count; ++i)
    if (data(x)[i] > 0) data(out)[k++] = data(x)[i];
  return TENON_OK;
}

tenon_status throws_error(tenon_ctx*, const tenon_value*, uint32_t, tenon_value*, uint32_t,
                          tenon_err*) {
  throw std::runtime_error("the kernel blew up");
}
tenon_status throws_number(tenon_ctx*, const tenon_value*, uint32_t, tenon_value*, uint32_t,
                           tenon_err*) {
  throw 42;
}
tenon_status throws_memory(tenon_ctx*, const tenon_value*, uint32_t, tenon_value*, uint32_t,
                           tenon_err*) {
  throw std::bad_alloc();
}
tenon_status throws_on_pool(tenon_ctx*, const tenon_value*, uint32_t, tenon_value*, uint32_t,
                            tenon_err*) {
  auto chunk = [](void*, int64_t begin, int64_t) {
    if (begin > 0) throw std::runtime_error("a worker blew up");
  };
  tenon::host->parallel_for(0, 1 << 20, 1, chunk, nullptr);
  return TENON_OK;
}
int32_t can_run_throws(const tenon_value*, uint32_t) { throw std::runtime_error("no idea"); }
// Says that it can, and cannot.
tenon_status cannot(tenon_ctx*, const tenon_value*, uint32_t, tenon_value*, uint32_t, tenon_err*) {
  return TENON_UNSUPPORTED;
}
int32_t can_run_always(const tenon_value*, uint32_t) { return 1; }
int32_t can_run_never(const tenon_value*, uint32_t) { return 0; }

// -- shape rules and decompositions --------------------------------------------------------------

tenon_status same(const tenon_value* args, uint32_t, tenon_meta* outs, uint32_t, tenon_err*) {
  const tenon_tensor* x = in(args);
  outs[0].ndim = x->ndim;
  outs[0].dtype = x->dtype;
  outs[0].kind = TENON_META_NEW;
  for (int32_t axis = 0; axis < x->ndim; ++axis) outs[0].shape[axis] = x->shape[axis];
  return TENON_OK;
}
tenon_status infer_throws(const tenon_value*, uint32_t, tenon_meta*, uint32_t, tenon_err*) {
  throw std::runtime_error("no shape");
}
tenon_status infer_endless(const tenon_value*, uint32_t, tenon_meta* outs, uint32_t, tenon_err*) {
  outs[0] = {};
  outs[0].ndim = 1000;
  outs[0].dtype = TENON_DTYPE_F32;
  return TENON_OK;
}
tenon_status infer_negative(const tenon_value*, uint32_t, tenon_meta* outs, uint32_t, tenon_err*) {
  outs[0] = {};
  outs[0].ndim = 1;
  outs[0].dtype = TENON_DTYPE_F32;
  outs[0].shape[0] = -5;
  return TENON_OK;
}
tenon_status infer_no_dtype(const tenon_value*, uint32_t, tenon_meta* outs, uint32_t, tenon_err*) {
  outs[0] = {};
  outs[0].dtype = 99;
  return TENON_OK;
}

// A view that begins at its argument's end.
tenon_status infer_view_outside(const tenon_value* args, uint32_t nargs, tenon_meta* outs,
                                uint32_t nouts, tenon_err* err) {
  same(args, nargs, outs, nouts, err);
  outs[0].kind = TENON_META_VIEW;
  outs[0].view_of = 0;
  outs[0].offset = in(args)->numel;
  for (int32_t axis = 0; axis < outs[0].ndim; ++axis)
    outs[0].strides[axis] = in(args)->strides[axis];
  return TENON_OK;
}

template <const char* const& op>
tenon_status call_other(tenon_ctx*, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                        tenon_err* err) {
  tenon_value copy[1] = {args[0]};
  return tenon::host->op_call(tenon::host->op_find(op), copy, 1, outs, 1, err);
}
tenon_status decompose_throws(tenon_ctx*, const tenon_value*, uint32_t, tenon_value*, uint32_t,
                              tenon_err*) {
  throw std::runtime_error("no parts");
}
constexpr const char* kThrowing = "clumsy::throws_error";
constexpr const char* kOverrunning = "clumsy::past_end";

// -- the table -----------------------------------------------------------------------------------

struct Entry {
  const char* name;
  tenon_boxed_fn kernel;
  tenon_infer_fn infer = same;
  int32_t (*can_run)(const tenon_value*, uint32_t) = nullptr;
  tenon_boxed_fn decompose = nullptr;
  uint32_t flags = 0;
};
constexpr Entry kEntries[] = {
    {"good", plus_one<Fault::kNone>},
    {"past_end", plus_one<Fault::kPastEnd>},
    {"before_start", plus_one<Fault::kBeforeStart>},
    {"far_past", plus_one<Fault::kFarPast>},
    {"into_input", plus_one<Fault::kIntoInput>},
    {"skips_last", plus_one<Fault::kSkipsLast>},
    {"writes_nothing", plus_one<Fault::kWritesNothing>},
    {"makes_nan", plus_one<Fault::kMakesNan>},
    {"rounds", plus_one<Fault::kRounds>},
    {"positive", positive, nullptr, nullptr, nullptr, TENON_OP_DATA_DEPENDENT},
    {"throws_error", throws_error},
    {"throws_number", throws_number},
    {"throws_memory", throws_memory},
    {"throws_on_pool", throws_on_pool},
    {"can_run_throws", plus_one<Fault::kNone>, same, can_run_throws},
    {"can_run_lies", cannot, same, can_run_always},
    {"never_runs", plus_one<Fault::kNone>, same, can_run_never},
    {"infer_throws", plus_one<Fault::kNone>, infer_throws},
    {"infer_endless", plus_one<Fault::kNone>, infer_endless},
    {"infer_negative", plus_one<Fault::kNone>, infer_negative},
    {"infer_no_dtype", plus_one<Fault::kNone>, infer_no_dtype},
    {"view_outside", nullptr, infer_view_outside, nullptr, nullptr, TENON_OP_VIEW},
    {"lowered_to_throwing", nullptr, same, nullptr, call_other<kThrowing>},
    {"lowered_to_overrunning", nullptr, same, nullptr, call_other<kOverrunning>},
    {"decompose_throws", nullptr, same, nullptr, decompose_throws},
    {"rule_throws", plus_one<Fault::kNone>},
    {"rule_calls_throwing", plus_one<Fault::kNone>},
};
constexpr size_t kCount = std::size(kEntries);
constexpr const char* kDevices[] = {"cpu", "null"};

tenon_status rule_throws(const tenon_host*, const tenon_value*, uint32_t, tenon_tensor* const*,
                         tenon_tensor* const*, uint32_t, uint64_t, tenon_value*, tenon_err*) {
  throw std::runtime_error("no gradient today");
}
tenon_status rule_calls_throwing(const tenon_host* host, const tenon_value*, uint32_t,
                                 tenon_tensor* const*, tenon_tensor* const* grads, uint32_t,
                                 uint64_t, tenon_value* out, tenon_err* err) {
  tenon_value args[1] = {{TENON_VALUE_TENSOR, 0, {.p = grads[0]}}};
  return host->op_call(host->op_find(kThrowing), args, 1, out, 1, err);
}
constexpr tenon_grad_rule kRules[] = {
    {.struct_size = sizeof(tenon_grad_rule),
     .op = "clumsy::rule_throws",
     .diff_args = 1,
     .backward = rule_throws},
    {.struct_size = sizeof(tenon_grad_rule),
     .op = "clumsy::rule_calls_throwing",
     .diff_args = 1,
     .backward = rule_calls_throwing},
};

tenon_status start(const tenon_host* host, tenon_err* err) {
  auto* autograd = static_cast<const tenon_autograd_api*>(
      host->service_find(TENON_AUTOGRAD_SERVICE, TENON_AUTOGRAD_VERSION));
  for (const tenon_grad_rule& rule : kRules)
    if (autograd)
      if (tenon_status status = autograd->rule_register(&rule, err)) return status;
  return TENON_OK;
}

uint64_t hash(const char* text) {
  uint64_t value = 0xcbf29ce484222325u;
  for (; *text; ++text) value = (value ^ static_cast<unsigned char>(*text)) * 0x100000001b3u;
  return value;
}

struct Table {
  std::array<std::string, kCount> names, schemas;
  std::array<tenon_op_def, kCount> ops = {};
  std::array<tenon_kernel_def, std::size(kDevices)* kCount + 1> kernels = {};
  tenon_param_def param = {
      .name = "x", .kind = TENON_PARAM_TENSOR, .flags = 0, .default_value = {}};
  uint32_t nkernels = 0;
  tenon_plugin plugin = {};

  Table() {
    for (size_t i = 0; i < kCount; ++i) {
      const Entry& entry = kEntries[i];
      names[i] = std::string("clumsy::") + entry.name;
      schemas[i] = names[i] + "(Tensor x) -> Tensor";
      tenon_op_def& op = ops[i];
      op.struct_size = sizeof op;
      op.flags = entry.flags;
      op.name = names[i].c_str();
      op.schema = schemas[i].c_str();
      op.schema_hash = hash(op.schema);
      op.doc = "One more than `x`, badly.";
      op.origin = "clumsy/plugin.cpp:1";
      op.params = &param;
      op.nparams = 1;
      op.param_size = sizeof param;
      op.nouts = 1;
      op.dtype_mask = 1u << TENON_DTYPE_F32;
      op.infer = entry.infer;
      op.decompose = entry.decompose;
      for (const char* device : kDevices)
        if (entry.kernel) add(op.name, device, entry.kernel, entry.can_run);
    }
    add("clumsy::mistyped", "cpu", kEntries[0].kernel, nullptr);
    plugin.struct_size = sizeof plugin;
    plugin.revision = TENON_ABI_REVISION;
    plugin.name = "clumsy";
    plugin.version = "1.0.0";
    plugin.vendor = "Tenon";
    plugin.ops = ops.data();
    plugin.nops = kCount;
    plugin.op_size = sizeof(tenon_op_def);
    plugin.kernels = kernels.data();
    plugin.nkernels = nkernels;
    plugin.kernel_size = sizeof(tenon_kernel_def);
    plugin.start = start;
  }

  void add(const char* op, const char* device, tenon_boxed_fn boxed,
           int32_t (*can_run)(const tenon_value*, uint32_t)) {
    tenon_kernel_def& kernel = kernels[nkernels++];
    kernel.struct_size = sizeof kernel;
    kernel.op = op;
    kernel.device = device;
    kernel.dtype_mask = 1u << TENON_DTYPE_F32;
    kernel.boxed = boxed;
    kernel.can_run = can_run;
  }
};

const tenon_plugin& table() {
  static const Table made;
  return made.plugin;
}

}  // namespace
}  // namespace clumsy

TENON_PLUGIN(clumsy::table())

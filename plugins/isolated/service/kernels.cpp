// SPDX-License-Identifier: Apache-2.0
// Kernels of a proxy: one function forwards every call, whatever the operator.
#include <algorithm>
#include <array>
#include <limits>
#include <tenon/tensor.hpp>
#include <utility>

#include "service/encode.hpp"
#include "service/proxy.hpp"

namespace tenon::isolated {
namespace {

constexpr uint32_t kUnknown = ~uint32_t{0};
constexpr uint32_t kMaxOutputs = 8;  // of any operator: the host refuses more

// "[add]"
std::string bracketed_name(const tenon_op_def& def) {
  const std::string_view name = def.name;
  std::string text = "[";
  text += name.starts_with("tenon::") ? name.substr(7) : name;
  return text += ']';
}

// ---- calls ----

tenon_status put_arguments(Writer& message, const tenon_op_def& def, uint32_t kind,
                           const tenon_value* args, uint32_t nargs, tenon_err* err) {
  message.put(nargs);
  for (uint32_t i = 0; i < nargs; ++i)
    if (!put_value(message, args[i], kind, Scalars::kNumbers))
      return fail(err, TENON_UNSUPPORTED,
                  bracketed_name(def) + " argument `" + def.params[i].name +
                      "` cannot be passed to an isolated process");
  return TENON_OK;
}

// Results whose shapes only the process knew: memory for them here, and then a copy over there.
tenon_status collect(Request& call, tenon_ctx* ctx, tenon_device device, Reader answer,
                     uint32_t nouts, tenon_err* err) {
  tenon_tensor* results[kMaxOutputs] = {};
  tenon_status status = TENON_OK;
  for (uint32_t i = 0; i < nouts && status == TENON_OK; ++i) {
    const auto head = answer.get<TensorHead>();
    if (head.ndim > TENON_MAX_NDIM) return call.fail_answer(err);
    const int64_t* shape = answer.get_array<int64_t>(head.ndim);
    if (!shape) return call.fail_answer(err);
    int64_t sizes[TENON_MAX_NDIM];
    std::copy_n(shape, head.ndim, sizes);
    status = host->output_alloc(ctx, i, head.dtype, head.ndim, sizes, &results[i], err);
  }
  call.message().put(device->index);
  for (uint32_t i = 0; i < nouts; ++i) {
    const tenon_tensor none{};  // after a failure: the process drops what it has
    const tenon_tensor& target = status == TENON_OK ? *results[i] : none;
    call.message().put(reinterpret_cast<uint64_t>(target.data));
    call.message().put(target.byte_offset);
    call.message().put(static_cast<uint64_t>(target.numel) * host->dtype_size(target.dtype));
  }
  const tenon_status collected = call.run(Command::kCollect, status == TENON_OK ? err : nullptr);
  return status == TENON_OK ? collected : status;
}

tenon_status forward(tenon_ctx* ctx, const tenon_value* args, uint32_t nargs, tenon_value* outs,
                     uint32_t nouts, tenon_err* err) {
  tenon_device device = host->ctx_device(ctx);
  Proxy& proxy = *device->proxy;
  const tenon_op* op = host->ctx_op(ctx);
  const tenon_op_def& def = *host->op_def(op);
  const bool allocates = def.flags & TENON_OP_DATA_DEPENDENT;
  std::unique_lock random(proxy.random, std::defer_lock);
  RandomState state = {};
  if (def.flags & TENON_OP_RANDOM && !is_forked_child()) {
    random.lock();
    host->random_reserve(ctx, 0, &state.seed, &state.offset);
  }

  Request call(proxy.connection);
  Writer& message = call.message();
  message.put(device->index);
  message.put(proxy.operators[host->op_id(op)]);
  message.put(state);
  tenon_status status = put_arguments(message, def, proxy.kind, args, nargs, err);
  if (status != TENON_OK) return status;
  message.put(nouts);
  for (uint32_t i = 0; i < nouts && !allocates; ++i)
    put_tensor(message, *static_cast<const tenon_tensor*>(outs[i].v.p));

  status = call.run(Command::kCall, err);
  if (status != TENON_OK) {
    const std::string name = bracketed_name(def);
    if (err && !proxy.connection.is_usable()) host->err_context(err, name.data(), name.size());
    return status;
  }
  Reader answer = call.answer();
  const auto offset = answer.get<uint64_t>();
  if (random.owns_lock()) {
    RandomState reserved;
    host->random_reserve(ctx, offset - state.offset, &reserved.seed, &reserved.offset);
  }
  if (!allocates) return answer.ok() ? TENON_OK : call.fail_answer(err);
  return collect(call, ctx, device, answer, nouts, err);
}

// ---- whether a kernel serves these arguments ----

struct Decliner {
  std::atomic<Proxy*> proxy{nullptr};
  uint32_t row = 0;  // in the description
};
std::array<Decliner, kMaxDecliners> decliners;

// The device that a call is for: that of its tensors, or the one it names.
uint32_t device_index(const tenon_value* args, uint32_t nargs, uint32_t kind) {
  for (uint32_t i = 0; i < nargs; ++i) {
    const tenon_value& value = args[i];
    tenon_device_id id = TENON_DEVICE_NONE;
    if (value.tag == TENON_VALUE_TENSOR) id = static_cast<const tenon_tensor*>(value.v.p)->device;
    if (value.tag == TENON_VALUE_DEVICE) id = static_cast<tenon_device_id>(value.v.i);
    for (uint32_t k = 0; value.tag == TENON_VALUE_TENSORS && k < value.aux; ++k)
      if (auto* tensor = static_cast<tenon_tensor* const*>(value.v.p)[k]) id = tensor->device;
    if (id != TENON_DEVICE_NONE && TENON_DEVICE_KIND(id) == kind) return TENON_DEVICE_INDEX(id);
  }
  return kUnknown;
}

// Of a process that is gone, every kernel says yes: its call then fails with the reason.
[[gnu::noinline]] int32_t can_run(const Decliner& decliner, const tenon_value* args,
                                  uint32_t nargs) {
  Proxy* proxy = decliner.proxy.load(std::memory_order_acquire);
  if (!proxy) return 1;
  Request call(proxy->connection);
  call.message().put(decliner.row);
  call.message().put(device_index(args, nargs, proxy->kind));
  call.message().put(nargs);
  for (uint32_t i = 0; i < nargs; ++i)
    if (!put_value(call.message(), args[i], proxy->kind, Scalars::kTensors)) return 1;
  if (call.run(Command::kCanRun, nullptr) != TENON_OK) return 1;
  return call.answer().get<int32_t>();
}

template <uint32_t kIndex>
int32_t can_run_of(const tenon_value* args, uint32_t nargs) {
  return can_run(decliners[kIndex], args, nargs);
}

using CanRun = int32_t (*)(const tenon_value*, uint32_t);
template <uint32_t... kIndex>
constexpr std::array<CanRun, kMaxDecliners> make_can_run(
    std::integer_sequence<uint32_t, kIndex...>) {
  return {can_run_of<kIndex>...};
}
constexpr auto kCanRun = make_can_run(std::make_integer_sequence<uint32_t, kMaxDecliners>());

// With load() being one at a time.
CanRun take_decliner(Proxy& proxy, uint32_t row) {
  for (uint32_t index = 0; index < kMaxDecliners; ++index) {
    if (decliners[index].proxy.load(std::memory_order_relaxed)) continue;
    decliners[index].row = row;
    decliners[index].proxy.store(&proxy, std::memory_order_release);
    proxy.decliners.push_back(index);
    return kCanRun[index];
  }
  return nullptr;
}

// ---- the table ----

// Element types for which the process can make any tensor contiguous by itself.
uint64_t materialized_dtypes(const Proxy& proxy) {
  uint64_t mask = 0;
  for (const DescribedKernel& kernel : proxy.description.kernels) {
    const tenon_op* op = host->op_find(kernel.op.c_str());
    if (op && host->op_def(op)->flags & TENON_OP_MATERIALIZE &&
        !(kernel.row.flags & kRowMayDecline))
      mask |= kernel.row.dtype_mask;
  }
  return mask;
}

}  // namespace

tenon_status build_kernels(Proxy& proxy, tenon_err* err) {
  constexpr uint64_t kEveryDtype = (uint64_t{1} << TENON_DTYPE_COUNT) - 1;
  // Then it also prepares arguments by itself, within the one call, instead of in one call for each
  // step; the work and its results are the same.
  const bool prepares = (materialized_dtypes(proxy) & kEveryDtype) == kEveryDtype;
  constexpr uint32_t kPrepared = TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT |
                                 TENON_KERNEL_BROADCAST | TENON_KERNEL_HOST_SCALARS;
  proxy.operators.assign(host->op_count(), kUnknown);
  const auto& described = proxy.description.kernels;
  for (uint32_t i = 0; i < described.size(); ++i) {
    const KernelRow& row = described[i].row;
    const tenon_op* op = host->op_find(described[i].op.c_str());
    // Of an operator that is unknown here, or another one there: it would never be called, or
    // wrongly.
    if (!op || host->op_def(op)->schema_hash != row.schema_hash) continue;
    proxy.operators[host->op_id(op)] = row.op;
    tenon_kernel_def kernel = {};
    kernel.struct_size = sizeof kernel;
    kernel.traits = row.traits | (prepares ? kPrepared : 0);
    // New results would lie as the first argument does, which would take a copy.
    constexpr uint32_t kLaidOut =
        TENON_OP_ELEMENTWISE | TENON_OP_CONVERT | TENON_OP_MATERIALIZE | TENON_OP_STRIDED;
    if (!(host->op_def(op)->flags & kLaidOut) && !(row.traits & TENON_KERNEL_STRIDED_OUT))
      kernel.traits &= ~uint32_t{TENON_KERNEL_STRIDED_OUT};
    kernel.op = described[i].op.c_str();
    kernel.dtype_mask = row.dtype_mask;
    kernel.score = row.flags & kRowCompiled ? std::numeric_limits<int32_t>::min() : row.score;
    kernel.boxed = forward;
    if (row.flags & kRowMayDecline && !(kernel.can_run = take_decliner(proxy, i)))
      return fail(err, TENON_OUT_OF_RANGE,
                  "isolated: expected at most " + std::to_string(kMaxDecliners) +
                      " kernels that may decline, of all isolated plugins; unload one");
    proxy.kernels.push_back(kernel);
  }
  return TENON_OK;
}

void give_decliners_back(Proxy& proxy) {
  for (uint32_t index : proxy.decliners)
    decliners[index].proxy.store(nullptr, std::memory_order_release);
  proxy.decliners.clear();
}

}  // namespace tenon::isolated

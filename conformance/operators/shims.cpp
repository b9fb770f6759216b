// SPDX-License-Identifier: Apache-2.0
#include "operators/shims.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <utility>

#include "subject/watch.hpp"

namespace tenon::kit {
namespace {

// A boxed kernel has no pointer of its own to carry, so each gets a function of its own.
constexpr size_t kMaxKernels = 1024;

std::atomic<KernelForm> form{KernelForm::kTyped};
std::array<tenon_kernel_def, kMaxKernels> originals;
std::array<WatchedFunction, kMaxKernels> functions;
std::array<std::atomic<bool>, kMaxKernels> was_called;

template <size_t Index>
tenon_status shim(tenon_ctx* ctx, const tenon_value* args, uint32_t nargs, tenon_value* outs,
                  uint32_t nouts, tenon_err* err) {
  const tenon_kernel_def& original = originals[Index];
  was_called[Index] = true;
  Watch watch(functions[Index]);
  const tenon_host* host = real_host();
  const tenon_op_def* def = host->op_def(host->ctx_op(ctx));
  bool is_typed = form == KernelForm::kTyped && original.typed && def->invoke &&
                  original.schema_hash == def->schema_hash;
  return watch.status(is_typed ? def->invoke(original.typed, ctx, args, nargs, outs, nouts, err)
                               : original.boxed(ctx, args, nargs, outs, nouts, err));
}

template <size_t... Index>
constexpr std::array<tenon_boxed_fn, sizeof...(Index)> make_shims(std::index_sequence<Index...>) {
  return {&shim<Index>...};
}
constexpr auto kShims = make_shims(std::make_index_sequence<kMaxKernels>());

// The plugin's own functions. One plugin is under test at a time.
tenon_device_api device_functions;
tenon_pool_api pool_functions;

// As floats, these bytes are a large number.
constexpr unsigned char kDirt = 0x7b;
constexpr uint64_t kMaxDirt = 16 << 20;  // bytes of one allocation: all of them would take long

tenon_status make_dirty(tenon_device device, const tenon_alloc_request* request, void* memory,
                        tenon_err* err) {
  if (request->kind != TENON_ALLOC_DEVICE || request->bytes > kMaxDirt) return TENON_OK;
  return device_functions.fill(device, memory, 0, request->bytes, &kDirt, 1, request->stream, err);
}
tenon_status alloc_dirty(tenon_device device, const tenon_alloc_request* request, void** out,
                         tenon_err* err) {
  const tenon_status status = device_functions.alloc(device, request, out, err);
  return status == TENON_OK ? make_dirty(device, request, *out, err) : status;
}
tenon_status pool_alloc_dirty(tenon_device device, const tenon_alloc_request* request, void** out,
                              tenon_err* err) {
  const tenon_status status = pool_functions.pool_alloc(device, request, out, err);
  return status == TENON_OK ? make_dirty(device, request, *out, err) : status;
}

}  // namespace

void set_kernel_form(KernelForm wanted) { form = wanted; }

std::vector<tenon_kernel_def> kernels_of(const tenon_plugin& table) {
  std::vector<tenon_kernel_def> kernels;
  if (table.struct_size < offsetof(tenon_plugin, kernel_size) + sizeof(uint32_t)) return kernels;
  for (uint32_t i = 0; i < table.nkernels && table.kernels; ++i) {
    tenon_kernel_def kernel{};
    std::memcpy(&kernel,
                reinterpret_cast<const char*>(table.kernels) + size_t{i} * table.kernel_size,
                std::min<size_t>(table.kernel_size, sizeof kernel));
    kernels.push_back(kernel);
  }
  return kernels;
}

ShimmedPlugin::ShimmedPlugin(Session& session, const tenon_plugin& original)
    : kernels_(kernels_of(original)) {
  session.require(kernels_.size() <= kMaxKernels, text("at most ", kMaxKernels, " kernels"),
                  text(kernels_.size()), "this limit is the kit's, not the contract's");
  std::memcpy(&table_, &original, std::min<size_t>(original.struct_size, sizeof table_));
  table_.struct_size = sizeof table_;
  for (size_t i = 0; i < kernels_.size(); ++i) {
    originals[i] = kernels_[i];
    functions[i].name = originals[i].op;
    kernels_[i].struct_size = sizeof kernels_[i];
    kernels_[i].boxed = kShims[i];
    kernels_[i].typed = nullptr;
    kernels_[i].schema_hash = 0;
  }
  if (table_.device) {  // a table of this header's size: subject/guarded.hpp
    device_ = device_functions = *table_.device;
    device_.alloc = alloc_dirty;
    if (device_.pool) {
      pool_ = pool_functions = *device_.pool;
      pool_.pool_alloc = pool_alloc_dirty;
      device_.pool = &pool_;
    }
    table_.device = &device_;
  }
  table_.kernels = kernels_.data();
  table_.nkernels = static_cast<uint32_t>(kernels_.size());
  table_.kernel_size = sizeof(tenon_kernel_def);
}

std::vector<std::string> ShimmedPlugin::never_called() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < kernels_.size(); ++i)
    if (!was_called[i]) names.push_back(kernels_[i].op);
  return names;
}

}  // namespace tenon::kit

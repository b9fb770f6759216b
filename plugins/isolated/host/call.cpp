// SPDX-License-Identifier: Apache-2.0
// Operator calls. They go through this process's own host, which has the plugin's kernels, gives
// them scratch memory and converts what they cannot read.
#include <tenon/tensor.hpp>

#include "host/arguments.hpp"
#include "host/commands.hpp"

namespace tenon::isolated {
namespace {

constexpr uint32_t kMaxOutputs = 8;

}  // namespace

void Server::drop_results() {
  for (tenon_tensor* tensor : results_) host->tensor_release(tensor);
  results_.clear();
}

tenon_status Server::can_run(Reader& in, Writer& out) {
  auto can_run = vendor_.can_run(in.get<uint32_t>());
  if (!can_run) return fail(err_, TENON_INTERNAL, "no kernel with this number declines");
  const auto device = in.get<uint32_t>();
  Arguments arguments(device == ~uint32_t{0} ? nullptr : vendor_.find(device, err_));
  if (const tenon_status status = arguments.read(in, err_); status != TENON_OK) return status;
  out.put(can_run(arguments.values(), arguments.count()));
  return TENON_OK;
}

tenon_status Server::call(Reader& in, Writer& out) {
  drop_results();
  const OpenDevice* device = vendor_.find(in.get<uint32_t>(), err_);
  if (!device) return TENON_INTERNAL;
  const tenon_op* op = host->op_at(in.get<uint32_t>());
  if (!op) return fail(err_, TENON_INTERNAL, "no operator has this number");
  const bool allocates = host->op_def(op)->flags & TENON_OP_DATA_DEPENDENT;
  const bool is_random = host->op_def(op)->flags & TENON_OP_RANDOM;
  auto random = in.get<RandomState>();
  if (is_random) host->random_set(device->id, random.seed, random.offset);

  Arguments arguments(device);
  tenon_status status = arguments.read(in, err_);
  if (status != TENON_OK) return status;
  const auto nouts = in.get<uint32_t>();
  if (nouts > kMaxOutputs) return fail(err_, TENON_INTERNAL, "too many results");
  tenon_value outs[kMaxOutputs] = {};
  for (uint32_t i = 0; i < nouts && !allocates; ++i) {
    tenon_tensor* tensor = nullptr;
    status = arguments.read_tensor(in, &tensor, err_);
    if (status != TENON_OK) return status;
    outs[i] = boxed(tensor);
  }
  status = host->op_call(op, arguments.values(), arguments.count(), outs, nouts, err_);
  if (status != TENON_OK) return status;

  if (is_random) host->random_get(device->id, &random.seed, &random.offset);
  out.put(random.offset);
  for (uint32_t i = 0; i < nouts && allocates; ++i) {
    auto* tensor = static_cast<tenon_tensor*>(outs[i].v.p);
    results_.push_back(tensor);
    out.put(TensorHead{.dtype = tensor->dtype, .ndim = static_cast<uint8_t>(tensor->ndim)});
    out.put_array(tensor->shape, static_cast<uint64_t>(tensor->ndim));
  }
  return TENON_OK;
}

tenon_status Server::collect(Reader& in) {
  const OpenDevice* device = vendor_.find(in.get<uint32_t>(), err_);
  tenon_status status = device ? TENON_OK : TENON_INTERNAL;
  for (size_t i = 0; i < results_.size() && status == TENON_OK; ++i) {
    tenon_copy_request request = {};
    request.struct_size = sizeof request;
    request.direction = TENON_COPY_DEVICE_TO_DEVICE;
    request.dst = reinterpret_cast<void*>(in.get<uint64_t>());
    request.dst_offset = in.get<uint64_t>();
    request.bytes = in.get<uint64_t>();
    request.src = results_[i]->data;
    request.src_offset = results_[i]->byte_offset;
    if (request.bytes > 0) status = vendor_.api().copy(device->handle, &request, err_);
  }
  drop_results();
  return status;
}

}  // namespace tenon::isolated

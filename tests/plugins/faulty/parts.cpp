// SPDX-License-Identifier: Apache-2.0
#include "parts.hpp"

#include <cstdlib>
#include <cstring>

namespace {

tenon_device_s* const kHandle = reinterpret_cast<tenon_device_s*>(&host);

tenon_status enumerate(tenon_device_info* out, uint32_t, uint32_t* count, tenon_err*) {
  std::memset(out, 0, sizeof *out);
  out->struct_size = sizeof *out;
  std::strcpy(out->name, "Faulty device");
  *count = 1;
  return TENON_OK;
}
tenon_status open(uint32_t, tenon_device* out, tenon_err*) {
  *out = kHandle;
  return TENON_OK;
}
void close(tenon_device) {}
tenon_status alloc(tenon_device, const tenon_alloc_request* request, void** out, tenon_err*) {
  *out = std::aligned_alloc(request->align,
                            (request->bytes + request->align - 1) & ~(request->align - 1));
  return TENON_OK;
}
void release(tenon_device, void* memory, uint64_t, tenon_stream) { std::free(memory); }
tenon_status copy(tenon_device, const tenon_copy_request* request, tenon_err*) {
  std::memmove(request->dst, request->src, request->bytes);
  return TENON_OK;
}
tenon_status fill(tenon_device, void*, uint64_t, uint64_t, const void*, uint32_t, tenon_stream,
                  tenon_err*) {
  return TENON_OK;
}
tenon_status sync(tenon_device, tenon_stream, tenon_err*) { return TENON_OK; }

tenon_status twice(tenon_ctx*, const tenon_value*, uint32_t, tenon_value*, uint32_t, tenon_err*) {
  return TENON_OK;
}

tenon_status start(const tenon_host*, tenon_err* err) {
  return host->service_register("faulty", 1, &host, err);
}
tenon_status stop(tenon_err*) { return TENON_OK; }

}  // namespace

uint64_t schema_hash(const char* text) {
  uint64_t hash = 14695981039346656037u;
  for (; *text; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 1099511628211u;
  return hash;
}

void make_sound(Parts& parts) {
  static const char* const kOutNames[] = {"out"};
  parts = {};
  parts.device = {.struct_size = sizeof(tenon_device_api),
                  .kind = "faulty",
                  .enumerate = enumerate,
                  .open = open,
                  .close = close,
                  .alloc = alloc,
                  .free = release,
                  .copy = copy,
                  .fill = fill,
                  .sync = sync};
  parts.param = {.name = "x",
                 .kind = TENON_PARAM_TENSOR,
                 .flags = TENON_PARAM_FLAG_PROMOTE | TENON_PARAM_FLAG_BROADCAST};
  parts.op = {.struct_size = sizeof(tenon_op_def),
              .flags = TENON_OP_ELEMENTWISE,
              .name = "faulty::twice",
              .schema = "faulty::twice(Tensor x) -> Tensor",
              .schema_hash = schema_hash("faulty::twice(Tensor x) -> Tensor"),
              .doc = "Twice `x`.",
              .origin = "parts.cpp:1",
              .params = &parts.param,
              .nparams = 1,
              .param_size = sizeof(tenon_param_def),
              .nouts = 1,
              .compute = TENON_COMPUTE_PROMOTE,
              .shape = TENON_SHAPE_BROADCAST,
              .dtype_mask = uint64_t{1} << TENON_DTYPE_F32,
              .out_names = kOutNames};
  parts.kernel = {.struct_size = sizeof(tenon_kernel_def),
                  .op = "faulty::twice",
                  .dtype_mask = uint64_t{1} << TENON_DTYPE_F32,
                  .boxed = twice};
  parts.plugin = {.struct_size = sizeof(tenon_plugin),
                  .revision = TENON_ABI_REVISION,
                  .name = "faulty",
                  .version = "1.0.0",
                  .vendor = "Tests",
                  .device = &parts.device,
                  .ops = &parts.op,
                  .kernels = &parts.kernel,
                  .nops = 1,
                  .op_size = sizeof(tenon_op_def),
                  .nkernels = 1,
                  .kernel_size = sizeof(tenon_kernel_def),
                  .start = start,
                  .stop = stop};
}

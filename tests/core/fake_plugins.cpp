// SPDX-License-Identifier: Apache-2.0
#include "fake_plugins.hpp"

#include <cstdlib>
#include <cstring>

#include "kernel_core/runtime/tensor_shape.hpp"

namespace fake {

using namespace tenon::core;

int add_calls, copy_calls, cast_calls;
bool kernels_fail;

namespace {

// -- devices -----------------------------------------------------------------------------------
// "remote" keeps its memory in the host's heap, but the tests' kernels run on "fakehost" only.
template <bool kHostMemory>
tenon_status enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count, tenon_err*) {
  *count = 1;
  if (capacity == 0) return TENON_OK;
  std::memset(out, 0, sizeof *out);
  out->struct_size = sizeof *out;
  out->flags = kHostMemory ? TENON_DEVICE_HOST_MEMORY : 0;
  std::strcpy(out->name, kHostMemory ? "Fake host" : "Remote");
  out->dl_device_type = kHostMemory ? 1 : 12;
  return TENON_OK;
}
tenon_status open(uint32_t, tenon_device* out, tenon_err*) {
  *out = reinterpret_cast<tenon_device>(0x10);
  return TENON_OK;
}
void close(tenon_device) {}
tenon_status alloc(tenon_device, const tenon_alloc_request* request, void** out, tenon_err*) {
  *out = std::aligned_alloc(
      request->align, (request->bytes + request->align - 1) / request->align * request->align);
  return *out ? TENON_OK : TENON_OUT_OF_MEMORY;
}
void release_memory(tenon_device, void* memory, uint64_t, tenon_stream) { std::free(memory); }
tenon_status copy(tenon_device, const tenon_copy_request* request, tenon_err*) {
  std::memmove(request->dst, request->src, request->bytes);
  return TENON_OK;
}
tenon_status fill(tenon_device, void* dst, uint64_t offset, uint64_t bytes, const void* pattern,
                  uint32_t size, tenon_stream, tenon_err*) {
  for (uint64_t at = 0; at < bytes; at += size)
    std::memcpy(static_cast<char*>(dst) + offset + at, pattern, size);
  return TENON_OK;
}
tenon_status sync(tenon_device, tenon_stream, tenon_err*) { return TENON_OK; }

constexpr tenon_device_api device_api(const char* kind, bool host_memory) {
  return {.struct_size = sizeof(tenon_device_api),
          .kind = kind,
          .enumerate = host_memory ? enumerate<true> : enumerate<false>,
          .open = open,
          .close = close,
          .alloc = alloc,
          .free = release_memory,
          .copy = copy,
          .fill = fill,
          .sync = sync};
}
const tenon_device_api kHost = device_api("fakehost", true);
const tenon_device_api kRemote = device_api("remote", false);

// -- kernels -----------------------------------------------------------------------------------
template <class Visit>
void for_each_index(const tenon_tensor& tensor, Visit visit) {
  int64_t index[TENON_MAX_NDIM] = {};
  for (int64_t n = 0; n < tensor.numel; ++n) {
    visit(index);
    for (int32_t axis = tensor.ndim - 1; axis >= 0 && ++index[axis] == tensor.shape[axis]; --axis)
      index[axis] = 0;
  }
}
int64_t offset_of(const tenon_tensor& tensor, const int64_t* index) {
  int64_t offset = 0;
  for (int32_t axis = 0; axis < tensor.ndim; ++axis) offset += index[axis] * tensor.strides[axis];
  return offset;
}

// Plain kernel: contiguous, expanded, converted float32 inputs.
tenon_status add_kernel(tenon_ctx*, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                        tenon_err*) {
  ++add_calls;
  if (kernels_fail) return TENON_UNKNOWN;
  auto *x = as_tensor(args[0]), *y = as_tensor(args[1]), *out = as_tensor(outs[0]);
  for (int64_t i = 0; i < out->numel; ++i)
    static_cast<float*>(out->data)[i] =
        static_cast<float*>(x->data)[i] + static_cast<float*>(y->data)[i];
  return TENON_OK;
}
tenon_status copy_kernel(tenon_ctx*, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                         tenon_err*) {
  ++copy_calls;
  auto *x = as_tensor(args[0]), *out = as_tensor(outs[0]);
  size_t size = dtype_size(x->dtype);
  for_each_index(*x, [&](const int64_t* index) {
    std::memcpy(static_cast<char*>(out->data) + offset_of(*out, index) * static_cast<int64_t>(size),
                static_cast<char*>(x->data) + offset_of(*x, index) * static_cast<int64_t>(size),
                size);
  });
  return TENON_OK;
}
tenon_status cast_kernel(tenon_ctx*, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                         tenon_err*) {
  ++cast_calls;
  auto *x = as_tensor(args[0]), *out = as_tensor(outs[0]);
  for (int64_t i = 0; i < out->numel; ++i) {
    double element = x->dtype == TENON_DTYPE_I64
                         ? static_cast<double>(static_cast<int64_t*>(x->data)[i])
                     : x->dtype == TENON_DTYPE_F64 ? static_cast<double*>(x->data)[i]
                                                   : static_cast<float*>(x->data)[i];
    write_scalar({TENON_VALUE_FLOAT, 0, {.f = element}}, out->dtype,
                 static_cast<char*>(out->data) + i * dtype_size(out->dtype));
  }
  return TENON_OK;
}
tenon_status positive_kernel(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value*,
                             uint32_t, tenon_err* err) {
  auto* x = as_tensor(args[0]);
  std::vector<float> kept;
  for (int64_t i = 0; i < x->numel; ++i)
    if (float element = static_cast<float*>(x->data)[i]; element > 0) kept.push_back(element);
  int64_t count = static_cast<int64_t>(kept.size());
  tenon_tensor* out;
  if (tenon_status status = slots::output_alloc(ctx, 0, x->dtype, 1, &count, &out, err);
      status != TENON_OK)
    return status;
  if (count) std::memcpy(out->data, kept.data(), kept.size() * sizeof(float));
  return TENON_OK;
}

// -- shape rules and decompositions
// -----------------------------------------------------------------
tenon_status infer_same(const tenon_value* args, uint32_t, tenon_meta* outs, uint32_t, tenon_err*) {
  auto* x = as_tensor(args[0]);
  outs[0].ndim = x->ndim;
  outs[0].dtype = x->dtype;
  outs[0].kind = TENON_META_NEW;
  std::memcpy(outs[0].shape, x->shape, sizeof(int64_t) * static_cast<size_t>(x->ndim));
  return TENON_OK;
}
tenon_status infer_cast(const tenon_value* args, uint32_t nargs, tenon_meta* outs, uint32_t nouts,
                        tenon_err* err) {
  infer_same(args, nargs, outs, nouts, err);
  outs[0].dtype = static_cast<uint8_t>(args[1].v.i);
  return TENON_OK;
}
tenon_status infer_reversed(const tenon_value* args, uint32_t nargs, tenon_meta* outs,
                            uint32_t nouts, tenon_err* err) {
  infer_same(args, nargs, outs, nouts, err);
  auto* x = as_tensor(args[0]);
  outs[0].kind = TENON_META_VIEW;
  outs[0].view_of = 0;
  outs[0].offset = 0;
  for (int32_t axis = 0; axis < x->ndim; ++axis) {
    outs[0].shape[axis] = x->shape[x->ndim - 1 - axis];
    outs[0].strides[axis] = x->strides[x->ndim - 1 - axis];
  }
  return TENON_OK;
}
tenon_status decompose_twice(tenon_ctx*, const tenon_value* args, uint32_t, tenon_value* outs,
                             uint32_t, tenon_err* err) {
  tenon_value sum[2] = {args[0], args[0]};
  static Operator* const add = find_operator("fake::add");
  return slots::op_call(add, sum, 2, outs, 1, err);
}

tenon_status decompose_ends(tenon_ctx*, const tenon_value* args, uint32_t, tenon_value* outs,
                            uint32_t, tenon_err* err) {
  auto* list = static_cast<tenon_tensor* const*>(args[0].v.p);
  tenon_value sum[2] = {tenon::boxed(list[0]), tenon::boxed(list[args[0].aux - 1])};
  static Operator* const add = find_operator("fake::add");
  return slots::op_call(add, sum, 2, outs, 1, err);
}

constexpr uint32_t kElement = TENON_PARAM_FLAG_PROMOTE | TENON_PARAM_FLAG_BROADCAST;
constexpr tenon_param_def kPair[] = {{"x", TENON_PARAM_TENSOR, kElement, {}},
                                     {"y", TENON_PARAM_TENSOR, kElement, {}}};
constexpr tenon_param_def kOne[] = {{"x", TENON_PARAM_TENSOR, 0, {}}};
constexpr tenon_param_def kList[] = {{"tensors", TENON_PARAM_TENSORS, 0, {}}};
constexpr tenon_param_def kCast[] = {{"x", TENON_PARAM_TENSOR, 0, {}},
                                     {"dtype", TENON_PARAM_DTYPE, 0, {}}};
constexpr tenon_param_def kDefaults[] = {
    {"x", TENON_PARAM_TENSOR, 0, {}},
    {"axis", TENON_PARAM_INT, TENON_PARAM_FLAG_HAS_DEFAULT, {TENON_VALUE_INT, 0, {.i = -1}}}};

tenon_op_def op_def(const char* name, const char* schema, const tenon_param_def* params,
                    uint32_t nparams, uint32_t flags, tenon_infer_fn infer,
                    tenon_boxed_fn decompose = nullptr) {
  tenon_op_def def{};
  def.struct_size = sizeof def;
  def.flags = flags;
  def.name = name;
  def.schema = schema;
  def.schema_hash = std::hash<std::string>{}(schema);
  def.origin = "fake_plugins.cpp";
  def.params = params;
  def.nparams = nparams;
  def.param_size = sizeof *params;
  def.nouts = 1;
  def.shape = infer || flags & (TENON_OP_DATA_DEPENDENT | TENON_OP_COMPOSITE)
                  ? TENON_SHAPE_INFER
                  : TENON_SHAPE_BROADCAST;
  def.compute = def.shape == TENON_SHAPE_BROADCAST ? TENON_COMPUTE_PROMOTE : TENON_COMPUTE_FIRST;
  def.dtype_mask = (1u << TENON_DTYPE_COUNT) - 1;
  def.infer = infer;
  def.decompose = decompose;
  return def;
}
tenon_kernel_def kernel_def(const char* op, tenon_boxed_fn boxed, uint64_t mask, uint32_t traits) {
  tenon_kernel_def def{};
  def.struct_size = sizeof def;
  def.op = op;
  def.device = "fakehost";
  def.boxed = boxed;
  def.dtype_mask = mask;
  def.traits = traits;
  return def;
}

constexpr uint64_t kAll = (1u << TENON_DTYPE_COUNT) - 1;
constexpr uint64_t kFloat = 1u << TENON_DTYPE_F32;

}  // namespace

void install() {
  static bool installed = [] {
    uint32_t kind;
    tenon_err err;
    static const int owner = 0;
    if (add_device_kind(&kHost, &owner, &kind, &err) != TENON_OK) std::abort();
    if (add_device_kind(&kRemote, &owner, &kind, &err) != TENON_OK) std::abort();
    static const tenon_op_def ops[] = {
        op_def("fake::add", "fake::add(Tensor x, Tensor y) -> Tensor", kPair, 2,
               TENON_OP_ELEMENTWISE, nullptr),
        op_def("fake::copy", "fake::copy(Tensor x) -> Tensor", kOne, 1, TENON_OP_MATERIALIZE,
               infer_same),
        op_def("fake::cast", "fake::cast(Tensor x, dtype dtype) -> Tensor", kCast, 2,
               TENON_OP_CONVERT, infer_cast),
        op_def("fake::reversed", "fake::reversed(Tensor x) -> Tensor", kOne, 1, TENON_OP_VIEW,
               infer_reversed),
        op_def("fake::positive", "fake::positive(Tensor x) -> Tensor", kOne, 1,
               TENON_OP_DATA_DEPENDENT, nullptr),
        op_def("fake::twice", "fake::twice(Tensor x) -> Tensor", kOne, 1, TENON_OP_COMPOSITE,
               nullptr, decompose_twice),
        op_def("fake::ends", "fake::ends(Tensor[] tensors) -> Tensor", kList, 1, TENON_OP_COMPOSITE,
               nullptr, decompose_ends),
        op_def("fake::whole", "fake::whole(Tensor x) -> Tensor", kOne, 1, TENON_OP_COMPOSITE,
               infer_same, decompose_twice),
        op_def("fake::doubled", "fake::doubled(Tensor x) -> Tensor", kOne, 1, 0, infer_same,
               decompose_twice),
        op_def("fake::nowhere", "fake::nowhere(Tensor x) -> Tensor", kOne, 1, 0, infer_same),
        op_def("fake::axis", "fake::axis(Tensor x, int axis=-1) -> Tensor", kDefaults, 2, 0,
               infer_same),
    };
    static const tenon_kernel_def kernels[] = {
        kernel_def("fake::add", add_kernel, kFloat, 0),
        kernel_def("fake::copy", copy_kernel, kAll,
                   TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT),
        kernel_def("fake::whole", copy_kernel, kAll,
                   TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT),
        kernel_def("fake::cast", cast_kernel, kAll, 0),
        kernel_def("fake::positive", positive_kernel, kFloat, 0),
    };
    PluginTable table{.name = "fake", .device_kind = "", .ops = ops, .kernels = kernels};
    if (registry_add(table, &owner, &err) != TENON_OK) std::abort();
    return true;
  }();
  (void)installed;
}

tenon_device_id host_device() {
  tenon_device_id id = TENON_DEVICE_NONE;
  slots::device_find("fakehost", &id, nullptr);
  return id;
}
tenon_device_id remote_device() {
  tenon_device_id id = TENON_DEVICE_NONE;
  slots::device_find("remote", &id, nullptr);
  return id;
}

TensorRef tensor(std::initializer_list<int64_t> shape, std::initializer_list<float> values,
                 tenon_device_id device) {
  tenon_tensor* created = nullptr;
  slots::tensor_create(device, TENON_DTYPE_F32, static_cast<int32_t>(shape.size()), shape.begin(),
                       &created, nullptr);
  if (values.size()) std::memcpy(created->data, values.begin(), values.size() * sizeof(float));
  return TensorRef(impl(created));
}

std::vector<float> values(tenon_tensor* tensor) {
  std::vector<float> result;
  for_each_index(*tensor, [&](const int64_t* index) {
    result.push_back(static_cast<float*>(tensor->data)[offset_of(*tensor, index)]);
  });
  return result;
}

Result call(const char* name, std::vector<tenon_value> args, tenon_tensor* out) {
  tenon_err err;
  tenon_value outs[1] = {};
  if (out) outs[0] = tenon::boxed(out);
  tenon_status status = slots::op_call(find_operator(name), args.data(),
                                       static_cast<uint32_t>(args.size()), outs, 1, &err);
  Result result{status, {}, err.text};
  if (status == TENON_OK && !out) result.tensor = TensorRef(impl(as_tensor(outs[0])));
  return result;
}

}  // namespace fake

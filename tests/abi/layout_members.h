/* SPDX-License-Identifier: Apache-2.0
 *
 * Every struct of tenon/abi.h with its members, in order. S(struct) begins one, M(struct, member) is one of
 * its members. layout_test.c notices what is missing here. */
#define TENON_LAYOUT(S, M) \
  S(tenon_dl_dtype) \
    M(tenon_dl_dtype, code) M(tenon_dl_dtype, bits) M(tenon_dl_dtype, lanes) \
  S(tenon_value) \
    M(tenon_value, tag) M(tenon_value, aux) M(tenon_value, v) \
  S(tenon_tensor) \
    M(tenon_tensor, data) M(tenon_tensor, dl_device_type) M(tenon_tensor, dl_device_id) \
    M(tenon_tensor, ndim) M(tenon_tensor, dl_dtype) M(tenon_tensor, shape) \
    M(tenon_tensor, strides) M(tenon_tensor, byte_offset) M(tenon_tensor, flags) \
    M(tenon_tensor, dtype) M(tenon_tensor, layers) M(tenon_tensor, device) \
    M(tenon_tensor, reserved) M(tenon_tensor, numel) \
  S(tenon_meta) \
    M(tenon_meta, ndim) M(tenon_meta, dtype) M(tenon_meta, kind) M(tenon_meta, view_of) \
    M(tenon_meta, offset) M(tenon_meta, shape) M(tenon_meta, strides) \
  S(tenon_device_info) \
    M(tenon_device_info, struct_size) M(tenon_device_info, flags) M(tenon_device_info, name) \
    M(tenon_device_info, arch) M(tenon_device_info, bus_id) M(tenon_device_info, memory_bytes) \
    M(tenon_device_info, dl_device_type) M(tenon_device_info, reserved) \
  S(tenon_alloc_request) \
    M(tenon_alloc_request, struct_size) M(tenon_alloc_request, kind) \
    M(tenon_alloc_request, must_understand) M(tenon_alloc_request, bytes) \
    M(tenon_alloc_request, align) M(tenon_alloc_request, stream) \
  S(tenon_copy_request) \
    M(tenon_copy_request, struct_size) M(tenon_copy_request, direction) \
    M(tenon_copy_request, must_understand) M(tenon_copy_request, dst) M(tenon_copy_request, src) \
    M(tenon_copy_request, bytes) M(tenon_copy_request, dst_offset) \
    M(tenon_copy_request, src_offset) M(tenon_copy_request, stream) \
  S(tenon_async_api) \
    M(tenon_async_api, struct_size) M(tenon_async_api, reserved) \
    M(tenon_async_api, stream_create) M(tenon_async_api, stream_destroy) \
    M(tenon_async_api, event_create) M(tenon_async_api, event_destroy) \
    M(tenon_async_api, event_record) M(tenon_async_api, stream_wait) \
    M(tenon_async_api, event_query) M(tenon_async_api, event_sync) \
  S(tenon_device_api) \
    M(tenon_device_api, struct_size) M(tenon_device_api, revision) M(tenon_device_api, features) \
    M(tenon_device_api, kind) M(tenon_device_api, enumerate) M(tenon_device_api, open) \
    M(tenon_device_api, close) M(tenon_device_api, alloc) M(tenon_device_api, free) \
    M(tenon_device_api, copy) M(tenon_device_api, fill) M(tenon_device_api, sync) \
    M(tenon_device_api, async) \
  S(tenon_param_def) \
    M(tenon_param_def, name) M(tenon_param_def, kind) M(tenon_param_def, flags) \
    M(tenon_param_def, default_value) \
  S(tenon_op_def) \
    M(tenon_op_def, struct_size) M(tenon_op_def, flags) M(tenon_op_def, name) \
    M(tenon_op_def, schema) M(tenon_op_def, schema_hash) M(tenon_op_def, doc) \
    M(tenon_op_def, origin) M(tenon_op_def, params) M(tenon_op_def, nparams) \
    M(tenon_op_def, param_size) M(tenon_op_def, nouts) M(tenon_op_def, compute) \
    M(tenon_op_def, shape) M(tenon_op_def, out_dtype) M(tenon_op_def, reserved) \
    M(tenon_op_def, dtype_mask) M(tenon_op_def, out_names) M(tenon_op_def, infer) \
    M(tenon_op_def, decompose) M(tenon_op_def, invoke) \
  S(tenon_kernel_def) \
    M(tenon_kernel_def, struct_size) M(tenon_kernel_def, traits) M(tenon_kernel_def, op) \
    M(tenon_kernel_def, device) M(tenon_kernel_def, schema_hash) M(tenon_kernel_def, dtype_mask) \
    M(tenon_kernel_def, score) M(tenon_kernel_def, reserved) M(tenon_kernel_def, boxed) \
    M(tenon_kernel_def, typed) M(tenon_kernel_def, can_run) \
  S(tenon_layer_def) \
    M(tenon_layer_def, struct_size) M(tenon_layer_def, flags) M(tenon_layer_def, name) \
    M(tenon_layer_def, order) M(tenon_layer_def, reserved) M(tenon_layer_def, self) \
    M(tenon_layer_def, call) \
  S(tenon_plugin) \
    M(tenon_plugin, struct_size) M(tenon_plugin, revision) M(tenon_plugin, features) \
    M(tenon_plugin, name) M(tenon_plugin, version) M(tenon_plugin, vendor) \
    M(tenon_plugin, device) M(tenon_plugin, ops) M(tenon_plugin, kernels) M(tenon_plugin, nops) \
    M(tenon_plugin, op_size) M(tenon_plugin, nkernels) M(tenon_plugin, kernel_size) \
    M(tenon_plugin, start) M(tenon_plugin, stop) \
  S(tenon_note) \
    M(tenon_note, name_size) M(tenon_note, desc_size) M(tenon_note, type) M(tenon_note, owner) \
    M(tenon_note, epoch_min) M(tenon_note, epoch_max) M(tenon_note, sanitizer) \
    M(tenon_note, reserved) M(tenon_note, name) M(tenon_note, version) M(tenon_note, json)

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
    M(tenon_device_info, reserved_words) \
  S(tenon_alloc_request) \
    M(tenon_alloc_request, struct_size) M(tenon_alloc_request, kind) \
    M(tenon_alloc_request, must_understand) M(tenon_alloc_request, bytes) \
    M(tenon_alloc_request, align) M(tenon_alloc_request, stream) \
  S(tenon_copy_request) \
    M(tenon_copy_request, struct_size) M(tenon_copy_request, direction) \
    M(tenon_copy_request, must_understand) M(tenon_copy_request, dst) M(tenon_copy_request, src) \
    M(tenon_copy_request, bytes) M(tenon_copy_request, dst_offset) \
    M(tenon_copy_request, src_offset) M(tenon_copy_request, stream) \
    M(tenon_copy_request, src_device) \
  S(tenon_async_api) \
    M(tenon_async_api, struct_size) M(tenon_async_api, reserved) \
    M(tenon_async_api, stream_create) M(tenon_async_api, stream_destroy) \
    M(tenon_async_api, event_create) M(tenon_async_api, event_destroy) \
    M(tenon_async_api, event_record) M(tenon_async_api, stream_wait) \
    M(tenon_async_api, event_query) M(tenon_async_api, event_sync) \
  S(tenon_pool_api) \
    M(tenon_pool_api, struct_size) M(tenon_pool_api, reserved) M(tenon_pool_api, pool_alloc) \
    M(tenon_pool_api, pool_free) M(tenon_pool_api, pool_trim) M(tenon_pool_api, pool_usage) \
  S(tenon_graph_api) \
    M(tenon_graph_api, struct_size) M(tenon_graph_api, reserved) M(tenon_graph_api, capture_begin) \
    M(tenon_graph_api, capture_end) M(tenon_graph_api, graph_launch) \
    M(tenon_graph_api, graph_destroy) \
  S(tenon_profile_record) \
    M(tenon_profile_record, struct_size) M(tenon_profile_record, kind) \
    M(tenon_profile_record, begin_ns) M(tenon_profile_record, end_ns) \
    M(tenon_profile_record, bytes) M(tenon_profile_record, stream) M(tenon_profile_record, name) \
  S(tenon_profile_api) \
    M(tenon_profile_api, struct_size) M(tenon_profile_api, reserved) \
    M(tenon_profile_api, profile_start) M(tenon_profile_api, profile_stop) \
    M(tenon_profile_api, profile_drain) M(tenon_profile_api, clock_pair) \
  S(tenon_comm_id) \
    M(tenon_comm_id, bytes) \
  S(tenon_collective_api) \
    M(tenon_collective_api, struct_size) M(tenon_collective_api, reserved) \
    M(tenon_collective_api, comm_id_create) M(tenon_collective_api, comm_create) \
    M(tenon_collective_api, comm_destroy) M(tenon_collective_api, comm_abort) \
    M(tenon_collective_api, all_reduce) M(tenon_collective_api, all_gather) \
    M(tenon_collective_api, reduce_scatter) M(tenon_collective_api, broadcast) \
    M(tenon_collective_api, send) M(tenon_collective_api, recv) \
  S(tenon_transfer) \
    M(tenon_transfer, kind) M(tenon_transfer, peer) M(tenon_transfer, memory) \
    M(tenon_transfer, count) \
  S(tenon_exchange_api) \
    M(tenon_exchange_api, struct_size) M(tenon_exchange_api, reserved) \
    M(tenon_exchange_api, transfer) M(tenon_exchange_api, reduce) \
    M(tenon_exchange_api, comm_split) M(tenon_exchange_api, comm_error) \
  S(tenon_subgraph_step) \
    M(tenon_subgraph_step, op) M(tenon_subgraph_step, args) M(tenon_subgraph_step, outs) \
    M(tenon_subgraph_step, nargs) M(tenon_subgraph_step, nouts) \
  S(tenon_subgraph) \
    M(tenon_subgraph, struct_size) M(tenon_subgraph, step_size) M(tenon_subgraph, must_understand) \
    M(tenon_subgraph, name) M(tenon_subgraph, steps) M(tenon_subgraph, inputs) \
    M(tenon_subgraph, outputs) M(tenon_subgraph, constants) M(tenon_subgraph, nsteps) \
    M(tenon_subgraph, ninputs) M(tenon_subgraph, noutputs) M(tenon_subgraph, reserved) \
  S(tenon_executable_info) \
    M(tenon_executable_info, struct_size) M(tenon_executable_info, flags) \
    M(tenon_executable_info, workspace_bytes) \
  S(tenon_executable_request) \
    M(tenon_executable_request, struct_size) M(tenon_executable_request, reserved) \
    M(tenon_executable_request, must_understand) M(tenon_executable_request, executable) \
    M(tenon_executable_request, inputs) M(tenon_executable_request, outputs) \
    M(tenon_executable_request, workspace) M(tenon_executable_request, stream) \
  S(tenon_subgraph_api) \
    M(tenon_subgraph_api, struct_size) M(tenon_subgraph_api, reserved) \
    M(tenon_subgraph_api, claim) M(tenon_subgraph_api, executable_create) \
    M(tenon_subgraph_api, executable_destroy) M(tenon_subgraph_api, executable_run) \
  S(tenon_ipc_handle) \
    M(tenon_ipc_handle, bytes) \
  S(tenon_ipc_api) \
    M(tenon_ipc_api, struct_size) M(tenon_ipc_api, reserved) M(tenon_ipc_api, ipc_export) \
    M(tenon_ipc_api, ipc_open) M(tenon_ipc_api, ipc_close) \
  S(tenon_quiesce_api) \
    M(tenon_quiesce_api, struct_size) M(tenon_quiesce_api, reserved) M(tenon_quiesce_api, quiesce) \
  S(tenon_program_request) \
    M(tenon_program_request, struct_size) M(tenon_program_request, reserved) \
    M(tenon_program_request, must_understand) M(tenon_program_request, name) \
    M(tenon_program_request, source) M(tenon_program_request, source_bytes) \
  S(tenon_launch_arg) \
    M(tenon_launch_arg, kind) M(tenon_launch_arg, bytes) M(tenon_launch_arg, p) \
    M(tenon_launch_arg, offset) \
  S(tenon_launch_request) \
    M(tenon_launch_request, struct_size) M(tenon_launch_request, nargs) \
    M(tenon_launch_request, must_understand) M(tenon_launch_request, kernel) \
    M(tenon_launch_request, args) M(tenon_launch_request, groups) \
    M(tenon_launch_request, group_size) M(tenon_launch_request, stream) \
  S(tenon_compile_limits) \
    M(tenon_compile_limits, struct_size) M(tenon_compile_limits, flags) \
    M(tenon_compile_limits, max_group_size) M(tenon_compile_limits, local_bytes) \
    M(tenon_compile_limits, subgroup_size) M(tenon_compile_limits, compute_units) \
    M(tenon_compile_limits, dtype_mask) \
  S(tenon_compile_api) \
    M(tenon_compile_api, struct_size) M(tenon_compile_api, reserved) M(tenon_compile_api, limits) \
    M(tenon_compile_api, program_create) M(tenon_compile_api, program_destroy) \
    M(tenon_compile_api, program_kernel) M(tenon_compile_api, kernel_launch) \
  S(tenon_device_api) \
    M(tenon_device_api, struct_size) M(tenon_device_api, revision) M(tenon_device_api, features) \
    M(tenon_device_api, kind) M(tenon_device_api, enumerate) M(tenon_device_api, open) \
    M(tenon_device_api, close) M(tenon_device_api, alloc) M(tenon_device_api, free) \
    M(tenon_device_api, copy) M(tenon_device_api, fill) M(tenon_device_api, sync) \
    M(tenon_device_api, async) M(tenon_device_api, pool) M(tenon_device_api, graph) \
    M(tenon_device_api, profile) M(tenon_device_api, collective) M(tenon_device_api, ipc) \
    M(tenon_device_api, quiesce) M(tenon_device_api, compile) \
    M(tenon_device_api, exchange) M(tenon_device_api, subgraph) \
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
    M(tenon_op_def, self) M(tenon_op_def, infer_self) M(tenon_op_def, decompose_self) \
    M(tenon_op_def, traits) \
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

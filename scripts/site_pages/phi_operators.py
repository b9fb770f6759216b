# SPDX-License-Identifier: Apache-2.0
"""The operators of PHI, PaddlePaddle's operator library, by their names in its definitions: what each is here, or why it is not."""

import re

import tenon

# As in ops.yaml, by family; the last ones are defined beside it.
FAMILIES = {
    "elementwise, of one tensor": """abs acos acosh angle asin asinh atan atanh bitwise_not cast ceil celu clip conj cos cosh digamma
elu erf erfinv exp expm1 floor gammaln gelu hardshrink hardsigmoid hardtanh i0 i0e i1 i1e imag
increment isfinite isinf isnan leaky_relu lgamma log log10 log1p log2 logical_not logit
logsigmoid mish polygamma pow prelu real reciprocal relu relu6 round rrelu rsqrt scale selu
sigmoid sign silu sin sinh softplus softshrink softsign sqrt square stanh swish tan tanh
tanh_shrink thresholded_relu trunc as_complex as_real""".split(),
    "elementwise, of several": """atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor complex copysign
fmax fmin gammaincc heaviside isclose lerp logical_and logical_or logical_xor nextafter where
swiglu allclose equal_all accuracy_check""".split(),
    "reductions and scans": """all amax amin any argmax argmin cummax cummin cumprod cumsum frobenius_norm l1_norm logcumsumexp
logsumexp max mean mean_all nanmedian norm p_norm prod reduce_as squared_l2_norm sum trace
clip_by_norm renorm dist kthvalue mode topk argsort numel is_empty""".split(),
    "shapes and views": """as_strided broadcast_tensors concat crop depend diag diag_embed diagonal expand expand_as
flatten flip fold frame im2sequence index_select_strided overlap_add pad pad3d pixel_shuffle
pixel_unshuffle channel_shuffle repeat_interleave repeat_interleave_with_tensor_index reverse
roll shape share_data slice split split_with_num squeeze stack strided_slice tensor_unfold
trans_layout transpose unbind unfold unsqueeze unstack view_dtype view_shape copy_to memcpy_d2h
memcpy_h2d npu_identity coalesce_tensor partial_concat partial_sum shuffle_channel meshgrid tril
triu temporal_shift""".split(),
    "indexing and sorting": """bincount fill_diagonal fill_diagonal_tensor gather gather_nd gather_tree histogram index_add
index_put index_sample index_select masked_select multiplex nonzero put_along_axis scatter
scatter_nd_add searchsorted sequence_mask set_value_with_tensor shard_index take_along_axis
unique_consecutive one_hot""".split(),
    "linear algebra and FFT": """addmm bilinear bmm cholesky cholesky_solve cross det dot eig eigh eigvals eigvalsh inverse kron
lstsq lu lu_unpack matrix_power matrix_rank matrix_rank_tol multi_dot mv qr slogdet solve svd
triangular_solve fft_c2c fft_c2r fft_r2c stft""".split(),
    "neural networks": """affine_channel apply_per_channel_scale attention_lstm batch_fc bce_loss conv2d conv2d_transpose
conv2d_transpose_bias conv3d conv3d_transpose cross_entropy_with_softmax cudnn_lstm
deformable_conv depthwise_conv2d depthwise_conv2d_transpose dropout flash_attn
flash_attn_qkvpacked flash_attn_unpadded flash_attn_varlen_qkvpacked flash_attn_with_sparse_mask
calc_reduced_attn_scores fractional_max_pool2d fractional_max_pool3d group_norm gru gru_unit
gumbel_softmax hinge_loss hsigmoid_loss huber_loss identity_loss instance_norm kldiv_loss
label_smooth layer_norm log_loss log_softmax lp_pool2d lstm margin_cross_entropy
max_pool2d_with_index max_pool3d_with_index maxout memory_efficient_attention nll_loss pool2d
pool3d rms_norm rnn sigmoid_cross_entropy_with_logits sparse_attention spectral_norm
sync_batch_norm_ unpool unpool3d warpctc warprnnt masked_multihead_attention_ weight_dequantize
weight_only_linear weight_quantize llm_int8_linear sequence_conv sequence_pool
add_position_encoding match_matrix_tensor segment_pool""".split(),
    "random numbers": """bernoulli binomial class_center_sample dirichlet exponential_ gaussian gaussian_inplace
multinomial poisson randint randperm standard_gamma top_p_sampling truncated_gaussian_random
uniform uniform_inplace uniform_random_batch_size_like shuffle_batch random_routing""".split(),
    "creation": """assign_out_ assign_value_ data empty empty_like eye fill full full_ full_batch_size_like
full_int_array full_like full_with_tensor linspace logspace ones ones_like tril_indices
triu_indices zeros zeros_like""".split(),
    "training": """adadelta_ adagrad_ adam_ adamax_ adamw_ asgd_ average_accumulates_ check_finite_and_unscale_
check_numerics decayed_adagrad dgc dgc_clip_by_norm dgc_momentum disable_check_model_nan_inf
dpsgd enable_check_model_nan_inf ftrl lamb_ merged_adam_ merged_momentum_ momentum_ nadam_
radam_ rmsprop_ rprop_ sgd_ update_loss_scaling_ accuracy auc""".split(),
    "graphs and recommendation": """merge_selected_rows graph_khop_sampler graph_sample_neighbors reindex_graph send_u_recv
send_ue_recv send_uv weighted_sample_neighbors cvm rank_attention pyramid_hash tdm_child
tdm_sampler lookup_table_dequant""".split(),
    "fused": """fused_batch_norm_act fused_bn_add_activation fused_multi_transformer fused_softmax_mask
fused_softmax_mask_upper_triangle""".split(),
    "vision": """affine_grid bicubic_interp bilinear_interp bipartite_match box_clip box_coder
collect_fpn_proposals correlation decode_jpeg detection_map generate_proposals grid_sample
linear_interp matrix_nms multiclass_nms3 nearest_interp nms prior_box psroi_pool read_file
roi_align roi_pool trilinear_interp yolo_box yolo_box_head yolo_box_post yolo_loss""".split(),
    "fake quantisation": """dequantize_abs_max dequantize_log fake_channel_wise_dequantize_max_abs
fake_channel_wise_quantize_abs_max fake_channel_wise_quantize_dequantize_abs_max
fake_dequantize_max_abs fake_quantize_abs_max fake_quantize_dequantize_abs_max
fake_quantize_dequantize_moving_average_abs_max fake_quantize_moving_average_abs_max
fake_quantize_range_abs_max""".split(),
    "collectives, experts, decoding": """all_gather c_allgather c_allreduce_max c_allreduce_min c_allreduce_prod c_allreduce_sum
c_broadcast c_concat c_identity c_reduce_sum c_sync_calc_stream c_sync_comm_stream assign_pos
limit_by_capacity moe number_count prune_gate_by_capacity beam_search crf_decoding ctc_align
edit_distance viterbi_decode chunk_eval""".split(),
    "beside ops.yaml": """add add_n arange assign batch_norm c_embedding distribute_fpn_proposals divide einsum
elementwise_pow embedding embedding_grad_dense equal floor_divide fused_adam_
fused_gemm_epilogue greater_equal greater_than hardswish less_equal less_than matmul maximum min
minimum multiply not_equal remainder reshape set_value softmax subtract tile unique""".split(),
}

# What is here by another name, or in another module than tenon, tenon.nn.functional, tenon.vision.ops and the like.
NAMES = {
    "tanh_shrink": "tanhshrink",
    "thresholded_relu": "threshold",
    "accuracy_check": "allclose",
    "frobenius_norm": "norm",
    "l1_norm": "norm",
    "p_norm": "norm",
    "squared_l2_norm": "norm",
    "mean_all": "mean",
    "clip_by_norm": "nn.utils.clip_grad_norm_",
    "frame": "signal.frame",
    "im2sequence": "nn.functional.unfold",
    "index_select_strided": "select",
    "pad3d": "pad",
    "repeat_interleave_with_tensor_index": "compat.paddle.repeat_interleave",
    "share_data": "Tensor.detach",
    "split_with_num": "split",
    "tensor_unfold": "Tensor.unfold",
    "trans_layout": "permute",
    "view_shape": "Tensor.view",
    "copy_to": "to_device",
    "memcpy_d2h": "to_device",
    "memcpy_h2d": "to_device",
    "shuffle_channel": "channel_shuffle",
    "fill_diagonal_tensor": "diagonal_scatter",
    "set_value_with_tensor": "index_put",
    "inverse": "linalg.inv",
    "matrix_rank_tol": "linalg.matrix_rank",
    "stft": "signal.stft",
    "apply_per_channel_scale": "multiply",
    "bce_loss": "binary_cross_entropy",
    "conv2d_transpose": "conv_transpose2d",
    "conv2d_transpose_bias": "conv_transpose2d",
    "conv3d_transpose": "conv_transpose3d",
    "cross_entropy_with_softmax": "cross_entropy",
    "cudnn_lstm": "nn.LSTM",
    "lstm": "lstm_recurrence",
    "gru": "gru_recurrence",
    "gru_unit": "nn.GRUCell",
    "rnn": "nn.RNN",
    "deformable_conv": "deform_conv2d",
    "depthwise_conv2d": "conv2d",
    "depthwise_conv2d_transpose": "conv_transpose2d",
    "flash_attn": "scaled_dot_product_attention",
    "flash_attn_qkvpacked": "scaled_dot_product_attention",
    "memory_efficient_attention": "scaled_dot_product_attention",
    "flash_attn_unpadded": "varlen_attention",
    "flash_attn_varlen_qkvpacked": "varlen_attention",
    "identity_loss": "mean",
    "kldiv_loss": "kl_div",
    "max_pool2d_with_index": "nn.functional.max_pool2d",
    "max_pool3d_with_index": "nn.functional.max_pool3d",
    "pool2d": "nn.functional.avg_pool2d",
    "pool3d": "nn.functional.avg_pool3d",
    "sigmoid_cross_entropy_with_logits": "nn.functional.binary_cross_entropy_with_logits",
    "sync_batch_norm_": "nn.SyncBatchNorm",
    "unpool": "nn.functional.max_unpool2d",
    "unpool3d": "nn.functional.max_unpool3d",
    "warpctc": "nn.functional.ctc_loss",
    "warprnnt": "nn.functional.rnnt_loss",
    "segment_pool": "segment_sum",
    "gaussian": "normal",
    "gaussian_inplace": "Tensor.normal_",
    "truncated_gaussian_random": "nn.init.trunc_normal_",
    "uniform_inplace": "Tensor.uniform_",
    "uniform_random_batch_size_like": "uniform",
    "assign_out_": "Tensor.copy_",
    "assign_value_": "tensor",
    "fill": "Tensor.fill_",
    "full_batch_size_like": "full",
    "full_int_array": "tensor",
    "full_with_tensor": "full",
    "adadelta_": "optim.Adadelta",
    "adagrad_": "optim.Adagrad",
    "adam_": "optim.Adam",
    "merged_adam_": "optim.Adam",
    "fused_adam_": "optim.Adam",
    "adamax_": "optim.Adamax",
    "adamw_": "optim.AdamW",
    "asgd_": "optim.ASGD",
    "ftrl": "optim.Ftrl",
    "lamb_": "optim.Lamb",
    "momentum_": "optim.SGD",
    "merged_momentum_": "optim.SGD",
    "sgd_": "optim.SGD",
    "nadam_": "optim.NAdam",
    "radam_": "optim.RAdam",
    "rmsprop_": "optim.RMSprop",
    "rprop_": "optim.Rprop",
    "check_numerics": "utils.check_numerics",
    "enable_check_model_nan_inf": "utils.check_numerics",
    "disable_check_model_nan_inf": "utils.check_numerics",
    "accuracy": "metrics.Accuracy",
    "auc": "metrics.AUC",
    "graph_sample_neighbors": "sample_neighbors",
    "weighted_sample_neighbors": "sample_neighbors",
    "bicubic_interp": "nn.functional.interpolate",
    "bilinear_interp": "nn.functional.interpolate",
    "linear_interp": "nn.functional.interpolate",
    "nearest_interp": "nn.functional.interpolate",
    "trilinear_interp": "nn.functional.interpolate",
    "box_coder": "box_encode",
    "multiclass_nms3": "vision.ops.multiclass_nms",
    "all_gather": "collective.Communicator.all_gather",
    "c_allgather": "collective.Communicator.all_gather",
    "c_concat": "collective.Communicator.all_gather",
    "c_allreduce_max": "collective.Communicator.all_reduce",
    "c_allreduce_min": "collective.Communicator.all_reduce",
    "c_allreduce_prod": "collective.Communicator.all_reduce",
    "c_allreduce_sum": "collective.Communicator.all_reduce",
    "c_reduce_sum": "collective.Communicator.reduce",
    "c_broadcast": "collective.Communicator.broadcast",
    "c_sync_calc_stream": "synchronize",
    "c_sync_comm_stream": "synchronize",
    "moe": "moe_combine",
    "elementwise_pow": "pow",
    "embedding_grad_dense": "embedding",
    "fused_gemm_epilogue": "linear",
    "coalesce_tensor": "nn.utils.coalesce_tensors",
    "flash_attn_with_sparse_mask": "nn.functional.flash_attention_with_sparse_mask",
    "calc_reduced_attn_scores": "nn.functional.reduced_attention_scores",
    "llm_int8_linear": "quantization.fake.llm_int8_linear",
    "average_accumulates_": "optim.updates.average_accumulates",
    "decayed_adagrad": "decayed_adagrad_update",
    "dgc": "optim.updates.dgc",
    "dgc_clip_by_norm": "optim.updates.dgc_clip_by_norm",
    "dgc_momentum": "optim.updates.dgc_momentum",
    "dpsgd": "optim.updates.dpsgd",
    "merge_selected_rows": "sparse.coalesce",
    "graph_khop_sampler": "sample_subgraph",
    "pyramid_hash": "text.pyramid_hash",
    "lookup_table_dequant": "embedding_dequantized",
    "fused_batch_norm_act": "nn.functional.batch_norm_act",
    "fused_bn_add_activation": "nn.functional.batch_norm_act",
    "fused_softmax_mask": "nn.functional.softmax_with_mask",
    "fused_softmax_mask_upper_triangle": "nn.functional.softmax_upper_hidden",
    "detection_map": "metrics.DetectionMAP",
    **{name: f"quantization.fake.{name}" for name in FAMILIES["fake quantisation"]},
    "c_identity": "distributed.functional.identity",
    "c_embedding": "embedding_of_part",
    "number_count": "expert_counts",
    "assign_pos": "expert_positions",
    "chunk_eval": "metrics.chunk_eval",
}

ABSENT = {
    "depend": "programs keep the order of what writes",
    "npu_identity": "a plugin keeps its layouts to itself",
    "attention_lstm": "the layer of one old model; write it by LSTMCell and softmax, which a program joins",
    "fused_multi_transformer": "whole decoders are programs: tenon.llm",
}

_MODULES = (
    """nn.functional vision.ops linalg fft signal random geometric Tensor compat.paddle""".split()
)


def find(path: str) -> object | None:
    """What tenon has by a dotted name."""
    value: object | None = tenon
    for part in path.split("."):
        value = getattr(value, part, None)
    return value


def ours(name: str) -> str | None:
    """Where an operator of PHI is here; None if it is not."""
    if name in ABSENT:
        return None
    if name in NAMES:
        return NAMES[name]
    plain = name.rstrip("_")
    for path in (plain, *(f"{module}.{each}" for module in _MODULES for each in (plain, name))):
        if find(path) is not None:
            return path
    raise SystemExit(f"phi_operators: {name} is not there; give its name here, or the reason")


def page() -> str:
    count = sum(len(names) for names in FAMILIES.values())
    absent = sum(ours(name) is None for names in FAMILIES.values() for name in names)
    lines = [
        "# Operators of PHI",
        f"The {count} operators that PaddlePaddle's library defines, without its sparse and fused ones: "
        f"{count - absent} are here, often as one of several forms of a function, and {absent} are not, with the reason.",
    ]
    for family, names in FAMILIES.items():
        lines += ["", f"## {family[0].upper()}{family[1:]}", "| PHI | Tenon |", "|---|---|"]
        for name in sorted(names):
            place = ours(name)
            lines.append(
                f"| `{name}` | "
                + (f"not there: {ABSENT[name]} |" if place is None else f"`tenon.{place}` |")
            )
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def pages() -> dict[str, str]:
    return {"reference/phi_operators.md": page()}

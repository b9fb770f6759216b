# SPDX-License-Identifier: Apache-2.0
"""Layers without state. Most are operators of `tenon` under the name that one looks for here."""

from tenon import (  # noqa: F401  (re-exported)
    Tensor,
    adaptive_avg_pool2d,
    adaptive_max_pool2d,
    affine_grid,
    avg_pool2d,
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    celu,
    conv2d,
    conv_transpose2d,
    cosine_embedding_loss,
    cross_entropy,
    dropout,
    elu,
    fake_quantize,
    gather_tree,
    gelu,
    glu,
    grid_sample,
    group_norm,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    hinge_embedding_loss,
    huber_loss,
    l1_loss,
    leaky_relu,
    linear,
    log_sigmoid,
    log_softmax,
    margin_ranking_loss,
    max_pool2d,
    max_pool2d_with_indices,
    mish,
    mse_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    nll_loss,
    normalize,
    one_hot,
    poisson_nll_loss,
    prelu,
    relu,
    relu6,
    rms_norm,
    rotary_embedding,
    scaled_dot_product_attention,
    selu,
    sigmoid,
    silu,
    smooth_l1_loss,
    soft_margin_loss,
    softmax,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    triplet_margin_loss,
    varlen_attention,
    weight_only_linear,
)
from tenon._tensor.tensors_expected import expect_tensors as _expect_tensors

from .activation import gumbel_softmax, maxout, rrelu, softmin, swiglu, threshold  # noqa: F401
from .channel_dropout import (  # noqa: F401
    alpha_dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from .convolution import conv1d, conv3d, conv_transpose1d, conv_transpose3d  # noqa: F401
from .ctc import ctc_loss, rnnt_loss  # noqa: F401
from .decoding import (  # noqa: F401
    masked_multihead_attention,
    mixture_of_experts,
    paged_multihead_attention,
)
from .distance import bilinear, cosine_similarity, pairwise_distance, pdist  # noqa: F401
from .layout import (  # noqa: F401
    channel_shuffle,
    flatten,
    fold,
    pixel_shuffle,
    pixel_unshuffle,
    temporal_shift,
    unfold,
)
from .lookup import embedding, embedding_bag  # noqa: F401
from .loss import (  # noqa: F401
    dice_loss,
    gaussian_nll_loss,
    kl_div,
    label_smooth,
    log_loss,
    npair_loss,
    sigmoid_focal_loss,
    softmax_with_cross_entropy,
    square_error_cost,
)
from .many_classes import (  # noqa: F401
    class_center_sample,
    hsigmoid_loss,
    margin_cross_entropy,
)
from .margin_loss import triplet_margin_with_distance_loss  # noqa: F401
from .masked_attention import (  # noqa: F401
    flash_attention_with_sparse_mask,
    reduced_attention_scores,
    softmax_upper_hidden,
    softmax_with_mask,
    sparse_attention,
)
from .normalization import (  # noqa: F401
    batch_norm,
    batch_norm_act,
    instance_norm,
    layer_norm,
    local_response_norm,
)
from .padding import pad, zeropad2d  # noqa: F401
from .pooling import (  # noqa: F401
    adaptive_avg_pool1d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
)
from .resampling import interpolate, upsample  # noqa: F401
from .sequence import sequence_mask  # noqa: F401
from .unpooling import (  # noqa: F401
    fractional_max_pool2d,
    fractional_max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)

swish = silu
logsigmoid = log_sigmoid


_expect_tensors(globals())

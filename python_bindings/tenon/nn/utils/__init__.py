# SPDX-License-Identifier: Apache-2.0
"""Tools around modules: packing of sequences, parametrisations, parameters as one vector."""

from . import parametrizations, parametrize, prune, rnn
from .clip_grad import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from .fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from .parametrizations import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm
from .stateless import functional_call
from .vector import coalesce_tensors, parameters_to_vector, vector_to_parameters

__all__ = [
    "coalesce_tensors",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "functional_call",
    "fuse_conv_bn_eval",
    "fuse_linear_bn_eval",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]

# SPDX-License-Identifier: Apache-2.0
"""paddle.incubate.nn: layers with the parameters of Paddle's fused ones."""

from __future__ import annotations

from typing import Any

from tenon._core import Tensor
from tenon.compat.paddle.incubate.nn import functional
from tenon.compat.paddle.nn import Layer

__all__ = """FusedBiasDropoutResidualLayerNorm FusedDropoutAdd FusedFeedForward FusedLinear FusedMultiHeadAttention
FusedTransformerEncoderLayer""".split()


def _ones(tensor: Tensor) -> Tensor:
    return tensor.fill_(1.0)


def _one_device(name: str, nranks: int, ring_id: int) -> None:
    if nranks != 1 or ring_id != -1:
        raise NotImplementedError(
            f"{name}(): expected nranks=1 and ring_id=-1, got {nranks} and {ring_id}; use "
            "tenon.distributed's tensor parallel layers"
        )


class FusedLinear(Layer):
    """x @ weight + bias with a weight [in, out], or [out, in] with `transpose_weight`."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        transpose_weight: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        shape = [in_features, out_features]
        self.transpose_weight = transpose_weight
        self.weight = self.create_parameter(shape[::-1] if transpose_weight else shape, weight_attr)
        self.bias = self.create_parameter([out_features], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        return functional.fused_linear(input, self.weight, self.bias, self.transpose_weight)


class FusedDropoutAdd(Layer):
    """dropout(x) + y."""

    def __init__(
        self, p: float = 0.5, mode: str = "upscale_in_train", name: str | None = None
    ) -> None:
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return functional.fused_dropout_add(x, y, self.p, self.training, self.mode)


class FusedBiasDropoutResidualLayerNorm(Layer):
    """layer_norm(residual + dropout(x + bias))."""

    def __init__(
        self,
        embed_dim: int,
        dropout_rate: float = 0.5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        epsilon: float = 1e-5,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if embed_dim < 1:
            raise ValueError(
                f"FusedBiasDropoutResidualLayerNorm(): expected embed_dim above 0, got {embed_dim}"
            )
        self.dropout_rate, self._epsilon = dropout_rate, epsilon
        self.linear_bias = self.create_parameter([embed_dim], bias_attr, is_bias=True)
        self.ln_scale = self.create_parameter([embed_dim], weight_attr, default_initializer=_ones)
        self.ln_bias = self.create_parameter([embed_dim], bias_attr, is_bias=True)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return functional.fused_bias_dropout_residual_layer_norm(
            x,
            residual,
            self.linear_bias,
            self.ln_scale,
            self.ln_bias,
            self.dropout_rate,
            self._epsilon,
            self.training,
        )


class FusedMultiHeadAttention(Layer):
    """Attention of a sequence to itself, with layer_norm before or after it and the residual."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout_rate: float = 0.5,
        attn_dropout_rate: float = 0.5,
        kdim: int | None = None,
        vdim: int | None = None,
        normalize_before: bool = False,
        need_weights: bool = False,
        qkv_weight_attr: Any = None,
        qkv_bias_attr: Any = None,
        linear_weight_attr: Any = None,
        linear_bias_attr: Any = None,
        pre_ln_scale_attr: Any = None,
        pre_ln_bias_attr: Any = None,
        ln_scale_attr: Any = None,
        ln_bias_attr: Any = None,
        epsilon: float = 1e-5,
        nranks: int = 1,
        ring_id: int = -1,
        transpose_qkv_wb: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        own = "FusedMultiHeadAttention"
        _one_device(own, nranks, ring_id)
        if need_weights:
            raise NotImplementedError(f"{own}(): expected need_weights=False, got True")
        if kdim not in (None, embed_dim) or vdim not in (None, embed_dim):
            raise NotImplementedError(
                f"{own}(): expected kdim and vdim None or embed_dim, as it attends to its own sequence, got {kdim} and {vdim}"
            )
        if embed_dim < 1 or num_heads < 1 or embed_dim % num_heads:
            raise ValueError(
                f"{own}(): expected num_heads that divides embed_dim, got {num_heads} and {embed_dim}"
            )
        self.num_heads, self.normalize_before = num_heads, normalize_before
        self.dropout_rate, self.attn_dropout_rate = dropout_rate, attn_dropout_rate
        self._epsilon, self.transpose_qkv_wb = epsilon, transpose_qkv_wb
        size = embed_dim // num_heads
        weight = [3, num_heads, size, embed_dim]
        bias = [3, num_heads, size]
        if transpose_qkv_wb:
            weight, bias = [embed_dim, 3 * embed_dim], [3 * embed_dim]
        self.qkv_weight = self.create_parameter(weight, qkv_weight_attr)
        self.qkv_bias = self.create_parameter(bias, qkv_bias_attr, is_bias=True)
        self.linear_weight = self.create_parameter([embed_dim, embed_dim], linear_weight_attr)
        self.linear_bias = self.create_parameter([embed_dim], linear_bias_attr, is_bias=True)
        # Paddle has those of the norm that is used alone.
        first = (pre_ln_scale_attr, pre_ln_bias_attr) if normalize_before else (False, False)
        second = (False, False) if normalize_before else (ln_scale_attr, ln_bias_attr)
        for prefix, (scale, shift) in (("pre_ln", first), ("ln", second)):
            made = self.create_parameter([embed_dim], scale, default_initializer=_ones)
            setattr(self, f"{prefix}_scale", made)
            setattr(self, f"{prefix}_bias", self.create_parameter([embed_dim], shift, is_bias=True))

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        attn_mask: Tensor | None = None,
        cache: Any = None,
    ) -> Tensor:
        if (key is not None and key is not query) or (value is not None and value is not query):
            raise NotImplementedError(
                "FusedMultiHeadAttention: expected key and value None or the query, as it attends to its own sequence"
            )
        if cache is not None:
            raise NotImplementedError(
                "FusedMultiHeadAttention: expected cache None, got one; call tenon.paged_attention() for steps of decoding"
            )
        return functional.fused_multi_head_attention(
            query,
            self.qkv_weight,
            self.linear_weight,
            self.normalize_before,
            self.pre_ln_scale,
            self.pre_ln_bias,
            self.ln_scale,
            self.ln_bias,
            self._epsilon,
            self.qkv_bias,
            self.linear_bias,
            attn_mask=attn_mask,
            dropout_rate=self.dropout_rate,
            attn_dropout_rate=self.attn_dropout_rate,
            ln_epsilon=self._epsilon,
            training=self.training,
            num_heads=self.num_heads,
            transpose_qkv_wb=self.transpose_qkv_wb,
        )


class FusedFeedForward(Layer):
    """Two linear layers with an activation between them, the residual, and layer_norm before or after them."""

    def __init__(
        self,
        d_model: int,
        dim_feedforward: int,
        dropout_rate: float = 0.1,
        epsilon: float = 1e-5,
        activation: str = "relu",
        act_dropout_rate: float | None = None,
        normalize_before: bool = False,
        linear1_weight_attr: Any = None,
        linear1_bias_attr: Any = None,
        linear2_weight_attr: Any = None,
        linear2_bias_attr: Any = None,
        ln1_scale_attr: Any = None,
        ln1_bias_attr: Any = None,
        ln2_scale_attr: Any = None,
        ln2_bias_attr: Any = None,
        nranks: int = 1,
        ring_id: int = -1,
        name: str | None = None,
    ) -> None:
        super().__init__()
        _one_device("FusedFeedForward", nranks, ring_id)
        if d_model < 1 or dim_feedforward < 1:
            raise ValueError(
                f"FusedFeedForward(): expected sizes above 0, got {d_model} and {dim_feedforward}"
            )
        self._epsilon, self._activation, self._before = epsilon, activation, normalize_before
        self._dropout_rate = dropout_rate
        self._act_dropout_rate = dropout_rate if act_dropout_rate is None else act_dropout_rate
        make = self.create_parameter
        self._linear1_weight = make([d_model, dim_feedforward], linear1_weight_attr)
        self._linear1_bias = make([dim_feedforward], linear1_bias_attr, is_bias=True)
        self._linear2_weight = make([dim_feedforward, d_model], linear2_weight_attr)
        self._linear2_bias = make([d_model], linear2_bias_attr, is_bias=True)
        first = (ln1_scale_attr, ln1_bias_attr) if normalize_before else (False, False)
        second = (False, False) if normalize_before else (ln2_scale_attr, ln2_bias_attr)
        self._ln1_scale = make([d_model], first[0], default_initializer=_ones)
        self._ln1_bias = make([d_model], first[1], is_bias=True)
        self._ln2_scale = make([d_model], second[0], default_initializer=_ones)
        self._ln2_bias = make([d_model], second[1], is_bias=True)

    def forward(self, src: Tensor, cache: Any = None) -> Tensor:
        if cache is not None:
            raise NotImplementedError("FusedFeedForward: expected cache=None")
        return functional.fused_feedforward(
            src,
            self._linear1_weight,
            self._linear2_weight,
            self._linear1_bias,
            self._linear2_bias,
            self._ln1_scale,
            self._ln1_bias,
            self._ln2_scale,
            self._ln2_bias,
            self._act_dropout_rate,
            self._dropout_rate,
            self._activation,
            self._epsilon,
            self._epsilon,
            self._before,
            self.training,
        )


class FusedTransformerEncoderLayer(Layer):
    """FusedMultiHeadAttention and FusedFeedForward."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout_rate: float = 0.1,
        activation: str = "relu",
        attn_dropout_rate: float | None = None,
        act_dropout_rate: float | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
    ) -> None:
        super().__init__()
        weights, biases = (
            attr if isinstance(attr, (list, tuple)) else [attr] * 2
            for attr in (weight_attr, bias_attr)
        )
        if len(weights) != 2 or len(biases) != 2:
            raise ValueError(
                "FusedTransformerEncoderLayer(): expected weight_attr and bias_attr one attribute or two, for attention "
                f"and for the other layers, got {len(weights)} and {len(biases)}"
            )
        self.fused_attn = FusedMultiHeadAttention(
            d_model,
            nhead,
            dropout_rate,
            dropout_rate if attn_dropout_rate is None else attn_dropout_rate,
            normalize_before=normalize_before,
            qkv_weight_attr=weights[0],
            qkv_bias_attr=biases[0],
            linear_weight_attr=weights[0],
            linear_bias_attr=biases[0],
            pre_ln_scale_attr=weights[0],
            pre_ln_bias_attr=biases[0],
            ln_scale_attr=weights[0],
            ln_bias_attr=biases[0],
        )
        self.ffn = FusedFeedForward(
            d_model,
            dim_feedforward,
            dropout_rate,
            activation=activation,
            act_dropout_rate=act_dropout_rate,
            normalize_before=normalize_before,
            linear1_weight_attr=weights[1],
            linear1_bias_attr=biases[1],
            linear2_weight_attr=weights[1],
            linear2_bias_attr=biases[1],
        )

    def forward(self, src: Tensor, src_mask: Tensor | None = None, cache: Any = None) -> Tensor:
        return self.ffn(self.fused_attn(src, attn_mask=src_mask, cache=cache))

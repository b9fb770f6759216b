# SPDX-License-Identifier: Apache-2.0
"""paddle.incubate.nn.functional: steps of transformers. Paddle has most of them for GPUs alone; here they run on every
device. Quantised results, caches and rings of devices are refused."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat._signature import table
from tenon.compat._signed import bound
from tenon.compat.paddle.nn import functional as _F

_QUANT = "quant_scale=-1, quant_round_type=0, quant_max_bound=0, quant_min_bound=0"
FUNCTIONS = table(f"""
fused_bias_act(x, bias=None, dequant_scales=None, shift=None, smooth=None, act_method='gelu', compute_dtype='default', {_QUANT})
fused_bias_dropout_residual_layer_norm(x, residual, bias=None, ln_scale=None, ln_bias=None, dropout_rate=0.5, ln_epsilon=1e-05, training=True, mode='upscale_in_train', name=None)
fused_dropout_add(x, y, p=0.5, training=True, mode='upscale_in_train', name=None)
fused_feedforward(x, linear1_weight, linear2_weight, linear1_bias=None, linear2_bias=None, ln1_scale=None, ln1_bias=None, ln2_scale=None, ln2_bias=None, dropout1_rate=0.5, dropout2_rate=0.5, activation='relu', ln1_epsilon=1e-05, ln2_epsilon=1e-05, pre_layer_norm=False, training=True, mode='upscale_in_train', ring_id=-1, add_residual=True, name=None)
fused_layer_norm(x, norm_weight, norm_bias, epsilon, residual_alpha=1.0, begin_norm_axis=1, bias=None, residual=None, {_QUANT})
fused_linear(x, weight, bias=None, transpose_weight=False, name=None)
fused_linear_activation(x, y, bias, trans_x=False, trans_y=False, activation=None)
fused_matmul_bias(x, y, bias=None, transpose_x=False, transpose_y=False, name=None)
fused_multi_head_attention(x, qkv_weight, linear_weight, pre_layer_norm=False, pre_ln_scale=None, pre_ln_bias=None, ln_scale=None, ln_bias=None, pre_ln_epsilon=1e-05, qkv_bias=None, linear_bias=None, cache_kv=None, attn_mask=None, dropout_rate=0.5, attn_dropout_rate=0.5, ln_epsilon=1e-05, training=True, mode='upscale_in_train', ring_id=-1, add_residual=True, num_heads=-1, transpose_qkv_wb=False, name=None)
fused_rms_norm(x, norm_weight, norm_bias, epsilon, begin_norm_axis=1, bias=None, residual=None, {_QUANT})
fused_rotary_position_embedding(q, k=None, v=None, sin=None, cos=None, position_ids=None, use_neox_rotary_style=True, time_major=False, rotary_emb_base=10000.0)
swiglu(x, y=None, name=None)
variable_length_memory_efficient_attention(query, key, value, seq_lens, kv_seq_lens, mask=None, scale=None, causal=False, pre_cache_length=0)
""")
__all__ = sorted(FUNCTIONS)

_ACTIVATIONS = ("gelu", "geglu", "relu", "sigmoid", "silu", "swiglu", "tanh")


def _matmul(x: Tensor, y: Tensor, transpose_x: bool, transpose_y: bool) -> Tensor:
    x = tenon.transpose(x, -2, -1) if transpose_x else x
    return tenon.matmul(x, tenon.transpose(y, -2, -1) if transpose_y else y)


def fused_matmul_bias(
    x: Tensor,
    y: Tensor,
    bias: Tensor | None = None,
    transpose_x: bool = False,
    transpose_y: bool = False,
) -> Tensor:
    """x @ y + bias."""
    made = _matmul(x, y, transpose_x, transpose_y)
    return made if bias is None else made + bias


def fused_linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, transpose_weight: bool = False
) -> Tensor:
    """x @ weight + bias, with a weight [in, out], or [out, in] where it is transposed."""
    return fused_matmul_bias(x, weight, bias, False, transpose_weight)


def fused_linear_activation(
    x: Tensor,
    y: Tensor,
    bias: Tensor,
    trans_x: bool = False,
    trans_y: bool = False,
    activation: str | None = None,
) -> Tensor:
    """gelu or relu of x @ y + bias, or that itself."""
    if activation not in (None, "none", "gelu", "relu"):
        raise ValueError(
            f"fused_linear_activation(): expected activation 'gelu', 'relu' or None, got {activation!r}"
        )
    made = fused_matmul_bias(x, y, bias, trans_x, trans_y)
    return made if activation in (None, "none") else getattr(_F, activation)(made)


def fused_dropout_add(
    x: Tensor, y: Tensor, p: float = 0.5, training: bool = True, mode: str = "upscale_in_train"
) -> Tensor:
    """dropout(x) + y."""
    return _F.dropout(x, p, training=training, mode=mode) + y


def fused_bias_act(
    x: Tensor,
    bias: Tensor | None = None,
    *,
    act_method: str = "gelu",
) -> Tensor:
    """An activation of x + bias; of 'swiglu' and 'geglu' the first half of the last axis has it, and the second is a factor."""
    if act_method not in _ACTIVATIONS:
        raise ValueError(
            f"fused_bias_act(): expected act_method {', '.join(map(repr, _ACTIVATIONS))}, got {act_method!r}"
        )
    return tenon.bias_act(x, bias, act_method)


def swiglu(x: Tensor, y: Tensor | None = None) -> Tensor:
    """silu(x) * y, where x is the first half of the last axis if y is not given."""
    if y is None:
        if x.shape[-1] % 2:
            raise ValueError(f"swiglu(): expected an even last axis, got shape {tuple(x.shape)}")
        x, y = tenon.chunk(x, 2, -1)
    return tenon.silu(x) * y


def _norm_axes(name: str, x: Tensor, begin: int) -> list[int]:
    if not 0 < begin < x.ndim:
        raise ValueError(f"{name}(): expected begin_norm_axis from 1 to {x.ndim - 1}, got {begin}")
    return list(x.shape[begin:])


def _summed(
    name: str, x: Tensor, bias: Tensor | None, residual: Tensor | None, alpha: float
) -> Tensor:
    if residual is None:
        if bias is not None:
            raise ValueError(
                f"{name}(): expected a residual beside bias, got none, where Paddle leaves the bias out; add it to x"
            )
        return x
    x = x if bias is None else x + bias
    return x + (residual if alpha == 1.0 else residual * alpha)


def fused_layer_norm(
    x: Tensor,
    norm_weight: Tensor | None,
    norm_bias: Tensor | None,
    epsilon: float,
    residual_alpha: float = 1.0,
    begin_norm_axis: int = 1,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """layer_norm of x + bias + residual_alpha * residual over the axes from `begin_norm_axis` on, that sum where a residual is
    given, and of rows the means and 1 / sqrt(variance + epsilon). Without weight and bias of the norm it is the sum alone. What Paddle leaves
    without values is None."""
    total = _summed("fused_layer_norm", x, bias, residual, residual_alpha)
    if norm_weight is None and norm_bias is None:
        return total, None, None, None
    shape = _norm_axes("fused_layer_norm", x, begin_norm_axis)
    made = _F.layer_norm(total, shape, norm_weight, norm_bias, epsilon)
    rows = total.detach().to(tenon.float32).reshape([-1, math.prod(shape)])
    inverse = tenon.rsqrt(tenon.var(rows, 1) + epsilon)
    return made, None if residual is None else total, rows.mean(1), inverse


def fused_rms_norm(
    x: Tensor,
    norm_weight: Tensor,
    norm_bias: Tensor | None,
    epsilon: float,
    begin_norm_axis: int = 1,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """rms_norm of x + bias + residual over the axes from `begin_norm_axis` on, and that sum where a residual is given, else
    None."""
    total = _summed("fused_rms_norm", x, bias, residual, 1.0)
    shape = _norm_axes("fused_rms_norm", x, begin_norm_axis)
    made = _F.rms_norm(total, shape, norm_weight, epsilon)
    made = made if norm_bias is None else made + norm_bias.reshape(shape)
    return made, None if residual is None else total


def fused_bias_dropout_residual_layer_norm(
    x: Tensor,
    residual: Tensor,
    bias: Tensor | None = None,
    ln_scale: Tensor | None = None,
    ln_bias: Tensor | None = None,
    dropout_rate: float = 0.5,
    ln_epsilon: float = 1e-5,
    training: bool = True,
    mode: str = "upscale_in_train",
) -> Tensor:
    """layer_norm(residual + dropout(x + bias)) over the last axis."""
    x = x if bias is None else x + bias
    total = fused_dropout_add(x, residual, dropout_rate, training, mode)
    return _F.layer_norm(total, [x.shape[-1]], ln_scale, ln_bias, ln_epsilon)


def fused_feedforward(
    x: Tensor,
    linear1_weight: Tensor,
    linear2_weight: Tensor,
    linear1_bias: Tensor | None = None,
    linear2_bias: Tensor | None = None,
    ln1_scale: Tensor | None = None,
    ln1_bias: Tensor | None = None,
    ln2_scale: Tensor | None = None,
    ln2_bias: Tensor | None = None,
    dropout1_rate: float = 0.5,
    dropout2_rate: float = 0.5,
    activation: str = "relu",
    ln1_epsilon: float = 1e-5,
    ln2_epsilon: float = 1e-5,
    pre_layer_norm: bool = False,
    training: bool = True,
    mode: str = "upscale_in_train",
    add_residual: bool = True,
) -> Tensor:
    """Two linear layers with an activation and dropout between them, dropout, the residual, and layer_norm before or
    after them."""
    size = [x.shape[-1]]
    inner = _F.layer_norm(x, size, ln1_scale, ln1_bias, ln1_epsilon) if pre_layer_norm else x
    inner = getattr(_F, activation)(fused_linear(inner, linear1_weight, linear1_bias))
    inner = _F.dropout(inner, dropout1_rate, training=training, mode=mode)
    inner = fused_linear(inner, linear2_weight, linear2_bias)
    out = _F.dropout(inner, dropout2_rate, training=training, mode=mode)
    out = x + out if add_residual else out
    return out if pre_layer_norm else _F.layer_norm(out, size, ln2_scale, ln2_bias, ln2_epsilon)


def _seen(mask: Tensor) -> Tensor:
    """A mask of whole numbers says by 1 what is seen, as a truth does."""
    return mask if mask.dtype.is_floating_point or mask.dtype == tenon.bool else mask != 0


def fused_multi_head_attention(
    x: Tensor,
    qkv_weight: Tensor,
    linear_weight: Tensor,
    pre_layer_norm: bool = False,
    pre_ln_scale: Tensor | None = None,
    pre_ln_bias: Tensor | None = None,
    ln_scale: Tensor | None = None,
    ln_bias: Tensor | None = None,
    pre_ln_epsilon: float = 1e-5,
    qkv_bias: Tensor | None = None,
    linear_bias: Tensor | None = None,
    attn_mask: Tensor | None = None,
    dropout_rate: float = 0.5,
    attn_dropout_rate: float = 0.5,
    ln_epsilon: float = 1e-5,
    training: bool = True,
    mode: str = "upscale_in_train",
    add_residual: bool = True,
    num_heads: int = -1,
    transpose_qkv_wb: bool = False,
) -> Tensor:
    """Attention of x [batch, length, features] to itself, a linear layer, dropout, the residual, and layer_norm before or
    after them. `qkv_weight` is [3, heads, size of a head, features], or with `transpose_qkv_wb` [features, 3 * features]."""
    name = "fused_multi_head_attention"
    if mode != "upscale_in_train":
        raise NotImplementedError(
            f"{name}(): expected mode 'upscale_in_train', which dropout of attention has, got {mode!r}"
        )
    batch, length, features = x.shape
    if transpose_qkv_wb:
        if num_heads < 1 or features % num_heads:
            raise ValueError(
                f"{name}(): expected num_heads that divides {features} with transpose_qkv_wb, got {num_heads}"
            )
        heads, weight = num_heads, qkv_weight
    else:
        if qkv_weight.ndim != 4 or qkv_weight.shape[0] != 3 or qkv_weight.shape[3] != features:
            raise ValueError(
                f"{name}(): expected qkv_weight [3, heads, size of a head, {features}], got shape "
                f"{tuple(qkv_weight.shape)}"
            )
        heads = qkv_weight.shape[1]
        weight = qkv_weight.reshape([-1, features]).T
    size = weight.shape[1] // (3 * heads)
    inner = x
    if pre_layer_norm:
        inner = _F.layer_norm(x, [features], pre_ln_scale, pre_ln_bias, pre_ln_epsilon)
    packed = tenon.matmul(inner, weight)
    packed = packed if qkv_bias is None else packed + qkv_bias.reshape([-1])
    q, k, v = tenon.unbind(packed.reshape([batch, length, 3, heads, size]), 2)
    mask = None if attn_mask is None else _seen(attn_mask)
    out = _F.scaled_dot_product_attention(q, k, v, mask, attn_dropout_rate, training=training)
    out = fused_linear(out.reshape([batch, length, heads * size]), linear_weight, linear_bias)
    out = _F.dropout(out, dropout_rate, training=training)
    out = x + out if add_residual else out
    return out if pre_layer_norm else _F.layer_norm(out, [features], ln_scale, ln_bias, ln_epsilon)


def _angles(
    q: Tensor, sin: Tensor | None, cos: Tensor | None, base: float, adjacent: bool
) -> tuple[Tensor, Tensor]:
    """The sines and cosines of all positions and pairs of features, [positions, features / 2]."""
    size = q.shape[-1]
    if (sin is None) != (cos is None):
        raise ValueError("fused_rotary_position_embedding(): expected both sin and cos, or none")
    if sin is None or cos is None:
        pair = tenon.arange(0, size, 2, dtype=tenon.float32, device=q.device) / size
        position = tenon.arange(q.shape[1], dtype=tenon.float32, device=q.device)
        angle = position.unsqueeze(1) * tenon.exp(pair * -math.log(base))
        return tenon.sin(angle), tenon.cos(angle)
    tables = []
    for one in (sin, cos):
        flat = one.reshape([one.shape[-1]]) if one.ndim == 1 else one.reshape([-1, one.shape[-1]])
        if flat.ndim != 2 or flat.shape[1] != size:
            raise ValueError(
                f"fused_rotary_position_embedding(): expected sin and cos [length, {size}], got shape {tuple(one.shape)}"
            )
        # Each angle is there twice: for both features of its pair.
        tables.append(flat[:, ::2] if adjacent else flat[:, : size // 2])
    return tables[0], tables[1]


def fused_rotary_position_embedding(
    q: Tensor,
    k: Tensor | None = None,
    v: Tensor | None = None,
    sin: Tensor | None = None,
    cos: Tensor | None = None,
    position_ids: Tensor | None = None,
    use_neox_rotary_style: bool = True,
    time_major: bool = False,
    rotary_emb_base: float = 10000.0,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """q, k and v [batch, length, heads, features] with pairs of features turned by angles of their positions: pairs are
    neighbours with `use_neox_rotary_style`, else a feature of the first half and one of the second. `sin` and `cos`
    [length, features] hold each angle twice, for both features of a pair."""
    if q.shape[-1] % 2:
        raise ValueError(
            f"fused_rotary_position_embedding(): expected an even number of features, got {q.shape[-1]}"
        )
    if time_major:
        q, k, v = (None if x is None else tenon.transpose(x, 0, 1) for x in (q, k, v))  # type: ignore[assignment]
    sines, cosines = _angles(q, sin, cos, rotary_emb_base, use_neox_rotary_style)
    if position_ids is not None:
        rows = position_ids.to(tenon.int64)  # [batch, length]
        sines, cosines = sines[rows], cosines[rows]
    else:
        sines, cosines = sines[: q.shape[1]], cosines[: q.shape[1]]

    def turned(x: Tensor | None) -> Tensor | None:
        if x is None:
            return None
        made = tenon.rotary_embedding(
            x,
            cosines.unsqueeze(-2).to(x.dtype),
            sines.unsqueeze(-2).to(x.dtype),
            use_neox_rotary_style,
        )
        return tenon.transpose(made, 0, 1) if time_major else made

    return turned(q), turned(k), turned(v)


def variable_length_memory_efficient_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    seq_lens: Tensor,
    kv_seq_lens: Tensor,
    mask: Tensor | None = None,
    scale: float | None = None,
    causal: bool = False,
) -> Tensor:
    """Attention [batch, heads, length, features] of sequences of `seq_lens` to `kv_seq_lens` [batch, 1] elements; what is
    behind a sequence's end is zeros."""
    rows, columns = (
        tenon.arange(x.shape[2], device=x.device) < lengths.reshape([-1, 1])
        for x, lengths in ((query, seq_lens), (key, kv_seq_lens))
    )
    shown = columns.unsqueeze(1).unsqueeze(1)
    if causal:
        at = tenon.arange(query.shape[2], device=query.device).unsqueeze(1)
        shown = shown & (tenon.arange(key.shape[2], device=query.device) <= at)
    if mask is not None:
        shown = tenon.where(shown, mask, -math.inf)
    grouped = query.shape[1] != key.shape[1]
    out = tenon.scaled_dot_product_attention(query, key, value, shown, 0.0, False, scale, grouped)
    return tenon.where(rows.unsqueeze(1).unsqueeze(-1), out, 0.0)


_FREE = {name: globals()[name] for name in FUNCTIONS}
for _name, _signature in FUNCTIONS.items():
    globals()[_name] = bound(
        f"tenon.compat.paddle.incubate.nn.functional.{_name}",
        _signature,
        _FREE[_name],
        ignored=frozenset({"name"}),
    )


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"tenon.compat.paddle does not cover paddle.incubate.nn.functional.{name}; docs/from_paddle.md says what is covered"
    )


def __dir__() -> list[str]:
    return __all__

# SPDX-License-Identifier: Apache-2.0
"""Whether two results agree, and how much rounding of inputs and results may part them."""

from __future__ import annotations

import math

import numpy as np

from .arrays import COMPLEXES, FLOATS, Array, numpy_of
from .draw.values import LIMITS

# Units of the last place that a kernel may err by, and how many roundings of its inputs.
UNITS, ROUNDINGS = 8.0, 16.0
_PROBES = 3


def is_inexact(name):
    return name in FLOATS or name in COMPLEXES


def exact_difference(got, want):
    """Where two arrays are not the same numbers, with signs of zeros; None if nowhere."""
    if got.shape != want.shape:
        return f"shape {got.shape} instead of {want.shape}"
    same = _identical(got, want)
    return None if same.all() else _first(got, want, ~same)


def _identical(got, want):
    if got.dtype.kind == "c":
        return _identical(got.real, want.real) & _identical(got.imag, want.imag)
    if got.dtype.kind != "f":
        return np.asarray(got == want)
    equal = (got == want) & (np.signbit(got) == np.signbit(want))
    return equal | (np.isnan(got) & np.isnan(want))


def close_difference(got, want, dtype, spread=0.0, units=UNITS):
    """Where `got` is further from `want` than rounding in `dtype` explains; None if nowhere.

    `spread`: how far `want` moves if its inputs are rounded.
    """
    if got.shape != want.shape:
        return f"shape {got.shape} instead of {want.shape}"
    if dtype in COMPLEXES:
        return _complex_difference(got, want, dtype, spread, units)
    if dtype not in FLOATS:
        bad = got != want
        return _first(got, want, bad) if np.any(bad) else None
    with np.errstate(all="ignore"):
        bad = ~_agree(got, want.astype(np.float64), dtype, spread, units)
    return _first(got, want, bad) if np.any(bad) else None


def _agree(got, want, dtype, spread, units):
    largest, _, subnormal, epsilon = LIMITS[dtype]
    allowed = units * epsilon * np.abs(want) + ROUNDINGS * spread + 2 * subnormal
    near = np.abs(got - want) <= allowed
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    # Numbers that the dtype does not hold become infinite, or NaN in a dtype without infinities.
    beyond = np.abs(want) + allowed >= largest * (1 + epsilon / 4)
    overflow = (got == np.copysign(np.inf, want)) | (np.abs(got) >= largest * (1 - units * epsilon))
    if dtype == "float8_e4m3":
        overflow |= np.isnan(got)
    unknown = np.isnan(spread) | np.isinf(spread)  # rounding alone makes it overflow
    return near | same | (beyond & overflow) | unknown


def _complex_difference(got, want, dtype, spread, units):
    """As a whole: either part is small against the absolute value."""
    part = "float32" if dtype == "complex64" else "float64"
    epsilon, subnormal = LIMITS[part][3], LIMITS[part][2]
    with np.errstate(all="ignore"):
        allowed = units * epsilon * np.abs(want) + ROUNDINGS * spread + 2 * subnormal
        finite = np.isfinite(got) & np.isfinite(want)
        near = (np.abs(got - want) <= allowed) | ~np.isfinite(allowed)
        # Infinite and NaN parts follow the C++ library, and differ between libraries.
        bad = ~np.where(finite, near, True)
        bad |= np.isfinite(want) & ~np.isfinite(got) & (np.abs(want) < LIMITS[part][0] / 8)
    return _first(got, want, bad) if np.any(bad) else None


def _first(got, want, bad):
    """Text of the first place where results differ, and how many there are."""
    where = tuple(int(i) for i in np.argwhere(bad)[0]) if bad.ndim else ()
    count = f", {int(bad.sum())} of {bad.size} elements differ" if bad.size > 1 else ""
    return f"{_plain(got[where])} instead of {_plain(want[where])} at {where}{count}"


# Operators that round nothing: their results are exact in every dtype, jumps and ties included.
EXACT = set(
    "relu hardshrink sign floor ceil round trunc abs negative positive maximum minimum fmax fmin "
    "clip where masked_fill max min sort sort_with_indices topk real imag conj clone contiguous "
    "to_device one_hot copysign nan_to_num tril triu embedding full zeros ones zeros_like "
    "ones_like full_like eye index index_select gather take_along_axis scatter masked_select "
    "masked_scatter max_pool1d max_pool2d max_pool2d_with_indices adaptive_max_pool2d max_pool3d "
    "max_pool3d_with_indices concat "
    "stack broadcast_tensors meshgrid tile repeat roll pad reshape flatten split unbind relu6".split()
)


def is_exact(operator):
    return operator.kind == "view" or operator.name in EXACT


# Sums of products: what they may err by follows from the same sums of absolute values.
MULTILINEAR = set(
    "sum nansum nanmean trapezoid cumulative_trapezoid mean prod matmul addmm addbmm addmv addr addcmul baddbmm inner linear dot vecdot outer "
    "tensordot einsum trace conv1d conv2d conv3d conv_transpose2d conv_transpose3d "
    "conv2d_input_grad conv2d_weight_grad col2im cumsum cumprod avg_pool1d avg_pool2d avg_pool3d "
    "adaptive_avg_pool2d interpolate2d segment_sum send_u_recv index_add scatter_add index_put diff subtract add "
    "correlation match_matrix_tensor rank_attention sequence_conv csr_matmul csr_matmul_transposed csr_sddmm "
    "csr_masked_product csr_product".split()
)


def _largest(call, *names):
    """The largest magnitude among tensors, or numbers, of these names."""
    values = [call.arguments.get(name) for name in names]
    values = [np.abs(v.values if isinstance(v, Array) else v) for v in values if v is not None]
    return max((float(np.max(v, initial=0.0)) for v in values), default=0.0)


def _terms(call, *names):
    """The magnitudes of these tensors, element by element, with the factors that are above 1."""
    arrays = [call.arguments[name] for name in names]
    numbers = [abs(v) for v in call.arguments.values() if isinstance(v, float)]
    return sum(np.abs(a.values) for a in arrays) * math.prod(max(1.0, n) for n in numbers)


def _centered_products(call):
    """Rounding of the means, which are subtracted before products are added."""
    columns = call.arguments["x"].shape[-1]
    largest = np.float64(_largest(call, "x"))
    return largest**2 * columns / max(columns - call.arguments.get("correction", 1), 1)


def _correlated(call):
    """The same, in units of the deviations."""
    x = call.arguments["x"].values
    with np.errstate(all="ignore"):
        deviation = np.min(np.std(x, axis=-1), initial=np.inf)
        return 1.0 + np.float64(_largest(call, "x") / deviation) ** 2


def _squares_overflow(call):
    wide = any(a.dtype == "float64" for _, _, a in call.arrays())
    largest = LIMITS["float64" if wide else "float32"][0]
    return _largest(call, "x") > np.sqrt(largest) / 100


def _normalised(call, *names):
    """Rounding of the mean, seen through a division by the deviation.

    Nothing is known where squares overflow in the accumulator: float32 for dtypes up to it.
    """
    if _squares_overflow(call):
        return np.inf
    eps = call.arguments.get("eps", 1e-5)
    weight = max(1.0, _largest(call, "weight")) if "weight" in call.arguments else 1.0
    return _largest(call, "x", *names) * weight / np.sqrt(eps)


def _coordinates(call):
    """Rounding of the position between two elements, relative to their distance."""
    return float(max(call.arguments["x"].shape[-2:], default=1))


def _transformed(call):
    """Every element of a Fourier transform is a sum of all elements along its axes."""
    return np.sqrt(max(1.0, float(call.arguments["x"].values.size))) * _largest(call, "x")


def _paths(call):
    """The sums of two sets of paths are subtracted, each as long as a sequence."""
    steps = float(call.arguments["emission"].values.shape[1] + 1)
    return steps * (1.0 + _largest(call, "emission", "transition"))


def _distances(call):
    """Two distances are subtracted, each by a norm whose order may enlarge it."""
    columns = max([1] + [a.shape[-1] for _, _, a in call.arrays() if a.shape])
    p = call.arguments.get("p", 2.0)
    widest = np.float64(columns) ** (1 / p) if p > 0 else columns
    return widest * _largest(call, "anchor", "positive", "negative")


def _deformed(call):
    """Rounding of the position that an offset moves, relative to the distance of two pixels."""
    moved = _coordinates(call) + _largest(call, "offset")
    weight = call.arguments["weight"].values
    return moved * _largest(call, "x") * np.abs(weight).sum() * max(1.0, _largest(call, "mask"))


def _attended(call):
    """Rounding of the scores, which the exponential makes relative to the result."""
    scores = _largest(call, "query") * _largest(call, "key", "keys")
    query, mask = call.arguments["query"], call.arguments.get("mask")
    scores *= max(1.0, float(query.values.shape[-1])) if query.values.ndim else 1.0
    scores *= 1.0 if call.arguments.get("scale") is None else abs(call.arguments["scale"])
    if mask is not None and mask.dtype != "bool":
        added = np.abs(mask.values[np.isfinite(mask.values)])
        scores += float(np.max(added[added < 1e4], initial=0.0))
    return (1.0 + scores) * _largest(call, "value", "values")


# Operators whose definition cancels: the absolute size of what their steps round.
CANCELS = {
    "layer_norm": _normalised,
    "group_norm": _normalised,
    "batch_norm": _normalised,
    "rms_norm": lambda call: np.inf if _squares_overflow(call) else 0.0,
    "batch_norm_inference": lambda call: _normalised(call, "mean"),
    "lerp": lambda call: _largest(call, "x", "y") * max(1.0, _largest(call, "weight")),
    "lgamma": lambda call: 1.0,  # the logarithms of a reflection, next to negative zeros
    "logaddexp": lambda call: _largest(call, "x", "y"),
    "logaddexp2": lambda call: _largest(call, "x", "y"),
    "logsumexp": lambda call: 1.0 + _largest(call, "x"),
    "log_softmax": lambda call: 1.0,  # the sum next to its largest term, which is 1
    "cross_entropy": lambda call: max(1.0, _largest(call, "weight")),  # the same
    "softmax_with_cross_entropy": lambda call: max(1.0, _largest(call, "target")),  # the same
    "margin_cross_entropy": lambda call: 1.0 + abs(call.arguments.get("scale", 64.0)),
    "linear_chain_crf": _paths,
    "triplet_margin_loss": _distances,
    "log_loss": lambda call: 1.0,  # epsilon is added to a probability
    "add_position_encoding": lambda call: (
        call.arguments["x"].values.shape[1] * max(1.0, abs(call.arguments.get("beta", 1.0)))
        + _largest(call, "x") * abs(call.arguments.get("alpha", 1.0))
    ),  # sines of angles up to the length, and two terms are added
    "cosine_embedding_loss": lambda call: 1.0,  # of cosine_similarity
    "cvm": lambda call: np.log1p(_largest(call, "x")),  # two logarithms are subtracted
    "scaled_dot_product_attention": _attended,
    "varlen_attention": _attended,
    "cached_attention": _attended,
    "paged_attention": _attended,
    "roi_align": lambda call: (_coordinates(call) + _largest(call, "boxes")) * _largest(call, "x"),
    "generalized_box_iou": lambda call: 2.0,  # two ratios up to 1 are subtracted
    "fft_c2c": _transformed,
    "fft_r2c": _transformed,
    "fft_c2r": _transformed,
    "deform_conv2d": _deformed,
    "rotary_embedding": lambda call: (
        _terms(call, "x") * (_largest(call, "cos") + _largest(call, "sin"))
    ),
    "add_layer_norm": lambda call: _normalised(call, "residual"),
    "add_rms_norm": lambda call: _normalised(call, "residual"),
    "cov": _centered_products,
    "corrcoef": _correlated,
    "cosine_similarity": lambda call: 1.0,  # a sum of products whose magnitudes add up to 1 at most
    "sgd_update": lambda call: _terms(call, "param", "grad"),
    "momentum_update": lambda call: _terms(call, "param", "grad", "velocity"),
    "lstm_recurrence": lambda call: 1.0 + _largest(call, "c"),  # two gated terms are added
    "gru_recurrence": lambda call: 1.0 + _largest(call, "h"),  # the same
    "interpolate2d": lambda call: _coordinates(call) * _largest(call, "x"),
    "interpolate": lambda call: 4 * _coordinates(call) * _largest(call, "x"),
    "grid_sample": lambda call: (
        4 * _coordinates(call) * _largest(call, "x") * (1 + _largest(call, "grid"))
    ),
    "adam_update": lambda call: _terms(call, "param"),
    "adamw_update": lambda call: _terms(call, "param"),
    "adam_update_counted": lambda call: _terms(call, "param"),
    "rmsprop_update": lambda call: _terms(call, "param"),
    "arange": lambda call: _largest(call, "start", "stop"),
    "linspace": lambda call: _largest(call, "start", "stop"),
}


def _plain(number):
    """Text of a NumPy number without the name of its type."""
    return repr(number.item() if hasattr(number, "item") else number)


def spreads(call, rng):
    """For every result of a call: how far roundings of inputs and sums may move it.

    Computed in float64 from copies; None where nothing is rounded, or where it is not known.
    """
    if is_exact(call.operator):
        return None
    moved = _moving(call, rng)
    if call.op in CANCELS:
        with np.errstate(all="ignore"):
            allowed = np.asarray(_epsilon(call) * CANCELS[call.op](call))
            return [allowed + m for m in moved] if moved else [allowed] * call.operator.results
    if moved is None or call.op not in MULTILINEAR:
        return moved
    return _bounded(call, moved)


def _epsilon(call):
    names = [a.dtype for _, _, a in call.arrays() if is_inexact(a.dtype)]
    return max((LIMITS[name][3] for name in names), default=LIMITS["float32"][3])


def _bounded(call, moved):
    """With the bound of the sums of absolute values, which also says where a sum may overflow."""
    names = [a.dtype for _, _, a in call.arrays() if is_inexact(a.dtype)]
    largest, normal, subnormal, _ = min(LIMITS[name] for name in names)
    if "bfloat16" in names:
        subnormal = normal / 8  # sums of bfloat16 may flush, as docs/accuracy.md says
    epsilon = _epsilon(call)
    sizes = widened(call).map(
        lambda a: a.with_values(np.abs(a.values)) if is_inexact(a.dtype) else a
    )
    with np.errstate(all="ignore"):
        try:
            bounds = [np.abs(numpy_of(r)) for r in sizes.run()]
        except Exception:
            return moved
        return [
            np.where(b >= largest / 4, np.nan, np.maximum(m, epsilon * b) + subnormal)
            for b, m in zip(bounds, moved)
        ]


def _moving(call, rng):
    """How far results move if floating inputs do by a rounding; None without such inputs."""
    inexact = [a.dtype for _, _, a in call.arrays() if is_inexact(a.dtype)]
    if not inexact:
        return None
    wide = widened(call)
    try:
        base = [numpy_of(r) for r in wide.run()]
        found = [np.zeros(b.shape) for b in base]
        for _ in range(_PROBES):
            moved = [numpy_of(r) for r in wide.map(lambda a: _moved(a, call, rng)).run()]
            for i, (b, m) in enumerate(zip(base, moved)):
                if b.shape != m.shape:
                    return None
                if b.dtype.kind in "fc":
                    with np.errstate(all="ignore"):
                        same = (b == m) | (np.isnan(b) & np.isnan(m))
                        found[i] = np.maximum(found[i], np.where(same, 0, np.abs(b - m)))
    except Exception:
        return None
    return [f / 2 for f in found]


def widened(call):
    """The same values in float64 or complex128, contiguous."""
    wider = {name: "float64" for name in FLOATS} | {name: "complex128" for name in COMPLEXES}
    return call.map(lambda a: a.with_dtype(wider.get(a.dtype, a.dtype)).with_layout("plain"))


def _moved(array, call, rng):
    """The array with every number moved by twice a rounding of the call's narrowest dtype.

    Half of it would be lost in float64, where 1 + epsilon / 2 is 1.
    """
    if not is_inexact(array.dtype):
        return array
    epsilon = _epsilon(call)
    with np.errstate(all="ignore"):
        signs = rng.choice([-1.0, 1.0], array.values.shape)
        return array.with_values(array.values * (1 + epsilon * signs))

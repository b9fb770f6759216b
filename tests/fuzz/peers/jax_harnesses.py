# SPDX-License-Identifier: Apache-2.0
"""JAX's own samples of its primitives, asked of Tenon.

    python -m tests.fuzz.peers.jax_harnesses [--only NAME,NAME] [--samples 40] [--list different]

JAX's wheel brings `test_harnesses`: calls of lax's primitives with their parameters, for every dtype. CALLS says what each
primitive is in Tenon. A primitive counts as

    agrees       every sample gave JAX's result
    different    a sample gave another result
    refused      a sample raised an error where JAX answers
    left out     CALLS has no entry: XLA's own forms of gathers, scatters and windows, and random numbers

JAX and absl-py come from an environment outside the repository.
"""

import argparse
import collections
import inspect
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np
import tenon
from jax._src.internal_test_util import test_harnesses
from tenon.utils.progress import progress

from .op_db import _adjoint

STATES = ("agrees", "different", "refused", "left out")
Parameters = dict[str, Any]


def _same(ours: str) -> Callable[..., Any]:
    return lambda p, *arguments: getattr(tenon, ours)(*arguments)


def _reduced(ours: str) -> Callable[..., Any]:
    # lax keeps the dtype, also of small integers.
    return lambda p, x: getattr(tenon, ours)(x, list(p["axes"])).to(x.dtype)


def _running(ours: str) -> Callable[..., Any]:
    def call(p: Parameters, x: Any) -> Any:
        axis = p["axis"]
        flipped = x.flip([axis]) if p["reverse"] else x
        found = getattr(tenon, ours)(flipped, axis)
        found = found if isinstance(found, tenon.Tensor) else found[0]
        return (found.flip([axis]) if p["reverse"] else found).to(x.dtype)

    return call


def _padded(p: Parameters, x: Any, value: Any) -> Any:
    for axis, (low, high, interior) in enumerate(p["pads"]):
        length = x.shape[axis]
        if interior and length:
            wide = list(x.shape)
            wide[axis] = length + (length - 1) * interior
            spread = value.expand(wide).clone()
            spread[(slice(None),) * axis + (slice(None, None, interior + 1),)] = x
            x = spread
        before, after = max(low, 0), max(high, 0)
        sides = [value.expand([*x.shape[:axis], n, *x.shape[axis + 1 :]]) for n in (before, after)]
        x = tenon.concat([sides[0], x, sides[1]], axis=axis)
        stop = x.shape[axis] + min(high, 0)
        x = x[(slice(None),) * axis + (slice(-min(low, 0), max(stop, -min(low, 0))),)]
    return x


def _product(p: Parameters, x: Any, y: Any) -> Any:
    (contract_x, contract_y), (batch_x, batch_y) = p["dimension_numbers"]
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    of_x = [next(letters) for _ in x.shape]
    of_y = [next(letters) for _ in y.shape]
    for i, j in [*zip(contract_x, contract_y), *zip(batch_x, batch_y)]:
        of_y[j] = of_x[i]
    free_x = [c for i, c in enumerate(of_x) if i not in (*contract_x, *batch_x)]
    free_y = [c for j, c in enumerate(of_y) if j not in (*contract_y, *batch_y)]
    out = "".join([*(of_x[i] for i in batch_x), *free_x, *free_y])
    wanted = p["preferred_element_type"]
    if wanted is not None:
        x, y = (each.to(np.dtype(wanted).name) for each in (x, y))
    return tenon.einsum(f"{''.join(of_x)},{''.join(of_y)}->{out}", x, y)


def _convolution(p: Parameters, x: Any, weight: Any) -> Any:
    if (
        p["batch_group_count"] != 1
        or set(p["lhs_dilation"]) != {1}
        or len(x.shape) not in (3, 4, 5)
    ):
        raise LookupError
    numbers = p["dimension_numbers"]
    if numbers is None:
        spatial = "DHW"[5 - len(x.shape) :]
        numbers = (f"NC{spatial}", f"OI{spatial}", f"NC{spatial}")
    if not all(isinstance(each, str) for each in numbers):
        raise LookupError
    axes = [c for c in numbers[0] if c not in "NC"]
    x = x.permute([numbers[0].index(c) for c in ["N", "C", *axes]])
    weight = weight.permute([numbers[1].index(c) for c in ["O", "I", *axes]])
    padding = p["padding"]
    if isinstance(padding, str):
        raise LookupError
    for axis, (low, high) in enumerate(padding):
        x = _padded(
            {"pads": [(0, 0, 0)] * (2 + axis) + [(low, high, 0)]}, x, tenon.zeros([], dtype=x.dtype)
        )
    if p["preferred_element_type"] is not None:
        wide = np.dtype(p["preferred_element_type"]).name
        x, weight = x.to(wide), weight.to(wide)
    functional = tenon.nn.functional
    convolve = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}[len(axes)]
    out = convolve(
        x,
        weight,
        stride=list(p["window_strides"]),
        dilation=list(p["rhs_dilation"] or [1] * len(axes)),
        groups=p["feature_group_count"],
    )
    result = out.permute([["N", "C", *axes].index(c) for c in numbers[2]])
    return result


def _fourier(p: Parameters, x: Any) -> Any:
    name = p["fft_type"].name.lower()
    lengths = list(p["fft_lengths"])
    axes = list(range(-len(lengths), 0))
    return {
        "fft": tenon.fft.fftn,
        "ifft": tenon.fft.ifftn,
        "rfft": tenon.fft.rfftn,
        "irfft": tenon.fft.irfftn,
    }[name](x, lengths, axes)


def _solution(p: Parameters, a: Any, b: Any) -> Any:
    if p["conjugate_a"]:
        a = a.conj()
    lower = p["lower"]
    if p["tranpose_a"]:
        a, lower = a.mT, not lower
    a, b = a.broadcast_to([*b.shape[:-2], *a.shape[-2:]]), b
    if p["left_side"]:
        return tenon.linalg.solve_triangular(
            a, b, upper=not lower, unitriangular=p["unit_diagonal"]
        )
    x = tenon.linalg.solve_triangular(a.mT, b.mT, upper=lower, unitriangular=p["unit_diagonal"])
    return x.mT


def _sorted(p: Parameters, *operands: Any) -> Any:
    if len(operands) != 1:
        raise LookupError
    return tenon.sort(operands[0], p["dimension"])


def _window(ours: str) -> Callable[..., Any]:
    """A reduction of windows, by views of a padded tensor."""

    def call(p: Parameters, x: Any, *rest: Any) -> Any:
        if set(p["base_dilation"]) != {1} or isinstance(p["padding"], str):
            raise LookupError
        start = rest[0] if rest else to_tenon(p["init_value"]).to(x.dtype)
        x = _padded({"pads": [(low, high, 0) for low, high in p["padding"]]}, x, start.reshape([]))
        for axis, (size, step, gap) in enumerate(
            zip(p["window_dimensions"], p["window_strides"], p["window_dilation"])
        ):
            reach = (size - 1) * gap + 1
            if x.shape[axis] < reach:
                raise LookupError
            x = x.unfold(axis, reach, step)[..., ::gap]
        axes = list(range(len(p["window_dimensions"]), x.ndim))
        total = getattr(tenon, ours)(x, axes)
        return {
            "sum": tenon.add,
            "prod": tenon.multiply,
            "max": tenon.maximum,
            "min": tenon.minimum,
        }[ours](total, start.reshape([])).to(x.dtype)

    return call


def _missing() -> Any:
    raise LookupError


SAME = """abs acosh asinh atanh acos atan asin cos cosh exp expm1 log log1p rsqrt sin sinh sqrt tan tanh ceil erf
erfc floor lgamma digamma cbrt sign atan2 nextafter complex real imag""".split()

CALLS: dict[str, Callable[..., Any]] = {name: _same(name) for name in SAME} | {
    "logistic": _same("sigmoid"),
    "bessel_i0e": _same("i0e"),
    "bessel_i1e": _same("i1e"),
    "erf_inv": _same("erfinv"),
    "is_finite": _same("isfinite"),
    "neg": _same("negative"),
    "igamma": _same("gammainc"),
    "igammac": _same("gammaincc"),
    "add": _same("add"),
    "add_any": _same("add"),
    "mul": _same("multiply"),
    "sub": _same("subtract"),
    "min": _same("minimum"),
    "max": _same("maximum"),
    "rem": _same("fmod"),
    "div": lambda p, x, y: (
        tenon.divide(x, y)
        if x.dtype.is_floating_point or x.dtype.is_complex
        else tenon.divide(x.to("float64"), y.to("float64")).trunc().to(x.dtype)
    ),
    "pow": lambda p, x, y: tenon.pow(x, y).to(x.dtype),
    "integer_pow": lambda p, x: x ** p["y"],
    "round": lambda p, x: (
        tenon.round(x)
        if int(p["rounding_method"]) == 1
        else tenon.copysign(tenon.floor(x.abs() + 0.5), x)
    ),
    "eq": _same("equal"),
    "ne": _same("not_equal"),
    "ge": _same("greater_equal"),
    "gt": _same("greater"),
    "le": _same("less_equal"),
    "lt": _same("less"),
    "and": _same("bitwise_and"),
    "or": _same("bitwise_or"),
    "xor": _same("bitwise_xor"),
    "shift_left": _same("bitwise_left_shift"),
    "shift_right_arithmetic": _same("bitwise_right_shift"),
    "clamp": lambda p, low, x, high: tenon.minimum(tenon.maximum(x, low), high),
    "select_n": lambda p, which, *cases: tenon.where(
        which.to("int64") == 0, cases[0], tenon.where(which.to("int64") == 1, cases[1], cases[-1])
    ),
    "convert_element_type": lambda p, x: x.to(np.dtype(p["new_dtype"]).name),
    "bitcast_convert_type": lambda p, x: tenon.view_dtype(x, np.dtype(p["new_dtype"]).name),
    "stop_gradient": lambda p, x: x.detach(),
    "transpose": lambda p, x: x.permute(list(p["permutation"])),
    "rev": lambda p, x: x.flip(list(p["dimensions"])) if p["dimensions"] else x,
    "squeeze": lambda p, x: (
        x.squeeze([i % x.ndim for i in p["dimensions"]] or None) if p["dimensions"] else x
    ),
    "concatenate": lambda p, *parts: tenon.concat(list(parts), axis=p["dimension"]),
    "slice": lambda p, x: x[
        tuple(
            map(
                slice,
                p["start_indices"],
                p["limit_indices"],
                p.get("strides") or p.get("slice_strides") or [None] * x.ndim,
            )
        )
    ],
    "pad": _padded,
    "reduce_sum": _reduced("sum"),
    "reduce_prod": _reduced("prod"),
    "reduce_max": _reduced("max"),
    "reduce_min": _reduced("min"),
    "reduce_or": _reduced("any"),
    "reduce_and": _reduced("all"),
    "reduce_window_add": _window("sum"),
    "reduce_window_mul": _window("prod"),
    "reduce_window_max": _window("max"),
    "reduce_window_min": _window("min"),
    "argmax": lambda p, x: tenon.argmax(x, p["axes"][0]).to(np.dtype(p["index_dtype"]).name),
    "argmin": lambda p, x: tenon.argmin(x, p["axes"][0]).to(np.dtype(p["index_dtype"]).name),
    "cumsum": _running("cumsum"),
    "cumprod": _running("cumprod"),
    "cummax": _running("cummax"),
    "cummin": _running("cummin"),
    "cumlogsumexp": _running("logcumsumexp"),
    "sort": _sorted,
    "top_k": lambda p, x: (lambda found: (found[0], found[1].to("int32")))(tenon.topk(x, p["k"])),
    "dot_general": _product,
    "conv_general_dilated": _convolution,
    "fft": _fourier,
    "cholesky": lambda p, x: tenon.linalg.cholesky((x + x.mT.conj()) / 2).tril(),
    "reshape": lambda p, x: (
        x.reshape(list(p["new_sizes"])) if not p.get("dimensions") else _missing()
    ),
    "broadcast_in_dim": lambda p, x: x.reshape(
        [
            x.shape[p["broadcast_dimensions"].index(i)] if i in p["broadcast_dimensions"] else 1
            for i in range(len(p["outshape"]))
        ]
    ).expand(list(p["outshape"])),
    "triangular_solve": _solution,
    "qr": lambda p, x: tuple(
        tenon.linalg.qr(x, mode="complete" if p["full_matrices"] else "reduced")
    ),
    "svd": lambda p, x: (
        tuple(tenon.linalg.svd(x, full_matrices=p["full_matrices"]))
        if p["compute_uv"]
        else tenon.linalg.svdvals(x)
    ),
    "eigh": lambda p, x: tuple(tenon.linalg.eigh(x)),
}


def _scaled(u: np.ndarray, s: np.ndarray, v: np.ndarray) -> np.ndarray:
    return u[..., : s.shape[-1]] * s[..., None, :] @ v


# Factors are unique up to signs and phases: their products are compared.
PRODUCTS: dict[str, Callable[..., Any]] = {
    "qr": lambda q, r, *rest: [q @ r],
    "eigh": lambda first, second: _eigh(first, second),
    "svd": lambda *parts: _svd(*parts),
}


def _eigh(first: np.ndarray, second: np.ndarray) -> list[np.ndarray]:
    values, vectors = (first, second) if first.ndim < second.ndim else (second, first)
    return [values, vectors * values[..., None, :] @ _adjoint(vectors)]


def _svd(*parts: np.ndarray) -> list[np.ndarray]:
    if len(parts) == 1:
        return [parts[0]]
    s, u, v = parts if parts[0].ndim < parts[1].ndim else (parts[1], parts[0], parts[2])
    return [s, _scaled(u, s, v[..., : s.shape[-1], :])]


def to_tenon(value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        return tenon.tensor(array.astype(np.float32)).to(array.dtype.name.removesuffix("fn"))
    return tenon.tensor(array.copy())


def to_array(value: Any) -> tuple[str, np.ndarray]:
    """The dtype's name and the numbers, wide."""
    if isinstance(value, tenon.Tensor):
        name = str(value.dtype).removeprefix("tenon.")
        low = name in ("bfloat16", "float8_e4m3", "float8_e5m2")
        return name, (value.to("float32") if low else value).numpy()
    array = np.asarray(value)
    name = array.dtype.name.removesuffix("fn")
    return name, array.astype(
        np.float32
    ) if array.dtype.kind == "V" or name == "bfloat16" else array


EPSILON = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float8_e4m3": 2.0**-3, "float8_e5m2": 2.0**-2}


def difference(name: str, ours: Any, theirs: Any) -> str | None:
    ours, theirs = (
        [each] if not isinstance(each, (tuple, list)) else list(each) for each in (ours, theirs)
    )
    pairs = [[to_array(each) for each in side] for side in (ours, theirs)]
    if name in PRODUCTS and len(theirs) > 1:
        kind = pairs[1][-1][0]
        pairs = [
            [(kind, each) for each in PRODUCTS[name](*(array for _, array in side))]
            for side in pairs
        ]
    if len(pairs[0]) != len(pairs[1]):
        return f"{len(pairs[0])} results, JAX gives {len(pairs[1])}"
    for (kind, mine), (wanted, other) in zip(*pairs, strict=True):
        if mine.shape != other.shape:
            return f"shape {mine.shape}, JAX gives {other.shape}"
        if kind != wanted and name not in PRODUCTS:
            return f"dtype {kind}, JAX gives {wanted}"
        if mine.dtype.kind not in "fc":
            close = mine == other
        else:
            unit = EPSILON.get(kind) or float(np.finfo(mine.dtype).eps)
            finite = np.abs(other[np.isfinite(other)])
            slack = 64 * unit * (float(finite.max()) if finite.size else 0.0)
            close = np.isclose(mine, other, rtol=64 * unit, atol=slack + 1e-30, equal_nan=True)
        if not close.all():
            at = tuple(int(i) for i in np.argwhere(~close)[0])
            return f"values at {at}: {mine[at]}, JAX gives {other[at]}"
    return None


def judge(harnesses: list[Any], limit: int) -> tuple[str, str]:
    group = harnesses[0].group_name
    call = CALLS.get(group)
    if call is None:
        return "left out", ""
    ran = 0
    for harness in harnesses[:: max(1, len(harnesses) // limit)]:
        random = np.random.RandomState(0)
        try:
            arguments = harness.dyn_args_maker(random)
            theirs = harness.dyn_fun(*arguments)
        except Exception:
            continue  # JAX has no such kernel on the CPU
        try:
            ours = call(harness.params, *map(to_tenon, arguments))
        except (LookupError, KeyError):
            continue  # a form that CALLS does not have
        except Exception as error:
            return "refused", f"{harness.name}: {type(error).__name__}: {str(error)[:160]}"
        ran += 1
        why = difference(group, ours, theirs)
        if why is not None:
            return "different", f"{harness.name}: {why}"
    return ("agrees", f"{ran} samples") if ran else ("left out", "no sample in CALLS' form")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=(inspect.getdoc(sys.modules[__name__]) or "").splitlines()[0]
    )
    parser.add_argument("--only", default="", help="primitives, separated by commas")
    parser.add_argument("--samples", type=int, default=40, help="samples of each primitive")
    parser.add_argument(
        "--list", default="different,refused", help=f"states to list, among {', '.join(STATES)}"
    )
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    warnings.simplefilter("ignore")
    groups: dict[str, list[Any]] = collections.defaultdict(list)
    for harness in test_harnesses.all_harnesses:
        if not only or harness.group_name in only:
            groups[harness.group_name].append(harness)
    results = []
    samples = 0
    for group in progress(list(groups), "harnesses"):
        state, why = judge(groups[group], options.samples)
        samples += int(why.split()[0]) if state == "agrees" else 0
        results.append((group, state, why))
    for state in options.list.split(","):
        for group, found, why in results:
            if found == state:
                print(f"{state:9s} {group} {why}")
    counts = collections.Counter(state for _, state, _ in results)
    print(
        f"JAX {jax.__version__}, {len(results)} primitives: "
        + ", ".join(f"{counts[s]} {s}" for s in STATES)
        + f"; {samples} samples agree"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own samples, asked of tenon.compat.torch.

    python -m tests.fuzz.peers.op_db [--only NAME,NAME] [--samples 40] [--list different]

PyTorch's wheel brings `op_db`: a table of its functions with sample arguments. Each sample runs in both
libraries, by the same name and with the same arguments, and the results are compared. An entry counts as

    agrees       every sample gave PyTorch's result
    different    a sample gave another result
    refused      a sample raised an error where PyTorch answers
    missing      tenon.compat.torch has no function of this name
    left out     the entry has no sample that both libraries can be asked
    random       results are drawn, so only their shapes and dtypes are compared

An entry whose function is not the one of its name, but a lambda of PyTorch's tests, is left out unless
ORDER says what it does. A sample whose arguments tenon.Tensor cannot hold (sparse, nested or quantised tensors, an open file) is
left out and counted. PyTorch comes from an environment outside the repository.
"""

import argparse
import collections
import inspect
import operator
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tenon
import torch
from tenon.compat import torch as compat
from tenon.utils.progress import progress
from torch.testing._internal.common_methods_invocations import op_db

STATES = ("agrees", "random", "different", "refused", "missing", "left out")

# The dtypes that samples are drawn in. An entry runs in the first of each group that PyTorch allows.
DTYPE_GROUPS = ((torch.float32, torch.float64), (torch.int64, torch.bool), (torch.complex64,))

# Names whose results PyTorch draws or leaves uninitialised.
DRAWN = set(
    """bernoulli multinomial normal rand_like randint randint_like randn randn_like cauchy
    exponential geometric log_normal uniform empty empty_like empty_permuted empty_strided new_empty
    new_empty_strided nn.functional.dropout nn.functional.dropout2d nn.functional.dropout3d
    nn.functional.alpha_dropout nn.functional.feature_alpha_dropout nn.functional.rrelu
    nn.functional.gumbel_softmax nn.functional.fractional_max_pool2d
    nn.functional.fractional_max_pool3d svd_lowrank pca_lowrank""".split()
)

# Factors are unique up to the signs and phases of their vectors: their products are compared.
PRODUCTS: dict[str, Callable[..., Any]] = {
    "svd": lambda u, s, v: [s, _scaled(u, s) @ _adjoint(v[..., : s.shape[-1]])],
    "linalg.svd": lambda u, s, vh: [s, _scaled(u, s) @ vh[..., : s.shape[-1], :]],
    "linalg.eigh": lambda w, v: [w, _scaled(v, w) @ _adjoint(v)],
    "linalg.eig": lambda w, v: [np.sort_complex(w), _scaled(v, w) @ np.linalg.inv(v)],
    "linalg.eigvals": lambda w: [np.sort_complex(w)],
    "qr": lambda q, r: [q @ r if r.size else np.abs(r)],
    "linalg.qr": lambda q, r: [q @ r if q.size else np.abs(r)],
}


def _scaled(vectors: np.ndarray, factors: np.ndarray) -> np.ndarray:
    return vectors[..., : factors.shape[-1]] * factors[..., None, :]


def _adjoint(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2).conj()


# Entries that pass their arguments on in another order.
ORDER: dict[str, Callable[..., Any]] = {
    "einsum": lambda function, operands, equation: function(equation, *operands),
    "polygamma": lambda function, x, n: function(n, x),
    "special.polygamma": lambda function, x, n: function(n, x),
    "where": lambda function, x, condition, y: function(condition, x, y),
    "nn.functional.embedding": lambda function, weight, index, **named: function(
        index, weight, **named
    ),
    "svd_lowrank": lambda function, a, b, **named: function(a @ b.mT, **named),
    "pca_lowrank": lambda function, a, b, **named: function(a @ b.mT, **named),
}

# Entries that call a method, or read an attribute, of their first argument.
METHODS = set(
    "T H mT mH unfold bfloat16 bool double float half int long short cfloat cdouble".split()
)


class NotHeld(Exception):
    """An argument that has no counterpart in Tenon."""


def to_tenon(value: Any) -> Any:
    """An argument of PyTorch's as Tenon takes it; tensors keep their strides' order by being copied."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.is_quantized or value.is_nested:
            raise NotHeld(f"a tensor of layout {value.layout}")
        plain = value.detach().resolve_conj().resolve_neg()
        return tenon.tensor(plain.numpy().copy())
    if isinstance(value, torch.dtype):
        return getattr(tenon, str(value).removeprefix("torch."), None) or _not_held(value)
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, (list, tuple)):
        return type(value)(to_tenon(each) for each in value)
    if isinstance(value, dict):
        return {name: to_tenon(each) for name, each in value.items()}
    if isinstance(value, torch.device):
        return value.type
    if value is None or isinstance(
        value, (bool, int, float, complex, str, slice, type(...), np.ndarray)
    ):
        return value
    return _not_held(value)


def _not_held(value: Any) -> Any:
    raise NotHeld(f"an argument of type {type(value).__name__}")


def to_arrays(value: Any) -> list[Any]:
    """The results of either library, flat, as NumPy's arrays."""
    if isinstance(value, torch.Tensor):
        return [value.detach().resolve_conj().resolve_neg().numpy()]
    if isinstance(value, tenon.Tensor):
        return [value.detach().numpy()]
    if isinstance(value, (list, tuple)):
        return [array for each in value for array in to_arrays(each)]
    return [np.asarray(value)]


def find(name: str) -> Callable[..., Any] | None:
    """The function of tenon.compat.torch by PyTorch's dotted name, or the method of a tensor."""
    place: Any = compat
    for part in name.split("."):
        place = getattr(place, part, None)
        if place is None:
            break
    if name in METHODS or (place is None and "." not in name):
        place = getattr(tenon.Tensor, name, None)
        if place is not None and not callable(place):
            return operator.attrgetter(name)
    return place if callable(place) else None


def difference(name: str, ours: list[Any], theirs: list[Any]) -> str | None:
    """How the results differ, or None."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results, PyTorch gives {len(theirs)}"
    for mine, other in zip(ours, theirs, strict=True):
        if mine.shape != other.shape:
            return f"shape {mine.shape}, PyTorch gives {other.shape}"
        if mine.dtype != other.dtype:
            return f"dtype {mine.dtype}, PyTorch gives {other.dtype}"
    if name in DRAWN:
        return None
    if name in PRODUCTS:
        ours, theirs = PRODUCTS[name](*ours), PRODUCTS[name](*theirs)
    for mine, other in zip(ours, theirs, strict=True):
        if mine.dtype.kind not in "fc":
            if not np.array_equal(mine, other):
                return f"values {_first(mine, other, mine != other)}"
            continue
        # Samples are float32 for the most part, and solvers lose digits to the condition of random
        # matrices: four digits tell a wrong formula from a rounding. Sums are added in another
        # order, so an error is also measured against the largest value.
        finite = np.abs(other[np.isfinite(other)])
        scale = float(finite.max()) if finite.size else 0.0
        slack = (
            2e-4 if mine.dtype.itemsize <= (8 if mine.dtype.kind == "c" else 4) else 1e-8
        ) * scale
        close = np.isclose(mine, other, rtol=1e-4, atol=slack + 1e-12, equal_nan=True)
        if not close.all():
            return f"values {_first(mine, other, ~close)}"
    return None


def _first(mine: np.ndarray, other: np.ndarray, wrong: np.ndarray) -> str:
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"at {at}: {mine[at]}, PyTorch gives {other[at]}"


def samples(entry: Any, limit: int) -> Iterator[Any]:
    allowed = entry.supported_dtypes("cpu")
    for group in DTYPE_GROUPS:
        dtype = next((each for each in group if each in allowed), None)
        if dtype is None:
            continue
        torch.manual_seed(1)
        for index, sample in enumerate(entry.sample_inputs("cpu", dtype, requires_grad=False)):
            if index == limit:
                break
            yield dtype, sample


def describe(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(describe(each) for each in value) + ")"
    return repr(value)


def judge(entry: Any, limit: int) -> tuple[str, str]:
    """The state of one entry, and why."""
    function = find(entry.name)
    if function is None:
        return "missing", ""
    module = getattr(entry.op, "__module__", None) or ""
    if "torch.testing" in module and entry.name not in ORDER and entry.name not in METHODS:
        return "left out", "the entry calls a function of PyTorch's tests"
    order = ORDER.get(entry.name, lambda function, *given, **named: function(*given, **named))
    ran = 0
    for _, sample in samples(entry, limit):
        arguments = (sample.input, *sample.args)
        try:
            ours_in = to_tenon(arguments)
            named = to_tenon(sample.kwargs)
        except NotHeld:
            continue
        call = ", ".join(
            [describe(each) for each in arguments]
            + [f"{k}={describe(v)}" for k, v in sample.kwargs.items()]
        )
        try:
            theirs = to_arrays(entry.op(sample.input, *sample.args, **sample.kwargs))
        except Exception:
            continue
        ran += 1
        try:
            ours = to_arrays(order(function, *ours_in, **named))
        except Exception as error:
            return (
                "refused",
                f"({call}): {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
            )
        why = difference(entry.name, ours, theirs)
        if why is not None:
            return "different", f"({call}): {why}"
    if ran == 0:
        return "left out", "no sample that Tenon can hold"
    return ("random" if entry.name in DRAWN else "agrees"), f"{ran} samples"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=inspect.getdoc(sys.modules[__name__]).splitlines()[0]
    )
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--samples", type=int, default=40, help="samples of each entry and dtype")
    parser.add_argument(
        "--list", default="different,refused", help=f"states to list, among {', '.join(STATES)}"
    )
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    warnings.simplefilter("ignore")
    entries = [each for each in op_db if not only or each.name in only]
    results = []
    for entry in progress(entries, "op_db"):
        results.append((entry, *judge(entry, options.samples)))
    for state in options.list.split(","):
        for entry, found, why in results:
            if found == state:
                variant = f" [{entry.variant_test_name}]" if entry.variant_test_name else ""
                print(f"{state:9s} {entry.name}{variant} {why}")
    counts = collections.Counter(state for _, state, _ in results)
    print(
        f"PyTorch {torch.__version__}, {len(results)} entries: "
        + ", ".join(f"{counts[s]} {s}" for s in STATES)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own samples, asked of tenon.compat.torch.

    python -m tests.fuzz.peers.op_db [--only NAME,NAME] [--samples 40] [--list different] [--gradients]

PyTorch's wheel brings `op_db`: a table of its functions with sample arguments. Each sample runs in both
libraries, by the same name and with the same arguments, and the results are compared. An entry counts as

    agrees       every sample gave PyTorch's result
    different    a sample gave another result
    refused      a sample raised an error where PyTorch answers
    missing      tenon.compat.torch has no function of this name
    left out     the entry has no sample that both libraries can be asked
    random       results are drawn, so only their shapes and dtypes are compared

With `--gradients` the samples are float64 and complex128, and the gradients of a weighted sum of the results
are compared: an entry agrees if they do for every sample that PyTorch differentiates. "no gradient" are
entries without one.

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

STATES = ("agrees", "random", "different", "refused", "missing", "left out", "no gradient")

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
        place = getattr(tenon.Tensor, name, None) or getattr(tenon.Tensor, f"{name}_", None)
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


def samples(entry: Any, limit: int, groups: Any = DTYPE_GROUPS) -> Iterator[Any]:
    allowed = entry.supported_dtypes("cpu")
    for group in groups:
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


def leaves(value: Any, kind: Any, found: list[Any]) -> Any:
    """`value` with each floating or complex tensor of `kind` a leaf that records, listed in `found`."""
    if isinstance(value, kind) and (value.dtype.is_floating_point or value.dtype.is_complex):
        found.append(value.detach().clone().requires_grad_())
        return found[-1]
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(leaves(each, kind, found) for each in value)
    if isinstance(value, dict):
        return {name: leaves(each, kind, found) for name, each in value.items()}
    return value


def differentiable(value: Any, kind: Any) -> list[Any]:
    """The results that have a gradient, flat; None for the others."""
    if isinstance(value, kind):
        return [value if value.requires_grad else None]
    if isinstance(value, (list, tuple)):
        return [each for part in value for each in differentiable(part, kind)]
    return [None]


def weighted(results: list[Any], indices: list[int], make: Callable[[np.ndarray], Any]) -> Any:
    """A real sum of the results at `indices`, each element with a weight of its own."""
    total: Any = 0.0
    for index in indices:
        out = results[index]
        random = np.random.default_rng(index)
        shape = tuple(out.shape)
        weights = random.uniform(0.5, 1.5, shape)
        if out.dtype.is_complex:
            total = total + (out.real * make(weights)).sum()
            weights = random.uniform(0.5, 1.5, shape)
            total = total + (out.imag * make(weights)).sum()
        else:
            total = total + (out * make(np.asarray(weights, str(out.dtype).split(".")[-1]))).sum()
    return total


def gradient_of(leaf: Any) -> np.ndarray:
    if leaf.grad is None:
        leaf.grad = (torch if isinstance(leaf, torch.Tensor) else tenon).zeros_like(leaf.detach())
    if isinstance(leaf, torch.Tensor):
        return leaf.grad.detach().resolve_conj().resolve_neg().numpy(force=True)
    return leaf.grad.numpy()


def judge_gradients(entry: Any, limit: int) -> tuple[str, str]:
    """As judge(), of gradients."""
    function = find(entry.name)
    if function is None:
        return "missing", ""
    if not entry.supports_autograd or entry.name in DRAWN or entry.name in PRODUCTS:
        return "no gradient", ""
    module = getattr(entry.op, "__module__", None) or ""
    if "torch.testing" in module and entry.name not in ORDER and entry.name not in METHODS:
        return "left out", "the entry calls a function of PyTorch's tests"
    order = ORDER.get(entry.name, lambda function, *given, **named: function(*given, **named))
    ran = 0
    for _, sample in samples(entry, limit, ((torch.float64,), (torch.complex128,))):
        their_leaves: list[Any] = []
        our_leaves: list[Any] = []
        arguments = ((sample.input, *sample.args), dict(sample.kwargs))
        try:
            ours_in = leaves(to_tenon(arguments), tenon.Tensor, our_leaves)
        except NotHeld:
            continue
        theirs_in = leaves(arguments, torch.Tensor, their_leaves)
        call = ", ".join(
            [describe(each) for each in arguments[0]]
            + [f"{k}={describe(v)}" for k, v in sample.kwargs.items()]
        )
        try:
            theirs = differentiable(entry.op(*theirs_in[0], **theirs_in[1]), torch.Tensor)
            indices = [index for index, each in enumerate(theirs) if each is not None]
            if not indices or len(their_leaves) != len(our_leaves):
                continue
            weighted(theirs, indices, torch.from_numpy).backward()
        except Exception:
            continue
        ran += 1
        try:
            ours = differentiable(order(function, *ours_in[0], **ours_in[1]), tenon.Tensor)
            if len(ours) != len(theirs):
                return "different", f"({call}): {len(ours)} results, PyTorch gives {len(theirs)}"
            # A result that is constant has no gradient: PyTorch's must then be zero.
            indices = [index for index in indices if ours[index] is not None]
            if indices:
                weighted(ours, indices, tenon.tensor).backward()
        except Exception as error:
            return "refused", f"({call}): {type(error).__name__}: {str(error).splitlines()[:1]}"
        for number, (mine, other) in enumerate(zip(our_leaves, their_leaves, strict=True)):
            # A leaf that has no part in the results has no gradient in one library, and zeros in the other.
            want, got = gradient_of(other), gradient_of(mine)
            why = difference("", [got], [want])
            if why is not None:
                return "different", f"({call}): gradient {number}, {why}"
    if ran == 0:
        return "left out", "no sample that both differentiate"
    return "agrees", f"{ran} samples"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=inspect.getdoc(sys.modules[__name__]).splitlines()[0]
    )
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--samples", type=int, default=40, help="samples of each entry and dtype")
    parser.add_argument(
        "--list", default="different,refused", help=f"states to list, among {', '.join(STATES)}"
    )
    parser.add_argument("--gradients", action="store_true", help="compare gradients")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    warnings.simplefilter("ignore")
    entries = [each for each in op_db if not only or each.name in only]
    results = []
    for entry in progress(entries, "op_db"):
        judged = (judge_gradients if options.gradients else judge)(entry, options.samples)
        results.append((entry, *judged))
    for state in options.list.split(","):
        for entry, found, why in results:
            if found == state:
                variant = f" [{entry.variant_test_name}]" if entry.variant_test_name else ""
                print(f"{state:9s} {entry.name}{variant} {why}")
    counts = collections.Counter(state for _, state, _ in results)
    print(
        f"PyTorch {torch.__version__}, {len(results)} entries: "
        + ", ".join(f"{counts[s]} {s}" for s in STATES if counts[s])
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

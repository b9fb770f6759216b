# SPDX-License-Identifier: Apache-2.0
"""The arguments of a call as a peer takes them, and the peer's answer in NumPy arrays."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np
import tenon

from ..arrays import COMPLEXES, FLOATS, Array, carrier, dtype_name, representable
from .numpy_table import NUMPY
from .torch_table import TORCH


@cache
def numpy_names():
    names = {"np": np, "inf": np.inf}
    try:
        import scipy.special

        names["sp"] = scipy.special
    except ImportError:
        pass
    folder = str(Path(__file__).parents[2] / "ops")
    sys.path.insert(0, folder)  # reference functions of the operator tests
    try:
        from references import FUNCTIONS

        names |= FUNCTIONS
    finally:
        sys.path.remove(folder)
    return names


@cache
def torch_names():
    """None where PyTorch is not installed."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    return {"torch": torch, "F": torch.nn.functional}


def missing_peers():
    """Why some references are left out."""
    found = []
    if "sp" not in numpy_names():
        found.append("SciPy is not installed: special functions are not compared with it")
    if torch_names() is None:
        found.append("PyTorch is not installed: the oracle `torch` is left out")
    return found


class NoAnswer(Exception):
    """The peer does not serve the call."""


def answer(call, peer):
    """The peer's results as a list of arrays of their carriers."""
    table, names = (NUMPY, numpy_names()) if peer == "numpy" else (TORCH, torch_names())
    text = table.get(call.op)
    if text is None or names is None or ("sp." in text and "sp" not in names):
        raise NoAnswer
    arguments = named_arguments(call)
    if peer == "torch":
        arguments = {n: _for_torch(v, names["torch"]) for n, v in arguments.items()}
    try:
        with np.errstate(all="ignore"):
            value = eval(text, {**names, **arguments})
    except Exception as error:
        raise NoAnswer from error
    if value is None:
        raise NoAnswer
    return [_to_numpy(x) for x in (value if isinstance(value, (list, tuple)) else [value])]


def named_arguments(call):
    """Arguments by name, tensors as arrays of the compute dtype, absent ones as their defaults."""
    compute = compute_dtype(call)
    arguments = {p.name: _default(p.default) for p in call.operator.parameters}
    for name, value in call.arguments.items():
        arguments[name] = _plain(value, compute if _is_promoted(call, name) else None)
    return arguments


def compute_dtype(call):
    """The dtype that promotion comes to; None where tensors keep their own."""
    if not call.operator.compute.startswith("promote"):
        return None
    values = [v for n, v in call.arguments.items() if _is_promoted(call, n) and v is not None]
    values = sum(([*v] if isinstance(v, list) else [v] for v in values), [])
    empty = [tenon.zeros((0,), dtype=v.dtype) if isinstance(v, Array) else v for v in values]
    result = empty[0]
    for other in empty[1:]:
        result = tenon.where(tenon.zeros((0,), dtype="bool"), result, other)
    name = dtype_name(result)
    if call.operator.compute == "promote_float" and name not in FLOATS + COMPLEXES:
        return "float32"
    return name


def _is_promoted(call, name):
    return any(
        p.name == name and p.type.startswith("Tensor") and p.dtypes is None
        for p in call.operator.parameters
    )


def _plain(value, compute):
    if isinstance(value, Array):
        if compute is None:
            return value.values.astype(carrier(value.dtype))
        with np.errstate(all="ignore"):
            return representable(value.values, compute)
    if isinstance(value, list):
        items = [_plain(item, compute) for item in value]
        return items if any(isinstance(i, np.ndarray) for i in items) else tuple(items)
    return value


def _default(text):
    if text is None or text == "none":
        return None
    value = eval(text, {"true": True, "false": False})
    return tuple(value) if isinstance(value, list) else value


def _for_torch(value, torch):
    if isinstance(value, np.ndarray):
        return torch.as_tensor(np.ascontiguousarray(value).reshape(value.shape))
    if isinstance(value, list):
        return [_for_torch(item, torch) for item in value]
    return value


def _to_numpy(value):
    return np.asarray(value.detach().resolve_conj().numpy() if hasattr(value, "detach") else value)

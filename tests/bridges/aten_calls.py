# SPDX-License-Identifier: Apache-2.0
"""Calls of ATen beside their lines in opdefs/aten.

    python -m tests.bridges.aten_calls [--only NAME] [--samples 8] [--each 40] [--show]

While the samples of PyTorch's own table of operators, op_db, run forward and backward, every call of ATen that they make is
written down, and each of another kind is told by its line, run as a program, and compared: values and shapes (programs convert
results to the dtypes that PyTorch recorded). Prints the calls that differ, then three tables: ATen's core set, the public names without a backward or a write in them, and the calls. A
name is told if it has a line, or if PyTorch takes it apart into others before a program sees it.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import tenon
import torch
from tenon import _core
from tenon.torch import _lines
from tenon.torch._convert import argument, dtype_name, resolved
from tenon.torch._walk import op_name
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from tests.bridges.torch_device import is_random


def description(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return (str(value.dtype), tuple(value.shape), value.is_contiguous())
    return repr(value)


def is_plain(value: Any) -> bool:
    """A dense tensor on the CPU, or no tensor."""
    if not isinstance(value, torch.Tensor):
        return True
    is_dense = value.layout == torch.strided and not value.is_quantized and not value.is_nested
    return is_dense and value.device.type == "cpu"


class Judge(TorchDispatchMode):
    """Asks each call of its line, once for each kind of arguments."""

    def __init__(self, most: int, shown: bool) -> None:
        super().__init__()
        self.most, self.shown = most, shown
        self.seen: dict[str, set[Any]] = defaultdict(set)
        self.agree: Counter[str] = Counter()
        self.differ: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        result = func(*args, **named)
        if func.namespace == "aten" and not func._schema.is_mutable:
            self.ask(func, args, named, result)
        return result

    def ask(self, func: Any, args: Any, named: Any, result: Any) -> None:
        flat = pytree.tree_leaves((args, named))
        name = op_name(func)
        if torch.Tag.nondeterministic_seeded in func.tags or not all(map(is_plain, flat)):
            return
        if not all(is_plain(each) for each in pytree.tree_leaves(result)):
            return
        if name.startswith(("empty", "new_empty", "_to_sparse", "lift_fresh", "detach")):
            return
        key = str([description(each) for each in flat])
        if key in self.seen[name] or len(self.seen[name]) >= self.most:
            return
        self.seen[name].add(key)
        self.calls["all"] += 1
        try:
            why = compare(name, args, named, result)
        except (_lines.Refused, NotImplementedError, ValueError, TypeError, LookupError) as error:
            # As in tenon.torch._walk: the call cannot be told, and a model with it is refused with this text.
            self.calls["refused"] += 1
            self.refused.setdefault(name, str(error).splitlines()[0][:120])
            return
        except Exception as error:
            why = f"{type(error).__name__}: {str(error).splitlines()[0][:160]}"
        if why is None:
            self.calls["agree"] += 1
            self.agree[name] += 1
            return
        self.calls["differ"] += 1
        if name not in self.differ or self.shown:
            print(f"{name}{key[:200]}: {why}", flush=True)
        self.differ.setdefault(name, why)


def compare(name: str, args: Any, named: Any, result: Any) -> str | None:
    """What differs where the call is a program; None: nothing. Raises Refused."""
    builder = _core.ProgramBuilder(None)
    given: list[Any] = []

    def value(each: Any) -> Any:
        if isinstance(each, torch.Tensor):
            given.append(tenon.from_dlpack(resolved(each.detach()).clone()))
            return builder.input(dtype_name(each.dtype), list(each.shape))
        if isinstance(each, (list, tuple)):
            return [value(item) for item in each]
        return argument(each)

    with torch.utils._python_dispatch._disable_current_modes(), torch.no_grad(), tenon.no_grad():
        arguments = [value(each) for each in args]
        keywords = {key: value(each) for key, each in named.items()}
        told = _lines.tell(builder.call, name, arguments, keywords)
        ours = list(told) if isinstance(told, (list, tuple)) else [told]
        theirs = list(result) if isinstance(result, (list, tuple)) else [result]
        found = [each for each in ours if isinstance(each, tenon.Tensor)]
        if not 0 < len(ours) <= len(theirs):  # fewer: those behind are read by gradients alone
            return f"{len(ours)} results, and {len(theirs)} of PyTorch's"
        made = iter(builder.finish(found).run(given)) if found else iter(())
        for one, other in zip(ours, theirs, strict=False):
            if one is None or not isinstance(other, torch.Tensor):
                continue  # None: a result that only gradients read
            if not isinstance(one, tenon.Tensor):
                return f"{one!r} for a tensor"
            got = torch.from_dlpack(tenon.contiguous(next(made)))  # strides may be below 0
            wanted = resolved(other.detach())
            if got.shape != wanted.shape:
                return f"shape {list(got.shape)}, and {list(wanted.shape)} of PyTorch's"
            if got.dtype != wanted.dtype:  # programs convert: see Walk._fitted
                got = got.to(wanted.dtype)
            try:
                # Samples are of float32 and narrower, and have sums in another order.
                torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-4, equal_nan=True)
            except AssertionError as error:
                return "values: " + " ".join(str(error).split())[:150]
    return None


def run_sample(entry: Any, sample: Any) -> None:
    """Forward, and backward where there is something to differentiate."""
    result = entry(sample.input, *sample.args, **sample.kwargs)
    outputs = [
        each
        for each in pytree.tree_leaves(result)
        if isinstance(each, torch.Tensor) and each.requires_grad
    ]
    inputs = [
        each
        for each in pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
        if isinstance(each, torch.Tensor) and each.requires_grad and each.is_leaf
    ]
    if outputs and inputs:
        weights = [torch.ones_like(each) for each in outputs]
        torch.autograd.grad(outputs, inputs, weights, allow_unused=True)


def names_without_writes() -> list[str]:
    """Public calls that give tensors and are no gradient of others."""
    text = (Path(__file__).parents[2] / "opdefs" / "aten" / "signatures.txt").read_text()
    names = [line.removeprefix("core ").partition("(")[0] for line in text.splitlines()]
    return [
        name
        for name in names
        if name[0] not in "#_" and "backward" not in name and "jvp" not in name
    ]


def taken_apart(name: str) -> bool:
    """Whether PyTorch has a decomposition, so that a program never sees the call."""
    from torch._decomp import decomposition_table

    packet, _, overload = name.partition(".")
    found = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
    if found is None:
        return False
    if not torch._C._dispatch_has_kernel(found.name()):
        return False  # a function of TorchScript alone
    is_composite = torch._C._dispatch_has_kernel_for_dispatch_key(
        found.name(), torch._C.DispatchKey.CompositeImplicitAutograd
    )
    return is_composite or found in decomposition_table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--each", type=int, default=40, help="kinds of arguments for each name")
    parser.add_argument("--show", action="store_true", help="every call that differs")
    parser.add_argument("--at-least", type=float, default=0.99, help="of the told calls agree")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

    judge = Judge(options.each, options.show)
    for entry in op_db:
        types = entry.supported_dtypes("cpu")
        if options.only not in entry.name or not types or is_random(entry.name):
            continue
        dtype = torch.float32 if torch.float32 in types else sorted(types, key=str)[0]
        torch.manual_seed(0)
        differentiable = entry.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        samples = entry.sample_inputs("cpu", dtype, requires_grad=differentiable)
        for count, sample in enumerate(samples):
            if count >= options.samples:
                break
            with judge:
                try:
                    run_sample(entry, sample)
                except Exception as error:
                    if options.show:
                        print(f"{entry.name}: {type(error).__name__}: {str(error)[:100]}")
    core = Counter(
        "told" if _lines.has_line(name) else "refused" if name in _lines.CALLS else "neither"
        for name in _lines.CORE
    )
    public = Counter(
        "a line" if _lines.has_line(name) else "taken apart" if taken_apart(name) else "neither"
        for name in names_without_writes()
    )
    told = judge.calls["agree"] + judge.calls["differ"]
    share = judge.calls["agree"] / max(told, 1)
    print(f"core set: {dict(core)} of {len(_lines.CORE)}")
    print(f"public names: {dict(public)} of {len(names_without_writes())}")
    print(f"without a line: {dict(list(judge.refused.items())[:400])}" if options.show else "")
    print(
        f"calls: {judge.calls['all']} of {len(judge.seen)} names; {told} told, {share:.2%} of them agree, "
        f"{len(judge.differ)} names have one that differs; {judge.calls['refused']} of {len(judge.refused)} names are refused"
    )
    return 0 if share >= options.at_least and not core["neither"] else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""How much of PyTorch a device plugin computes: the samples of PyTorch's own table of operators, op_db, on the device and on
the CPU.

    python -m tests.bridges.torch_device build/custom_device/libtenon_toy.so [--device toy] [--only NAME] [--samples 6]
    python -m tests.bridges.torch_device build/custom_device/libtenon_toy.so --isolated --models

An entry passes if all of its samples in float32 (or the first dtype that it has) give the CPU's values, dtypes and shapes, and
if it is an error on the device exactly where it is one on the CPU. Prints a line for each entry that does not, and, last, how
many passed, how many of these with a call on the CPU, and why others did not. `--models` trains the models of own_models.py
there and on the CPU instead, and compares their losses.
"""

from __future__ import annotations

import argparse
import copy
import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import tenon
import torch


def as_it_lies(tensor: Any, device: str) -> Any:
    """A copy with the strides, on a copy of the whole storage."""
    if tensor.layout != torch.strided or tensor.is_contiguous() and not tensor.storage_offset():
        return tensor.to(device)
    if tensor.is_conj() or tensor.is_neg():
        return tensor.to(device)
    whole = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
    return whole.to(device).as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def on_device(value: Any, device: str) -> Any:
    if isinstance(value, torch.Tensor):
        moved = as_it_lies(value.detach(), device)
        return moved.requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(on_device(each, device) for each in value)
    if isinstance(value, dict):
        return {key: on_device(each, device) for key, each in value.items()}
    if isinstance(value, torch.device) or value == "cpu":
        return torch.device(device)
    return value


def tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [one for each in value for one in tensors(each)]
    return []


def compare(entry: Any, sample: Any, device: str) -> str | None:
    """What differs; None: nothing."""
    moved = [on_device(part, device) for part in (sample.input, sample.args, sample.kwargs)]
    try:
        expected = entry(sample.input, *sample.args, **sample.kwargs)
    except Exception:
        return None  # a sample that the CPU refuses says nothing
    try:
        found = entry(moved[0], *moved[1], **moved[2])
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:150]}"
    ours, theirs = tensors(found), tensors(expected)
    if len(ours) != len(theirs):
        return f"{len(theirs)} results expected, got {len(ours)}"
    for one, other in zip(ours, theirs, strict=True):
        if other.is_sparse or other.layout != torch.strided:
            continue
        if one.device.type != device and other.numel():
            return f"a result lies on {one.device}"
        try:
            pair = [one.detach().cpu(), other.detach()]
            if "float8" in str(other.dtype):
                pair = [each.float() for each in pair]
            torch.testing.assert_close(*pair, rtol=1e-3, atol=1e-4, equal_nan=True)
        except AssertionError as error:
            return "values: " + str(error).replace("\n", " ")[:150]
    return None


DRAWS = (
    "bernoulli cauchy exponential fractional_max_pool2d fractional_max_pool3d geometric log_normal multinomial normal rand randint randn uniform dropout rrelu "
    "empty empty_like empty_permuted empty_strided new_empty new_empty_strided"
).split()


def is_random(name: str) -> bool:
    return any(part.startswith(tuple(DRAWS)) or "dropout" in part for part in name.split("."))


def check(entry: Any, device: str, most: int) -> str | None:
    """Why an entry does not pass."""
    types = entry.supported_dtypes("cpu")
    if not types:
        return "no dtype on the CPU: nothing to compare with"
    dtype = torch.float32 if torch.float32 in types else sorted(types, key=str)[0]
    torch.manual_seed(0)
    checked = 0
    for sample in entry.sample_inputs("cpu", dtype, requires_grad=False):
        if checked >= most:
            break
        checked += 1
        torch.manual_seed(0)
        why = compare(entry, sample, device)
        draws = is_random(entry.name) or sample.kwargs.get("dropout_p")
        if why and not (draws and why.startswith("values")):
            return why
    return None


def show_times(device: str) -> None:
    """Microseconds of small calls on the device and on PyTorch's CPU, the least of rounds that take turns."""
    calls: dict[str, Callable[[Any], Any]] = {
        "add": lambda x: x + x,
        "relu": torch.relu,
        "multiply by a number": lambda x: x * 2.0,
        "add_": lambda x: x.add_(x, alpha=0.0),
        "mm": torch.mm,
    }
    torch.set_num_threads(1)
    for name, call in calls.items():
        shape = (64, 64) if name == "mm" else (4, 4)
        host = torch.randn(shape)
        count = 2 if name == "mm" else 1
        sides = [[each] * count for each in (host, host.to(device))]
        best = [float("inf")] * 2
        with torch.inference_mode():
            for _ in range(40):
                for side, arguments in enumerate(sides):
                    begin = time.perf_counter()
                    for _ in range(200):
                        call(*arguments)
                    best[side] = min(best[side], (time.perf_counter() - begin) / 200)
        print(
            f"{name}: {best[1] * 1e6:.2f} us, CPU {best[0] * 1e6:.2f} us, {best[1] / best[0]:.2f}"
        )


def losses(model: Any, inputs: list[Any]) -> list[float]:
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    found = []
    for _ in range(8):
        optimizer.zero_grad()
        results = [each for each in tensors(model(*inputs)) if each.is_floating_point()]
        loss = torch.stack([each.square().mean() for each in results]).sum()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def train_models(device: str, only: str) -> int:
    """How many models do not learn as on the CPU."""
    from tests.bridges import own_models

    failed = tried = 0
    for make in own_models.MODELS:
        if only not in make.__name__:
            continue
        torch.manual_seed(0)
        model, *inputs = make()
        for each in model.modules():
            if isinstance(each, torch.nn.Dropout):
                each.p = 0.0
        other = copy.deepcopy(model).to(device)
        tried += 1
        try:
            wanted = losses(model, inputs)
            found = losses(other, [each.to(device) for each in inputs])
        except Exception as error:
            failed += 1
            print(f"{make.__name__}: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
            continue
        worst = max(abs(a - b) / abs(b) for a, b in zip(found, wanted, strict=True))
        # Of NaN max() keeps what was before.
        is_good = worst < 1e-3 and all(map(math.isfinite, found)) and wanted[0] != wanted[-1]
        failed += not is_good
        print(f"{make.__name__}: 8 losses within {worst:.1e}{'' if is_good else ' WRONG'}")
    print(f"{tried - failed} of {tried} models learn as on the CPU")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plugin", nargs="?")
    parser.add_argument("--device", default="toy")
    parser.add_argument("--only", default="")
    parser.add_argument("--samples", type=int, default=6)
    parser.add_argument("--times", action="store_true", help="of small calls, instead")
    parser.add_argument("--models", action="store_true", help="trains models, instead")
    parser.add_argument("--at-most", type=int, default=0, help="models that do not learn")
    parser.add_argument("--isolated", action="store_true", help="the plugin in another process")
    parser.add_argument("--at-least", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.plugin:
        tenon.plugins.load(options.plugin, isolated=options.isolated)
    tenon.torch.device.register(options.device)
    name = torch._C._get_privateuse1_backend_name()
    tenon.fallback("allow")
    if options.times:
        show_times(name)
        return 0
    if options.models:
        return 1 if train_models(name, options.only) > options.at_most else 0
    from torch.testing._internal.common_methods_invocations import op_db

    passed, with_cpu, reasons = 0, 0, Counter()
    counted = tenon.torch.report().device
    assert counted is not None
    entries = [entry for entry in op_db if options.only in entry.name]
    for entry in entries:
        before = sum(counted.on_cpu.values())
        shown = f"{entry.name}.{entry.variant_test_name}".rstrip(".")
        try:
            why = check(entry, name, options.samples)
        except Exception as error:
            why = f"{type(error).__name__}: {str(error).splitlines()[0][:150]}"
        if why is None:
            passed += 1
            with_cpu += sum(counted.on_cpu.values()) > before
        else:
            reasons[why.split(":")[0]] += 1
            print(f"{shown}: {why}", flush=True)
    print(f"reasons: {dict(reasons.most_common())}")
    print(f"calls on the CPU: {dict(counted.on_cpu.most_common(30))}")
    print(f"{passed} of {len(entries)} entries pass, {with_cpu} of them with calls on the CPU")
    return 0 if passed >= options.at_least else 1


if __name__ == "__main__":
    sys.exit(main())

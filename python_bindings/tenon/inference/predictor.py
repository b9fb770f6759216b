# SPDX-License-Identifier: Apache-2.0
"""The predictor, and what can be set of it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tenon import _core
from tenon._core import Tensor
from tenon.jit.claims import claimers_text
from tenon.jit.dynamic_shapes import Dim

Shapes = Mapping[str, Sequence[int]]
Size = int | Dim | tuple[int, int]  # of a range: one that each run chooses


class Value(NamedTuple):
    """An input or output. A size is a number, the name of a dimension that each call chooses, or None where it follows
    from dimensions in another way."""

    name: str
    dtype: _core.dtype
    shape: tuple[int | str | None, ...]


class ConfigKey(NamedTuple):
    """A key of the configuration. One that is not available is refused, and `text` says what to do instead."""

    name: str
    default: str
    text: str
    is_available: bool


def config_keys() -> list[ConfigKey]:
    """All keys that a predictor knows, those included that this version does not do yet."""
    return [ConfigKey(*key) for key in _core.predictor_keys()]


class Predictor:
    """Runs a program that `tenon.export` made and `Program.save` wrote, or a model of ONNX, by the ending of the file's name.

    `device`: a name or several in order of preference; None: the one that it was exported for. `fallback`: what happens
    where that device has no kernel for a step: "allow", "warn", or "deny", with which loading fails and lists the
    steps. `warmup`: runs on zeros before loading ends: "recorded" for the recorded sizes, or a list of {input: shape}.
    `sizes` and `shapes` are of a model of ONNX, for what it leaves open: sizes by their names and shapes by those of inputs, where a
    size is a number, or a `tenon.Dim` or (1, 64) for one that each run chooses. `subgraphs`: claimers that are offered the steps before kernels
    are, ["onnxruntime"], or with options {"onnxruntime": {"threads": 2}} (docs/inference.md). `settings` are other keys (`config_keys()`). Keys and values that there are not raise an error with the nearest.

    A predictor serves one thread at a time, and a call by a second one raises RuntimeError: give each its `clone()`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        device: str | _core.device | Sequence[str | _core.device] | None = None,
        fallback: str = "warn",
        warmup: str | Sequence[Shapes] = (),
        sizes: str | Mapping[str, Size] = "",
        shapes: str | Mapping[str, Sequence[Size] | Sequence[Sequence[Size]]] = "",
        subgraphs: str | Sequence[str] | Mapping[str, str | Mapping[str, Any]] = "",
        **settings: Any,
    ) -> None:
        wanted: dict[str, str] = {
            "fallback": fallback,
            "warmup": _shapes_text(warmup),
            "sizes": _sizes_text(sizes),
            "shapes": _open_shapes_text(shapes),
            "subgraphs": claimers_text(subgraphs),
        }
        if device is not None:
            devices = [device] if isinstance(device, str | _core.device) else list(device)
            wanted["device"] = ",".join(str(each) for each in devices)
        wanted.update({key: _setting_text(value) for key, value in settings.items()})
        self._set_up(_core.Predictor(os.fspath(path), list(wanted.items())))

    def _set_up(self, native: _core.Predictor) -> None:
        self._native = native
        self._turn = threading.Lock()
        self.dimensions = [
            Dim(name, min=low, max=high, multiple_of=multiple)
            for name, low, high, multiple, _ in native.dimensions()
        ]
        self.inputs = {value.name: value for value in map(self._described, native.inputs())}
        self.outputs = {value.name: value for value in map(self._described, native.outputs())}
        self._outputs = list(self.outputs)

    def _described(self, value: tuple[str, _core.dtype, tuple[int, ...], tuple[int, ...]]) -> Value:
        name, dtype, shape, dimensions = value
        names = [dim.name for dim in self.dimensions]
        sizes = (
            names[which] if which >= 0 else size if size >= 0 else None
            for size, which in zip(shape, dimensions, strict=True)
        )
        return Value(name, dtype, tuple(sizes))

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """The outputs by name. Inputs are tensors, or what `tenon.asarray` takes, of the program's dtypes: nothing is
        converted. Results are new tensors on the predictor's device, without gradients, and share no memory with each
        other, an input or a weight."""
        with self._taking_turn():
            missing = [name for name in self.inputs if name not in inputs]
            if missing:
                raise ValueError(
                    f"run: expected all inputs, missing {', '.join(map(repr, missing))}; the program has "
                    f"{', '.join(map(repr, self.inputs))}"
                )
            tensors = [
                value if isinstance(value, Tensor) else _core.asarray(value)
                for value in inputs.values()
            ]
            results = self._native.run(list(inputs), tensors, self._outputs)
        return dict(zip(self._outputs, results, strict=True))

    __call__ = run

    @contextlib.contextmanager
    def _taking_turn(self) -> Iterator[None]:
        if not self._turn.acquire(blocking=False):
            raise RuntimeError(
                "the predictor is at work for another call; give each thread a clone()"
            )
        try:
            yield
        finally:
            self._turn.release()

    def clone(self) -> Predictor:
        """One for another thread, with the same weights in the same memory."""
        other = Predictor.__new__(Predictor)
        other._set_up(self._native.clone())
        return other

    def cancel(self) -> None:
        """From any thread: the run that is under way raises RuntimeError before its next step. Runs that begin later
        are not concerned."""
        self._native.cancel()

    def warmup(self, shapes: str | Sequence[Shapes] = "recorded") -> None:
        """Run on zeros, so that later runs find prepared what a first run prepares."""
        with self._taking_turn():
            self._native.warmup(_shapes_text(shapes))

    @contextlib.contextmanager
    def hook(self, function: Callable[[int, str, str, int, list[Tensor]], Any]) -> Iterator[None]:
        """Inside the block `function(index, operator, file, line, results)` is called after each step, and steps run one by
        one. `results` are copies. An exception of it ends the run."""
        self._native.set_hook(function)
        try:
            yield
        finally:
            self._native.set_hook(None)

    def save_optimized(self, path: str | os.PathLike[str]) -> None:
        """Write a .tenon file of the program as it was prepared, with its weights and what this processor's kernels have packed
        of them.

        A predictor of that file maps the packed weights instead of packing them, and shares their pages with other processes
        (docs/inference.md). On another processor it packs the weights as for other files. Raises NotImplementedError for a
        model of ONNX that is one program for each size.
        """
        with self._taking_turn():
            self._native.save_optimized(os.fspath(path))

    def setting(self, key: str) -> str:
        """The value of a key; for "device" the device that it runs on."""
        return self._native.setting(key)

    def explain(self) -> str:
        """For each step its device, dtype, kernel's plugin and bytes; what runs together; memory."""
        return self._native.explain()

    def profile(self) -> str:
        """How often and how long each step ran, of a predictor made with `profile=True`."""
        return self._native.profile()

    def program(self) -> str:
        """The text form of the program that runs."""
        return self._native.program()

    def memory(self) -> dict[str, int]:
        """Bytes of `weights`, which clones share, and of `results` that live at once, at the recorded sizes."""
        return dict(zip(("weights", "results"), self._native.memory(), strict=True))

    def shrink_memory(self) -> int:
        """Give memory back that is kept for later calls, of the whole process: how many bytes."""
        return self._native.shrink_memory()

    def __repr__(self) -> str:
        def listed(values: Mapping[str, Value]) -> str:
            return ", ".join(
                f"{value.name}: {value.dtype}[{', '.join('?' if s is None else str(s) for s in value.shape)}]"
                for value in values.values()
            )

        return f"<tenon.inference.Predictor ({listed(self.inputs)}) -> ({listed(self.outputs)})>"


def _setting_text(value: Any) -> str:
    """As the configuration takes it: booleans in lower case, lists with commas."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(_setting_text(item) for item in value)
    return str(value)


def _shapes_text(shapes: str | Sequence[Shapes]) -> str:
    """{"x": (1, 3)} as "x=1x3"."""
    if isinstance(shapes, str):
        return shapes
    return ";".join(
        ",".join(f"{name}={'x'.join(map(str, shape))}" for name, shape in run.items())
        for run in shapes
    )


def _size_text(size: Any) -> str:
    """8 as "8", ranges as "1:64"."""
    if isinstance(size, Dim):
        if size.multiple_of != 1:
            raise ValueError(
                f"sizes: expected ranges of all sizes from min to max, got {size!r}, of some alone"
            )
        size = (size.min, size.max)
    if isinstance(size, tuple | list):
        low, high = size
        return f"{low}:{high}" if low != high else str(low)
    return str(int(size))


def _sizes_text(sizes: str | Mapping[str, Size]) -> str:
    if isinstance(sizes, str):
        return sizes
    return ",".join(f"{name}={_size_text(size)}" for name, size in sizes.items())


def _open_shapes_text(
    shapes: str | Mapping[str, Sequence[Size] | Sequence[Sequence[Size]]],
) -> str:
    """{"x": (1, 3)} as "x=1x3"; a list of lists is of a sequence, one shape for each tensor."""
    if isinstance(shapes, str):
        return shapes
    lines: list[str] = []
    for name, shape in shapes.items():
        is_sequence = len(shape) > 0 and all(isinstance(item, list) for item in shape)
        each: Any = shape if is_sequence else [shape]
        lines += [f"{name}={'x'.join(map(_size_text, one))}" for one in each]
    return ",".join(lines)

# SPDX-License-Identifier: Apache-2.0
"""tenon.compile(dynamic=True): one program for the sizes that differ between calls.

The first call of another size finds which axes differ. The function is recorded at a handful of sizes, with the
elements of the call's arguments again and again, as `export` does, and the recordings become one program. What the
function found by comparing sizes, the program requires of its arguments; sizes for which that does not hold, or for
which an operator makes something else than was recorded, are signatures of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenon import _core, random
from tenon._core import Tensor
from tenon.jit import structures
from tenon.jit.captured_state import Outside
from tenon.jit.dynamic_shapes import (
    Dim,
    SizeTracer,
    dimensions_of,
    plain,
    resized,
    text_of,
)
from tenon.jit.kept_state import KeptState
from tenon.jit.program import Program, name_leaves
from tenon.jit.syntax.user_code import PACKAGE

_MIN_UPPER_BOUND = 64  # of sizes, where the function can run them
MAX_KNOWN = 16  # calls, by their shapes, that are made without looking for the program in Python
MAX_CHANGES = 4  # of what it reads, during recordings: tensors get methods on first use
_MAX_RECORDED = 8  # times that more sizes are left open, or larger ones

SHARDED = "results or gradients of it are sharded tensors, whose sizes programs do not leave open; each size is a signature"

Shapes = tuple[tuple[int, ...], ...]


class Unfit(Exception):
    """Why a function has no program of many sizes."""


class Changed(Exception):
    """What the function reads outside was changed meanwhile, by itself or by another thread."""


def pattern(tensors: Sequence[Tensor]) -> Any:
    """What is the same for all sizes of one program: none and one element are no examples of others, and other
    layouts neither. None: a tensor is not contiguous."""
    if not all(tensor.is_contiguous() for tensor in tensors):
        return None
    return tuple(tuple(size if size < 2 else -1 for size in tensor.shape) for tensor in tensors)


class OpenSizes:
    """The calls of one pattern, and which of their sizes a program leaves open."""

    def __init__(self, first: Shapes, key: Any) -> None:
        self.seen = [first]  # examples that tell sizes apart
        self.key = key  # of the signature of the first one
        self.entry: Any = None  # of the program
        self.axes: list[dict[int, Dim]] = []  # that the program leaves open, of each tensor
        self.reason = ""  # why there is none, or none for more sizes
        self.recorded = self.changes = 0
        self.known: list[Any] = []  # entries of calls that need not come here
        self.written: list[
            Tensor
        ] = []  # among these are the tensors from outside that it writes into

    def versions(self) -> list[int]:
        return [tensor._version for tensor in self.written]

    def admits(self, shapes: Shapes) -> bool:
        """Whether the program may take them; what it found by comparing sizes is its own to say."""
        known: dict[str, int] = {}
        for axes, shape, example in zip(self.axes, shapes, self.seen[0], strict=True):
            for axis, size in enumerate(shape):
                dim = axes.get(axis)
                if dim is None:
                    if size != example[axis]:
                        return False
                elif not dim.min <= size <= dim.max or known.setdefault(dim.name, size) != size:
                    return False
        return True

    def widen(self, shapes: Shapes) -> bool:
        """Takes another example. False: there were too many."""
        if self.reason or self.recorded >= _MAX_RECORDED:
            return False
        self.seen.append(shapes)
        return True

    def proposals(self) -> list[list[dict[int, Dim]]]:
        """For each tensor the axes to leave open; from 2 to a power of two, and for functions that cannot run these, as
        far as was seen. Axes that were equal in all examples share a dimension."""
        return [self._proposal(False), self._proposal(True)]

    def _proposal(self, is_tight: bool) -> list[dict[int, Dim]]:
        named: dict[tuple[int, ...], Dim] = {}
        axes: list[dict[int, Dim]] = []
        for t, shape in enumerate(self.seen[0]):
            axes.append({})
            for axis in range(len(shape)):
                sizes = tuple(shapes[t][axis] for shapes in self.seen)
                if len(set(sizes)) == 1:
                    continue
                if sizes not in named:
                    low, high = min(sizes), max(sizes)
                    if not is_tight:
                        low, high = 2, 1 << (max(high, _MIN_UPPER_BOUND) - 1).bit_length()
                    named[sizes] = Dim(f"size{len(named)}", min=low, max=high)
                axes[-1][axis] = named[sizes]
        return axes

    def text(self) -> str:
        """For `explain`: "([size0, 8], [size0, size1]), size0 from 2 to 64, size1 from 2 to 64"."""
        parts = []
        for axes, shape in zip(self.axes, self.seen[0], strict=True):
            sizes = [axes[i].name if i in axes else str(n) for i, n in enumerate(shape)]
            parts.append(f"[{', '.join(sizes)}]")
        dims = {dim.name: dim for axes in self.axes for dim in axes.values()}
        ranges = [f"{name} from {dim.min} to {dim.max}" for name, dim in dims.items()]
        return f"({', '.join(parts)}), {', '.join(ranges)}"


def record(
    function: Callable[..., Any],
    structure: list[Any],
    tensors: Sequence[Tensor],
    open_sizes: OpenSizes,
    passes: str,
    outside: Outside,
    written: Sequence[Tensor] | None,
) -> Program:
    """A program of many sizes, of which those of `tensors` are an example; `open_sizes.axes` are what it leaves open. What the
    function writes is put back in the tensors that it reaches and in `written`; None: it writes nothing. Raises Unfit and Changed."""
    open_sizes.recorded += 1
    state = random.get_state()
    # Also where it writes nothing: at other sizes it may.
    kept = KeptState([*(written or []), *tensors, *outside.tensors()])
    unfit: Unfit | None = None
    for axes in open_sizes.proposals():
        dimensions = dimensions_of(axes, tensors)
        try:
            program = _record_at(
                function, structure, tensors, axes, dimensions, passes, outside, kept, written
            )
        except Unfit as error:
            unfit = error
            continue
        finally:
            kept.put_back()
            if random.get_state() != state:
                random.set_state(state)
        open_sizes.axes = axes
        return program
    assert unfit is not None
    raise unfit


def _record_at(
    function: Callable[..., Any],
    structure: list[Any],
    tensors: Sequence[Tensor],
    axes: list[dict[int, Dim]],
    dimensions: list[tuple[str, int, int, int, int]],
    passes: str,
    outside: Outside,
    kept: KeptState,
    written: Sequence[Tensor] | None,
) -> Program:
    names = [dimension[0] for dimension in dimensions]
    samples: list[_core.Program] = []
    tracers: list[SizeTracer] = []
    recorded: dict[str, int] = {}
    results: list[Any] = []
    for row in _core.program_samples(dimensions):
        sizes = dict(zip(names, row, strict=True))
        at = resized(tensors, axes, sizes)
        try:
            with SizeTracer() as tracer:
                first, _ = _recording(function, structure, at, outside, kept, written)
                second, outputs = _recording(function, structure, at, outside, kept, written)
                settled = name_leaves(first.settle(second), function)
        except Exception as error:
            raise Unfit(f"at {text_of(sizes)}: {error}") from None
        if not outside.is_unchanged():
            raise Changed
        outputs = plain(outputs)
        if not samples:
            recorded, results = sizes, outputs
        elif not structures.same(outputs, results):
            raise Unfit(
                f"it returns {structures.describe(outputs)} at {text_of(sizes)}, and "
                f"{structures.describe(results)} at {text_of(recorded)}"
            )
        else:
            try:
                tracer.check(tracers[0], text_of(sizes), text_of(recorded))
            except RuntimeError as error:
                raise Unfit(str(error).removeprefix("export: ")) from None
        samples.append(settled.optimize(passes))
        tracers.append(tracer)
    requirements = ["".join(f"{line}\n" for line in each.requirements) for each in tracers]
    try:
        native = _core.program_unify(dimensions, samples, requirements)
    except (RuntimeError, ValueError) as error:
        raise Unfit(str(error).removeprefix("export: ")) from None
    return Program(native, structure, results)


def _recording(
    function: Callable[..., Any],
    structure: list[Any],
    tensors: list[Tensor],
    outside: Outside,
    kept: KeptState,
    written: Sequence[Tensor] | None,
) -> tuple[_core.Program, list[Any]]:
    recording = _core.Recording(tensors, PACKAGE)
    try:
        args, kwargs = structures.unflatten(structure, iter(tensors))
        outputs: list[Tensor] = []
        returned = structures.flatten(function(*args, **kwargs), outputs)
        native = recording.finish(outputs)
        if recording.reads_random_state():
            raise Unfit("it reads the state of random numbers")
        if any(native.effects()[:2]) and written is None:
            raise Unfit(
                "it writes into tensors from outside, or assigns .grad, at some sizes alone"
            )
        # What it reads at some sizes alone is not watched: only what the example of the signature read.
        grads = {id(tensor) for tensor in outside.grads}
        operators = recording.operators_defined_in_python()
        if any(id(tensor) not in grads for tensor, _ in recording.grads_read()):
            raise Unfit("it reads .grad that it did not read at another size")
        if not set(operators) <= set(outside.operators):
            raise Unfit(
                f"it calls operators that it did not call at another size: {', '.join(operators)}"
            )
        return native, returned
    finally:
        recording.abandon()
        kept.put_back()

# SPDX-License-Identifier: Apache-2.0
"""Programs that are put together call by call, for those who know the calls and have no function to record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenon import _core
from tenon._core import Tensor
from tenon.jit import structures
from tenon.jit.program import PASSES, Program

_COND, _WHILE, _SCAN = 3, 4, 5  # TENON_GRAPH_STEP_COND, ...


class Builder:
    """Builds a program without running it.

        builder = tenon.jit.Builder()
        x = builder.input((3, 4))
        y = builder.call("relu", builder.call("linear", x, builder.leaf(weight, "weight")))
        program = builder.finish(y)

    A value is a tensor of the device `meta`: it has a shape and a dtype and no data. What a call makes is what the
    operator's own rule says, and its errors are the operator's own. `device` is where the program will run: of
    inputs, and of calls that create tensors. A builder belongs to one thread at a time.
    """

    def __init__(self, device: _core.device | str | None = None) -> None:
        self._native = _core.ProgramBuilder(device)
        self._ninputs = 0

    def input(
        self,
        shape: Sequence[int],
        dtype: _core.dtype | str = "float32",
        device: _core.device | str | None = None,
    ) -> Tensor:
        """The next argument of the program, which has this shape and dtype at every run."""
        self._ninputs += 1
        return self._native.input(dtype, shape, device)

    def leaf(self, tensor: Tensor, name: str = "") -> Tensor:
        """A tensor that the program uses, by reference, as it is at each run: a weight. The same tensor again is the
        same value."""
        return self._native.leaf(tensor, name)

    def constant(self, tensor: Tensor) -> Tensor:
        """A tensor whose elements never change, so that passes may compute with it; it is not copied."""
        return self._native.leaf(tensor, "", True)

    def call(self, name: str, *args: Any, **keywords: Any) -> Any:
        """Add a call of the operator `name`, "relu" or "acme::swiglu", with the arguments of `tenon.<name>`; tensors among
        them are values, or with data and become leaves. Returns the value of its result, a list where it has several.
        `add_` and `out=` write into a value when the program runs.

        A composite operator becomes its parts, unless the device has a kernel for the whole.
        """
        return self._native.call(name, *args, **keywords)

    def cond(
        self, predicate: Tensor, operands: Sequence[Tensor], then: Program, otherwise: Program
    ) -> list[Tensor]:
        """A branch. Both regions are programs that other builders made, of as many inputs as there are `operands` and
        with results of the same types; tensors that they read are read here."""
        regions = [then._native, otherwise._native]
        return self._native.control(
            _COND, [predicate, *operands], 0, 0, regions, regions[0].nresults
        )

    def while_loop(
        self, carried: Sequence[Tensor], others: Sequence[Tensor], condition: Program, body: Program
    ) -> list[Tensor]:
        """A loop as long as `condition(*carried, *others)`, a bool tensor of one element, holds;
        `body(*carried, *others)` returns the next carried values."""
        return self._native.control(
            _WHILE,
            [*carried, *others],
            len(carried),
            0,
            [condition._native, body._native],
            len(carried),
        )

    def scan(
        self,
        carried: Sequence[Tensor],
        xs: Sequence[Tensor],
        others: Sequence[Tensor],
        body: Program,
    ) -> list[Tensor]:
        """`body(*carried, *elements, *others)` for the elements of `xs` along their first axis. It returns the next carried
        values, then others; these are stacked, and come behind the last carried values."""
        return self._native.control(
            _SCAN,
            [*carried, *xs, *others],
            len(carried),
            len(xs),
            [body._native],
            body._native.nresults,
        )

    def gradients(self, result: Tensor, values: Sequence[Tensor]) -> list[Tensor]:
        """Of the sum of `result` with respect to each of `values`, as steps behind those there are. They have gradients, too.
        `result` cannot depend on a value through a branch or a loop."""
        return self._native.gradients(result, values)

    def constant_of(self, value: Tensor) -> Tensor | None:
        """The tensor that a value stands for if it is a constant, else None."""
        return self._native.constant_of(value)

    def device_of(self, value: Tensor) -> _core.device:
        """Where a run has the value."""
        return self._native.device_of(value)

    def locate(self, file: str, line: int) -> None:
        """The calls that follow stand at this place of the caller's program or file, as errors and the text form say."""
        self._native.locate(file, line)

    def finish(self, results: Any, *, arguments: Any = None) -> Program:
        """The program, with `results` as its results: values in tuples, lists and dicts. It is optimized as `tenon.export`
        does. `arguments`: a tuple with the structure of what it is called with; default: one for each input."""
        values: list[Tensor] = []
        outputs = structures.flatten(results, values)
        given: list[Tensor] = []
        inputs: list[Any] = ["tuple", [structures.TENSOR] * self._ninputs]
        if arguments is not None:
            inputs = structures.flatten(tuple(arguments), given)
            if len(given) != self._ninputs:
                raise ValueError(
                    f"builder: expected arguments with {self._ninputs} tensors, as many as inputs, got {len(given)}"
                )
        native = self._native.finish(values).optimize(",".join(PASSES))
        return Program(native, inputs, outputs)

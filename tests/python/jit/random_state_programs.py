# SPDX-License-Identifier: Apache-2.0
"""Random programs with state: views, writes in place, constants made inside, tensors from outside that are written, branches
on Python's values, and gradients. The same seed makes the same program with fresh state."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import tenon

UNARY = "tanh exp sin relu sigmoid square abs negative sqrt gelu".split()
BINARY = "add subtract multiply maximum minimum".split()
IN_PLACE = "add_ sub_ mul_".split()
SHAPE = (4, 6)

Values = list[Any]
Step = Callable[[Values], None]


class StateProgram:
    """`function(x)` reads and writes `state`; `settings` are numbers of Python that it reads."""

    def __init__(self, seed: int, gradients: bool | None = None) -> None:
        self._draw = random.Random(seed)
        self._numbers = np.random.default_rng(seed)
        draw = self._draw
        self.gradients = draw.random() < 0.4 if gradients is None else gradients
        self.settings: dict[str, Any] = {"scale": 1.5, "twice": False, "rows": [0, 2]}
        self.state = [self._tensor() for _ in range(draw.randint(1, 3))]
        self.weights = [self._tensor() for _ in range(2)]
        if self.gradients:
            for weight in self.weights:
                weight.requires_grad = True
        self._count = 1 + len(self.state) + len(self.weights)
        self._steps = [self._step() for _ in range(draw.randint(4, 24))]
        last = self._count - 1
        self._results = sorted({last, *(draw.randrange(self._count) for _ in range(2))})
        self.input = self._tensor()
        del self._draw, self._numbers  # a compiled function that may read them stays as it is

    def _tensor(self) -> tenon.Tensor:
        return tenon.tensor(self._numbers.standard_normal(SHAPE).astype("float32"))

    def _value(self) -> int:
        recent = self._draw.random() < 0.6
        return self._draw.randrange(max(0, self._count - 5) if recent else 0, self._count)

    def _step(self) -> Step:
        kinds = [self._unary, self._binary, self._view, self._write, self._constant, self._reduce]
        kinds += [self._setting, self._out]
        step = self._draw.choices(kinds, [30, 25, 15, 15, 10, 10, 8, 6])[0]()
        self._count += 1
        return step

    def _unary(self) -> Step:
        name, x = self._draw.choice(UNARY), self._value()
        return lambda v: v.append(getattr(tenon, name)(v[x]))

    def _binary(self) -> Step:
        name, x, y = self._draw.choice(BINARY), self._value(), self._value()
        return lambda v: v.append(getattr(tenon, name)(v[x], v[y]))

    def _view(self) -> Step:
        x, kind = self._value(), self._draw.randrange(5)
        views: list[Callable[[Any], Any]] = [
            lambda t: t[: max(1, len(t) // 2)],
            lambda t: t.T,
            lambda t: t[..., ::2],
            lambda t: t.reshape(-1)[: SHAPE[1]],
            lambda t: t.detach(),
        ]
        return lambda v: v.append(views[kind](v[x]))

    def _write(self) -> Step:
        name, x, y = self._draw.choice(IN_PLACE), self._value(), self._value()
        partial, number = self._draw.random() < 0.5, self._draw.uniform(-1, 1)

        def write(v: Values) -> None:
            target = v[x][:1] if partial and v[x].ndim else v[x]
            try:
                getattr(target, name)(v[y])
            except (ValueError, RuntimeError):
                getattr(target.detach(), name)(number)
            v.append(v[x])

        return write

    def _out(self) -> Step:
        x, y = self._value(), self._value()

        def write(v: Values) -> None:
            try:
                tenon.add(v[y].detach(), 0.5, out=v[x].detach())
            except (ValueError, RuntimeError):
                pass
            v.append(v[x])

        return write

    def _constant(self) -> Step:
        x = self._value()
        numbers = [self._draw.uniform(-1, 1) for _ in range(SHAPE[1])]
        written = self._draw.random() < 0.3

        def constant(v: Values) -> None:
            made = tenon.tensor(numbers)
            if written:
                made[0] = 2.0
                made.mul_(0.5)
            v.append(v[x] * made if v[x].ndim and v[x].shape[-1] == SHAPE[1] else v[x] * 0.5)

        return constant

    def _reduce(self) -> Step:
        name, x = self._draw.choice("sum mean max softmax".split()), self._value()

        def reduce(v: Values) -> None:
            if name == "softmax":
                v.append(tenon.softmax(v[x], -1) if v[x].ndim else v[x] * 1.0)
            else:
                v.append(getattr(tenon, name)(v[x], -1, keepdim=True) if v[x].ndim else v[x] * 1.0)

        return reduce

    def _setting(self) -> Step:
        x = self._value()

        def step(v: Values) -> None:
            y = v[x] * self.settings["scale"]
            v.append(y + y if self.settings["twice"] else y - self.settings["rows"][1])

        return step

    def __call__(self, x: tenon.Tensor) -> list[Any]:
        values: Values = [x, *self.state, *self.weights]
        for weight in self.weights:
            weight.grad = None
        before = len(values)
        for number, step in enumerate(self._steps):
            try:
                step(values)
            except (ValueError, RuntimeError):
                pass
            del values[before + number + 1 :]
            if len(values) <= before + number:
                values.append(values[-1])
        results = [values[i] for i in self._results]
        if self.gradients:
            # Through what gradients pass; a write may have spoiled what they need.
            losses = [r.sum() for r in results if r.requires_grad]
            if losses:
                sum(losses[1:], losses[0]).backward()
                results = [r.detach() for r in results]
                results += [w.grad for w in self.weights if w.grad is not None]
        return results

    def mutate(self, draw: random.Random) -> None:
        """Change something that the function reads."""
        kind = draw.randrange(6)
        if kind == 0:
            self.settings["scale"] = draw.choice([1.5, -0.5, 2.0])
        elif kind == 1:
            self.settings["twice"] = not self.settings["twice"]
        elif kind == 2:
            self.settings["rows"][1] = draw.randint(0, 3)
        elif kind == 3:
            with tenon.no_grad():
                self.state[0].mul_(0.5)
        elif kind == 4:
            self.state[-1] = tenon.full(SHAPE, draw.choice([0.25, 0.5]))
        else:
            with tenon.no_grad():
                self.weights[0].add_(0.125)


def bits(values: Any) -> Any:
    """What is compared. Programs keep the bits of all numbers, and of NaN only that it is one."""
    if isinstance(values, (list, tuple)):
        return [bits(each) for each in values]
    if isinstance(values, tenon.Tensor):
        numbers = values.detach().numpy()
        return values.shape, np.where(np.isnan(numbers), np.float32("nan"), numbers).tobytes()
    return values
